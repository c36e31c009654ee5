// SPDX-License-Identifier: GPL-2.0-only
/*
 * fixed ROUNDS: fixed work on arm64, 800,000 instructions a round, of which hot75 executes 75 % and
 * hot25 25 %. Each of the two is alone in a block of 256 bytes. Prints where they are and the ticks
 * of the virtual counter that it took, on one line.
 */
#include <stdio.h>
#include <stdlib.h>

#define HOT __attribute__((noinline, noclone, aligned(256)))

/* Eight instructions an iteration. */
static inline unsigned long loop(unsigned long n)
{
	unsigned long x = n;

	__asm__ volatile("1: mul %0, %0, %1\n"
			 "add %0, %0, #13\n"
			 "eor %0, %0, %0, lsr #7\n"
			 "ror %0, %0, #3\n"
			 "add %0, %0, %1\n"
			 "eor %0, %0, %0, lsl #9\n"
			 "subs %1, %1, #1\n"
			 "b.ne 1b\n"
			 : "+r"(x), "+r"(n)
			 :
			 : "cc");
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
	unsigned long t;

	__asm__ volatile("isb\n mrs %0, cntvct_el0" : "=r"(t));
	return t;
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
