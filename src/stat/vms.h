// SPDX-License-Identifier: GPL-2.0-only
/* Inside src/stat: the VMs that are meant, each with its events. */
#ifndef VMPROF_STAT_VMS_H
#define VMPROF_STAT_VMS_H

#include "events/wanted.h"
#include "vm/vm.h"

struct stat_vms {
	struct vm_list list; /* all of the host; those below belong to it */
	const struct vm **vm;
	struct event_list *events; /* of each of them */
	unsigned n;
};

/*
 * --vm's, each once, in their order, then with @all the others; without either the only one that
 * there is. 0 or -errno with a sentence.
 */
int stat_vms_choose(struct stat_vms *v, const struct wanted *w, bool all, struct vmprof_err *err);
void stat_vms_drop(struct stat_vms *v, unsigned i);
void stat_vms_free(struct stat_vms *v);

#endif
