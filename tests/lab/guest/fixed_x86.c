// SPDX-License-Identifier: GPL-2.0-only
/*
 * fixed ROUNDS: as fixed.c, on x86-64: work of which hot75 does 75 % and hot25 25 %, each alone in
 * a block of 256 bytes.
 */
#include <stdio.h>
#include <stdlib.h>

#define HOT __attribute__((noinline, noclone, aligned(256)))

static inline unsigned long loop(unsigned long n)
{
	unsigned long x = n;

	for (; n; n--) {
		x = x * n + 13;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

HOT static unsigned long hot75(void)
{
	return loop(75000);
}

HOT static unsigned long hot25(void)
{
	return loop(25000);
}

HOT static unsigned long ticks(void)
{
	return __builtin_ia32_rdtsc();
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 200;
	unsigned long start = ticks(), sum = 0;

	for (long i = 0; i < rounds; i++)
		sum += hot75() ^ hot25();
	printf("fixed %ld hot75 %lx hot25 %lx ticks %lu sum %lx\n", rounds, (unsigned long)hot75,
	       (unsigned long)hot25, ticks() - start, sum);
	return 0;
}
