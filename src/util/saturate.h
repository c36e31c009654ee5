// SPDX-License-Identifier: GPL-2.0-only
/* Sums of numbers that a file makes up: what is too much for them stays UINT64_MAX. */
#ifndef VMPROF_UTIL_SATURATE_H
#define VMPROF_UTIL_SATURATE_H

#include <stdint.h>

static inline void add_saturated(uint64_t *sum, uint64_t v)
{
	if (__builtin_add_overflow(*sum, v, sum))
		*sum = UINT64_MAX;
}

#endif
