// SPDX-License-Identifier: GPL-2.0-only
/*
 * All processes of the guest with their maps, for samples that say no more than an address; and
 * which processes have code at one.
 */
#include <errno.h>
#include <stdlib.h>

#include "guest/process.h"
#include "util/clock.h"
#include "util/xalloc.h"

#define MS	   1000000ull
#define EVERY	   (1000 * MS)
#define LOST_EVERY (20 * MS) /* for an address that is in no map */
#define SHARE	   20	     /* at most one part in so many of the time goes into snapshots */
#define TASKS_MAX  100000
#define PAGE_SHIFT 12

/* ---------- the list of tasks ---------- */

/* One process, as its first thread's task_struct at @task has it. 0 or -ESRCH */
static int see_process(struct guest_procs *p, uint64_t task, uint64_t time)
{
	struct guest_thread *th = guest_procs_by_task(p, task);
	struct guest_task t;
	int rc = guest_task_read(p->km, task, th ? th->process->mm : 0, &t);

	if (rc)
		return rc == -ESRCH ? rc : 0;
	if (!t.mm || t.exit_state)
		return 0;
	th = guest_procs_see(p, &t, time, &rc);
	if (!th)
		return rc == -ESRCH ? rc : 0;
	th->process->snapshot = p->snapshots;
	guest_procs_refresh_maps(p, th->process, &t, 0, time, &rc);
	return rc;
}

/* The list changes while it is walked; what was unlinked still leads back into it. */
static int walk_tasks(struct guest_procs *p, uint64_t time, bool *whole)
{
	const struct guest_layout *l = &p->km->lay;
	uint64_t head = l->init_task + (uint64_t)l->task_tasks, at = head;

	*whole = false;
	for (unsigned n = 0; n < TASKS_MAX; n++) {
		int rc = guest_virt_read(p->km->virt, p->km->as, at, &at, sizeof(at));

		if (rc || !guest_is_kptr(at))
			return rc == -ESRCH ? rc : 0;
		if (at == head) {
			*whole = true;
			return 0;
		}
		rc = see_process(p, at - (uint64_t)l->task_tasks, time);
		if (rc)
			return rc;
	}
	return 0;
}

int guest_procs_snapshot(struct guest_procs *p, bool lost, uint64_t time)
{
	uint64_t begin = clock_now_ns(), gap = lost ? LOST_EVERY : EVERY;
	bool whole;
	int rc;

	if (p->km->lay.task_tasks < 0 || !p->km->lay.init_task)
		return 0;
	gap = gap > p->snapshot_cost * SHARE ? gap : p->snapshot_cost * SHARE;
	if (p->snapshots && begin - p->snapshot_at < gap)
		return 0;
	p->snapshots++;
	rc = walk_tasks(p, time, &whole);
	if (!rc && whole)
		guest_procs_reap(p, p->snapshots, time);
	p->snapshot_at = clock_now_ns();
	p->snapshot_cost = p->snapshot_at - begin;
	return rc;
}

/* ---------- by address ---------- */

void guest_procs_forget_owners(struct guest_procs *p)
{
	void *o;

	for (size_t i = 0; (o = hashmap_next(&p->owners, &i, NULL));)
		free(o);
	hashmap_free(&p->owners);
	p->owners_of = p->changes;
}

const struct guest_owners *guest_procs_owners(struct guest_procs *p, uint64_t addr)
{
	/* Maps begin and end at pages: all of a page has the same owners. 0 is no key. */
	uint64_t key = (addr >> PAGE_SHIFT) + 1;
	struct guest_owners *o;
	size_t cap = 0;

	if (p->owners_of != p->changes)
		guest_procs_forget_owners(p);
	o = hashmap_get(&p->owners, key);
	if (o)
		return o;
	o = xcalloc(1, sizeof(*o));
	for (struct guest_process *proc = p->oldest; proc; proc = proc->newer) {
		if (!guest_process_map(proc, addr))
			continue;
		if (o->n == cap) {
			cap = cap ? 2 * cap : 4;
			o = xrealloc(o, sizeof(*o) + cap * sizeof(o->process[0]));
		}
		o->process[o->n++] = proc;
	}
	hashmap_set(&p->owners, key, o);
	return o;
}
