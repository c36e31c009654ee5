// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work of a known kind. W(name) gives the functions of a program a prefix of its own (-DTAG=), so
 * that a frame in the wrong process is seen by its name.
 *
 * A leaf function gets no frame from gcc, whatever -f options say, unless its frame address is
 * asked for (WITH_FRAME); and calls must not be jumps: -fno-optimize-sibling-calls. -DNO_FRAMES is
 * for programs that are to have none.
 */
#ifndef VMPROF_LAB_WORK_H
#define VMPROF_LAB_WORK_H

#include <stdint.h>

#define CAT_(a, b) a##b
#define CAT(a, b)  CAT_(a, b)
#ifdef TAG
#define W(name) CAT(TAG, name)
#else
#define W(name) name
#endif

#define WORK_FUNCTION __attribute__((noinline, noclone, unused))

#ifdef NO_FRAMES
#define WITH_FRAME
#else
#define WITH_FRAME __asm__ volatile("" ::"r"(__builtin_frame_address(0)))
#endif

/*
 * All time is spent here: the same code, and so the same cost a round, whoever calls it; two
 * functions with the same loop may well differ by some per cent under a translator. A branch and
 * memory, so that it is several blocks.
 */
WORK_FUNCTION static uint64_t W(spin)(uint64_t x, unsigned rounds)
{
	static volatile uint64_t table[256];

	WITH_FRAME;
	for (unsigned i = 0; i < rounds; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		if (x & 1)
			table[(x >> 20) & 255] += x;
		else
			table[(x >> 30) & 255] ^= x;
	}
	return x;
}

/*
 * Rounds for the next turn of a loop, 10000 on an average, and another number each time: a loop of
 * one length could go in step with the sampler's clock, and its samples be no random ones.
 */
WORK_FUNCTION static unsigned W(rounds)(uint64_t x)
{
	return 5000 + (unsigned)((x >> 20) % 10001);
}

#endif
