// SPDX-License-Identifier: GPL-2.0-only
/*
 * fixed ROUNDS [INCREMENTS]: fixed work on arm64, 800,000 instructions a round, of which hot75
 * executes 75 % and hot25 25 %. Each of the two is alone in a block of 256 bytes. A round makes as
 * many events SW_INCR besides, as long as the CPU lets it. Prints where the functions are, the
 * ticks of the virtual counter that it took and the events that it has made, on one line.
 */
#define _GNU_SOURCE
#include <signal.h>
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

static volatile sig_atomic_t forbidden;

static void on_sigill(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	forbidden = 1;
	((ucontext_t *)context)->uc_mcontext.pc += 4;
}

HOT static unsigned long increments(unsigned long wanted)
{
	unsigned long i;

	for (i = 0; i < wanted && !forbidden; i++)
		__asm__ volatile("msr pmswinc_el0, %0" : : "r"(0xfful));
	return i;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 200;
	unsigned long wanted = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	struct sigaction action = {.sa_sigaction = on_sigill, .sa_flags = SA_SIGINFO};
	unsigned long start = ticks(), sum = 0, made = 0;

	sigaction(SIGILL, &action, NULL);
	for (long i = 0; i < rounds; i++) {
		sum += hot75() ^ hot25();
		made += increments(wanted);
	}
	printf("fixed %ld hot75 %lx hot25 %lx ticks %lu sum %lx made %lu\n", rounds,
	       (unsigned long)hot75, (unsigned long)hot25, ticks() - start, sum,
	       forbidden ? 0 : made);
	return 0;
}
