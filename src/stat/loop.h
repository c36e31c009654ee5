// SPDX-License-Identifier: GPL-2.0-only
/*
 * The time that something is counted for: until a command, all VMs or a time have ended, or a
 * signal comes; with an interval after each of which it is told.
 */
#ifndef VMPROF_STAT_LOOP_H
#define VMPROF_STAT_LOOP_H

#include "record/signals.h"
#include "record/workload.h"
#include "vm/vm.h"

struct stat_loop {
	uint64_t start;		  /* clock_now_ns() when counting began */
	uint64_t interval_ns;	  /* 0: none */
	unsigned interval_count;  /* it ends after so many; 0: by itself never */
	uint64_t duration_ns;	  /* 0: no limit */
	struct workload *command; /* NULL: none */
	const struct signals *signals;
	const struct vm *const *vms;
	unsigned nr_vms;
	int fd;			  /* when it can be read ->ready() is called; -1: none */
	void (*ready)(void *ctx); /* also before each interval's end, and at the very end */
	/* At the end of an interval, the last one may be a part of it. 0 or -errno. */
	int (*interval)(void *ctx, uint64_t since_start_ns, struct vmprof_err *err);
	void *ctx;

	/* What it came to: */
	uint64_t elapsed_ns;
	int signal; /* that ended it, or 0 */
	int status; /* of the command */
};

/* 0 or -errno with a sentence. */
int stat_loop_run(struct stat_loop *l, struct vmprof_err *err);

#endif
