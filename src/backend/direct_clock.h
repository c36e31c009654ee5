// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times of a guest's handler, which are ticks of the guest's counter, as the host's
 * CLOCK_MONOTONIC. Host and guest read the same counter but for a constant offset, which the host's
 * module knows; the counter's place in the host's time comes from paired readings, between two of
 * which both are taken to be straight.
 */
#ifndef VMPROF_BACKEND_DIRECT_CLOCK_H
#define VMPROF_BACKEND_DIRECT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* One paired reading: the counter was read between ns - error and ns + error. */
struct direct_pair {
	uint64_t ticks, ns, error;
};

struct direct_clock {
	struct direct_pair start, before, now;
	uint64_t frequency; /* ticks a second, as the machine says; 0: as all readings say */
	uint64_t error;	    /* ns: the largest of all pairs that times were made of */
	uint64_t last;	    /* ns: of the latest sample */
};

/* This host's counter and its frequency; 0 not known. */
uint64_t direct_counter_frequency(void);
struct direct_pair direct_pair_read(void);

void direct_clock_start(struct direct_clock *c, const struct direct_pair *now, uint64_t frequency);
/* A later reading. One that is not later, or too near to tell a rate, only replaces the last. */
void direct_clock_step(struct direct_clock *c, const struct direct_pair *now);
/* Wherever the counter may be said to have been, this is some time. */
uint64_t direct_clock_ns(const struct direct_clock *c, uint64_t ticks);
/* The same, no more than 100 ms behind the latest sample: a file has an order. */
uint64_t direct_clock_in_order(const struct direct_clock *c, uint64_t ticks);
/* The same of a sample, which is the latest from now on. */
uint64_t direct_clock_sample(struct direct_clock *c, uint64_t ticks);

#endif
