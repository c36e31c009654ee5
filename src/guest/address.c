// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose a sample is that says no more than an address, a vCPU and a time.
 *
 * First, who was running there (looks.h), where that is known. Else, in user mode, the process that
 * has code at the address. Where several have (programs that are not position-independent, children
 * that did not exec), the sample goes to one of the two that the vCPU ran just before and after it,
 * if it is among them, and failing that they share such samples in proportion to those that are
 * certainly theirs. These are counted: a profile can say how much of it is so shared out. In kernel
 * mode an address says nothing of the process, and such a sample has none.
 */
#include <errno.h>

#include "guest/work.h"
#include "util/clock.h"

/* ---------- who was running ---------- */

/* A look's task, by number; once a look. *rc: -ESRCH if the VM is gone */
static bool resolve(struct guest *g, struct guest_look *l, uint64_t time, int *rc)
{
	struct guest_thread *th;
	struct guest_task t;

	if (l->resolved || !l->task)
		return l->known;
	l->resolved = true;
	th = guest_procs_by_task(&g->procs, l->task);
	*rc = guest_task_read(&g->km, l->task, th ? th->process->mm : 0, &t);
	th = *rc ? NULL : guest_procs_see(&g->procs, &t, time, rc);
	if (!th)
		return false;
	guest_procs_refresh_maps(&g->procs, th->process, &t, 0, time, rc);
	l->pid = th->pid;
	l->tgid = th->tgid;
	l->known = true;
	return true;
}

static struct guest_process *process_of_look(struct guest *g, const struct guest_look *l)
{
	return l->known ? hashmap_get(&g->procs.by_tgid, (uint32_t)l->tgid) : NULL;
}

/* ---------- giving ---------- */

static void give(struct guest *g, struct sample *out, struct guest_process *proc, int32_t tid)
{
	struct guest_map *map;

	out->pid = proc->tgid;
	out->tid = tid;
	out->unattributed = SAMPLE_ATTRIBUTED;
	if (out->mode != SAMPLE_MODE_GUEST_USER)
		return;
	map = guest_process_map(proc, out->ip);
	if (!map)
		return;
	out->has_dso = true;
	out->dso = map->dso->dso.id;
	out->dso_offset = out->ip - map->start + map->pgoff;
	guest_dsos_hit(&g->dsos, map->dso);
}

/* Whoever has had least of what is shared, measured by what is certainly its. */
static struct guest_process *next_share(const struct guest_owners *o)
{
	struct guest_process *best = o->process[0];

	for (size_t i = 1; i < o->n; i++) {
		struct guest_process *p = o->process[i];

		if ((p->certain + 1.0) / (double)(p->shared + 1) >
		    (best->certain + 1.0) / (double)(best->shared + 1))
			best = p;
	}
	return best;
}

static bool is_owner(const struct guest_owners *o, const struct guest_process *p)
{
	for (size_t i = 0; p && i < o->n; i++)
		if (o->process[i] == p)
			return true;
	return false;
}

/* One of several owners; which one is not certain. */
static int share_out(struct guest *g, struct sample *out, struct guest_look *before,
		     struct guest_look *after)
{
	struct guest_look *const near[] = {before, after};
	struct guest_process *found = NULL;
	const struct guest_owners *o;
	int32_t tid = 0;
	int rc = 0;

	for (int i = 0; i < 2; i++)
		if (near[i] && !resolve(g, near[i], out->time, &rc) && rc == -ESRCH)
			return rc;
	o = guest_procs_owners(&g->procs, out->ip); /* anew: processes may have come and gone */
	if (!o->n)
		return 0;
	for (int i = 0; i < 2; i++) {
		struct guest_process *p = near[i] ? process_of_look(g, near[i]) : NULL;

		if (is_owner(o, p) && (!found || p->shared < found->shared)) {
			found = p;
			tid = near[i]->pid;
		}
	}
	if (!found) {
		found = next_share(o);
		tid = found->tgid;
	}
	found->shared++;
	g->stats.shared++;
	give(g, out, found, tid);
	return 0;
}

/* Looks at all processes again if nobody has the address. 0 or -ESRCH */
static int find_owners(struct guest *g, struct sample *out, const struct guest_owners **o)
{
	int rc;

	*o = guest_procs_owners(&g->procs, out->ip);
	if ((*o)->n)
		return 0;
	rc = guest_procs_snapshot(&g->procs, true, out->time);
	*o = guest_procs_owners(&g->procs, out->ip);
	return rc;
}

/*
 * @running: the look that knows who ran there, or NULL. Its process has the sample if it has code
 * at the address, or if nobody has: code that was made since its map was looked at.
 */
static bool give_to_running(struct guest *g, struct sample *out, const struct guest_look *running,
			    bool nobody)
{
	struct guest_process *p = running ? process_of_look(g, running) : NULL;

	if (!p || !p->as.root || (!nobody && !guest_process_map(p, out->ip)))
		return false;
	p->certain++;
	give(g, out, p, running->pid);
	return true;
}

static int user_sample(struct guest *g, struct sample *out, struct guest_look *before,
		       struct guest_look *after)
{
	const struct guest_look *running = guest_looks_agree(before, after) ? after : NULL;
	const struct guest_owners *o;
	int rc = 0;

	if (running && !resolve(g, after, out->time, &rc))
		running = NULL;
	if (rc == -ESRCH || give_to_running(g, out, running, false))
		return rc == -ESRCH ? rc : 0;
	rc = find_owners(g, out, &o);
	if (rc || give_to_running(g, out, running, !o->n))
		return rc;
	out->torn = running; /* the vCPU is another CPU than was thought */
	if (o->n > 1)
		return share_out(g, out, before, after);
	if (o->n) {
		o->process[0]->certain++;
		give(g, out, o->process[0], o->process[0]->tgid);
	}
	return 0;
}

static int kernel_sample(struct guest *g, struct sample *out, struct guest_look *before,
			 struct guest_look *after)
{
	struct guest_process *p;
	int rc = 0;

	guest_see_code(g, &out->ip, 1, out->time);
	if (!guest_looks_agree(before, after) || !resolve(g, after, out->time, &rc))
		return rc == -ESRCH ? rc : 0;
	p = process_of_look(g, after);
	if (p)
		give(g, out, p, after->pid);
	return 0;
}

/* What runs on each vCPU now, if that was not looked at since the sample. 0 or -ESRCH */
static int look(struct guest *g, uint64_t time)
{
	uint32_t n = g->cfg.nr_vcpus;

	if (time < g->looked || g->km.lay.rq_switches < 0)
		return 0;
	g->looked = clock_now_ns();
	return guest_looks_make(g->looks, n, &g->km, g->kernel);
}

int guest_from_address(struct guest *g, struct sample *out)
{
	struct guest_look *before = NULL, *after = NULL;
	int rc = guest_need_kernel_in_memory(g, out->time);

	if (rc || g->no_types)
		return rc == -ESRCH ? rc : 0;
	out->unattributed = SAMPLE_NO_PROCESS;
	rc = look(g, out->time);
	rc = rc ? rc : guest_procs_snapshot(&g->procs, false, out->time);
	if (rc)
		return rc;
	if (out->vcpu < g->cfg.nr_vcpus) {
		before = guest_look_before(&g->looks[out->vcpu], out->time);
		after = guest_look_after(&g->looks[out->vcpu], out->time);
	}
	if (out->mode == SAMPLE_MODE_GUEST_USER)
		return user_sample(g, out, before, after);
	return kernel_sample(g, out, before, after);
}
