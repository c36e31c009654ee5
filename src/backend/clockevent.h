// SPDX-License-Identifier: GPL-2.0-only
#ifndef VMPROF_BACKEND_CLOCKEVENT_H
#define VMPROF_BACKEND_CLOCKEVENT_H

#include "events/event.h"
#include "util/err.h"

/* vmprof_backend.try_event of a @backend that has clocks of what the guest does, and no more. */
int clockevent_try(const char *backend, const struct event *e, struct vmprof_err *err);

#endif
