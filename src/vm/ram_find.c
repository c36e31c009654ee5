// SPDX-License-Identifier: GPL-2.0-only
#include "vm/ram_find.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"
#include "util/xalloc.h"

#define ALIGN (2ull << 20) /* QEMU_VMALLOC_ALIGN: RAM starts on such a boundary */

/* Lines of maps that belong together: adjacent, and the same file or all without one. */
struct run {
	uint64_t start, end;
	const struct proc_map *first;
	bool shared, used;
};

static bool is_ram_like(const struct proc_map *m)
{
	if (!m->read || !m->write || m->exec || m->path[0] == '[')
		return false;
	return m->shared ? m->inode != 0 : true;
}

static bool continues(const struct run *r, const struct proc_map *last, const struct proc_map *m)
{
	if (m->start != r->end || m->shared != r->shared || m->inode != last->inode)
		return false;
	return !m->inode || m->offset == last->offset + (last->end - last->start);
}

static struct run *find_runs(const struct proc_maps *maps, size_t *n)
{
	struct run *runs = NULL;
	size_t cap = 0;

	*n = 0;
	for (size_t i = 0; i < maps->n; i++) {
		const struct proc_map *m = &maps->map[i];

		if (!is_ram_like(m))
			continue;
		if (*n && continues(&runs[*n - 1], m - 1, m)) {
			runs[*n - 1].end = m->end;
			continue;
		}
		runs = xgrow(runs, &cap, *n + 1, sizeof(*runs));
		runs[(*n)++] = (struct run){m->start, m->end, m, m->shared, false};
	}
	return runs;
}

/*
 * How well a run fits a block, 0: not at all. RAM is followed by a guard page, so where the kernel
 * has merged it with a neighbour, it is the upper end of what was merged.
 */
static int fit(const struct run *r, const struct ram_block *b)
{
	uint64_t len = r->end - r->start;

	if (r->used || len < b->size || (r->end - b->size) % 4096)
		return 0;
	if (len == b->size)
		return r->shared == (b->backing == RAM_BACKING_SHARED) ? 3 : 2;
	return !r->shared && (r->end - b->size) % ALIGN == 0 ? 1 : 0;
}

static void set_place(struct ram_place *p, const struct run *r, uint64_t hva)
{
	*p = (struct ram_place){
		.hva = hva,
		.shared = r->shared,
		.map_start = r->first->start,
		.map_end = r->first->end,
		.inode = r->first->inode,
		.file_off = r->first->offset + (hva - r->start),
		.memfd = !strncmp(r->first->path, "/memfd:", 7),
	};
}

/* ---------- QEMU's list of RAM blocks ---------- */

/*
 * struct RAMBlock has the block's address in QEMU, some words further its length twice (used and
 * allowed), and then its name; what lies between differs from version to version.
 */
#define BLOCK_SPAN 512 /* bytes from the address that have it all */
#define PATH_SIZE  128

struct list_search {
	const struct vm_ram_spec *spec;
	struct run *runs;
	size_t nr_runs;
	uint64_t lowest, highest;
	uint64_t hva[RAM_BLOCKS_MAX]; /* 0: not found yet */
	unsigned found;
};

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static struct run *run_at(struct run *runs, size_t n, uint64_t start, uint64_t len)
{
	for (size_t i = 0; i < n; i++)
		if (start >= runs[i].start && start < runs[i].end)
			return runs[i].end - start >= len ? &runs[i] : NULL;
	return NULL;
}

/* Is one of the names that QEMU gives to this block at @p? */
static bool has_name(const uint8_t *p, const struct ram_block *b)
{
	static const char *const defaults[] = {"pc.ram", "microvm.ram", "mach-virt.ram"};
	char path[PATH_SIZE];

	if (b->id[0]) {
		snprintf(path, sizeof(path), "/objects/%s", b->id);
		return !memcmp(p, b->id, strlen(b->id) + 1) || !memcmp(p, path, strlen(path) + 1);
	}
	for (size_t i = 0; i < sizeof(defaults) / sizeof(*defaults); i++)
		if (!memcmp(p, defaults[i], strlen(defaults[i]) + 1))
			return true;
	return false;
}

/* Is the word at @p the address in a RAMBlock for block @b? */
static bool is_block(const uint8_t *p, const struct ram_block *b)
{
	for (unsigned w = 2; w < 8; w++) {
		if (get64(p + w * 8) != b->size || get64(p + w * 8 + 8) != b->size)
			continue;
		for (unsigned at = (w + 2) * 8; at < (w + 2) * 8 + 64; at += 4)
			if (has_name(p + at, b))
				return true;
	}
	return false;
}

static bool search_piece(void *ctx, uint64_t addr, const uint8_t *buf, size_t len, size_t fresh)
{
	struct list_search *s = ctx;

	for (size_t o = 0; o < fresh && o + BLOCK_SPAN <= len; o += 8) {
		uint64_t host = get64(buf + o);

		if (host < s->lowest || host >= s->highest || host % 4096)
			continue;
		for (unsigned i = 0; i < s->spec->nr_blocks; i++) {
			const struct ram_block *b = &s->spec->blocks[i];

			if (s->hva[i] || !is_block(buf + o, b) ||
			    !run_at(s->runs, s->nr_runs, host, b->size))
				continue;
			s->hva[i] = host;
			s->found++;
		}
	}
	return s->found == s->spec->nr_blocks;
}

static void search_list(struct list_search *s, const struct vm *vm, const struct proc_maps *maps)
{
	s->lowest = UINT64_MAX;
	for (size_t i = 0; i < s->nr_runs; i++) {
		if (s->runs[i].start < s->lowest)
			s->lowest = s->runs[i].start;
		if (s->runs[i].end > s->highest)
			s->highest = s->runs[i].end;
	}
	/* Without permission to look this finds nothing; who opens the RAM says so. */
	proc_scan(vm->pid, maps, PROC_SCAN_HEAP, BLOCK_SPAN, search_piece, s);
	if (!s->found)
		proc_scan(vm->pid, maps, PROC_SCAN_MMAP, BLOCK_SPAN, search_piece, s);
}

/* ---------- by size ---------- */

/* Downwards: mmap gives out addresses so, and the block that came first is on top. */
static struct run *best_fit(struct run *runs, size_t n, const struct ram_block *b)
{
	struct run *best = NULL;
	int best_fit = 0;

	while (n-- > 0) {
		int f = fit(&runs[n], b);

		if (f > best_fit) {
			best_fit = f;
			best = &runs[n];
		}
	}
	return best;
}

static int say_missing(const struct vm *vm, const struct ram_block *b, struct vmprof_err *err)
{
	char name[128];

	return err_set(
		err, ENXIO,
		"%s (pid %d) has no mapping that could be its %" PRIu64
		" MiB of RAM: its size was not given with -m or -object, or this is not QEMU",
		escape_str(name, sizeof(name), vm->name), vm->pid, b->size >> 20);
}

int ram_find(struct ram_place places[RAM_BLOCKS_MAX], const struct vm *vm,
	     const struct proc_maps *maps, struct vmprof_err *err)
{
	const struct vm_ram_spec *spec = vm->ram_spec;
	struct list_search *s = xcalloc(1, sizeof(*s));
	size_t n;
	struct run *runs = find_runs(maps, &n), *r;
	int code = 0;

	s->spec = spec;
	s->runs = runs;
	s->nr_runs = n;
	search_list(s, vm, maps);
	for (unsigned i = 0; i < spec->nr_blocks; i++)
		if (s->hva[i]) {
			r = run_at(runs, n, s->hva[i], spec->blocks[i].size);
			r->used = true;
			set_place(&places[i], r, s->hva[i]);
		}
	for (unsigned i = 0; i < spec->nr_blocks && !code; i++) {
		if (s->hva[i])
			continue;
		r = best_fit(runs, n, &spec->blocks[i]);
		if (r) {
			r->used = true;
			set_place(&places[i], r, r->end - spec->blocks[i].size);
		} else {
			code = say_missing(vm, &spec->blocks[i], err);
		}
	}
	free(runs);
	free(s);
	return code;
}
