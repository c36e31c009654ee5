// SPDX-License-Identifier: GPL-2.0-only
#include "record/symsave.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/codesave.h"
#include "record/jitsave.h"
#include "symbolize/elfimage.h"
#include "util/clock.h"
#include "util/idhash.h"
#include "util/xalloc.h"

/* A file of unknown size: reads say where it ends. */
#define SIZE_UNKNOWN (1ull << 40)
/*
 * A guest can make up any number of files with millions of symbols each; it shall not fill the
 * host's disk. A busy server's all together are some 20 MiB.
 */
#define MAX_STORED (256ull << 20)

struct symsave {
	char *dir; /* NULL: nothing is saved */
	char *vm;
	uint64_t stored; /* bytes */
	struct symsave_stats stats;
	struct codesave *code;
	struct jitsave *jit;
};

struct symsave *symsave_new(const char *dir, const char *vm)
{
	struct symsave *s = xcalloc(1, sizeof(*s));

	s->dir = dir ? xstrdup(dir) : NULL;
	s->vm = xstrdup(vm);
	s->code = codesave_new();
	s->jit = jitsave_new();
	return s;
}

void symsave_free(struct symsave *s)
{
	if (!s)
		return;
	free(s->dir);
	free(s->vm);
	codesave_free(s->code);
	jitsave_free(s->jit);
	free(s);
}

void symsave_get_stats(const struct symsave *s, struct symsave_stats *st)
{
	*st = s->stats;
}

/* ---------- build ids of our own ---------- */

static uint8_t known_id(const struct guest_dso *dso, uint8_t id[20])
{
	uint8_t len = dso->build_id_len < 20 ? (uint8_t)dso->build_id_len : 20;

	memcpy(id, dso->build_id, len);
	return len;
}

uint8_t symsave_build_id(struct symsave *s, const struct guest_dso *dso, uint8_t id[20])
{
	struct id_hash h;
	uint8_t len = known_id(dso, id);

	if (len)
		return len;
	id_hash_init(&h);
	id_hash_str(&h, s->vm);
	id_hash_str(&h, dso->path);
	id_hash_u64(&h, dso->dev);
	id_hash_u64(&h, dso->ino);
	id_hash_u64(&h, dso->ino_generation);
	id_hash_u64(&h, dso->size);
	id_hash_u64(&h, (uint32_t)dso->owner);
	id_hash_u64(&h, dso->owner_start);
	return id_hash_end(&h, id);
}

/* ---------- the store ---------- */

static uint64_t size_of(const struct symtab *t)
{
	uint64_t size = 1024; /* headers */

	for (size_t i = 0; i < t->n; i++)
		size += 24 + strlen(t->syms[i].name) + 1;
	return size;
}

/* @stored: NULL, or how many bytes there are already of what this takes the place of. */
static bool put(struct symsave *s, const char *name, const uint8_t *id, uint8_t id_len,
		const struct symtab *t, uint64_t *stored)
{
	uint64_t size = size_of(t), before = stored ? *stored : 0;
	struct vmprof_err err;
	char *path;
	int ret;

	if (!s->dir)
		return true;
	if (size > MAX_STORED - (s->stored - before)) {
		snprintf(s->stats.last_error, sizeof(s->stats.last_error),
			 "%s's symbols are more than %llu MiB, not all of them are saved", s->vm,
			 MAX_STORED >> 20);
		return false;
	}
	path = xasprintf("%s/%s", s->vm, name);
	ret = (stored ? elfstore_replace : elfstore_put)(s->dir, path, id, id_len, t, &err);
	free(path);
	if (ret) {
		snprintf(s->stats.last_error, sizeof(s->stats.last_error), "%s", err.msg);
		return false;
	}
	s->stored += size - before;
	if (stored)
		*stored = size;
	return true;
}

/* ---------- kernel and modules ---------- */

struct kernel_symbols {
	const struct guest_event *ev;
	struct symtab *t;
};

/* Code alone, relative to the mapping's start: that is what perf's maps of modules want. */
static int add_symbol(void *ctx, const struct guest_symbol *sym)
{
	struct kernel_symbols *k = ctx;
	uint64_t start = sym->addr - k->ev->start, end;

	if (!strchr("tTwW", sym->type) || sym->addr < k->ev->start || start >= k->ev->len)
		return 0;
	end = sym->size < k->ev->len - start ? start + sym->size : k->ev->len;
	symtab_add(k->t, start, end, sym->name,
		   sym->type == 'T'			  ? 'g'
		   : sym->type == 'W' || sym->type == 'w' ? 'w'
							  : 'l');
	return 0;
}

/*
 * kallsyms has no sizes. Aliases get the same one, so that the better name is chosen and not the
 * last; they come by address.
 */
static void size_by_next(struct symtab *t, uint64_t len)
{
	uint64_t at = len, next = len;

	for (size_t i = t->n; i-- > 0;) {
		struct symbol *sym = &t->syms[i];

		if (sym->start != at) {
			next = at;
			at = sym->start;
		}
		if (sym->end == sym->start && next > sym->start)
			sym->end = next;
	}
}

uint8_t symsave_kernel(struct symsave *s, struct guest *g, const struct guest_event *ev,
		       const char *name, uint8_t id[20])
{
	struct kernel_symbols k = {ev, symtab_new()};
	const char *module = ev->type == GUEST_EVENT_MODULE ? ev->dso.path : NULL;
	struct id_hash h;
	uint8_t len = known_id(&ev->dso, id);

	guest_kernel_symbols(g, module, add_symbol, &k);
	size_by_next(k.t, ev->len);
	symtab_finish(k.t);
	if (!len) {
		id_hash_init(&h);
		id_hash_str(&h, module ? module : "kernel");
		id_hash_u64(&h, ev->len);
		for (size_t i = 0; i < k.t->n; i++) {
			id_hash_u64(&h, k.t->syms[i].start);
			id_hash_str(&h, k.t->syms[i].name);
		}
		len = id_hash_end(&h, id);
		k.t->build_id_made_up = true;
	}
	if (k.t->n && put(s, name, id, len, k.t, NULL))
		s->stats.full++;
	else
		s->stats.none++;
	if (s->dir)
		codesave_kernel(s->code, ev->start, ev->len, &(struct codesave_key){name, id, len},
				k.t);
	symtab_free(k.t);
	return len;
}

/* ---------- programs and libraries ---------- */

struct guest_file {
	struct guest *g;
	uint32_t dso;
};

static ssize_t read_page_cache(void *ctx, uint64_t off, void *buf, size_t len)
{
	struct guest_file *f = ctx;

	return guest_dso_read(f->g, f->dso, off, buf, len, NULL);
}

static ssize_t read_image(void *ctx, uint64_t off, void *buf, size_t len)
{
	struct guest_file *f = ctx;
	int ret = guest_dso_read_image(f->g, f->dso, off, buf, len);

	return ret ? ret : (ssize_t)len;
}

/* A file that was replaced after it was mapped has another build id than its mapping. */
static bool is_other_file(const struct symtab *t, const struct guest_dso *dso)
{
	return dso->build_id_len && t->build_id_len &&
	       (t->build_id_len != dso->build_id_len ||
		memcmp(t->build_id, dso->build_id, t->build_id_len) != 0);
}

static struct symtab *read_dso(struct guest *g, const struct guest_dso *dso)
{
	uint64_t size = dso->size ? dso->size : SIZE_UNKNOWN;
	struct guest_file f = {g, dso->id};
	struct symtab *t = NULL;

	if (!symtab_read_fn(&t, read_page_cache, &f, size, dso->path, NULL)) {
		if (t->n && !is_other_file(t, dso))
			return t;
		symtab_free(t);
	}
	if (!symtab_read_image(&t, read_image, &f, dso->path, NULL)) {
		if (t->n && !is_other_file(t, dso))
			return t;
		symtab_free(t);
	}
	return NULL;
}

void symsave_dso(struct symsave *s, struct guest *g, const struct guest_dso *dso, const char *name)
{
	uint8_t id[20], len = symsave_build_id(s, dso, id);
	struct symtab *t;

	if (dso->owner) { /* what its program says of it, which is not complete before the end */
		jitsave_add(s->jit, dso, name, id, len);
		if (s->dir)
			codesave_made(s->code, dso->id, &(struct codesave_key){name, id, len});
		return;
	}
	t = read_dso(g, dso);
	if (t)
		t->build_id_made_up = !dso->build_id_len;
	if (!t || !put(s, name, id, len, t, NULL))
		s->stats.none++;
	else if (t->partial)
		s->stats.dynamic++;
	else
		s->stats.full++;
	if (t && s->dir)
		codesave_dso(s->code, dso->id, &(struct codesave_key){name, id, len}, t);
	symtab_free(t);
}

/* ---------- code ---------- */

void symsave_hit(struct symsave *s, struct guest *g, const struct sample *sample)
{
	if (s->dir)
		codesave_hit(s->code, g, sample);
}

void symsave_reset(struct symsave *s)
{
	codesave_reset(s->code);
}

/* Counted when it is put for the last time. */
static void put_grown(void *ctx, const char *name, const uint8_t *id, uint8_t id_len,
		      const struct symtab *t, uint64_t *stored)
{
	put(ctx, name, id, id_len, t, stored);
}

void symsave_exit(struct symsave *s, int32_t pid)
{
	jitsave_exit(s->jit, pid);
}

void symsave_work(struct symsave *s, struct guest *g)
{
	uint64_t now = clock_now_ns();

	codesave_work(s->code, g);
	jitsave_work(s->jit, g, now, false);
	jitsave_grown(s->jit, now, put_grown, s);
}

static void put_jit(void *ctx, const char *name, const uint8_t *id, uint8_t id_len,
		    const struct symtab *t, uint64_t *stored)
{
	struct symsave *s = ctx;

	if (t->n && put(s, name, id, id_len, t, stored))
		s->stats.full++;
	else
		s->stats.none++;
}

void symsave_finish(struct symsave *s, struct guest *g)
{
	struct vmprof_err err;

	codesave_work(s->code, g);
	jitsave_work(s->jit, g, 0, true);
	jitsave_each(s->jit, put_jit, s);
	if (s->dir && codesave_write(s->code, s->dir, s->vm, &err))
		snprintf(s->stats.last_error, sizeof(s->stats.last_error), "%s", err.msg);
}
