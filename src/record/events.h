// SPDX-License-Identifier: GPL-2.0-only
/*
 * The events that were asked for, fitted to what a backend has for one VM.
 */
#ifndef VMPROF_RECORD_EVENTS_H
#define VMPROF_RECORD_EVENTS_H

#include <linux/perf_event.h>

#include "backend/backend.h"

/*
 * Fits @l to what @b has for @vm (NULL: for the machine that we run on): "cycles" falls back to
 * cpu-clock, as in perf, and that is said in
 * @fell_back (@size bytes; "" if nothing was changed). Any other event that the backend has not is
 * an error. The result goes to @out, to be freed like any list. 0 or -errno with a sentence.
 */
int events_fit(const struct event_list *l, const struct vmprof_backend *b, const struct vm *vm,
	       struct event_list *out, char *fell_back, size_t size, struct vmprof_err *err);

/* How the file says what it is. */
struct perf_event_attr events_file_attr(const struct event *ev);

#endif
