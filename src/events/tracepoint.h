// SPDX-License-Identifier: GPL-2.0-only
/* Inside src/events: numbers of the host's tracepoints, out of tracefs. */
#ifndef VMPROF_EVENTS_TRACEPOINT_H
#define VMPROF_EVENTS_TRACEPOINT_H

#include <stdint.h>

#include "util/err.h"

/* 0; -ENOENT (no such one), -EACCES (may not be looked at) or -EINVAL, with a sentence. */
int tracepoint_id(uint64_t *id, const char *root, const char *system, const char *name,
		  struct vmprof_err *err);

#endif
