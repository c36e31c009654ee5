// SPDX-License-Identifier: GPL-2.0-only
/* How long a backend that looks at rings waits between two looks. Times are of clock_now_ns(). */
#ifndef VMPROF_BACKEND_PACE_H
#define VMPROF_BACKEND_PACE_H

#include <stdint.h>

#include "util/clock.h"

struct pace {
	int look_ms; /* while samples come */
	int idle_ms; /* when there were none for a quarter of a second */
};

/* When a read that may take @timeout_ms (< 0: for ever) has to return. */
static inline uint64_t pace_end(int timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : clock_now_ns() + (uint64_t)timeout_ms * 1000000;
}

/* @busy: when samples were last found. 0 if @end is over. */
static inline int pace_wait_ms(const struct pace *p, uint64_t now, uint64_t busy, uint64_t end)
{
	int wait = now - busy < 250000000ull ? p->look_ms : p->idle_ms;

	if (now >= end)
		return 0;
	return (end - now) / 1000000 < (uint64_t)wait ? (int)((end - now) / 1000000 + 1) : wait;
}

#endif
