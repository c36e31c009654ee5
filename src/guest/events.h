// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: the side-band on its way to guest_next_event().
 */
#ifndef VMPROF_GUEST_EVENTS_H
#define VMPROF_GUEST_EVENTS_H

#include "guest/guest.h"

struct guest_events {
	struct guest_event *ev;
	size_t n, next, cap;
	uint64_t dropped; /* the caller did not drain */
};

/* Takes a copy of ->name; ->dso.path must outlive the queue. */
void guest_events_add(struct guest_events *q, const struct guest_event *ev);
bool guest_events_next(struct guest_events *q, struct guest_event *ev);
void guest_events_free(struct guest_events *q);

#endif
