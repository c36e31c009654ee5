// SPDX-License-Identifier: GPL-2.0-only
/*
 * phase_a and phase_b in turn, each for a time that is another one each time: no two stretches of
 * the pattern are alike, so that a profile of it can be laid on another one in one way only.
 */
#include <time.h>

#include "work.h"

#define MS 1000000ull

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 * MS + (uint64_t)ts.tv_nsec;
}

WORK_FUNCTION static uint64_t phase_a(uint64_t x, uint64_t end)
{
	while (now() < end)
		x = W(spin)(x, 2000);
	return x | 1;
}

WORK_FUNCTION static uint64_t phase_b(uint64_t x, uint64_t end)
{
	while (now() < end)
		x = W(spin)(x, 2000);
	return x | 2;
}

/* 150 to 400 ms */
static uint64_t length(uint64_t x)
{
	return (150 + (x >> 20) % 250) * MS;
}

int main(void)
{
	volatile uint64_t x = 88172645463325252;
	uint64_t end = now();

	for (;;) {
		end += length(x);
		x = phase_a(x, end);
		end += length(x);
		x = phase_b(x, end);
	}
}
