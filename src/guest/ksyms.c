// SPDX-License-Identifier: GPL-2.0-only
#include "guest/ksyms.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/hashmap.h"
#include "util/xalloc.h"

int ksyms_add(struct ksyms *t, uint64_t addr, char type, const char *name, size_t len)
{
	if (t->n >= KSYMS_MAX_SYMBOLS || len >= KSYMS_MAX_NAMES - t->names.len)
		return -E2BIG;
	t->syms = xgrow(t->syms, &t->cap, t->n + 1, sizeof(*t->syms));
	t->syms[t->n++] =
		(struct ksyms_entry){.addr = addr, .name = (uint32_t)t->names.len, .type = type};
	buf_add(&t->names, name, len);
	buf_zero(&t->names, 1);
	return 0;
}

static int by_addr(const void *a, const void *b)
{
	const struct ksyms_entry *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name; /* the order in which they were added */
}

static bool in_order(const struct ksyms *t)
{
	for (size_t i = 1; i < t->n; i++)
		if (by_addr(&t->syms[i - 1], &t->syms[i]) > 0)
			return false;
	return true;
}

static uint32_t *slot(const struct ksyms *t, const char *name)
{
	size_t i = hash_bytes(name, strlen(name)) & t->mask;

	while (t->by_name[i] && strcmp(ksyms_name(t, &t->syms[t->by_name[i] - 1]), name))
		i = (i + 1) & t->mask;
	return &t->by_name[i];
}

void ksyms_finish(struct ksyms *t)
{
	size_t slots = 16;

	if (!in_order(t)) /* the kernel's own are, but for a few */
		qsort(t->syms, t->n, sizeof(*t->syms), by_addr);
	while (slots < t->n * 2)
		slots *= 2;
	t->mask = slots - 1;
	t->by_name = xcalloc(slots, sizeof(*t->by_name));
	for (size_t i = 0; i < t->n; i++) {
		uint32_t *s = slot(t, ksyms_name(t, &t->syms[i]));

		if (!*s || (islower((unsigned char)t->syms[*s - 1].type) &&
			    isupper((unsigned char)t->syms[i].type)))
			*s = (uint32_t)i + 1;
	}
}

void ksyms_free(struct ksyms *t)
{
	free(t->syms);
	free(t->by_name);
	buf_free(&t->names);
	*t = (struct ksyms){0};
}

const char *ksyms_name(const struct ksyms *t, const struct ksyms_entry *s)
{
	return (const char *)t->names.data + s->name;
}

const struct ksyms_entry *ksyms_by_name(const struct ksyms *t, const char *name)
{
	uint32_t i = t->by_name ? *slot(t, name) : 0;

	return i ? &t->syms[i - 1] : NULL;
}

const struct ksyms_entry *ksyms_at(const struct ksyms *t, uint64_t addr)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) { /* lo: the first above addr */
		size_t mid = lo + (hi - lo) / 2;

		if (t->syms[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return NULL;
	lo--;
	while (lo && t->syms[lo - 1].addr == t->syms[lo].addr)
		lo--;
	return &t->syms[lo];
}
