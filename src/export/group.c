// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>

#include "export/export.h"
#include "util/xalloc.h"

struct grouping {
	const struct profile *p;
	bool by_context;
	struct keyset keys; /* machine's index and event; context, or 0 for all */
	uint32_t *of_stack; /* + 1; 0 until a sample has it */
	struct export_group *groups;
	size_t cap;
};

static uint32_t group_of(struct grouping *gr, uint32_t stack)
{
	const struct machine *m;
	struct stack s;
	uint64_t key[2];
	bool added;
	uint32_t id;

	if (gr->of_stack[stack])
		return gr->of_stack[stack] - 1;
	profile_stack(gr->p, stack, &s);
	m = gr->p->contexts[s.context].machine;
	key[0] = (uint64_t)m->index << 32 | s.event;
	key[1] = gr->by_context ? s.context : 0;
	id = keyset_add(&gr->keys, key, &added);
	if (added) {
		gr->groups = xgrow(gr->groups, &gr->cap, id + 1ull, sizeof(*gr->groups));
		gr->groups[id] =
			(struct export_group){.machine = m, .event = s.event, .context = s.context};
	}
	gr->of_stack[stack] = id + 1;
	return id;
}

static int by_machine(const void *a, const void *b)
{
	const struct export_group *x = a, *y = b;

	if (x->machine->index != y->machine->index)
		return x->machine->index < y->machine->index ? -1 : 1;
	if (x->event != y->event)
		return x->event < y->event ? -1 : 1;
	return x->samples < y->samples ? -1 : 1;
}

void export_group(const struct export *x, bool by_context, struct export_groups *g)
{
	struct grouping gr = {
		.p = x->profile,
		.by_context = by_context,
		.keys.width = 2,
		.of_stack = xcalloc(profile_nr_stacks(x->profile), sizeof(*gr.of_stack)),
	};
	uint32_t **ends, *next;

	for (size_t i = 0; i < x->nr_samples; i++) {
		uint32_t id = group_of(&gr, x->samples[i].stack);

		gr.groups[id].n++;
	}
	next = xmalloc(xsize_mul(x->nr_samples, sizeof(*next)));
	ends = xcalloc(gr.keys.n, sizeof(*ends));
	*g = (struct export_groups){.groups = gr.groups, .n = gr.keys.n, .samples = next};
	for (uint32_t i = 0; i < g->n; i++) {
		g->groups[i].samples = ends[i] = next;
		next += g->groups[i].n;
	}
	for (size_t i = 0; i < x->nr_samples; i++)
		*ends[group_of(&gr, x->samples[i].stack)]++ = (uint32_t)i;
	qsort(g->groups, g->n, sizeof(*g->groups), by_machine);
	free(ends);
	free(gr.of_stack);
	keyset_free(&gr.keys);
}

void export_groups_free(struct export_groups *g)
{
	free(g->groups);
	free(g->samples);
	*g = (struct export_groups){0};
}
