// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside the perf backend: a VM being sampled by perf events of its vCPUs' threads.
 */
#ifndef VMPROF_BACKEND_PERF_SESSION_H
#define VMPROF_BACKEND_PERF_SESSION_H

#include "backend/backend.h"
#include "backend/perf_ring.h"
#include "backend/ram.h"
#include "util/hashmap.h"

#define PERF_SAMPLE_BYTES 56 /* of a sample's record without a call chain */

/* One event on one vCPU's thread. */
struct perf_source {
	struct perf_ring ring; /* without .base: its records go to another one's of the thread */
	unsigned event;	       /* index in the config */
	uint32_t vcpu;
	bool ended; /* the thread has */
};

/* A sample that waits to be handed out. */
struct perf_waiting {
	uint64_t time, ip, period;
	uint32_t source, cpu, pid, tid;
	enum sample_mode mode;
};

struct perf_session {
	struct backend_session base;
	struct backend_ram ram;
	struct event *events;
	unsigned nr_events;
	struct perf_source *sources;
	unsigned nr_sources;
	struct hashmap by_id; /* the kernel's id of an event: source */
	bool counts_lost;     /* the kernel says of each event how many samples it lost */
	struct perf_waiting *waiting;
	size_t nr_waiting, next_waiting, cap_waiting;
	size_t nr_ready;  /* so many of them may be handed out: no older one can come */
	uint64_t drained; /* when the rings were looked at last, ns */
	uint64_t busy;	  /* when something was found in them last */
	int epoll, pidfd;
	bool gone;
	uint64_t lost_records; /* as the rings say */
	uint64_t lost_precise; /* in the PMU's own buffer, which no counter knows of */
	struct backend_stats stats;
	char note[256]; /* of the stats */
};

/* Pages of a ring, as a power of two, for the samples of all events of a thread in half a second.
 */
unsigned perf_ring_order(const struct perf_session *s);

/* ---------- perf_attr.c ---------- */

/* @e as the kernel wants it; what a clock excludes is left to the reader, see there. */
void perf_attr(struct perf_event_attr *attr, const struct event *e);

/*
 * Opens it on thread @tid, in the group of @group_fd (-1: none), with as much of what was asked for
 * as the kernel knows. The descriptor or -errno without a sentence.
 */
int perf_open(const struct event *e, pid_t tid, int group_fd, bool *counts_lost);

/* Why perf_open() gave @code. */
int perf_open_error(const struct vm *vm, const struct event *e, int code, struct vmprof_err *err);

void perf_probe(const struct vm *vm, struct backend_caps *caps);
int perf_try_event(const struct vm *vm, const struct event *e, struct vmprof_err *err);

/* ---------- perf_drain.c ---------- */

/* Looks at all rings; then ->nr_ready samples may be taken with perf_take(). */
void perf_drain(struct perf_session *s);
/* The next one; false if there is none. */
bool perf_take(struct perf_session *s, struct raw_sample *out);

#endif
