// SPDX-License-Identifier: GPL-2.0-only
#include "guest/madecode.h"

#include <stdlib.h>
#include <string.h>

#include "guest/x86.h"
#include "util/clock.h"
#include "util/hashmap.h"
#include "util/xalloc.h"

enum {
	MAX_STRUCT = 1024, /* struct bpf_ksym has a name of KSYM_NAME_LEN, 512 */
	MAX_CODES = 16384, /* of all lists */
	PAGE = 4096,
};
#define MAX_LEN (16u << 20) /* bytes of one */

/*
 * A list of the kernel's: of what, where its members are. What stands at @end is an address if @to
 * is set, else a length; without it the length is a page.
 */
static const struct list_def {
	const char *symbol, *head; /* variable, and member of it ("TYPE", "member") or NULL */
	const char *head_member;
	const char *type, *link, *start, *end;
	bool to;
	const char *name; /* what kallsyms calls all of them; NULL: each has a name */
} list_defs[] = {
	{"bpf_kallsyms", NULL, NULL, "bpf_ksym", "lnode", "start", "end", true, NULL},
	{"ftrace_ops_trampoline_list", NULL, NULL, "ftrace_ops", "list", "trampoline",
	 "trampoline_size", false, "ftrace_trampoline"},
	{"kprobe_insn_slots", "kprobe_insn_cache", "pages", "kprobe_insn_page", "list", "insns",
	 NULL, false, "kprobe_insn_page"},
	{"kprobe_optinsn_slots", "kprobe_insn_cache", "pages", "kprobe_insn_page", "list", "insns",
	 NULL, false, "kprobe_optinsn_page"},
};
enum { NR_LISTS = sizeof(list_defs) / sizeof(*list_defs) };

struct list {
	const struct list_def *def;
	uint64_t head; /* address of its list_head */
	int size, link, start, end, name;
};

struct code {
	struct guest_made_code pub;
	bool seen;
};

struct made_codes {
	struct guest_virt *v;
	struct guest_as as;
	uint64_t read_at;
	struct list lists[NR_LISTS];
	size_t nr_lists;
	struct code **codes; /* by address */
	size_t n, cap;
	struct hashmap by_start;
	uint32_t next_id;
	uint8_t buf[MAX_STRUCT];
};

static bool has_u64(const struct list *l, int at)
{
	return at >= 0 && at <= l->size - 8;
}

static bool find_list(struct list *l, const struct list_def *def, const struct btf *b,
		      const struct ksyms *syms)
{
	const struct ksyms_entry *sym = ksyms_by_name(syms, def->symbol);
	int head = def->head ? btf_member(b, def->head, def->head_member) : 0;

	if (!sym || head < 0)
		return false;
	*l = (struct list){
		.def = def,
		.head = sym->addr + (uint64_t)head,
		.size = btf_sizeof(b, def->type),
		.link = btf_member(b, def->type, def->link),
		.start = btf_member(b, def->type, def->start),
		.end = def->end ? btf_member(b, def->type, def->end) : -1,
		.name = def->name ? -1 : btf_member(b, def->type, "name"),
	};
	if (l->size > MAX_STRUCT)
		l->size = MAX_STRUCT;
	return has_u64(l, l->link) && has_u64(l, l->start) && (!def->end || has_u64(l, l->end)) &&
	       (def->name || has_u64(l, l->name));
}

struct made_codes *made_codes_new(struct guest_virt *v, struct guest_as as, const struct btf *b,
				  const struct ksyms *syms)
{
	struct made_codes *m = xcalloc(1, sizeof(*m));

	m->v = v;
	m->as = as;
	m->next_id = 1;
	for (size_t i = 0; i < NR_LISTS; i++)
		m->nr_lists += find_list(&m->lists[m->nr_lists], &list_defs[i], b, syms);
	if (m->nr_lists)
		return m;
	made_codes_free(m);
	return NULL;
}

static void code_free(struct code *c)
{
	free((char *)c->pub.name);
	free(c);
}

void made_codes_free(struct made_codes *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++)
		code_free(m->codes[i]);
	free(m->codes);
	hashmap_free(&m->by_start);
	free(m);
}

/* ---------- the lists ---------- */

static uint64_t field(const struct made_codes *m, int at)
{
	uint64_t v = 0;

	memcpy(&v, m->buf + at, sizeof(v));
	return v;
}

static uint64_t end_of(const struct made_codes *m, const struct list *l, uint64_t start)
{
	if (!l->def->end)
		return start + PAGE;
	return l->def->to ? field(m, l->end) : start + field(m, l->end);
}

/* The first instructions; what comes before these two (endbr64, a place for a call) differs. */
static uint64_t find_push(struct made_codes *m, uint64_t start, uint64_t end)
{
	static const uint8_t frame[] = {0x55, 0x48, 0x89, 0xe5};
	uint8_t code[24];
	size_t len = end - start < sizeof(code) ? end - start : sizeof(code);
	const uint8_t *at;

	if (guest_virt_read(m->v, m->as, start, code, len))
		return start;
	at = memmem(code, len, frame, sizeof(frame));
	return at ? start + (uint64_t)(at - code) : start;
}

/* The structure in @m->buf. One that is known, and the same, stays what it was. */
static void take(struct made_codes *m, const struct list *l)
{
	uint64_t start = field(m, l->start), end = end_of(m, l, start);
	const char *name = l->def->name ? l->def->name : (const char *)m->buf + l->name;
	size_t room = l->def->name ? strlen(name) : (size_t)(l->size - l->name);
	size_t len = strnlen(name, room < KSYMS_MAX_NAME ? room : KSYMS_MAX_NAME);
	struct code *c = hashmap_get(&m->by_start, start);

	if (start < X86_KERNEL_MAP || end <= start || end - start > MAX_LEN || !len ||
	    m->n >= MAX_CODES)
		return;
	if (c && c->pub.end == end && !strncmp(c->pub.name, name, len) && !c->pub.name[len]) {
		c->seen = true;
		return;
	}
	c = xcalloc(1, sizeof(*c));
	c->pub = (struct guest_made_code){start, end, xstrndup(name, len), m->next_id++,
					  find_push(m, start, end)};
	c->seen = true;
	m->codes = xgrow(m->codes, &m->cap, m->n + 1, sizeof(*m->codes));
	m->codes[m->n++] = c;
	hashmap_set(&m->by_start, start, c);
}

/* False if the list broke off: it changed under the reader, or it is no list. */
static bool walk(struct made_codes *m, const struct list *l)
{
	uint64_t pos;

	if (guest_virt_read(m->v, m->as, l->head, &pos, sizeof(pos)))
		return false;
	for (unsigned i = 0; i < MAX_CODES; i++) {
		if (pos == l->head)
			return true;
		if (guest_virt_read(m->v, m->as, pos - (uint64_t)l->link, m->buf, (size_t)l->size))
			return false;
		take(m, l);
		pos = field(m, l->link);
	}
	return false;
}

static void drop_unseen(struct made_codes *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->n; i++) {
		struct code *c = m->codes[i];

		if (c->seen) {
			m->codes[kept++] = c;
			continue;
		}
		if (hashmap_get(&m->by_start, c->pub.start) == c)
			hashmap_del(&m->by_start, c->pub.start);
		code_free(c);
	}
	m->n = kept;
}

static int by_start(const void *a, const void *b)
{
	const struct code *x = *(struct code *const *)a, *y = *(struct code *const *)b;

	if (x->pub.start != y->pub.start)
		return x->pub.start < y->pub.start ? -1 : 1;
	return x->pub.id < y->pub.id ? -1 : x->pub.id > y->pub.id;
}

void made_codes_refresh(struct made_codes *m, uint64_t max_age_ns)
{
	uint64_t now = clock_now_ns();
	bool whole = true;

	if (m->read_at && now - m->read_at < max_age_ns)
		return;
	m->read_at = now;
	for (size_t i = 0; i < m->n; i++)
		m->codes[i]->seen = false;
	for (size_t i = 0; i < m->nr_lists; i++)
		whole &= walk(m, &m->lists[i]);
	if (whole || m->n >= MAX_CODES)
		drop_unseen(m);
	if (m->n)
		qsort(m->codes, m->n, sizeof(*m->codes), by_start);
}

const struct guest_made_code *made_codes_nth(const struct made_codes *m, size_t i)
{
	return i < m->n ? &m->codes[i]->pub : NULL;
}

const struct guest_made_code *made_codes_at(const struct made_codes *m, uint64_t addr)
{
	size_t lo = 0, hi = m->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->codes[mid]->pub.start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr < m->codes[lo - 1]->pub.end ? &m->codes[lo - 1]->pub : NULL;
}
