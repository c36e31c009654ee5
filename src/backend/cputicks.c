// SPDX-License-Identifier: GPL-2.0-only
#include "backend/cputicks.h"

#define IDLE_MAX_NS 5000000ull /* between two looks at a vCPU that uses no CPU time */

void cputicks_start(struct cputicks *t, uint64_t period, uint64_t cpu_time)
{
	*t = (struct cputicks){.period = period ? period : 1, .taken = cpu_time};
}

uint64_t cputicks_rest(const struct cputicks *t, uint64_t cpu_time)
{
	return cpu_time > t->taken ? (cpu_time - t->taken) / t->period : 0;
}

uint64_t cputicks_due(struct cputicks *t, uint64_t cpu_time, bool blocked, uint64_t now)
{
	uint64_t n = cputicks_rest(t, cpu_time);

	if (!n)
		return 0;
	if (!t->due_since)
		t->due_since = now;
	return blocked && now - t->due_since < CPUTICKS_PATIENCE_NS ? 0 : n;
}

void cputicks_take(struct cputicks *t, uint64_t n)
{
	t->taken += n * t->period;
	t->due_since = 0;
}

uint64_t cputicks_wait(const struct cputicks *t, uint64_t cpu_time, unsigned idle, uint32_t random)
{
	uint64_t used = cpu_time > t->taken ? cpu_time - t->taken : 0;
	uint64_t wait = used < t->period ? t->period - used : 0;
	uint64_t least = t->period / 4;

	wait = wait > least ? wait : least;
	wait = wait ? wait : 1; /* of a period of a few ns: it is doubled below */
	while (idle-- && wait < IDLE_MAX_NS)
		wait *= 2;
	return wait + t->period / 2 * (random % 1024) / 1024;
}
