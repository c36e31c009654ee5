// SPDX-License-Identifier: GPL-2.0-only
#include "record/prompt.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "util/clock.h"

#define LOOK_NS 200000000ull /* a shorter time says nothing about a thread's share of a CPU */

static uint64_t cpu_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

void prompt_start(struct prompt *p, int priority)
{
	const struct sched_param param = {.sched_priority = priority};

	p->realtime = priority && !pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
	p->wall = clock_now_ns();
	p->cpu = cpu_now_ns();
}

void prompt_check(struct prompt *p)
{
	const struct sched_param param = {.sched_priority = 0};
	uint64_t wall = clock_now_ns() - p->wall, cpu = cpu_now_ns() - p->cpu;

	if (!p->realtime || wall < LOOK_NS)
		return;
	if (cpu > wall / 2) {
		pthread_setschedparam(pthread_self(), SCHED_OTHER, &param);
		p->realtime = false;
	}
	p->wall += wall;
	p->cpu += cpu;
}
