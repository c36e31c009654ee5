// SPDX-License-Identifier: GPL-2.0-only
/*
 * The events of one VM, counted: each by the backend that can, or known not to be had.
 */
#ifndef VMPROF_STAT_COUNTERS_H
#define VMPROF_STAT_COUNTERS_H

#include "backend/backend.h"

#define COUNTERS_SESSIONS 4 /* backends in use at once */

struct counters {
	const struct vm *vm;
	char name[128];		  /* escaped */
	struct event_list events; /* all, also those that are not supported */
	bool supported[EVENTS_MAX];
	uint32_t nr_vcpus;
	char note[512]; /* a sentence on what is counted otherwise than it was asked for, or "" */

	/* inside */
	struct counters_part {
		const struct vmprof_backend *backend;
		struct event_list events; /* names are those of the above */
		struct backend_session *session;
	} part[COUNTERS_SESSIONS];
	unsigned nr_parts;
	unsigned part_of[EVENTS_MAX], index[EVENTS_MAX]; /* in that part */
	struct backend_event_stats *base, *now;		 /* [event][vCPU] */
};

/* One event of one vCPU or of all, scaled to the time that it was wanted; @running 0: not counted.
 */
struct count {
	double value;
	uint64_t enabled, running; /* ns */
};

/*
 * Decides who counts what, and opens it. @events: what was asked for, in the order to be printed;
 * none: perf stat's. @backend: the only one to be used, or NULL. Where an event needs permission to
 * look into the kernel it is counted in user mode, as perf does it. 0 or -errno with a sentence.
 */
int counters_open(struct counters *c, const struct vm *vm, const struct event_list *events,
		  const char *backend, struct vmprof_err *err);
int counters_start(struct counters *c, struct vmprof_err *err);
void counters_read(struct counters *c);
/* What comes from the last counters_read() on is what counters_get() tells. */
void counters_restart(struct counters *c);
/* From the restart to the last counters_read(). @vcpu: or BACKEND_ALL_VCPUS */
struct count counters_get(const struct counters *c, unsigned event, uint32_t vcpu);
void counters_stop(struct counters *c);
void counters_close(struct counters *c);

#endif
