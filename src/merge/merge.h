// SPDX-License-Identifier: GPL-2.0-only
/*
 * Profiles of a host and of its guests into one perf.data, ordered by one clock. What is done and
 * why is in vmprof-merge(1).
 */
#ifndef VMPROF_MERGE_MERGE_H
#define VMPROF_MERGE_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"

#define MERGE_INPUTS_MAX 256

struct merge_named {
	char *name; /* label, VM or path */
	int64_t value;
};

struct merge_options {
	const char *output;		   /* "-": standard output */
	char *const *inputs;		   /* "PATH" or "LABEL=PATH" */
	size_t nr_inputs;		   /* 1 to MERGE_INPUTS_MAX */
	const struct merge_named *offsets; /* --clock-offset, in ns */
	size_t nr_offsets;
	const struct merge_named *machines; /* --machine: the VM is this process of the host */
	size_t nr_machines;
	bool no_align, prefer_host, quiet;
	char *const *argv; /* for the file's header */
};

struct merge_result {
	bool damaged; /* an input is: what is whole of it was merged, and that was said */
	int signal;   /* that ended it; there is no output then */
};

/* 0, or -errno with a sentence and no output. Progress and losses go to stderr. */
int merge_run(const struct merge_options *opts, struct merge_result *result,
	      struct vmprof_err *err);

#endif
