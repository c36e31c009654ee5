// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPU time of a thread of another process.
 */
#ifndef VMPROF_BACKEND_THREADTIME_H
#define VMPROF_BACKEND_THREADTIME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/err.h"

struct threadtime {
	int fd;	   /* -1: closed */
	bool perf; /* of a perf event, exact; else the scheduler's own account, as of its last tick
		    */
};

int threadtime_open(struct threadtime *t, pid_t pid, pid_t tid, struct vmprof_err *err);
/* ns since some moment before the opening; 0 or -errno. */
int threadtime_read(const struct threadtime *t, uint64_t *ns);
void threadtime_close(struct threadtime *t);

#endif
