// SPDX-License-Identifier: GPL-2.0-only
#include "report/nametree.h"

#include <stdlib.h>
#include <string.h>

#include "util/xalloc.h"

/* What a node of the profile's came to below a command: one node, not its chain, is looked up. */
struct met {
	uint32_t command, node;
};

struct builder {
	struct nametree *t;
	struct profile *p;
	struct keyset labels; /* text, kind */
	struct trie names;    /* by label; its nodes are the tree's */
	size_t cap;
	uint32_t *frame_labels; /* by frame, + 1; made when first met */
	struct met *met;	/* by node of the profile; command 0: nothing */
	uint32_t *path;
	size_t path_cap;
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

static uint32_t label(struct builder *b, const char *text, enum name_kind kind)
{
	uint64_t key[2] = {(uintptr_t)without_semicolon(b->p, text), kind};

	return keyset_add(&b->labels, key, NULL);
}

static uint32_t frame_label(struct builder *b, uint32_t frame)
{
	if (!b->frame_labels[frame])
		b->frame_labels[frame] = label(b, profile_frame_text(b->p, frame),
					       (enum name_kind)b->p->frames[frame].kind) +
					 1;
	return b->frame_labels[frame] - 1;
}

static uint32_t step(struct builder *b, uint32_t node, uint32_t label)
{
	struct nametree *t = b->t;
	bool added;
	uint32_t id = trie_child(&b->names, node, label, &added);

	if (added) {
		const uint64_t *l = keyset_key(&b->labels, label);

		t->nodes = xgrow(t->nodes, &b->cap, id + 1ull, sizeof(*t->nodes));
		t->nodes[id] = (struct name_node){
			.text = (const char *)(uintptr_t)l[0],
			.kind = (enum name_kind)l[1],
		};
		t->n = id + 1;
	}
	return id;
}

/* Walking through code without frame pointers gives long runs of nothing. */
static bool is_run(struct builder *b, uint32_t node)
{
	uint32_t caller = profile_caller(b->p, node);

	if (!b->short_unknown || caller == PROFILE_NO_CHAIN)
		return false;
	caller = profile_node_frame(b->p, caller);
	return !b->p->frames[caller].sym &&
	       frame_label(b, caller) == frame_label(b, profile_node_frame(b->p, node));
}

/* The names of a chain below those of who ran. */
static uint32_t chain_names(struct builder *b, uint32_t command, uint32_t node)
{
	uint32_t name;
	size_t n = 0;

	for (; node != PROFILE_NO_CHAIN && b->met[node].command != command;
	     node = profile_caller(b->p, node)) {
		b->path = xgrow(b->path, &b->path_cap, n + 1, sizeof(*b->path));
		b->path[n++] = node;
	}
	name = node == PROFILE_NO_CHAIN ? command : b->met[node].node;
	while (n--) {
		node = b->path[n];
		if (!is_run(b, node))
			name = step(b, name, frame_label(b, profile_node_frame(b->p, node)));
		b->met[node] = (struct met){command, name};
	}
	return name;
}

static void add_stack(struct builder *b, const struct stack *s)
{
	struct profile *p = b->p;
	const struct context *ctx = &p->contexts[s->context];
	struct name_node *end;
	uint32_t node = 0;

	if (p->has_guests)
		node = step(b, 0,
			    label(b,
				  machine_is_host(ctx->machine) ? "host"
								: profile_vm_name(p, ctx->machine),
				  NAME_VM));
	node = step(b, node, label(b, profile_text(p, ctx->comm), NAME_COMM));
	node = s->node == PROFILE_NO_CHAIN ? step(b, node, frame_label(b, s->leaf))
					   : chain_names(b, node, s->node);
	end = &b->t->nodes[node];
	end->own_period += s->period;
	end->own_samples += s->samples;
}

/* Sums, children and depth. Parents were made before their children. */
static void finish(struct builder *b)
{
	struct nametree *t = b->t;
	uint32_t *depths = xcalloc(t->n, sizeof(*depths));

	for (uint32_t i = t->n; i--;) {
		struct name_node *n = &t->nodes[i], *parent;

		n->period += n->own_period;
		n->samples += n->own_samples;
		if (!i)
			break;
		parent = &t->nodes[trie_parent(&b->names, i)];
		parent->period += n->period;
		parent->samples += n->samples;
		n->sibling = parent->child;
		parent->child = i;
	}
	for (uint32_t i = 1; i < t->n; i++) {
		depths[i] = depths[trie_parent(&b->names, i)] + 1;
		if (depths[i] > t->depth)
			t->depth = depths[i];
	}
	free(depths);
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
	struct builder b = {.t = t, .p = p, .labels.width = 2, .short_unknown = short_unknown};
	uint32_t *ids = NULL;
	size_t ids_cap = 0;
	struct stack s;

	*t = (struct nametree){.n = 1};
	t->nodes = xgrow(NULL, &b.cap, 1, sizeof(*t->nodes));
	t->nodes[0] = (struct name_node){.text = "all", .kind = NAME_ROOT};
	trie_init(&b.names);
	b.frame_labels = xcalloc(p->frame_keys.n, sizeof(*b.frame_labels));
	b.met = xcalloc(trie_size(&p->nodes), sizeof(*b.met));
	for (uint32_t i = 0; i < profile_nr_stacks(p); i++) {
		profile_stack(p, i, &s);
		if (s.event == event && filter_stack(&r->opt.filter, p, &s))
			add_stack(&b, &s);
	}
	finish(&b);
	for (uint32_t i = 0; i < t->n; i++)
		sort_children(t, i, &ids, &ids_cap);
	free(ids);
	free(b.path);
	free(b.frame_labels);
	free(b.met);
	trie_free(&b.names);
	keyset_free(&b.labels);
}

void nametree_free(struct nametree *t)
{
	free(t->nodes);
	*t = (struct nametree){0};
}
