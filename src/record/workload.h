// SPDX-License-Identifier: GPL-2.0-only
/* The command behind "--": made ready first, let go when sampling has begun. */
#ifndef VMPROF_RECORD_WORKLOAD_H
#define VMPROF_RECORD_WORKLOAD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "util/err.h"

struct workload {
	pid_t pid;     /* 0: none */
	int go_fd;     /* a byte to it lets the command go; -1 after that */
	int status_fd; /* errno of a failed exec comes from it */
};

/* Forks; the child waits. @sigmask: the signal mask that the command gets. */
int workload_prepare(struct workload *w, char **argv, const sigset_t *sigmask,
		     struct vmprof_err *err);
/* Lets it go. -errno with a sentence if the command could not be executed. */
int workload_start(struct workload *w, const char *name, struct vmprof_err *err);
/* Without waiting: has it ended? @status: what perf returns for it. */
bool workload_ended(struct workload *w, int *status);
/* Ends it if it still runs, with SIGTERM, or with SIGKILL if it does not obey; waits for it. */
void workload_stop(struct workload *w);

#endif
