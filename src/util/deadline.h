// SPDX-License-Identifier: GPL-2.0-only
/* Waiting for another thread, with a time limit that setting the clock does not move. */
#ifndef VMPROF_UTIL_DEADLINE_H
#define VMPROF_UTIL_DEADLINE_H

#include <pthread.h>
#include <time.h>

/* For pthread_cond_timedwait() with a time of deadline_after(). */
static inline void deadline_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

static inline struct timespec deadline_after(int ms)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += ms / 1000;
	ts.tv_nsec += ms % 1000 * 1000000l;
	if (ts.tv_nsec >= 1000000000l) {
		ts.tv_sec++;
		ts.tv_nsec -= 1000000000l;
	}
	return ts;
}

#endif
