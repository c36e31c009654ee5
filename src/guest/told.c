// SPDX-License-Identifier: GPL-2.0-only
#include "guest/told.h"

#include <stdlib.h>
#include <string.h>

#include "guest/dentry.h"
#include "guest/internal.h"
#include "util/xalloc.h"

#define MAX_PROCESSES 65536
#define MAX_MAPS      1000000 /* of all processes */

struct told_process {
	int32_t tgid, parent;
	uint64_t began;
	char comm[17];
	bool whole;	  /* all that it has mapped is in maps */
	uint32_t version; /* another number when they change; never twice */
	uint32_t execs;
	struct guest_map *maps; /* by address, none over another */
	size_t nr_maps, cap_maps;
};

/* ---------- maps ---------- */

static void change(struct guest_told *t, struct told_process *p)
{
	p->version = ++t->versions;
}

static void set_nr_maps(struct guest_told *t, struct told_process *p, size_t n)
{
	t->nr_maps += n - p->nr_maps;
	p->nr_maps = n;
	change(t, p);
}

/* Over what was there, of which parts before and behind it may be left. */
static void insert_map(struct guest_told *t, struct told_process *p, const struct guest_map *map)
{
	size_t from = 0, behind, n = 0;
	struct guest_map now[3];

	while (from < p->nr_maps && p->maps[from].end <= map->start)
		from++;
	for (behind = from; behind < p->nr_maps && p->maps[behind].start < map->end; behind++)
		;
	if (from < behind && p->maps[from].start < map->start) {
		now[n] = p->maps[from];
		now[n++].end = map->start;
	}
	now[n++] = *map;
	if (from < behind && p->maps[behind - 1].end > map->end) {
		now[n] = p->maps[behind - 1];
		if (now[n].dso->dso.ino)
			now[n].pgoff += map->end - now[n].start;
		now[n++].start = map->end;
	}
	p->maps = xgrow(p->maps, &p->cap_maps, p->nr_maps + n, sizeof(*p->maps));
	memmove(p->maps + from + n, p->maps + behind, (p->nr_maps - behind) * sizeof(*p->maps));
	memcpy(p->maps + from, now, n * sizeof(*now));
	set_nr_maps(t, p, p->nr_maps - (behind - from) + n);
}

static struct guest_dso_entry *dso_of(struct guest *g, const struct raw_told *told)
{
	const struct guest_inode file = {
		.dev = told->dev, .ino = told->ino, .generation = told->ino_generation};
	const struct guest_inode *f = told->ino ? &file : NULL;
	bool made = f ? guest_is_made_name(told->path) && !told->build_id_len
		      : !strcmp(told->path, "//anon");
	struct guest_dso_entry *e =
		made ? guest_dsos_get_owned(&g->dsos, told->path, f, told->pid, told->began)
		     : guest_dsos_get(&g->dsos, told->path, f);

	if (!f || made) {
		e->tgid = told->pid;
		e->base = told->start;
	}
	if (f && !e->file.inode)
		e->dso.size = told->size;
	if (f && !made && !e->looked_at && told->build_id_len) {
		e->looked_at = true;
		memcpy(e->dso.build_id, told->build_id, sizeof(e->dso.build_id));
		e->dso.build_id_len = told->build_id_len;
	}
	return e;
}

static void take_map(struct guest *g, struct told_process *p, const struct raw_told *told)
{
	struct guest_map map = {
		.start = told->start,
		.end = told->end,
		.pgoff = told->ino ? told->pgoff : 0,
		.prot = told->prot,
		.flags = told->flags,
	};

	if (g->told.nr_maps >= MAX_MAPS) {
		p->whole = false;
		return;
	}
	map.dso = dso_of(g, told);
	insert_map(&g->told, p, &map);
}

/* ---------- processes ---------- */

static void forget(struct guest_told *t, struct told_process *p)
{
	hashmap_del(&t->by_tgid, (uint32_t)p->tgid);
	t->nr_processes--;
	t->nr_maps -= p->nr_maps;
	free(p->maps);
	free(p);
}

void guest_told_free(struct guest_told *t)
{
	struct told_process *p;

	for (size_t i = 0; (p = hashmap_next(&t->by_tgid, &i, NULL));) {
		free(p->maps);
		free(p);
	}
	hashmap_free(&t->by_tgid);
	t->nr_processes = t->nr_maps = 0;
}

/* NULL: it is of an earlier process of that number, or there are too many. */
static struct told_process *get(struct guest_told *t, const struct raw_told *told)
{
	struct told_process *p = hashmap_get(&t->by_tgid, (uint32_t)told->pid);

	if (p && p->began == told->began)
		return p;
	if (p && p->began > told->began)
		return NULL;
	if (p)
		forget(t, p);
	if (t->nr_processes >= MAX_PROCESSES)
		return NULL;
	p = xcalloc(1, sizeof(*p));
	p->tgid = told->pid;
	p->began = told->began;
	change(t, p);
	hashmap_set(&t->by_tgid, (uint32_t)p->tgid, p);
	t->nr_processes++;
	return p;
}

static void name(struct told_process *p, const struct raw_told *told)
{
	p->parent = told->ppid;
	memcpy(p->comm, told->comm, sizeof(told->comm));
}

static void take_fork(struct guest_told *t, struct told_process *child, const struct raw_told *told)
{
	struct told_process *parent = hashmap_get(&t->by_tgid, (uint32_t)told->ppid);

	name(child, told);
	if (!parent || parent == child || t->nr_maps + parent->nr_maps > MAX_MAPS)
		return;
	child->whole = parent->whole;
	child->maps =
		xgrow(child->maps, &child->cap_maps, parent->nr_maps + 1, sizeof(*child->maps));
	if (parent->nr_maps)
		memcpy(child->maps, parent->maps, parent->nr_maps * sizeof(*child->maps));
	set_nr_maps(t, child, parent->nr_maps);
}

static void take_exec(struct guest_told *t, struct told_process *p, const struct raw_told *told)
{
	name(p, told);
	p->whole = true;
	p->execs++;
	set_nr_maps(t, p, 0);
}

/* Of which process something is missing is not known. */
static void take_lost(struct guest *g)
{
	struct told_process *p;

	for (size_t i = 0; (p = hashmap_next(&g->told.by_tgid, &i, NULL));)
		p->whole = false;
	for (struct guest_process *proc = g->procs.oldest; proc; proc = proc->newer) {
		if (proc->told)
			proc->walk_time = 0;
		proc->told = false;
	}
}

void guest_tell(struct guest *g, const struct raw_told *told)
{
	struct told_process *p;

	if (told->type == RAW_TOLD_LOST) {
		take_lost(g);
		return;
	}
	p = get(&g->told, told);
	if (!p)
		return;
	switch (told->type) {
	case RAW_TOLD_KNOWN:
		name(p, told);
		p->whole = true;
		break;
	case RAW_TOLD_FORK:
		take_fork(&g->told, p, told);
		break;
	case RAW_TOLD_EXEC:
		take_exec(&g->told, p, told);
		break;
	case RAW_TOLD_GONE:
		forget(&g->told, p);
		guest_procs_gone(&g->procs, told->pid, told->began, told->time);
		break;
	case RAW_TOLD_MAP:
		take_map(g, p, told);
		break;
	case RAW_TOLD_LOST:
		break;
	}
}

/* ---------- what a sample needs of it ---------- */

/* The thread by its name and numbers, and with it the process. */
static struct guest_process *announce(struct guest *g, const struct told_process *p,
				      const struct raw_sample *raw)
{
	struct guest_process *proc = hashmap_get(&g->procs.by_tgid, (uint32_t)p->tgid);
	struct guest_task t = {
		.task = (uint32_t)raw->pid, /* no address of the kernel's */
		.pid = raw->pid,
		.tgid = raw->pid,
		.start_time = p->began,
		.ppid = p->parent,
		.cgroups = proc ? proc->cgroups : 0,
	};
	int rc;

	if (proc && proc->start_time == p->began)
		return proc;
	memcpy(t.comm, p->comm, sizeof(t.comm));
	guest_procs_see(&g->procs, &t, raw->time, &rc);
	return hashmap_get(&g->procs.by_tgid, (uint32_t)p->tgid);
}

/* A file that no process was seen to have mapped is looked for by its path, as the first process
 * would. */
static void find_file(struct guest *g, struct guest_dso_entry *e)
{
	const struct guest_process *first = hashmap_get(&g->procs.by_tgid, 1);
	const struct guest_dso *d = &e->dso;
	struct guest_inode f;

	if (e->sought || e->file.inode || !d->ino || !first || !g->kernel || g->no_types)
		return;
	e->sought = true;
	if (guest_lookup(&g->km, guest_process_task(first), d->path, &f) || f.dev != d->dev ||
	    f.ino != d->ino || f.generation != d->ino_generation)
		return;
	e->file = f;
	e->dso.size = f.size;
}

void guest_told_sync(struct guest *g, const struct raw_sample *raw)
{
	const struct told_process *p = hashmap_get(&g->told.by_tgid, (uint32_t)raw->pid);
	struct guest_process *proc = p ? announce(g, p, raw) : NULL;
	struct guest_map *maps;

	if (!proc || proc->start_time != p->began)
		return;
	proc->told = p->whole;
	if (proc->told_version == p->version || (!p->whole && proc->walk_time))
		return;
	if (proc->told_execs != p->execs)
		guest_procs_exec(&g->procs, proc, p->comm, raw->time);
	for (size_t i = 0; i < p->nr_maps; i++) {
		find_file(g, p->maps[i].dso);
		guest_procs_build_id(&g->procs, proc, p->maps[i].dso);
	}
	maps = xcalloc(p->nr_maps + 1, sizeof(*maps));
	if (p->nr_maps)
		memcpy(maps, p->maps, p->nr_maps * sizeof(*maps));
	guest_procs_set_maps(&g->procs, proc, maps, p->nr_maps, raw->time);
	proc->walk_time = 0; /* memory may be asked what that leaves open */
	proc->told_version = p->version;
	proc->told_execs = p->execs;
}
