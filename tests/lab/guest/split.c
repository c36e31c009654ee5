// SPDX-License-Identifier: GPL-2.0-only
/*
 * main > first > second > third > { hot_a 75 %, hot_b 25 % } > spin, for ever. -DPARTS_A=,
 * -DPARTS_B=: other shares.
 */
#include "work.h"

#ifndef PARTS_A
#define PARTS_A 3
#define PARTS_B 1
#endif

WORK_FUNCTION static uint64_t W(hot_a)(uint64_t x, unsigned n)
{
	return W(spin)(x, PARTS_A * n) | 1;
}

WORK_FUNCTION static uint64_t W(hot_b)(uint64_t x, unsigned n)
{
	return W(spin)(x, PARTS_B * n) | 1;
}

WORK_FUNCTION static uint64_t W(third)(uint64_t x)
{
	unsigned n = W(rounds)(x);

	x = W(hot_a)(x, n);
	return W(hot_b)(x, n) | 1;
}

WORK_FUNCTION static uint64_t W(second)(uint64_t x)
{
	return W(third)(x) | 2;
}

WORK_FUNCTION static uint64_t W(first)(uint64_t x)
{
	return W(second)(x) | 4;
}

int main(void)
{
	volatile uint64_t x = 88172645463325252;

	for (;;)
		x = W(first)(x);
}
