// SPDX-License-Identifier: GPL-2.0-only
/*
 * What ends a run (of a record, of counting) from outside, and what must not end it.
 */
#ifndef VMPROF_RECORD_SIGNALS_H
#define VMPROF_RECORD_SIGNALS_H

#include <signal.h>

#include "util/err.h"

struct signals {
	int fd;		 /* signalfd, not blocking: SIGCHLD and those that end a run; -1: none */
	sigset_t before; /* the mask that was, for a command */
};

/* Blocks them, for all threads that will be; 0 or -errno with a sentence. */
int signals_block(struct signals *s, struct vmprof_err *err);
/* The mask as it was. What came meanwhile has had its answer. */
void signals_restore(struct signals *s);

/* A reader that went away and a limit of the file's size are errors of write(), not our end. */
void signals_ignore_writes(void);
/* Each vCPU takes some files; where that may not be, the limit is named when it is met. */
void raise_file_limit(void);

#endif
