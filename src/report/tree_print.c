// SPDX-License-Identifier: GPL-2.0-only
/* A call tree as perf report --stdio draws it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/callgraph.h"
#include "util/xalloc.h"

struct tree_print {
	struct callgraph *g;
	const struct callgraph_config *cfg;
	struct hist *h;
	FILE *f;
	bool *bars; /* by depth: a line goes on downwards there */
	unsigned margin;
	uint64_t min_hit;
	bool any;
};

struct value {
	uint64_t period, count;
};

static struct value weight(const struct callgraph_node *n)
{
	return (struct value){n->hit + n->children_hit, n->count + n->children_count};
}

/*
 * A branch is a run of nodes where no chain ends or forks; returns its last one, which has the
 * children of the branch.
 */
static uint32_t branch_end(const struct callgraph *g, uint32_t node)
{
	while (!g->nodes[node].count && g->nodes[node].nr_children == 1)
		node = g->nodes[node].child;
	return node;
}

/*
 * perf orders equal branches by the addresses of its objects for DSOs, descending, which mostly
 * comes down to the order in which they appeared; no DSO is last. In one DSO higher addresses are
 * first.
 */
static int by_place(const struct tree_print *p, uint32_t a, uint32_t b)
{
	const struct frame *x = &p->h->profile->frames[p->g->nodes[a].frame];
	const struct frame *y = &p->h->profile->frames[p->g->nodes[b].frame];
	uint64_t dx = x->dso ? x->dso->index : UINT64_MAX;
	uint64_t dy = y->dso ? y->dso->index : UINT64_MAX;
	uint64_t ax = x->sym ? x->sym->start : x->ip, ay = y->sym ? y->sym->start : y->ip;

	if (dx != dy)
		return dx < dy ? -1 : 1;
	return ax > ay ? -1 : ax < ay;
}

static int by_weight(const void *a, const void *b, void *ctx)
{
	const struct tree_print *p = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t wx = weight(&p->g->nodes[x]).period, wy = weight(&p->g->nodes[y]).period;

	if (wx != wy)
		return wx > wy ? -1 : 1;
	return by_place(p, x, y);
}

static int by_place_only(const void *a, const void *b, void *ctx)
{
	return by_place(ctx, *(const uint32_t *)a, *(const uint32_t *)b);
}

/* Children that are heavy enough, in order; to be freed. */
static uint32_t *sorted_children(const struct tree_print *p, uint32_t node, uint64_t min,
				 int (*cmp)(const void *a, const void *b, void *ctx), size_t *n)
{
	const struct callgraph_node *nodes = p->g->nodes;
	uint32_t *ids = xcalloc(nodes[node].nr_children, sizeof(*ids));

	*n = 0;
	for (uint32_t c = nodes[node].child; c; c = nodes[c].sibling)
		if (weight(&nodes[c]).period >= min)
			ids[(*n)++] = c;
	qsort_r(ids, *n, sizeof(*ids), cmp, (void *)p);
	return ids;
}

static uint64_t min_hit_below(const struct tree_print *p, uint32_t node)
{
	if (p->cfg->mode != CALLGRAPH_FRACTAL)
		return p->min_hit;
	return (uint64_t)ceil((double)p->g->nodes[node].children_hit *
			      (p->cfg->min_percent / 100.0));
}

static void print_name(const struct tree_print *p, uint32_t frame)
{
	const char *name = profile_frame_name(p->h->profile, frame);
	const struct frame *f = &p->h->profile->frames[frame];

	if (name)
		fprintf(p->f, "%s%s", name, frame_is_inlined(f) ? " (inlined)" : "");
	else
		fprintf(p->f, "%#" PRIx64, f->ip);
}

static void print_value(const struct tree_print *p, struct value v, uint64_t total)
{
	switch (p->cfg->value) {
	case CALLGRAPH_PERIOD:
		fprintf(p->f, "%" PRIu64, v.period);
		break;
	case CALLGRAPH_COUNT:
		fprintf(p->f, "%" PRIu64, v.count);
		break;
	default:
		fprintf(p->f, "%.2f%%", total ? (double)v.period * 100.0 / (double)total : 0.0);
	}
}

static void print_margin(const struct tree_print *p)
{
	fprintf(p->f, "%*s", 12 + (int)p->margin, "");
}

static void print_bars(const struct tree_print *p, unsigned depth)
{
	print_margin(p);
	for (unsigned i = 0; i < depth; i++)
		fputs(p->bars[i] ? "|          " : "           ", p->f);
}

/* The line of a branch's first frame, with its value on the stroke. */
static void print_stroke(const struct tree_print *p, unsigned depth, struct value v, uint64_t total)
{
	print_bars(p, depth - 1);
	fputs(p->bars[depth - 1] ? "|--" : " --", p->f);
	print_value(p, v, total);
	fputs("--", p->f);
}

static void print_branch(const struct tree_print *p, uint32_t first, uint32_t last, unsigned depth,
			 uint64_t total)
{
	print_stroke(p, depth, weight(&p->g->nodes[first]), total);
	for (uint32_t n = first;; n = p->g->nodes[n].child) {
		print_name(p, p->g->nodes[n].frame);
		fputc('\n', p->f);
		if (n == last)
			return;
		print_bars(p, depth);
	}
}

/* What the limits have left out of a level whose percentages are of its own sum. */
static void print_rest(const struct tree_print *p, unsigned depth, struct value rest,
		       uint64_t total)
{
	if (p->cfg->mode != CALLGRAPH_FRACTAL || !rest.period || rest.period == total)
		return;
	if (p->cfg->value == CALLGRAPH_COUNT && !rest.count)
		return;
	p->bars[depth - 1] = false;
	print_stroke(p, depth, rest, total);
	fputs("[...]\n", p->f);
}

static void print_level(struct tree_print *p, uint32_t node, uint64_t total, unsigned depth)
{
	size_t n, limit = p->cfg->print_limit ? p->cfg->print_limit : SIZE_MAX;
	uint32_t *children = sorted_children(p, node, min_hit_below(p, node), by_weight, &n);
	struct value rest = {total, p->g->nodes[node].children_count};

	for (size_t i = 0; i < n && i < limit; i++) {
		const struct callgraph_node *c = &p->g->nodes[children[i]];
		uint32_t end = branch_end(p->g, children[i]);

		rest.period -= weight(c).period;
		rest.count -= weight(c).count;
		p->any = true;
		p->bars[depth - 1] = true;
		print_bars(p, depth);
		fputc('\n', p->f);
		if (i == n - 1 && (p->cfg->mode != CALLGRAPH_FRACTAL || !rest.period))
			p->bars[depth - 1] = false;
		print_branch(p, children[i], end, depth, total);
		print_level(p, end,
			    p->cfg->mode == CALLGRAPH_FRACTAL ? p->g->nodes[end].children_hit
							      : total,
			    depth + 1);
	}
	print_rest(p, depth, rest, total);
	free(children);
}

/*
 * A single branch that has all of the entry's weight is drawn as its trunk, without a value.
 * Returns the node where it ends.
 */
static uint32_t print_trunk(struct tree_print *p, uint64_t entry_weight)
{
	size_t n, limit = p->cfg->print_limit ? p->cfg->print_limit : SIZE_MAX, printed = 0;
	uint32_t *roots = sorted_children(p, 0, min_hit_below(p, 0), by_weight, &n);
	uint32_t first = n ? roots[0] : 0, end;

	free(roots);
	if (n != 1 || weight(&p->g->nodes[first]).period != entry_weight)
		return 0;
	end = branch_end(p->g, first);
	for (uint32_t node = first;; node = p->g->nodes[node].child) {
		/* sorted by symbol, the first frame is what the row says already */
		if (node != first || !p->h->layout->symbol_first) {
			if (!p->any) {
				print_margin(p);
				fputs("|\n", p->f);
			}
			print_margin(p);
			if (!p->any) {
				fputs("---", p->f);
				p->margin += 3;
			}
			p->any = true;
			print_name(p, p->g->nodes[node].frame);
			fputc('\n', p->f);
			if (++printed == limit)
				return end;
		}
		if (node == end)
			return end;
	}
}

static void print_graph(struct tree_print *p, const struct hist_entry *e)
{
	uint64_t entry_weight = hist_weight(p->h, e);
	uint32_t node = print_trunk(p, entry_weight);

	print_level(p, node, p->cfg->mode == CALLGRAPH_FRACTAL ? entry_weight : p->h->sums->period,
		    1);
	/* no blank line if nothing was printed */
	if (p->any)
		fputc('\n', p->f);
}

/* A node where chains end. */
struct end {
	uint32_t node, rank;
};

/* Children before their callers. */
static void collect_ends(const struct tree_print *p, uint32_t node, struct end *ends, size_t *n)
{
	size_t nr;
	uint32_t *children = sorted_children(p, node, 0, by_place_only, &nr);

	for (size_t i = 0; i < nr; i++)
		collect_ends(p, children[i], ends, n);
	free(children);
	if (p->g->nodes[node].hit && p->g->nodes[node].hit >= p->min_hit) {
		ends[*n] = (struct end){node, (uint32_t)*n};
		(*n)++;
	}
}

static int by_own_weight(const void *a, const void *b, void *ctx)
{
	const struct tree_print *p = ctx;
	const struct end *x = a, *y = b;
	uint64_t wx = p->g->nodes[x->node].hit, wy = p->g->nodes[y->node].hit;

	if (wx != wy)
		return wx > wy ? -1 : 1;
	return x->rank < y->rank ? -1 : 1;
}

static void print_path(const struct tree_print *p, uint32_t node, const char *before,
		       const char *between)
{
	uint32_t path[64], n = 0;

	/* deep ones in pieces: the callers' piece first */
	for (; node && n < 64; node = trie_parent(&p->g->index, node))
		path[n++] = node;
	if (node) {
		print_path(p, node, before, between);
		fputs(between, p->f);
	}
	while (n--) {
		fputs(before, p->f);
		print_name(p, p->g->nodes[path[n]].frame);
		if (n)
			fputs(between, p->f);
	}
}

static void print_list(struct tree_print *p)
{
	struct end *ends = xcalloc(p->g->n, sizeof(*ends));
	size_t n = 0, limit = p->cfg->print_limit ? p->cfg->print_limit : SIZE_MAX;
	bool folded = p->cfg->mode == CALLGRAPH_FOLDED;

	collect_ends(p, 0, ends, &n);
	qsort_r(ends, n, sizeof(*ends), by_own_weight, p);
	for (size_t i = 0; i < n && i < limit; i++) {
		const struct callgraph_node *node = &p->g->nodes[ends[i].node];
		struct value own = {node->hit, node->count};

		if (!folded)
			fprintf(p->f, "%11s", "");
		print_value(p, folded ? own : weight(node), p->h->sums->period);
		fputs(folded ? " " : "\n", p->f);
		print_path(p, ends[i].node, folded ? "" : "                ", folded ? ";" : "\n");
		fputs(folded ? "\n" : "\n\n", p->f);
	}
	free(ends);
}

void callgraph_print(struct callgraph *g, const struct callgraph_config *cfg, struct hist *h,
		     const struct hist_entry *e, FILE *f)
{
	struct tree_print p = {
		.g = g,
		.cfg = cfg,
		.h = h,
		.f = f,
		.min_hit = callgraph_min_hit(cfg, h),
		.bars = xcalloc(e->max_depth + 2ull, sizeof(bool)),
	};

	if (cfg->mode == CALLGRAPH_FLAT || cfg->mode == CALLGRAPH_FOLDED)
		print_list(&p);
	else if (cfg->mode != CALLGRAPH_NONE)
		print_graph(&p, e);
	free(p.bars);
}
