// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of symbols, whatever they were read from. What perf's tables hold is followed rule by
 * rule (tools/perf/util/symbol.c of Linux 6.1), since a profile that names other functions than
 * perf does would be taken for wrong.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/demangle.h"
#include "symbolize/symtab.h"
#include "util/xalloc.h"

enum {
	CHUNK_SIZE = 1 << 16,
	MAX_NAME = 1 << 15,	/* longer ones are compared and copied up to here */
	MAX_OUTER = 64,		/* enclosing symbols tried for an address */
	MIN_BUCKETS = 64,	/* symbols that an index is worth its memory for */
	MAX_DEMANGLED = 100000, /* aliases whose readable names are compared, a table */
};

/* Copied names are packed into chunks: a kernel has 200,000. */
struct chunk {
	struct chunk *next;
	size_t used, size;
	char bytes[];
};

struct symtab *symtab_new(void)
{
	return xcalloc(1, sizeof(struct symtab));
}

void symtab_free(struct symtab *t)
{
	struct chunk *c, *next;

	if (!t)
		return;
	for (c = t->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	free(t->syms);
	free(t->outer);
	free(t->buckets);
	free(t->loads);
	free(t->path);
	free(t->strings);
	free(t);
}

static const char *copy_name(struct symtab *t, const char *name)
{
	size_t len = strnlen(name, MAX_NAME);
	struct chunk *c = t->chunks;
	char *p;

	if (!c || c->size - c->used < len + 1) {
		c = xmalloc(sizeof(*c) + CHUNK_SIZE);
		*c = (struct chunk){.next = t->chunks, .size = CHUNK_SIZE};
		t->chunks = c;
	}
	p = c->bytes + c->used;
	memcpy(p, name, len);
	p[len] = 0;
	c->used += len + 1;
	return p;
}

void symtab_add_name(struct symtab *t, uint64_t start, uint64_t end, const char *name, char binding)
{
	if (t->n >= SYMTAB_MAX)
		return;
	t->syms = xgrow(t->syms, &t->cap, t->n + 1, sizeof(*t->syms));
	t->syms[t->n] = (struct symbol){start, end, name, (uint32_t)t->n, binding, false};
	t->n++;
}

void symtab_add(struct symtab *t, uint64_t start, uint64_t end, const char *name, char binding)
{
	if (t->n < SYMTAB_MAX)
		symtab_add_name(t, start, end < start ? start : end, copy_name(t, name), binding);
}

static int by_start(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void sort(struct symtab *t)
{
	for (size_t i = 1; i < t->n; i++)
		if (by_start(&t->syms[i - 1], &t->syms[i]) > 0) {
			qsort(t->syms, t->n, sizeof(*t->syms), by_start);
			return;
		}
}

/* A symbol without a size goes on to the next one, the last one to the end of the next page. */
static void fix_ends(struct symtab *t)
{
	struct symbol *s = t->syms;

	for (size_t i = 0; i + 1 < t->n; i++)
		if (s[i].end == s[i].start)
			s[i].end = s[i + 1].start;
	if (!t->n)
		return;
	s += t->n - 1;
	if (s->end == s->start)
		s->end = s->start > UINT64_MAX - 8192 ? UINT64_MAX
						      : ((s->start + 4095) & ~4095ull) + 4096;
}

static size_t underscores(const char *name)
{
	return strspn(name, "_");
}

/* Constructors and destructors come several times (C1, C2, ...) and read the same. */
static bool same_when_demangled(const char *a, const char *b)
{
	size_t i = 0;

	if (strncmp(a, "_Z", 2) || strncmp(b, "_Z", 2))
		return false;
	while (a[i] && a[i] == b[i])
		i++;
	return i > 2 && (a[i - 1] == 'C' || a[i - 1] == 'D') && a[i] >= '0' && a[i] <= '5' &&
	       b[i] >= '0' && b[i] <= '5' && !strcmp(a + i + 1, b + i + 1);
}

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/* The names as perf has them, demangled when the table is read; decides between equal symbols. */
static bool better_name(const char *a, const char *b, unsigned *demangled)
{
	char *da = NULL, *db = NULL;
	size_t ua, ub, la, lb;

	if (same_when_demangled(a, b))
		return false;
	if (*demangled < MAX_DEMANGLED && (is_mangled(a) || is_mangled(b))) {
		da = demangle(a);
		db = demangle(b);
		++*demangled;
	}
	ua = underscores(da ? da : a);
	ub = underscores(db ? db : b);
	la = strnlen(da ? da : a, MAX_NAME);
	lb = strnlen(db ? db : b, MAX_NAME);
	free(da);
	free(db);
	if (ua != ub)
		return ub < ua;
	if (la != lb)
		return lb > la;
	/* Old kernels' system call aliases. */
	return !strncmp(a, "SyS", 3) || !strncmp(a, "compat_SyS", 10);
}

/* Is @b to be chosen over @a, which came first? */
static bool better(const struct symbol *a, const struct symbol *b, unsigned *demangled)
{
	bool size_a = a->end > a->start, size_b = b->end > b->start;

	if (size_a != size_b)
		return size_b;
	if ((a->binding == 'w') != (b->binding == 'w'))
		return a->binding == 'w';
	if ((a->binding == 'g') != (b->binding == 'g'))
		return b->binding == 'g';
	return better_name(a->name, b->name, demangled);
}

static void drop_aliases(struct symtab *t)
{
	unsigned demangled = 0;
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (!n || t->syms[n - 1].start != t->syms[i].start)
			t->syms[n++] = t->syms[i];
		else if (better(&t->syms[n - 1], &t->syms[i], &demangled))
			t->syms[n - 1] = t->syms[i];
	}
	t->n = n;
}

/*
 * For tables with symbols inside of others: for each the nearest one before it that reaches
 * further, so that a look-up behind the inner one's end comes to the outer one.
 */
static void find_outer(struct symtab *t)
{
	bool any = false;

	free(t->outer);
	t->outer = NULL;
	for (size_t i = 1; i < t->n && !any; i++)
		any = t->syms[i - 1].end > t->syms[i].end;
	if (!any)
		return;
	t->outer = xcalloc(t->n, sizeof(*t->outer));
	for (size_t i = 0; i < t->n; i++) {
		size_t j = i;

		while (j && t->syms[j - 1].end <= t->syms[i].end)
			j = t->outer[j - 1];
		t->outer[i] = (uint32_t)j; /* one more than its index; 0: none */
	}
}

/*
 * The range of the symbols in about as many equal parts as there are symbols: [i] is the first one
 * that starts in part i or behind it. A look-up then searches a few symbols next to each other,
 * where bisecting a large table would touch twenty places far apart.
 */
static void make_buckets(struct symtab *t)
{
	uint64_t span;
	size_t b = 0;

	free(t->buckets);
	t->buckets = NULL;
	if (t->n < MIN_BUCKETS)
		return;
	span = t->syms[t->n - 1].start - t->syms[0].start;
	for (t->bucket_shift = 0; span >> t->bucket_shift >= t->n;)
		t->bucket_shift++;
	t->nr_buckets = (size_t)(span >> t->bucket_shift) + 1;
	t->buckets = xcalloc(t->nr_buckets + 1, sizeof(*t->buckets));
	for (size_t i = 0; i < t->n; i++)
		for (; b <= (t->syms[i].start - t->syms[0].start) >> t->bucket_shift; b++)
			t->buckets[b] = (uint32_t)i;
	t->buckets[t->nr_buckets] = (uint32_t)t->n;
}

void symtab_finish(struct symtab *t)
{
	sort(t);
	fix_ends(t);
	drop_aliases(t);
	find_outer(t);
	make_buckets(t);
}

void symtab_merge(struct symtab *t)
{
	size_t n = 0;

	sort(t);
	for (size_t i = 0; i < t->n; i++)
		if (!n || t->syms[n - 1].start != t->syms[i].start)
			t->syms[n++] = t->syms[i];
	t->n = n;
	find_outer(t);
	make_buckets(t);
}

/* The symbols among which the first one behind @offset is, or the one behind @hi. */
static void narrow(const struct symtab *t, uint64_t offset, size_t *lo, size_t *hi)
{
	uint64_t b;

	*lo = 0;
	*hi = t->n;
	if (!t->buckets || offset < t->syms[0].start)
		return;
	b = (offset - t->syms[0].start) >> t->bucket_shift;
	if (b >= t->nr_buckets) {
		*lo = t->n;
		return;
	}
	*lo = t->buckets[b];
	*hi = t->buckets[b + 1];
}

const struct symbol *symtab_find(const struct symtab *t, uint64_t offset)
{
	size_t lo, hi, i;

	narrow(t, offset, &lo, &hi);
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->syms[mid].start <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	i = lo;
	for (unsigned n = 0; i && n < MAX_OUTER; n++) {
		if (t->syms[i - 1].end > offset)
			return &t->syms[i - 1];
		if (!t->outer)
			return NULL;
		i = t->outer[i - 1];
	}
	return NULL;
}
