// SPDX-License-Identifier: GPL-2.0-only
#include "events/event.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "util/xalloc.h"

void event_list_free(struct event_list *l)
{
	for (unsigned i = 0; i < l->n; i++)
		free((char *)l->events[i].name);
	l->n = 0;
}

int event_list_append(struct event_list *to, const struct event_list *from, struct vmprof_err *err)
{
	unsigned first = to->n;

	if (from->n > EVENTS_MAX - to->n)
		return err_set(err, EINVAL, "more than %d events", EVENTS_MAX);
	for (unsigned i = 0; i < from->n; i++) {
		struct event *e = &to->events[to->n++];

		*e = from->events[i];
		e->name = xstrdup(e->name);
		e->leader += first;
	}
	return 0;
}

void event_list_set_rate(struct event_list *l, bool freq, uint64_t rate)
{
	for (unsigned i = 0; i < l->n; i++) {
		if (l->events[i].own_rate)
			continue;
		l->events[i].freq = freq;
		l->events[i].rate = rate;
	}
}

void event_list_add_host(struct event_list *l)
{
	for (unsigned i = 0; i < l->n; i++)
		l->events[i].host |= !l->events[i].said_machine;
}

bool event_same(const struct event *a, const struct event *b)
{
	return a->type == b->type && a->config == b->config && a->config1 == b->config1 &&
	       a->config2 == b->config2 && a->freq == b->freq && a->rate == b->rate &&
	       a->exclude_user == b->exclude_user && a->exclude_kernel == b->exclude_kernel &&
	       a->guest == b->guest && a->host == b->host && a->precise == b->precise &&
	       a->precise_max == b->precise_max && a->pinned == b->pinned &&
	       a->exclusive == b->exclusive;
}

bool event_is_clock(const struct event *e)
{
	return e->type == PERF_TYPE_SOFTWARE &&
	       (e->config == PERF_COUNT_SW_CPU_CLOCK || e->config == PERF_COUNT_SW_TASK_CLOCK);
}

bool event_is_of_host(const struct event *e)
{
	return e->type == PERF_TYPE_TRACEPOINT ||
	       (e->type == PERF_TYPE_SOFTWARE && !event_is_clock(e));
}

void event_make_clock(struct event *e)
{
	const char *mods = strchr(e->name, ':');

	e->name = xasprintf("cpu-clock%s", mods ? mods : "");
	e->type = PERF_TYPE_SOFTWARE;
	e->config = PERF_COUNT_SW_CPU_CLOCK;
	e->config1 = e->config2 = 0;
	e->precise = 0;
	e->precise_max = false;
	if (!e->own_rate || e->freq)
		return;
	e->own_rate = false; /* a number of cycles: as ns it would be another rate */
}
