// SPDX-License-Identifier: GPL-2.0-only
/*
 * The VMs of one record: which ones, by which backend, with which events, under which ids of the
 * file.
 */
#ifndef VMPROF_RECORD_TARGETS_H
#define VMPROF_RECORD_TARGETS_H

#include "perfdata/writer.h"
#include "record/recorder.h"
#include "record/vmrec.h"

/* One VM of this record. */
struct target {
	struct vm *vm;
	char name[128];	  /* escaped */
	const char *only; /* name of the backend that it must be; NULL: the best */
	const struct vmprof_backend *backend;
	struct backend_caps caps;
	struct event_list asked;	 /* of this VM */
	struct event_list events;	 /* as this VM's backend has them */
	uint32_t file_event[EVENTS_MAX]; /* which event of the file each of them is */
	struct vmrec *rec;
	bool said_ended;
};

struct targets {
	struct vm_list vms; /* all VMs of the host; the targets' VMs belong to it */
	struct target *t;
	unsigned n;
	struct event_list events; /* of the file, once numbered; names are the targets' */
	/* Of the host as a whole, for VMs that no thread of it runs: copies of some of the file's,
	 * which they are, and what samples them once it is open. */
	struct event host_events[EVENTS_MAX];
	uint32_t host_file_event[EVENTS_MAX];
	unsigned nr_host_events;
	struct wholehost *host;
};

/* Finds VMs, backends and events as @opts wants them; says on stderr what is left out or replaced.
 */
int targets_choose(struct targets *ts, const struct record_options *opts, struct vmprof_err *err);
/*
 * After the targets' recorders were opened, and so which backend each has is settled: which events
 * the file has.
 */
int targets_number_events(struct targets *ts, struct vmprof_err *err);
/*
 * @t cannot be opened, and @err says why. Where its guest does not do its part in the delivery, or
 * interrupts that the host raises cannot be had, takes the host's delivery instead, and says so. 0
 * or -errno with a sentence; that of @err where the backend was asked for by its name, or for
 * another reason.
 */
int targets_fall_back(struct target *t, const struct record_options *opts, struct vmprof_err *err);
/* Puts the VM's name before a sentence that does not start with it; returns -err->code. */
int target_error(const struct target *t, struct vmprof_err *err);
void targets_drop(struct targets *ts, unsigned i); /* none from @i on is open yet */
void targets_free(struct targets *ts);		   /* their recorders too; again is fine */

/*
 * One id for each event of each vCPU: it is what ties a record to its VM. Ids are given out target
 * by target, event by event, as vmrec_start() wants them, and then of the host as a whole, as
 * wholehost_start() does.
 */
struct id_plan {
	struct perfdata_id_entry *entries;
	uint64_t *ids; /* of all targets, one behind the other */
	size_t n;
	uint64_t *by_event[EVENTS_MAX]; /* the ids of each event of the file */
	size_t nr_by_event[EVENTS_MAX], cap_by_event[EVENTS_MAX];
};

/* After the targets' recorders, and the host's, were opened: they know the number of CPUs. */
void id_plan_make(struct id_plan *p, const struct targets *ts);
void id_plan_free(struct id_plan *p);

#endif
