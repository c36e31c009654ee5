// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/events: what sysfs says of the host's PMUs (the kernel's
 * Documentation/ABI/testing/sysfs-bus-event_source-devices-format and -events), and terms put into
 * an event by it.
 */
#ifndef VMPROF_EVENTS_PMU_H
#define VMPROF_EVENTS_PMU_H

#include "events/event.h"
#include "events/names.h"

/*
 * "config=0x3c,umask=1,name=x,freq=100": @terms is cut up. @pmu: whose formats and events count, or
 * NULL for an event with a name of its own, that takes the general terms only. @whole: the event as
 * the user wrote it, for messages.
 */
int pmu_apply_terms(struct event *e, const char *root, const char *pmu, char *terms,
		    const char *whole, struct vmprof_err *err);

/* The PMU's number. 0, -EINVAL with a sentence that has the PMUs that there are. */
int pmu_type(uint32_t *type, const char *root, const char *pmu, const char *whole,
	     struct vmprof_err *err);

/*
 * An event that some PMU calls so, as "mem-loads" is cpu/mem-loads/. 0, -ENOENT without a sentence,
 * or -EINVAL with one. @s: sees the names of all PMUs' events.
 */
int pmu_find_event(struct event *e, const char *root, const char *name, const char *whole,
		   struct suggestion *s, struct vmprof_err *err);

#endif
