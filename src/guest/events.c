// SPDX-License-Identifier: GPL-2.0-only
#include "guest/events.h"

#include <stdlib.h>

#include "util/xalloc.h"

#define MAX_EVENTS (1u << 20) /* of a caller that never drains; a process may have 65530 maps */

/* Names live until the queue is used again: that is what guest_next_event() promises. */
static void empty(struct guest_events *q)
{
	for (size_t i = 0; i < q->n; i++)
		free((char *)q->ev[i].name);
	q->n = q->next = 0;
}

void guest_events_add(struct guest_events *q, const struct guest_event *ev)
{
	if (q->next == q->n)
		empty(q);
	if (q->n >= MAX_EVENTS) {
		q->dropped++;
		return;
	}
	q->ev = xgrow(q->ev, &q->cap, q->n + 1, sizeof(*q->ev));
	q->ev[q->n] = *ev;
	q->ev[q->n++].name = ev->name ? xstrdup(ev->name) : NULL;
}

bool guest_events_next(struct guest_events *q, struct guest_event *ev)
{
	if (q->next == q->n)
		return false;
	*ev = q->ev[q->next++];
	return true;
}

void guest_events_free(struct guest_events *q)
{
	empty(q);
	free(q->ev);
	*q = (struct guest_events){0};
}
