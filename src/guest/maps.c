// SPDX-License-Identifier: GPL-2.0-only
/*
 * The executable mappings of a process: when to look at its VMAs again, what they are called, and
 * what of that is news.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "guest/process.h"
#include "util/xalloc.h"

#define MS	      1000000ull
#define PATH_BYTES    4096
#define VMA_COST      40000ull /* ns between walks for each VMA: 20 times what reading one takes */
#define LOST_EVERY    (50 * MS)
#define CHANGED_EVERY (1000 * MS)

/* ---------- where an address is ---------- */

static bool map_has(const struct guest_map *m, uint64_t addr)
{
	return m && addr - m->start < m->end - m->start;
}

struct guest_map *guest_process_map(struct guest_process *proc, uint64_t addr)
{
	size_t lo = 0, hi = proc->nr_maps;

	if (map_has(proc->last_map, addr))
		return proc->last_map;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (proc->maps[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == proc->nr_maps || !map_has(&proc->maps[lo], addr))
		return NULL;
	return proc->last_map = &proc->maps[lo];
}

/* ---------- VMAs to mappings ---------- */

struct image {
	struct guest_kmem *km;
	const struct guest_inode *file; /* or NULL: */
	struct guest_as as;
	uint64_t base;
};

static int image_read(void *ctx, uint64_t off, void *buf, size_t len)
{
	struct image *im = ctx;
	ssize_t n;

	if (!im->file)
		return guest_virt_read(im->km->virt, im->as, im->base + off, buf, len);
	n = guest_pagecache_read(im->km, im->file, off, buf, len, NULL);
	return n < 0 ? (int)n : n == (ssize_t)len ? 0 : -ENODATA;
}

/* Once, as users tell files apart by it: an id that came up later would be of another file. */
void guest_procs_build_id(struct guest_procs *p, struct guest_process *proc,
			  struct guest_dso_entry *e)
{
	struct image im = {.km = p->km, .file = &e->file, .as = proc->as, .base = e->base};
	struct guest_elf elf = {0};

	if (e->looked_at)
		return;
	e->looked_at = true;
	if (!e->file.inode || guest_elf_read(&elf, false, image_read, &im)) {
		im.file = NULL;
		if (!e->base || guest_elf_read(&elf, true, image_read, &im))
			return;
	}
	memcpy(e->dso.build_id, elf.build_id, sizeof(elf.build_id));
	e->dso.build_id_len = elf.build_id_len;
}

/* Names that the kernel gives to mappings without a file; see arch_vma_name() and show_map_vma().
 */
static void special_name(struct guest_procs *p, uint64_t mm, const struct guest_vma *v, char *name,
			 size_t size)
{
	const struct guest_layout *l = &p->km->lay;
	struct guest_virt *virt = p->km->virt;
	uint64_t str = 0, brk[3] = {0}, vdso = 0;
	struct guest_virt_io io[] = {
		{.va = mm + (uint64_t)l->mm_start_brk, .buf = &brk[0], .len = 8},
		{.va = mm + (uint64_t)l->mm_brk, .buf = &brk[1], .len = 8},
		{.va = mm + (uint64_t)l->mm_start_stack, .buf = &brk[2], .len = 8},
		{.va = mm + (uint64_t)l->mm_vdso, .buf = &vdso, .len = 8},
	};

	name[0] = 0;
	if (v->ops && v->ops == l->special_mapping_vmops &&
	    !guest_virt_read(virt, p->km->as, v->private_data, &str, 8))
		guest_virt_read_str(virt, p->km->as, str, name, size);
	if (name[0] == '[')
		return;
	snprintf(name, size, "//anon");
	if (l->mm_start_brk < 0 || l->mm_brk < 0 || l->mm_start_stack < 0 || l->mm_vdso < 0 ||
	    guest_virt_readv(virt, p->km->as, io, 4))
		return;
	if (io[3].ok && vdso && v->start == vdso)
		snprintf(name, size, "[vdso]");
	else if (io[0].ok && io[1].ok && v->start <= brk[1] && v->end >= brk[0] && brk[0] < brk[1])
		snprintf(name, size, "[heap]");
	else if (io[2].ok && v->start <= brk[2] && v->end >= brk[2])
		snprintf(name, size, "[stack]");
}

/*
 * Memory that programs make code in has a file where they map it twice, once to write and once to
 * run.
 */
bool guest_is_made_name(const char *path)
{
	static const char *const names[] = {"/memfd:", "/dev/zero", "/anon_hugepage"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(path, names[i], strlen(names[i])))
			return true;
	return false;
}

/* A program that was copied into such a file is one. */
static bool is_made(struct guest_procs *p, const char *path, const struct guest_inode *f)
{
	uint8_t magic[SELFMAG];

	return guest_is_made_name(path) && (guest_pagecache_read(p->km, f, 0, magic, sizeof(magic),
								 NULL) != (ssize_t)sizeof(magic) ||
					    memcmp(magic, ELFMAG, SELFMAG) != 0);
}

static struct guest_dso_entry *name_vma(struct guest_procs *p, struct guest_process *proc,
					uint64_t mm, const struct guest_vma *v, uint64_t base)
{
	struct guest_inode inode;
	struct guest_dso_entry *e;
	char path[PATH_BYTES];

	if (v->file && !guest_file_path(p->km, v->file, path, sizeof(path), &inode)) {
		if (is_made(p, path, &inode)) {
			e = guest_dsos_get_owned(p->dsos, path, &inode, proc->tgid,
						 proc->start_time);
			base = v->start;
		} else {
			e = guest_dsos_get(p->dsos, path, &inode);
		}
	} else if (v->file) {
		e = guest_dsos_get(p->dsos, "[unknown file]", NULL);
	} else {
		special_name(p, mm, v, path, sizeof(path));
		e = strcmp(path, "//anon") ? guest_dsos_get(p->dsos, path, NULL)
					   : guest_dsos_get_owned(p->dsos, path, NULL, proc->tgid,
								  proc->start_time);
		base = v->start;
	}
	e->tgid = proc->tgid;
	if (base || !e->base)
		e->base = base;
	guest_procs_build_id(p, proc, e);
	return e;
}

/* The executable ones of @vmas. */
static size_t make_maps(struct guest_procs *p, struct guest_process *proc, uint64_t mm,
			const struct guest_vmas *vmas, struct guest_map **out)
{
	struct guest_map *maps = NULL;
	struct guest_dso_entry *dso = NULL;
	uint64_t base_file = 0, base = 0, named = 0;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < vmas->n; i++) {
		const struct guest_vma *v = &vmas->v[i];

		if (v->file && !v->pgoff) { /* the parts of a file lie behind its first one */
			base_file = v->file;
			base = v->start;
		}
		if (!(v->flags & GUEST_VM_EXEC))
			continue;
		if (!v->file || v->file != named)
			dso = name_vma(p, proc, mm, v, v->file == base_file ? base : 0);
		named = v->file;
		maps = xgrow(maps, &cap, n + 1, sizeof(*maps));
		maps[n++] = (struct guest_map){
			.start = v->start,
			.end = v->end,
			.pgoff = v->file ? v->pgoff : 0,
			.prot = (uint32_t)(v->flags & (PROT_READ | PROT_WRITE | PROT_EXEC)),
			.flags = v->flags & GUEST_VM_SHARED ? MAP_SHARED : MAP_PRIVATE,
			.dso = dso,
		};
	}
	*out = maps;
	return n;
}

static bool same_map(const struct guest_map *a, const struct guest_map *b)
{
	return a->start == b->start && a->end == b->end && a->pgoff == b->pgoff &&
	       a->prot == b->prot && a->flags == b->flags && a->dso == b->dso;
}

static void announce(struct guest_procs *p, const struct guest_process *proc,
		     const struct guest_map *m, uint64_t time)
{
	const struct guest_event ev = {
		.type = GUEST_EVENT_MMAP,
		.time = time,
		.pid = proc->tgid,
		.tid = proc->tgid,
		.start = m->start,
		.len = m->end - m->start,
		.pgoff = m->pgoff,
		.prot = m->prot,
		.flags = m->flags,
		.dso = m->dso->dso,
	};

	p->maps_seen++;
	guest_events_add(p->events, &ev);
}

void guest_procs_set_maps(struct guest_procs *p, struct guest_process *proc, struct guest_map *maps,
			  size_t n, uint64_t time)
{
	size_t old = 0, kept = 0;

	for (size_t i = 0; i < n; i++) {
		while (old < proc->nr_maps && proc->maps[old].start < maps[i].start)
			old++;
		if (old < proc->nr_maps && same_map(&proc->maps[old], &maps[i]))
			kept++;
		else
			announce(p, proc, &maps[i], time);
	}
	if (kept != proc->nr_maps)
		proc->generation = ++p->generations;
	if (kept != proc->nr_maps || n != kept)
		p->changes++;
	p->nr_maps += n - proc->nr_maps;
	free(proc->maps);
	proc->maps = maps;
	proc->nr_maps = n;
	proc->last_map = NULL;
}

/* Those of @maps that are where none is known: memory is read later than what was told. Frees them.
 */
static void add_maps(struct guest_procs *p, struct guest_process *proc, struct guest_map *maps,
		     size_t n, uint64_t time)
{
	struct guest_map *all = xcalloc(proc->nr_maps + n + 1, sizeof(*all));
	size_t known = 0, nr = 0;

	for (size_t i = 0; i < n; i++) {
		while (known < proc->nr_maps && proc->maps[known].start < maps[i].end)
			all[nr++] = proc->maps[known++];
		if (!nr || all[nr - 1].end <= maps[i].start)
			all[nr++] = maps[i];
	}
	while (known < proc->nr_maps)
		all[nr++] = proc->maps[known++];
	free(maps);
	guest_procs_set_maps(p, proc, all, nr, time);
}

/* ---------- when ---------- */

/*
 * A walk costs some microseconds a VMA, so the time between two grows with their number. exec_vm
 * counts pages of executable mappings: when it changes there is something new; when only the other
 * counters do it is most often the heap. An address that is in no mapping is a reason of its own,
 * but a wild pointer or a frame that is none is in no mapping either: after walks that brought
 * nothing the next one has to wait longer.
 */
static bool must_walk(const struct guest_process *proc, const struct guest_task *t, uint64_t lost,
		      uint64_t time)
{
	uint64_t since = time - proc->walk_time, wait;
	bool changed = t->total_vm != proc->seen_total_vm || t->map_count != proc->seen_map_count;

	if (!proc->walk_time)
		return true;
	if (time < proc->walk_time + proc->walk_cost)
		return false;
	if (t->exec_vm != proc->seen_exec_vm || !proc->walk_whole || (lost && changed))
		return true;
	if (changed && since >= CHANGED_EVERY)
		return true;
	wait = LOST_EVERY << (proc->useless_walks < 6 ? proc->useless_walks : 6);
	return lost && since >= wait;
}

/* Not when the address space is new: an exec that was seen under way had no stack yet. */
static int read_start_stack(struct guest_procs *p, struct guest_process *proc, uint64_t mm)
{
	int rc;

	proc->start_stack = 0;
	if (p->km->lay.mm_start_stack < 0)
		return 0;
	rc = guest_virt_read(p->km->virt, p->km->as, mm + (uint64_t)p->km->lay.mm_start_stack,
			     &proc->start_stack, 8);
	return rc == -ESRCH ? rc : 0;
}

bool guest_procs_refresh_maps(struct guest_procs *p, struct guest_process *proc,
			      const struct guest_task *t, uint64_t lost, uint64_t time, int *rc)
{
	struct guest_map *maps;
	size_t n;

	*rc = 0;
	if (!proc->as.root || t->ctx_id != proc->ctx_id || !must_walk(proc, t, lost, time))
		return false;
	p->vma_walks++;
	*rc = read_start_stack(p, proc, t->mm);
	if (!*rc)
		*rc = guest_mm_walk(p->km, t->mm, &p->scratch);
	if (*rc)
		return false;
	proc->walk_time = time ? time : 1;
	proc->walk_cost = MS + p->scratch.n * VMA_COST;
	proc->walk_whole = p->scratch.whole;
	proc->seen_total_vm = t->total_vm;
	proc->seen_exec_vm = t->exec_vm;
	proc->seen_map_count = t->map_count;
	/* Half a map is better than none, but does not take away what is known. */
	if (!p->scratch.whole && p->scratch.n < proc->nr_maps)
		return false;
	n = make_maps(p, proc, t->mm, &p->scratch, &maps);
	if (proc->told)
		add_maps(p, proc, maps, n, time);
	else
		guest_procs_set_maps(p, proc, maps, n, time);
	proc->useless_walks = lost && !guest_process_map(proc, lost) ? proc->useless_walks + 1 : 0;
	return true;
}
