// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file from the reader through the session into all that the commands make of it. The last byte
 * chooses the options.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/every_command.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct report_options choose(uint8_t byte)
{
	static const char *const sorts[] = {NULL, "sym", "vm,vcpu,pid", "cgroup,cpu,tgid"};
	static const char *const filters[] = {NULL, "host"};

	return (struct report_options){
		.sort = sorts[byte & 3],
		.children = byte & 4,
		.by_vm = byte & 8,
		.max_stack = 127,
		.filter.vms = filters[byte >> 4 & 1],
		.callgraph = {.mode = byte & 32 ? CALLGRAPH_FRACTAL : CALLGRAPH_GRAPH,
			      .min_percent = 0.5,
			      .caller = byte & 64},
		.verbose = byte >> 7,
	};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct report_options opt = choose(size ? data[size - 1] : 0);
	static FILE *null;
	struct perfdata_reader *reader;
	struct vmprof_err err;
	char path[32];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (!null)
		null = fopen("/dev/null", "we");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd >= 0 && null && write(fd, data, size) == (ssize_t)size)
		for (size_t i = 0; i < EVERY_COMMAND; i++) {
			if (perfdata_reader_open(&reader, path, &err))
				break;
			every_command[i](reader, &opt, null, &err);
			perfdata_reader_close(reader);
		}
	close(fd);
	return 0;
}
