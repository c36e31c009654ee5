// SPDX-License-Identifier: GPL-2.0-only
/*
 * A record while it runs, whatever is recorded: the command goes, what has come is written twice a
 * second, and something ends it: the duration, the command's end, a signal, or that nothing is left
 * to be recorded.
 */
#ifndef VMPROF_RECORD_ROUNDS_H
#define VMPROF_RECORD_ROUNDS_H

#include "record/recorder.h"
#include "record/signals.h"
#include "record/workload.h"

struct rounds {
	const struct record_options *opts;
	struct workload workload;
	struct signals signals;
	int end_fd; /* eventfd: to be written by what has ended of itself */
	int signal; /* that ended the record, or 0 */
};

struct rounds_ops {
	int (*flush)(void *ctx, struct vmprof_err *err); /* what has come goes to the file */
	unsigned (*running)(void *ctx);			 /* how much is left to be recorded */
};

/*
 * Before anything is opened, and before there are threads: takes over the signals, makes the
 * command ready. 0 or -errno with a sentence; rounds_end() in either case.
 */
int rounds_begin(struct rounds *r, const struct record_options *opts, struct vmprof_err *err);
/* @status: of the command, as perf returns it. 0 or -errno with a sentence. */
int rounds_run(struct rounds *r, const struct rounds_ops *ops, void *ctx, int *status,
	       struct vmprof_err *err);
void rounds_end(struct rounds *r); /* the command, if it still runs; signals are as they were */

#endif
