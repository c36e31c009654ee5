// SPDX-License-Identifier: GPL-2.0-only
#include "report/nametree.h"

#include <stdlib.h>
#include <string.h>

#include "util/xalloc.h"

struct builder {
	struct nametree *t;
	struct profile *p;
	struct keyset index; /* parent and kind, text */
	size_t cap;
	const char **frame_texts; /* by frame, made when first met */
	uint32_t *frames;
	size_t frames_cap;
	bool short_unknown;
};

/* ';' parts the frames of a line. */
static const char *without_semicolon(struct profile *p, const char *text)
{
	struct buf b = {0};
	const char *clean;

	if (!strchr(text, ';'))
		return text;
	for (; *text; text++) {
		if (*text == ';')
			buf_printf(&b, "\\x3b");
		else
			buf_add(&b, text, 1);
	}
	clean = strtab_intern_n(p->texts, (const char *)b.data, b.len);
	buf_free(&b);
	return clean;
}

static const char *frame_text(struct builder *b, uint32_t frame)
{
	if (!b->frame_texts[frame])
		b->frame_texts[frame] = without_semicolon(b->p, profile_frame_text(b->p, frame));
	return b->frame_texts[frame];
}

static uint32_t child_of(struct builder *b, uint32_t parent, const char *text, enum name_kind kind)
{
	uint64_t key[2] = {(uint64_t)parent << 8 | kind, (uintptr_t)text};
	struct nametree *t = b->t;
	bool added;
	uint32_t id = keyset_add(&b->index, key, &added) + 1;

	if (added) {
		t->nodes = xgrow(t->nodes, &b->cap, id + 1ull, sizeof(*t->nodes));
		t->nodes[id] = (struct name_node){
			.text = text,
			.kind = kind,
			.sibling = t->nodes[parent].child,
		};
		t->nodes[parent].child = id;
		t->n = id + 1;
	}
	return id;
}

static uint32_t step(struct builder *b, const struct stack *s, uint32_t node, const char *text,
		     enum name_kind kind)
{
	node = child_of(b, node, text, kind);
	b->t->nodes[node].period += s->period;
	b->t->nodes[node].samples += s->samples;
	return node;
}

/* Walking through code without frame pointers gives long runs of nothing. */
static size_t shorten_unknown(struct builder *b, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t frame = b->frames[i];

		if (kept && !b->p->frames[frame].sym &&
		    frame_text(b, frame) == frame_text(b, b->frames[kept - 1]))
			continue;
		b->frames[kept++] = frame;
	}
	return kept;
}

static void add_stack(struct builder *b, const struct stack *s)
{
	struct profile *p = b->p;
	const struct context *ctx = &p->contexts[s->context];
	size_t n = profile_chain(p, s->node, &b->frames, &b->frames_cap);
	uint32_t node = 0, depth;

	if (!n) {
		b->frames = xgrow(b->frames, &b->frames_cap, 1, sizeof(*b->frames));
		b->frames[n++] = s->leaf;
	}
	if (b->short_unknown)
		n = shorten_unknown(b, n);
	depth = (uint32_t)n + 1 + p->has_guests;
	if (depth > b->t->depth)
		b->t->depth = depth;
	b->t->nodes[0].period += s->period;
	b->t->nodes[0].samples += s->samples;
	if (p->has_guests) {
		const char *vm =
			machine_is_host(ctx->machine) ? "host" : profile_vm_name(p, ctx->machine);

		node = step(b, s, node, without_semicolon(p, vm), NAME_VM);
	}
	node = step(b, s, node, without_semicolon(p, profile_text(p, ctx->comm)), NAME_COMM);
	while (n--)
		node = step(b, s, node, frame_text(b, b->frames[n]),
			    (enum name_kind)p->frames[b->frames[n]].kind);
	b->t->nodes[node].own_period += s->period;
	b->t->nodes[node].own_samples += s->samples;
}

static int by_name(const void *a, const void *b, void *ctx)
{
	const struct name_node *nodes = ctx;
	const struct name_node *x = &nodes[*(const uint32_t *)a], *y = &nodes[*(const uint32_t *)b];
	int cmp = strcmp(x->text, y->text);

	return cmp ? cmp : (int)x->kind - (int)y->kind;
}

static void sort_children(struct nametree *t, uint32_t node, uint32_t **ids, size_t *cap)
{
	size_t n = 0;
	uint32_t *link = &t->nodes[node].child;

	for (uint32_t c = *link; c; c = t->nodes[c].sibling) {
		*ids = xgrow(*ids, cap, n + 1, sizeof(**ids));
		(*ids)[n++] = c;
	}
	if (n > 1)
		qsort_r(*ids, n, sizeof(**ids), by_name, t->nodes);
	for (size_t i = 0; i < n; i++) {
		*link = (*ids)[i];
		link = &t->nodes[*link].sibling;
	}
	*link = 0;
}

void nametree_build(struct nametree *t, struct report *r, uint32_t event, bool short_unknown)
{
	struct profile *p = r->profile;
	struct builder b = {.t = t, .p = p, .index.width = 2, .short_unknown = short_unknown};
	uint32_t *ids = NULL;
	size_t ids_cap = 0;
	struct stack s;

	*t = (struct nametree){.n = 1};
	t->nodes = xgrow(NULL, &b.cap, 1, sizeof(*t->nodes));
	t->nodes[0] = (struct name_node){.text = "all", .kind = NAME_ROOT};
	b.frame_texts = xcalloc(p->frame_keys.n, sizeof(*b.frame_texts));
	for (uint32_t i = 0; i < profile_nr_stacks(p); i++) {
		profile_stack(p, i, &s);
		if (s.event == event && filter_stack(&r->opt.filter, p, &s))
			add_stack(&b, &s);
	}
	for (uint32_t i = 0; i < t->n; i++)
		sort_children(t, i, &ids, &ids_cap);
	free(ids);
	free(b.frames);
	free(b.frame_texts);
	keyset_free(&b.index);
}

void nametree_free(struct nametree *t)
{
	free(t->nodes);
	*t = (struct nametree){0};
}
