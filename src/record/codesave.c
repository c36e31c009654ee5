// SPDX-License-Identifier: GPL-2.0-only
#include "record/codesave.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/codestore.h"
#include "util/hashmap.h"
#include "util/xalloc.h"

enum {
	MAX_FUNCTION = 256 << 10, /* bytes of one that are saved */
	MAX_SEEN = 1 << 20,	  /* distinct addresses that are looked at */
	MAX_WAITING = 1 << 16,
	PAGE = 4096,
	DSO_SHIFT = 44, /* of its id above the offset, in keys */
};
#define MAX_BYTES (64ull << 20) /* of a VM: a guest chooses how much code it runs */

struct range {
	uint64_t start, end;
};

/* A kernel, a module, a program or library. */
struct target {
	char *name;
	uint8_t id[20], id_len;
	uint64_t start, len;	 /* of a kernel's mapping; len 0: it is none, or gone */
	bool made;		 /* by a program: where its functions end is not known yet */
	struct range *functions; /* by start */
	size_t nr_functions;
	struct code_runs code;
};

struct waiting {
	uint32_t dso;
	uint64_t offset, ip;
};

struct codesave {
	struct target **targets;
	size_t nr_targets, cap_targets;
	struct hashmap by_dso;		  /* id + 1 -> target */
	struct hashmap seen, seen_kernel; /* DSO and offset; address */
	struct waiting *waiting;
	size_t nr_waiting, cap_waiting;
	uint64_t bytes;
	uint8_t buf[MAX_FUNCTION];
};

struct codesave *codesave_new(void)
{
	return xcalloc(1, sizeof(struct codesave));
}

void codesave_free(struct codesave *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nr_targets; i++) {
		struct target *t = c->targets[i];

		code_runs_free(&t->code);
		free(t->functions);
		free(t->name);
		free(t);
	}
	free(c->targets);
	free(c->waiting);
	hashmap_free(&c->by_dso);
	hashmap_free(&c->seen);
	hashmap_free(&c->seen_kernel);
	free(c);
}

static struct target *add_target(struct codesave *c, const struct codesave_key *key,
				 const struct symtab *st)
{
	struct target *t = xcalloc(1, sizeof(*t));

	t->name = xstrdup(key->name);
	t->id_len = key->id_len;
	memcpy(t->id, key->id, key->id_len);
	t->functions = xcalloc(st->n ? st->n : 1, sizeof(*t->functions));
	t->nr_functions = st->n;
	for (size_t i = 0; i < st->n; i++)
		t->functions[i] = (struct range){st->syms[i].start, st->syms[i].end};
	c->targets = xgrow(c->targets, &c->cap_targets, c->nr_targets + 1, sizeof(*c->targets));
	c->targets[c->nr_targets++] = t;
	return t;
}

void codesave_kernel(struct codesave *c, uint64_t start, uint64_t len,
		     const struct codesave_key *key, const struct symtab *st)
{
	struct target *t = add_target(c, key, st);

	t->start = start;
	t->len = len;
}

void codesave_reset(struct codesave *c)
{
	for (size_t i = 0; i < c->nr_targets; i++)
		c->targets[i]->len = 0;
	hashmap_free(&c->seen_kernel);
}

void codesave_dso(struct codesave *c, uint32_t dso_id, const struct codesave_key *key,
		  const struct symtab *st)
{
	hashmap_set(&c->by_dso, dso_id + 1ull, add_target(c, key, st));
}

void codesave_made(struct codesave *c, uint32_t dso_id, const struct codesave_key *key)
{
	static const struct symtab none;
	struct target *t = add_target(c, key, &none);

	t->made = true;
	hashmap_set(&c->by_dso, dso_id + 1ull, t);
}

/* The function that has @offset, cut to what is saved of one; false: none is known. */
static bool find_function(const struct target *t, uint64_t offset, struct range *f)
{
	size_t lo = 0, hi = t->nr_functions;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->functions[mid].start <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || t->functions[lo - 1].end <= offset)
		return false;
	*f = t->functions[lo - 1];
	if (f->end - f->start > MAX_FUNCTION)
		f->end = f->start + MAX_FUNCTION;
	return true;
}

static void add_code(struct codesave *c, struct target *t, uint64_t start, const uint8_t *bytes,
		     uint64_t len)
{
	uint64_t before = t->code.bytes;

	if (len > MAX_BYTES - c->bytes)
		return;
	code_runs_add(&t->code, start, bytes, len);
	c->bytes += t->code.bytes - before;
}

/* Bytes of up to the end of a page at @at, less than all of them behind @end. */
static uint64_t page_part(uint64_t at, uint64_t end)
{
	uint64_t next = (at & ~(uint64_t)(PAGE - 1)) + PAGE;

	return (next < end ? next : end) - at;
}

static void read_kernel(struct codesave *c, struct guest *g, struct target *t,
			const struct range *f)
{
	uint64_t start = t->start + f->start, end = t->start + f->end;

	for (uint64_t at = start, n; at < end; at += n) {
		n = page_part(at, end);
		if (!guest_kernel_read(g, at, c->buf, n))
			add_code(c, t, at - t->start, c->buf, n);
	}
}

static void read_program(struct codesave *c, struct guest *g, struct target *t, uint32_t dso,
			 const struct range *f)
{
	for (uint64_t at = f->start, n; at < f->end; at += n) {
		n = page_part(at, f->end);
		if (guest_dso_read(g, dso, at, c->buf, n, NULL) == (ssize_t)n)
			add_code(c, t, at, c->buf, n);
	}
}

/* The page of @ip, and those around it, which have the ends of most functions. */
static void read_made(struct codesave *c, struct guest *g, struct target *t, uint32_t dso,
		      uint64_t ip)
{
	uint64_t page = ip & ~(uint64_t)(PAGE - 1);

	for (int i = -1; i <= 1; i++) {
		uint64_t at = page + (uint64_t)(int64_t)(i * PAGE);

		if (!code_runs_find(&t->code, at) && !guest_made_read(g, dso, at, c->buf, PAGE))
			add_code(c, t, at, c->buf, PAGE);
	}
}

/* Is it the first time? */
static bool see(struct hashmap *seen, uint64_t key)
{
	if (seen->n >= MAX_SEEN || hashmap_get(seen, key))
		return false;
	hashmap_set(seen, key, seen);
	return true;
}

static void hit_kernel(struct codesave *c, struct guest *g, uint64_t ip)
{
	struct range f;

	if (!see(&c->seen_kernel, ip))
		return;
	for (size_t i = c->nr_targets; i-- > 0;) {
		struct target *t = c->targets[i];

		if (ip - t->start >= t->len)
			continue;
		if (find_function(t, ip - t->start, &f) && !code_runs_find(&t->code, f.start))
			read_kernel(c, g, t, &f);
		return;
	}
}

void codesave_hit(struct codesave *c, struct guest *g, const struct sample *s)
{
	if (s->mode == SAMPLE_MODE_GUEST_KERNEL) {
		hit_kernel(c, g, s->ip);
		return;
	}
	if (!s->has_dso || s->dso_offset >> DSO_SHIFT || s->dso >> (64 - DSO_SHIFT) ||
	    c->nr_waiting >= MAX_WAITING ||
	    !see(&c->seen, (uint64_t)s->dso << DSO_SHIFT | s->dso_offset))
		return;
	c->waiting = xgrow(c->waiting, &c->cap_waiting, c->nr_waiting + 1, sizeof(*c->waiting));
	c->waiting[c->nr_waiting++] = (struct waiting){s->dso, s->dso_offset, s->ip};
}

void codesave_work(struct codesave *c, struct guest *g)
{
	size_t left = 0;

	for (size_t i = 0; i < c->nr_waiting; i++) {
		struct waiting *w = &c->waiting[i];
		struct target *t = hashmap_get(&c->by_dso, w->dso + 1ull);
		struct range f;

		if (!t)
			c->waiting[left++] = *w;
		else if (t->made)
			read_made(c, g, t, w->dso, w->ip);
		else if (find_function(t, w->offset, &f) && !code_runs_find(&t->code, f.start))
			read_program(c, g, t, w->dso, &f);
	}
	c->nr_waiting = left;
}

int codesave_write(struct codesave *c, const char *dir, const char *vm, struct vmprof_err *err)
{
	int ret = 0;

	for (size_t i = 0; i < c->nr_targets && !ret; i++) {
		const struct target *t = c->targets[i];
		char *name;

		if (!t->code.n)
			continue;
		name = xasprintf("%s/%s", vm, t->name);
		ret = codestore_put(dir, name, t->id, t->id_len, EM_X86_64, &t->code, err);
		free(name);
	}
	return ret;
}
