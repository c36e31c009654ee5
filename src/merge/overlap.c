// SPDX-License-Identifier: GPL-2.0-only
/*
 * One VM's time, sampled twice: from the host and in the VM. Where both have been at work, samples
 * of the same event count from one of the two only (vmprof-merge(1)).
 */
#include <stdlib.h>
#include <string.h>

#include "merge/impl.h"
#include "util/xalloc.h"

/* An event of a VM in one input. */
struct cover {
	const struct merge_input *in;
	const struct merge_source *source;
	struct merge_interval t;
	struct cover *next; /* of the same VM and event */
};

static struct merge_interval time_of(const struct merge *m, const struct merge_input *in)
{
	if (m->no_align) /* nobody knows when: what may be the same time is taken for it */
		return (struct merge_interval){0, UINT64_MAX};
	return (struct merge_interval){merge_time(in, in->first), merge_time(in, in->last)};
}

static uint64_t cover_key(const struct merge_input *in, const struct merge_combo *c)
{
	return (uint64_t)c->source->vm->index << 32 | in->events[c->event];
}

static bool overlap(const struct merge_interval *a, const struct merge_interval *b)
{
	return a->first <= b->last && b->first <= a->last;
}

/* Two files that saw the same from the same side: both are what the user has asked for. */
static void warn_of_twin(const struct merge *m, const struct cover *a, const struct cover *b)
{
	if (!m->no_align && a->source->own == b->source->own && overlap(&a->t, &b->t))
		merge_warn("%s and %s have samples of %s of the same time and event; they count "
			   "twice",
			   a->in->shown, b->in->shown, a->source->vm->name);
}

static void add_cover(const struct merge *m, struct hashmap *covers, const struct merge_input *in,
		      const struct merge_combo *combo)
{
	uint64_t key = cover_key(in, combo);
	struct cover *first = hashmap_get(covers, key), *c;

	for (c = first; c; c = c->next)
		if (c->in == in && c->source == combo->source)
			return; /* of another vCPU */
	c = xcalloc(1, sizeof(*c));
	*c = (struct cover){in, combo->source, time_of(m, in), first};
	for (const struct cover *o = first; o; o = o->next)
		if (o->in != in)
			warn_of_twin(m, o, c);
	hashmap_set(covers, key, c);
}

static bool is_preferred(const struct merge *m, const struct merge_source *s)
{
	return s->own != m->opts->prefer_host;
}

static void yield_to(struct merge_combo *c, const struct merge_interval *t)
{
	c->yield = xreallocarray(c->yield, c->nr_yield + 1, sizeof(*c->yield));
	c->yield[c->nr_yield++] = *t;
}

static void plan_combo(const struct merge *m, const struct hashmap *covers,
		       const struct merge_input *in, struct merge_combo *combo)
{
	struct merge_interval own = time_of(m, in);

	if (is_preferred(m, combo->source))
		return;
	for (const struct cover *c = hashmap_get(covers, cover_key(in, combo)); c; c = c->next)
		if (c->in != in && is_preferred(m, c->source) && overlap(&own, &c->t))
			yield_to(combo, &c->t);
}

void merge_plan_overlaps(struct merge *m)
{
	struct hashmap covers = {0};
	struct merge_combo *combo;
	struct cover *c, *next;

	for (size_t i = 0; i < m->nr_inputs; i++)
		for (size_t k = 0; (combo = hashmap_next(&m->inputs[i].combos, &k, NULL));)
			add_cover(m, &covers, &m->inputs[i], combo);
	for (size_t i = 0; i < m->nr_inputs; i++)
		for (size_t k = 0; (combo = hashmap_next(&m->inputs[i].combos, &k, NULL));)
			plan_combo(m, &covers, &m->inputs[i], combo);
	for (size_t i = 0; (c = hashmap_next(&covers, &i, NULL));)
		for (; c; c = next) {
			next = c->next;
			free(c);
		}
	hashmap_free(&covers);
}
