// SPDX-License-Identifier: GPL-2.0-only
#include "stat/vms.h"

#include <stdlib.h>
#include <string.h>

#include "util/xalloc.h"

/* @own: what is for this VM alone; it may be named more than once. */
static int add(struct stat_vms *v, const struct wanted *w, const struct vm *vm,
	       const struct event_list *own, struct vmprof_err *err)
{
	unsigned i = 0;
	int rc = 0;

	while (i < v->n && v->vm[i] != vm)
		i++;
	if (i == v->n) {
		v->vm[v->n++] = vm;
		rc = event_list_append(&v->events[i], &w->events, err);
	}
	return rc || !own ? rc : event_list_append(&v->events[i], own, err);
}

int stat_vms_choose(struct stat_vms *v, const struct wanted *w, bool all, struct vmprof_err *err)
{
	unsigned hidden = 0;
	int rc;

	*v = (struct stat_vms){0};
	rc = vm_list_get(&v->list, &hidden, err);
	if (rc)
		return rc;
	v->vm = xcalloc(v->list.n + 1, sizeof(*v->vm));
	v->events = xcalloc(v->list.n + 1, sizeof(*v->events));
	for (unsigned i = 0; i < w->nr_vms && !rc; i++) {
		const struct vm *vm = vm_list_find(&v->list, w->vms[i].spec, err);

		rc = vm ? add(v, w, vm, &w->vms[i].events, err) : -err->code;
	}
	for (size_t i = 0; all && i < v->list.n && !rc; i++)
		rc = add(v, w, v->list.vms[i], NULL, err);
	if (!rc && !v->n) {
		const struct vm *vm = vm_list_only(&v->list, hidden, err);

		rc = vm ? add(v, w, vm, NULL, err) : -err->code;
	}
	return rc;
}

void stat_vms_drop(struct stat_vms *v, unsigned i)
{
	event_list_free(&v->events[i]);
	v->n--;
	memmove(v->vm + i, v->vm + i + 1, (v->n - i) * sizeof(*v->vm));
	memmove(v->events + i, v->events + i + 1, (v->n - i) * sizeof(*v->events));
}

void stat_vms_free(struct stat_vms *v)
{
	for (unsigned i = 0; i < v->n; i++)
		event_list_free(&v->events[i]);
	free(v->events);
	free(v->vm);
	vm_list_free(&v->list);
}
