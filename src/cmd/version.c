// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>

#include "cli/messages.h"
#include "cli/options.h"
#include "cmd/cmd.h"

static const char usage[] = "vmprof version [--build-options]";

/* Optional libraries; the Makefile defines HAVE_x as 0 or 1. */
static const struct {
	const char *name;
	int have;
	const char *what;
} options[] = {
	{"libcapstone", HAVE_CAPSTONE, "disassembles, for annotate"},
	{"libdw", HAVE_LIBDW, "reads source lines and inlined functions"},
	{"libiberty", HAVE_LIBIBERTY, "demangles C++ and Rust names"},
	{"liblzma", HAVE_LIBLZMA, "reads mini debug info (.gnu_debugdata)"},
	{"libtraceevent", HAVE_LIBTRACEEVENT, "prints what is in tracepoints"},
	{"libzstd", HAVE_LIBZSTD, "reads compressed perf.data and sections"},
	{"xen", HAVE_XEN, "sees and samples domains, in Xen's dom0"},
	{"zlib", HAVE_ZLIB, "compresses what export writes, reads compressed sections"},
};

int cmd_version(int argc, char **argv)
{
	static const struct option longopts[] = {
		{"build-options", no_argument, NULL, 'b'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int build_options = 0, c;

	while ((c = cli_getopt(argc, argv, "h", longopts)) != -1) {
		switch (c) {
		case 'b':
			build_options = 1;
			break;
		case 'h':
			return cli_help("version", usage);
		default:
			return cli_usage_error("version", usage);
		}
	}
	printf("vmprof version %s\n", VMPROF_VERSION);
	for (size_t i = 0; build_options && i < sizeof(options) / sizeof(*options); i++)
		printf("%15s: [ %s ]  # %s\n", options[i].name, options[i].have ? "on" : "OFF",
		       options[i].what);
	return 0;
}
