// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file as the profile of a host, of one or two of its VMs, or of all of them, merged. The last
 * byte chooses.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "merge/merge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUTS = 3 };

/* What is said of each file goes nowhere; what finds its faults writes to the descriptor. */
static FILE *be_quiet(void)
{
	static FILE *null;

	if (!null)
		null = fopen("/dev/null", "we");
	if (null)
		stderr = null;
	return null;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const formats[INPUTS] = {"/proc/self/fd/%d", "vm=/proc/self/fd/%d",
						    "other=/proc/self/fd/%d"};
	uint8_t byte = size ? data[size - 1] : 0;
	char path[INPUTS][64], *inputs[INPUTS];
	struct merge_options opt = {
		.output = "/dev/null",
		.inputs = inputs,
		.no_align = byte & 8,
		.prefer_host = byte & 16,
		.quiet = byte & 32,
	};
	struct merge_result result;
	struct vmprof_err err;
	int fd[INPUTS];
	bool good = be_quiet();

	for (int i = 0; i < INPUTS; i++) {
		fd[i] = memfd_create("fuzz", MFD_CLOEXEC);
		good = good && fd[i] >= 0 && write(fd[i], data, size) == (ssize_t)size;
		snprintf(path[i], sizeof(path[i]), formats[i], fd[i]);
		if (byte >> i & 1)
			inputs[opt.nr_inputs++] = path[i];
	}
	if (!opt.nr_inputs)
		inputs[opt.nr_inputs++] = path[0];
	if (good)
		merge_run(&opt, &result, &err);
	for (int i = 0; i < INPUTS; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	return 0;
}
