// SPDX-License-Identifier: GPL-2.0-only
#include "events/wanted.h"

#include <stdlib.h>

#include "util/xalloc.h"

void wanted_add_vm(struct wanted *w, const char *spec)
{
	w->vms = xreallocarray(w->vms, w->nr_vms + 1, sizeof(*w->vms));
	w->vms[w->nr_vms++] = (struct wanted_vm){.spec = spec};
}

int wanted_add_event(struct wanted *w, const char *spec, struct vmprof_err *err)
{
	return event_list_add(w->nr_vms ? &w->vms[w->nr_vms - 1].events : &w->events, spec, err);
}

void wanted_free(struct wanted *w)
{
	for (unsigned i = 0; i < w->nr_vms; i++)
		event_list_free(&w->vms[i].events);
	event_list_free(&w->events);
	free(w->vms);
	*w = (struct wanted){0};
}
