// SPDX-License-Identifier: GPL-2.0-only
#include "report/hist.h"

#include <stdlib.h>
#include <string.h>

#include "report/historder.h"
#include "util/xalloc.h"

/* What is known of a context or a frame of the profile, found out when it is first met. */
struct hist_context {
	uint32_t id; /* of the values of the context columns */
	bool known, wanted;
};

struct hist_frame {
	uint32_t own_id, chain_id; /* of the values of the location columns; + 1 */
	bool filter_known, wanted;
};

/*
 * The entry that a node of a chain counted for, so that one node and not all that tells entries
 * apart is looked at for each frame of each chain.
 */
struct hist_node {
	uint32_t who; /* who_id() + 1; 0: nothing yet */
	uint32_t entry;
};

/* One entry that a stack counts for. */
struct part {
	uint32_t stack, depth;
	uint32_t node;	 /* of the chain; if not own */
	uint32_t member; /* of the group: 0 the first event */
	uint32_t context, frame, branch;
	const struct thread *thread;
	uint64_t addr;
	char level;
	bool own, wanted;
	uint8_t cpumode;
	uint32_t chain_len; /* frames from depth on */
	uint64_t period, samples;
};

/* What tells locations, and branches, apart. */
#define LOCATION_WORDS 6
#define BRANCH_WORDS   (LOCATION_ENDS * LOCATION_WORDS + 1)

typedef void part_fn(struct hist *h, struct hist_entry *e, const struct part *part);

const char *hist_dso_name(const struct hist *h, const struct hist_entry *e)
{
	return profile_dso_name(h->profile, hist_frame_of(h, e)->dso, h->cfg.long_names);
}

uint64_t hist_total(const struct hist *h, uint32_t i)
{
	return h->cfg.relative ? h->sums[i].filtered_period : h->sums[i].period;
}

float hist_percent(const struct hist *h, const struct hist_entry *e)
{
	uint64_t total = hist_total(h, 0);

	return total ? (float)((double)hist_weight(h, e) * 100.0 / (double)total) : 0;
}

static struct hist_context *context_of(struct hist *h, uint32_t context)
{
	const struct context *ctx = &h->profile->contexts[context];
	struct hist_context *hc = &h->contexts[context];
	uint64_t key[LAYOUT_MAX_COLUMNS] = {0};

	if (hc->known)
		return hc;
	hc->known = true;
	hc->wanted = filter_context(h->cfg.filter, ctx);
	for (unsigned i = 0, n = 0; i < h->layout->nr_sort; i++)
		if (h->layout->sort[i]->kind == COLUMN_CONTEXT)
			key[n++] = h->layout->sort[i]->context_id(h, ctx);
	hc->id = keyset_add(&h->context_ids, key, NULL);
	return hc;
}

/*
 * The location's identity: dsos are the same by name, symbols by dso, place and name, addresses by
 * themselves. @parts: enum location_part.
 */
static void location_key(struct hist *h, uint64_t key[LOCATION_WORDS], uint32_t frame,
			 uint64_t addr, unsigned parts)
{
	const struct frame *f = &h->profile->frames[frame];
	bool by_symbol = parts & LOCATION_SYMBOL;

	if (f->dso && (parts & LOCATION_DSO || (by_symbol && f->sym)))
		key[0] = (uintptr_t)profile_dso_name(h->profile, f->dso, h->cfg.long_names);
	if (by_symbol && f->sym) {
		key[1] = f->sym->start;
		key[2] = f->sym->end;
		key[3] = (uintptr_t)profile_frame_name(h->profile, frame);
	} else if (by_symbol) {
		key[1] = addr;
		key[2] = UINT64_MAX;
	} else if (parts & LOCATION_SIZE) {
		key[1] = f->sym ? f->sym->end - f->sym->start : 0;
	}
	if (parts & LOCATION_SRCLINE)
		key[4] = (uintptr_t)f->srcline;
	if (parts & LOCATION_SRCFILE)
		key[5] = (uintptr_t)f->srcfile;
}

static uint32_t location_id(struct hist *h, uint32_t frame, uint64_t addr)
{
	uint64_t key[LOCATION_WORDS] = {0};

	location_key(h, key, frame, addr, h->layout->parts[LOCATION_OWN]);
	return keyset_add(&h->frame_ids, key, NULL);
}

/* The same of a branch. */
static uint32_t branch_id(struct hist *h, uint32_t branch)
{
	const struct branch b = profile_branch_nth(h->profile, branch);
	const uint32_t ends[LOCATION_ENDS] = {
		[LOCATION_OWN] = b.to, [LOCATION_TO] = b.to, [LOCATION_FROM] = b.from};
	uint64_t key[BRANCH_WORDS] = {0};

	if (h->branches[branch])
		return h->branches[branch] - 1;
	for (unsigned i = 0; i < LOCATION_ENDS; i++)
		location_key(h, key + i * LOCATION_WORDS, ends[i], h->profile->frames[ends[i]].ip,
			     h->layout->parts[i]);
	/* of what no column shows there is one value only */
	key[BRANCH_WORDS - 1] = keyset_key(&h->profile->branch_keys, branch)[1];
	h->branches[branch] = keyset_add(&h->frame_ids, key, NULL) + 1;
	return h->branches[branch] - 1;
}

static uint32_t frame_id(struct hist *h, uint32_t frame, bool own)
{
	const struct frame *f = &h->profile->frames[frame];
	struct hist_frame *hf = &h->frames[frame];
	uint32_t *id = own ? &hf->own_id : &hf->chain_id;

	if (!*id)
		*id = location_id(h, frame, own ? f->addr : f->ip) + 1;
	return *id - 1;
}

static bool frame_wanted(struct hist *h, uint32_t frame)
{
	struct hist_frame *hf = &h->frames[frame];

	if (!hf->filter_known) {
		hf->filter_known = true;
		hf->wanted = filter_frame(h->cfg.filter, h->profile, frame);
	}
	return hf->wanted;
}

static uint32_t place_id(struct hist *h, const struct part *part)
{
	return h->profile->branches ? branch_id(h, part->branch)
				    : frame_id(h, part->frame, part->own);
}

/* Context, and whether the filter wants it: 31 bits of a key's upper half. */
static uint32_t who_id(const struct hist *h, const struct part *part)
{
	return h->contexts[part->context].id | (uint32_t)!part->wanted << 31;
}

static uint32_t find_entry(struct hist *h, const struct part *part)
{
	uint64_t key = (uint64_t)who_id(h, part) << 32 | place_id(h, part);
	bool added;
	uint32_t id = keyset_add1(&h->entry_ids, key, &added);

	if (added) {
		size_t n = h->cfg.nr_events;

		h->entries = xgrow(h->entries, &h->entries_cap, id + 1ull, sizeof(*h->entries));
		h->weights =
			xgrow(h->weights, &h->weights_cap, (id + 1ull) * n, sizeof(*h->weights));
		h->last_stacks = xgrow(h->last_stacks, &h->last_stacks_cap, id + 1ull,
				       sizeof(*h->last_stacks));
		memset(h->weights + id * n, 0, n * sizeof(*h->weights));
		h->last_stacks[id] = 0;
		h->entries[id] = (struct hist_entry){
			.context = part->context,
			.thread = part->thread,
			.frame = part->frame,
			.branch = part->branch,
			.addr = part->addr,
			.level = part->level,
			.filtered = !part->wanted,
		};
		h->nr_entries = id + 1;
	}
	return id;
}

static uint32_t entry_of(struct hist *h, const struct part *part)
{
	struct hist_node *n;
	uint32_t who;

	if (part->own)
		return find_entry(h, part);
	n = &h->nodes[part->node];
	who = who_id(h, part) + 1;
	if (n->who != who)
		*n = (struct hist_node){who, find_entry(h, part)};
	return n->entry;
}

static void give(struct hist *h, const struct part *part, part_fn *fn)
{
	uint32_t id = entry_of(h, part);

	if (h->last_stacks[id] == part->stack + 1)
		return;
	h->last_stacks[id] = part->stack + 1;
	fn(h, &h->entries[id], part);
}

/* @chain: frames or nodes, innermost first. */
static size_t order_chain(const struct hist *h, uint32_t *chain, size_t n)
{
	for (size_t i = 0; h->cfg.caller_order && i < n / 2; i++) {
		uint32_t f = chain[i];

		chain[i] = chain[n - 1 - i];
		chain[n - 1 - i] = f;
	}
	return n < h->cfg.max_stack ? n : h->cfg.max_stack;
}

size_t hist_chain_frames(const struct hist *h, const struct hist_chain *c, uint32_t **frames,
			 size_t *cap)
{
	struct stack s;
	size_t n;

	profile_stack(h->profile, c->stack, &s);
	n = profile_chain(h->profile, s.node, frames, cap);
	n = order_chain(h, *frames, n);
	if (c->depth >= n)
		return 0;
	memmove(*frames, *frames + c->depth, (n - c->depth) * sizeof(**frames));
	return n - c->depth;
}

static bool in_view(const struct hist *h, const struct stack *s)
{
	return s->event >= h->cfg.event && s->event - h->cfg.event < h->cfg.nr_events &&
	       (!h->cfg.machine || h->profile->contexts[s->context].machine == h->cfg.machine);
}

static bool wanted(struct hist *h, const struct stack *s)
{
	return context_of(h, s->context)->wanted && frame_wanted(h, s->leaf);
}

struct walk {
	uint32_t *nodes;
	size_t cap;
	part_fn *fn;
};

static size_t chain_nodes(const struct hist *h, struct walk *w, uint32_t node)
{
	size_t n = 0;

	for (; node != PROFILE_NO_CHAIN; node = profile_caller(h->profile, node)) {
		w->nodes = xgrow(w->nodes, &w->cap, n + 1, sizeof(*w->nodes));
		w->nodes[n++] = node;
	}
	return order_chain(h, w->nodes, n);
}

/*
 * The entry of the sample itself gets the whole chain; with children every frame's entry gets the
 * rest from that frame on. A frame of which nothing is known keeps the mark of the one before it:
 * perf does that.
 */
static void walk_stack(struct hist *h, struct walk *w, uint32_t i, const struct stack *s)
{
	const struct frame *leaf = &h->profile->frames[s->leaf];
	size_t n = 0;
	struct part part = {
		.stack = i,
		.member = s->event - h->cfg.event,
		.context = s->context,
		.thread = s->thread,
		.frame = s->leaf,
		.addr = leaf->addr,
		.level = leaf->level,
		.own = true,
		.wanted = wanted(h, s),
		.cpumode = s->cpumode,
		.period = s->period,
		.samples = s->samples,
	};

	if (h->profile->branches) {
		part.branch = s->node;
		part.addr = leaf->ip;
	} else if (h->cfg.children || h->cfg.chains) {
		n = chain_nodes(h, w, s->node);
	}
	part.chain_len = (uint32_t)n;
	give(h, &part, w->fn);
	part.own = false;
	for (size_t d = 0; h->cfg.children && d < n; d++) {
		const struct frame *f;

		part.depth = (uint32_t)d;
		part.node = w->nodes[d];
		part.frame = profile_node_frame(h->profile, part.node);
		f = &h->profile->frames[part.frame];
		part.addr = f->ip;
		part.chain_len = (uint32_t)(n - d);
		if (f->dso)
			part.level = f->level;
		give(h, &part, w->fn);
	}
}

/* perf has the entries of a group's first event first, then what the others add. */
static void walk(struct hist *h, uint32_t member, part_fn *fn)
{
	struct walk w = {.fn = fn};
	struct stack s;

	for (uint32_t i = 0; i < h->nr_entries; i++)
		h->last_stacks[i] = 0;
	for (uint32_t i = 0; i < profile_nr_stacks(h->profile); i++) {
		profile_stack(h->profile, i, &s);
		if (in_view(h, &s) && s.event - h->cfg.event == member)
			walk_stack(h, &w, i, &s);
	}
	free(w.nodes);
}

static void count(struct hist *h, struct hist_entry *e, const struct part *part)
{
	struct hist_weights *w =
		&h->weights[(size_t)(e - h->entries) * h->cfg.nr_events + part->member];

	w->children_period += part->period;
	w->children_samples += part->samples;
	if (part->own) {
		w->period += part->period;
		w->samples += part->samples;
		w->mode_period[part->cpumode & 7] += part->period;
	}
	if (part->chain_len && !part->member) {
		e->nr_chains++;
		if (part->chain_len > e->max_depth)
			e->max_depth = part->chain_len;
	}
}

static void sum_view(struct hist *h)
{
	struct hist_sum *sum;
	struct stack s;

	for (uint32_t i = 0; i < profile_nr_stacks(h->profile); i++) {
		profile_stack(h->profile, i, &s);
		if (!in_view(h, &s))
			continue;
		sum = &h->sums[s.event - h->cfg.event];
		sum->samples += s.samples;
		sum->period += s.period;
		if (!wanted(h, &s))
			continue;
		sum->filtered_samples += s.samples;
		sum->filtered_period += s.period;
	}
}

void hist_build(struct hist *h, struct profile *p, const struct layout *l,
		const struct hist_config *cfg)
{
	*h = (struct hist){
		.profile = p,
		.layout = l,
		.cfg = *cfg,
		.context_ids.width = l->nr_sort,
		.frame_ids.width = p->branches ? BRANCH_WORDS : LOCATION_WORDS,
		.entry_ids.width = 1,
		.contexts = xcalloc(p->context_keys.n, sizeof(*h->contexts)),
		.frames = xcalloc(p->frame_keys.n, sizeof(*h->frames)),
		.nodes = xcalloc(trie_size(&p->nodes), sizeof(*h->nodes)),
		.branches = xcalloc(p->branch_keys.n + 1ull, sizeof(*h->branches)),
		.sums = xcalloc(cfg->nr_events, sizeof(*h->sums)),
	};
	sum_view(h);
	for (uint32_t i = 0; i < cfg->nr_events; i++)
		walk(h, i, count);
	historder(h);
}

static void keep_chain(struct hist *h, struct hist_entry *e, const struct part *part)
{
	if (e->chains && part->chain_len)
		e->chains[e->nr_chains++] = (struct hist_chain){part->stack, part->depth};
}

void hist_collect_chains(struct hist *h, uint64_t min)
{
	for (uint32_t i = 0; i < h->nr_entries; i++) {
		struct hist_entry *e = &h->entries[i];

		if (e->nr_chains && !e->filtered && hist_weight(h, e) >= min)
			e->chains = xcalloc(e->nr_chains, sizeof(*e->chains));
		e->nr_chains = 0;
	}
	walk(h, 0, keep_chain);
}

void hist_free(struct hist *h)
{
	for (uint32_t i = 0; i < h->nr_entries; i++)
		free(h->entries[i].chains);
	free(h->entries);
	free(h->weights);
	free(h->sums);
	free(h->branches);
	free(h->nodes);
	free(h->last_stacks);
	free(h->order);
	free(h->contexts);
	free(h->frames);
	keyset_free(&h->context_ids);
	keyset_free(&h->frame_ids);
	keyset_free(&h->entry_ids);
	*h = (struct hist){0};
}
