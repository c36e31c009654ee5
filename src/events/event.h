// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events as -e names them, and what they are to perf_event_open(). The syntax is perf's
 * (perf-list(1), perf-record(1)): names of hardware, cache and software events, rNNN,
 * PMU/TERM=VALUE,.../, SYSTEM:TRACEPOINT, groups in braces, modifiers behind a colon.
 */
#ifndef VMPROF_EVENTS_EVENT_H
#define VMPROF_EVENTS_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "util/err.h"

#define EVENTS_MAX 32

struct event {
	const char *name; /* as the user wrote it, for messages and for the file */
	uint32_t type;	  /* PERF_TYPE_*, or a PMU's number */
	uint64_t config, config1, config2;
	bool freq;     /* rate is a frequency in Hz, else a period in events (ns for clocks) */
	bool own_rate; /* by a term period= or freq=: it is not the record's */
	uint64_t rate; /* 0: it is counted and never sampled */
	bool exclude_user, exclude_kernel; /* modifiers :k and :u */
	bool guest,
		host; /* modifiers :G and :H, or what goes without saying; see event_list_add() */
	bool said_machine;	/* one of them was given */
	uint8_t precise;	/* :p, :pp, :ppp */
	bool precise_max;	/* :P, the most that the PMU has */
	bool pinned, exclusive; /* :D and :e */
	unsigned leader;	/* index of its group's first event; its own if it is in none */
};

/* The events of one record. Names are owned by it. */
struct event_list {
	const char *root; /* "" or NULL: /; what is found under it are /sys and tracefs */
	struct event events[EVENTS_MAX];
	unsigned n;
};

/*
 * Adds what one -e says. Without :G and :H an event is the guest's, but what happens in the host
 * only (tracepoints, software events that are no clocks) is the host's. 0, or -EINVAL (-ENOENT,
 * -EACCES of a tracepoint) with a sentence.
 */
int event_list_add(struct event_list *l, const char *spec, struct vmprof_err *err);
/* Adds copies of @from's events to @to. 0, or -EINVAL with a sentence: they are too many. */
int event_list_append(struct event_list *to, const struct event_list *from, struct vmprof_err *err);
void event_list_free(struct event_list *l);

/* Rate for all events that have none of their own: a frequency in Hz or a period. */
void event_list_set_rate(struct event_list *l, bool freq, uint64_t rate);

/* The host's side too, of all events for which neither :G nor :H was given. */
void event_list_add_host(struct event_list *l);

/* Same kind, rate, modes and group? Two VMs' events are then one event of the file. */
bool event_same(const struct event *a, const struct event *b);

/* cpu-clock or task-clock: counts ns, on any machine. */
bool event_is_clock(const struct event *e);
/* Does it happen in the host only, whoever runs there: a tracepoint, a page fault? */
bool event_is_of_host(const struct event *e);

/* Makes cpu-clock of it, with the same modifiers: @e->name is new, and the caller's to free. */
void event_make_clock(struct event *e);

#endif
