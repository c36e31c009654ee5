// SPDX-License-Identifier: GPL-2.0-only
/* Inside src/stat: a run, as far as counts and exits have it in common. */
#ifndef VMPROF_STAT_RUN_H
#define VMPROF_STAT_RUN_H

#include "stat/loop.h"
#include "stat/stat.h"
#include "stat/vms.h"

struct stat_run {
	const struct stat_options *o;
	struct stat_vms vms;
	struct signals signals;
	struct workload command;
	FILE *out;
	void *what; /* counts or exits */
};

/* Where each of them comes in; all return 0 or -errno with a sentence. */
struct stat_kind {
	/* One VM is to be counted: opens it; it is the next one. @vm stays. */
	int (*open)(struct stat_run *r, const struct vm *vm, const struct event_list *events,
		    struct vmprof_err *err);
	/* All VMs are open: they begin to count. */
	int (*start)(struct stat_run *r, struct vmprof_err *err);
	/* A run begins, one of ->repeat; ->fd, ->ready and ->interval of the loop are set. */
	void (*begin)(struct stat_run *r, struct stat_loop *l);
	void (*end)(struct stat_run *r, const struct stat_loop *l);
	/* After all runs. */
	int (*finish)(struct stat_run *r, struct vmprof_err *err);
	void (*close)(struct stat_run *r);
};

extern const struct stat_kind stat_counts, stat_exits;

/* Prints the exits that the file o->input has. 0 or -errno with a sentence. */
int stat_exits_file(const struct stat_options *o, FILE *f, struct vmprof_err *err);

#endif
