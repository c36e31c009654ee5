// SPDX-License-Identifier: GPL-2.0-only
#include "record/jitsave.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/perfmap.h"
#include "util/clock.h"
#include "util/hashmap.h"
#include "util/xalloc.h"

enum {
	MAX_JITS = 4096,
	MAX_SYMBOLS = 1 << 20, /* of all maps of a VM: a guest chooses how much it writes */
	CHUNK = 64 << 10,      /* bytes read in one go */
	SOME = 16,	       /* chunks that are read between two samples */
	PAGE = 4096,
};
#define SECOND	  1000000000ull
#define MAX_WAIT  (64 * SECOND)
#define MAX_BYTES (256ull << 20) /* read of all maps of a VM */
/* Between two times that a map is saved while it grows: this long at least, and so that it costs no
 * more than a hundredth. */
#define SAVE_EVERY (5 * SECOND)
#define SAVE_SHARE 100

struct jit {
	uint32_t dso;
	int32_t owner;
	char *name;
	uint8_t id[20], id_len;
	uint64_t off;	     /* up to where the map has been read */
	uint64_t next, wait; /* when to look again, and how long to wait then if there is none */
	char line[PERF_MAP_MAX_LINE];
	size_t len; /* of the line that has not ended yet */
	bool skip;  /* up to the next one: its beginning is missing, or it is too long */
	struct symtab *t;
	struct hashmap by_start; /* index + 1 in t->syms */
	size_t saved;		 /* symbols of @t that are */
	uint64_t stored;	 /* jitsave_fn's */
	uint64_t save_at;	 /* not earlier, for all that is written each time */
};

struct jitsave {
	struct jit **jits;
	size_t n, cap;
	size_t symbols;
	uint64_t bytes;
	char buf[CHUNK];
};

struct jitsave *jitsave_new(void)
{
	return xcalloc(1, sizeof(struct jitsave));
}

void jitsave_free(struct jitsave *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->n; i++) {
		hashmap_free(&j->jits[i]->by_start);
		symtab_free(j->jits[i]->t);
		free(j->jits[i]->name);
		free(j->jits[i]);
	}
	free(j->jits);
	free(j);
}

void jitsave_add(struct jitsave *j, const struct guest_dso *dso, const char *name,
		 const uint8_t *id, uint8_t id_len)
{
	struct jit *jit;

	if (j->n >= MAX_JITS)
		return;
	jit = xcalloc(1, sizeof(*jit));
	jit->dso = dso->id;
	jit->owner = dso->owner;
	jit->name = xstrdup(name);
	jit->id_len = id_len;
	memcpy(jit->id, id, id_len);
	jit->wait = SECOND;
	jit->t = symtab_new();
	j->jits = xgrow(j->jits, &j->cap, j->n + 1, sizeof(*j->jits));
	j->jits[j->n++] = jit;
}

/* Where code lies that was thrown away there may be other code by now, which the last line names.
 */
static void add_symbol(struct jitsave *j, struct jit *jit, const struct perf_map_entry *e)
{
	size_t old = (uintptr_t)hashmap_get(&jit->by_start, e->start);

	if (j->symbols >= MAX_SYMBOLS)
		return;
	if (old) /* without a size: the other one is chosen */
		jit->t->syms[old - 1].end = jit->t->syms[old - 1].start;
	symtab_add(jit->t, e->start, e->end, e->name, 'g');
	hashmap_set(&jit->by_start, e->start, (void *)(uintptr_t)jit->t->n);
	j->symbols++;
}

static void end_line(struct jitsave *j, struct jit *jit)
{
	struct perf_map_entry e;

	jit->line[jit->len] = 0;
	if (!jit->skip && perf_map_parse(jit->line, &e))
		add_symbol(j, jit, &e);
	jit->len = 0;
	jit->skip = false;
}

static void take_text(struct jitsave *j, struct jit *jit, const char *text, size_t len)
{
	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;

		if (n > sizeof(jit->line) - 1 - jit->len)
			jit->skip = true;
		if (!jit->skip) {
			memcpy(jit->line + jit->len, text, n);
			jit->len += n;
		}
		if (end)
			end_line(j, jit);
		n += end != NULL;
		text += n;
		len -= n;
	}
}

/* What is not in the page cache is passed over, with the lines that it cuts. */
static ssize_t read_some(struct jitsave *j, struct jit *jit, struct guest *g, uint64_t *size)
{
	ssize_t n = guest_perf_map_read(g, jit->dso, jit->off, j->buf, CHUNK, size);

	if (n != -ENODATA)
		return n;
	n = PAGE - (ssize_t)(jit->off % PAGE);
	n = guest_perf_map_read(g, jit->dso, jit->off, j->buf, (size_t)n, size);
	if (n != -ENODATA || jit->off >= *size)
		return n;
	jit->skip = true;
	jit->len = 0;
	jit->off += PAGE - jit->off % PAGE;
	return 0;
}

/* False when there is no more for now. */
static bool read_on(struct jitsave *j, struct jit *jit, struct guest *g)
{
	uint64_t size, before = jit->off;
	ssize_t n;

	if (j->bytes >= MAX_BYTES)
		return false;
	n = read_some(j, jit, g, &size);
	if (n == -ENOENT && !jit->off)
		jit->wait = jit->wait < MAX_WAIT ? 2 * jit->wait : MAX_WAIT;
	else
		jit->wait = SECOND;
	if (n < 0)
		return false;
	if (size < jit->off && jit->off == before) { /* begun anew, as after an exec */
		jit->off = jit->len = 0;
		jit->skip = false;
		return size;
	}
	take_text(j, jit, j->buf, (size_t)n);
	jit->off += (size_t)n;
	j->bytes += jit->off - before;
	return jit->off < size && jit->off > before;
}

void jitsave_work(struct jitsave *j, struct guest *g, uint64_t now, bool all)
{
	unsigned left = SOME;

	for (size_t i = 0; i < j->n && (left || all); i++) {
		struct jit *jit = j->jits[i];
		bool more = true;

		if (now < jit->next && !all)
			continue;
		while (more && (left || all)) {
			more = read_on(j, jit, g);
			left -= left > 0;
		}
		if (!more)
			jit->next = now + jit->wait;
	}
}

void jitsave_exit(struct jitsave *j, int32_t pid)
{
	for (size_t i = 0; i < j->n; i++)
		if (j->jits[i]->owner == pid)
			j->jits[i]->next = j->jits[i]->save_at = 0;
}

/* Of a map that is read on: what is known of it now. */
static void hand_out_copy(struct jit *jit, jitsave_fn *fn, void *ctx)
{
	struct symtab *copy = symtab_new();

	for (size_t i = 0; i < jit->t->n; i++) {
		const struct symbol *sym = &jit->t->syms[i];

		symtab_add(copy, sym->start, sym->end, sym->name, sym->binding);
	}
	symtab_finish(copy);
	fn(ctx, jit->name, jit->id, jit->id_len, copy, &jit->stored);
	symtab_free(copy);
}

void jitsave_grown(struct jitsave *j, uint64_t now, jitsave_fn *fn, void *ctx)
{
	for (size_t i = 0; i < j->n; i++) {
		struct jit *jit = j->jits[i];
		uint64_t start, took;

		if (jit->t->n == jit->saved || now < jit->save_at)
			continue;
		start = clock_now_ns();
		hand_out_copy(jit, fn, ctx);
		took = clock_now_ns() - start;
		jit->saved = jit->t->n;
		jit->save_at =
			now + (SAVE_EVERY > SAVE_SHARE * took ? SAVE_EVERY : SAVE_SHARE * took);
	}
}

void jitsave_each(struct jitsave *j, jitsave_fn *fn, void *ctx)
{
	for (size_t i = 0; i < j->n; i++) {
		struct jit *jit = j->jits[i];

		symtab_finish(jit->t);
		hashmap_free(&jit->by_start);
		fn(ctx, jit->name, jit->id, jit->id_len, jit->t, &jit->stored);
	}
}
