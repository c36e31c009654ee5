// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measures now and then, while a VM is recorded, how the guest's clocks stand to the file's, so
 * that files that were recorded in the guest can be merged with this one. Used by the thread that
 * owns the guest.
 */
#ifndef VMPROF_RECORD_CLOCKWATCH_H
#define VMPROF_RECORD_CLOCKWATCH_H

#include "guest/clock.h"

struct clockwatch;

struct clockwatch *clockwatch_new(struct guest *g, uint32_t nr_vcpus);
void clockwatch_free(struct clockwatch *w); /* NULL is fine */

/* A measurement is under way: clockwatch_work() should be called again at once. */
bool clockwatch_busy(const struct clockwatch *w);

/*
 * Begins a measurement when it is time for one, and goes on with one, which may sleep for some
 * microseconds. true: it has ended, and @out is what it has found, most of which may be unknown.
 */
bool clockwatch_work(struct clockwatch *w, struct guest_clock_bounds out[GUEST_CLOCK_COUNT]);

/* One more, whole: at the end of a record, while the guest still runs. */
bool clockwatch_last(struct clockwatch *w, struct guest_clock_bounds out[GUEST_CLOCK_COUNT]);

#endif
