// SPDX-License-Identifier: GPL-2.0-only
/*
 * vmprof stat: what VMs' events come to, and why their vCPUs left guest mode.
 */
#ifndef VMPROF_STAT_STAT_H
#define VMPROF_STAT_STAT_H

#include "events/wanted.h"
#include "stat/print.h"

enum exits_sort { EXITS_BY_TIME, EXITS_BY_COUNT };

struct stat_options {
	struct wanted wanted;
	bool all_vms, per_vcpu;
	uint64_t interval_ns; /* 0: once, at the end */
	unsigned interval_count;
	uint64_t duration_ns;
	unsigned repeat;
	enum stat_format format;
	const char *sep;
	const char *output; /* NULL: stderr for counts, stdout for exits */
	bool append;
	const char *backend; /* or NULL for the best */
	char **command;	     /* NULL-terminated, or NULL */
	bool exits;
	enum exits_sort sort;
	int vcpu;	   /* of exits: this one only; -1: all */
	const char *input; /* exits of this file of perf, and of no VM that runs; NULL: none */
};

struct stat_result {
	int status; /* exit status of the command */
	int signal; /* that ended the count, or 0; what was counted is printed all the same */
};

/* Counts as @o says and prints. 0 or -errno with a sentence. */
int stat_run(const struct stat_options *o, struct stat_result *result, struct vmprof_err *err);

#endif
