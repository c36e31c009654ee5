// SPDX-License-Identifier: GPL-2.0-only
#include "backend/direct_clock.h"

#include "util/clock.h"

#define NSEC  1000000000.0
#define TRIES 5	   /* the reading that was disturbed least counts */
#define FAR   1e15 /* ns: the counter is not what it was */
#define LATE  100000000ull
#define NEAR  1000000 /* ns between pairs that tell a rate: their errors are thousandths of it */

#if defined(__aarch64__)
static uint64_t read_counter(void)
{
	uint64_t ticks;

	__asm__ volatile("isb\n mrs %0, cntvct_el0" : "=r"(ticks)::"memory");
	return ticks;
}

uint64_t direct_counter_frequency(void)
{
	uint64_t hz;

	__asm__("mrs %0, cntfrq_el0" : "=r"(hz));
	return hz;
}
#elif defined(__x86_64__)
static uint64_t read_counter(void)
{
	return __builtin_ia32_rdtsc();
}

uint64_t direct_counter_frequency(void)
{
	return 0;
}
#endif

struct direct_pair direct_pair_read(void)
{
	struct direct_pair best = {.error = UINT64_MAX};

	for (int i = 0; i < TRIES; i++) {
		uint64_t from = clock_now_ns(), ticks = read_counter(), to = clock_now_ns();
		uint64_t error = (to - from + 1) / 2;

		if (error < best.error)
			best = (struct direct_pair){ticks, from + error, error};
	}
	return best;
}

void direct_clock_start(struct direct_clock *c, const struct direct_pair *now, uint64_t frequency)
{
	*c = (struct direct_clock){.start = *now,
				   .before = *now,
				   .now = *now,
				   .frequency = frequency,
				   .error = now->error};
}

void direct_clock_step(struct direct_clock *c, const struct direct_pair *now)
{
	if (c->now.ns >= c->before.ns + NEAR)
		c->before = c->now;
	c->now = *now;
	c->error = now->error > c->error ? now->error : c->error;
}

/* ns a tick; 0 not known */
static double between(const struct direct_pair *from, const struct direct_pair *to)
{
	if (to->ns < from->ns + NEAR || to->ticks <= from->ticks)
		return 0;
	return (double)(to->ns - from->ns) / (double)(to->ticks - from->ticks);
}

/* Where the last two are too near, what is older than both may still come. */
static double rate(const struct direct_clock *c)
{
	double last = between(&c->before, &c->now);

	if (last > 0)
		return last;
	return c->frequency ? NSEC / (double)c->frequency : between(&c->start, &c->now);
}

uint64_t direct_clock_ns(const struct direct_clock *c, uint64_t ticks)
{
	double off = (double)(int64_t)(ticks - c->now.ticks) * rate(c);

	if (-off > (double)c->now.ns)
		return 0;
	if (off > FAR)
		return c->now.ns;
	return c->now.ns + (uint64_t)(int64_t)off;
}

uint64_t direct_clock_in_order(const struct direct_clock *c, uint64_t ticks)
{
	uint64_t time = direct_clock_ns(c, ticks);

	return time + LATE < c->last ? c->last - LATE : time;
}

uint64_t direct_clock_sample(struct direct_clock *c, uint64_t ticks)
{
	uint64_t time = direct_clock_in_order(c, ticks);

	c->last = time > c->last ? time : c->last;
	return time;
}
