// SPDX-License-Identifier: GPL-2.0-only
/*
 * VMs and their events, in the order of the command line: what -e says before the first --vm is for
 * all of them, behind a --vm it is for that one.
 */
#ifndef VMPROF_EVENTS_WANTED_H
#define VMPROF_EVENTS_WANTED_H

#include "events/event.h"

struct wanted_vm {
	const char *spec; /* what --vm said; the caller's */
	struct event_list events;
};

struct wanted {
	struct event_list events; /* for all VMs */
	struct wanted_vm *vms;
	unsigned nr_vms;
};

void wanted_add_vm(struct wanted *w, const char *spec);
/* What one -e says; as event_list_add(). */
int wanted_add_event(struct wanted *w, const char *spec, struct vmprof_err *err);
void wanted_free(struct wanted *w);

#endif
