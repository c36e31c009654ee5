// SPDX-License-Identifier: GPL-2.0-only
/*
 * speedscope's own file format (https://www.speedscope.app/file-format-schema.json): a table of
 * frames, then a "sampled" profile for each event of each VM. Samples are in the order of their
 * time, which is what its first view shows; neighbours with the same stack are one of their summed
 * weight.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "export/export.h"
#include "util/text.h"
#include "util/xalloc.h"

struct writer {
	struct export *x;
	FILE *f;
	struct keyset frames; /* text, file */
	struct keyset stacks; /* outer stack + 1 and frame */
	uint32_t *of_stack;   /* by the profile's stack */
	uint32_t *chain;
	size_t chain_cap;
};

static uint32_t add_frame(struct writer *w, const char *text, const char *file)
{
	uint64_t key[2] = {(uintptr_t)text, (uintptr_t)file};
	bool added;
	uint32_t id = keyset_add(&w->frames, key, &added);

	if (!added)
		return id;
	fputs(id ? ",\n  {\"name\": " : "\n  {\"name\": ", w->f);
	export_json_string(text, w->f);
	if (file) {
		fputs(", \"file\": ", w->f);
		export_json_string(file, w->f);
	}
	fputc('}', w->f);
	return id;
}

/* The stack of a frame that @outer has called; 0 is the outermost. */
static uint32_t call(struct writer *w, uint32_t outer, uint32_t frame)
{
	return keyset_add1(&w->stacks, (uint64_t)outer << 32 | frame, NULL) + 1;
}

static uint32_t add_stack(struct writer *w, const struct stack *s)
{
	struct profile *p = w->x->profile;
	size_t n = export_chain(p, s, &w->chain, &w->chain_cap);
	const char *comm = profile_text(p, p->contexts[s->context].comm);
	uint32_t stack = call(w, 0, add_frame(w, comm, NULL));

	while (n--) {
		const struct dso *dso = p->frames[w->chain[n]].dso;
		const char *file = dso ? profile_dso_name(p, dso, true) : NULL;

		stack = call(w, stack, add_frame(w, profile_frame_text(p, w->chain[n]), file));
	}
	return stack;
}

static void write_frames(struct writer *w)
{
	struct stack s;

	fputs(" \"shared\": {\"frames\": [", w->f);
	for (uint32_t i = 0; i < profile_nr_stacks(w->x->profile); i++) {
		if (!w->x->wanted[i])
			continue;
		profile_stack(w->x->profile, i, &s);
		w->of_stack[i] = add_stack(w, &s);
	}
	fputs("\n ]},\n", w->f);
}

static void write_stack(struct writer *w, uint32_t stack)
{
	size_t n = 0;

	while (stack) {
		uint64_t key = *keyset_key(&w->stacks, stack - 1);

		w->chain = xgrow(w->chain, &w->chain_cap, n + 1, sizeof(*w->chain));
		w->chain[n++] = (uint32_t)key;
		stack = (uint32_t)(key >> 32);
	}
	fputc('[', w->f);
	while (n--)
		fprintf(w->f, n ? "%" PRIu32 "," : "%" PRIu32, w->chain[n]);
	fputc(']', w->f);
}

static uint32_t nth_stack(const struct writer *w, const struct export_group *g, size_t i)
{
	return w->of_stack[w->x->samples[g->samples[i]].stack];
}

/* The next run of samples with one stack; returns where the one behind it starts. */
static size_t next_run(const struct writer *w, const struct export_group *g, size_t i,
		       uint32_t *stack, uint64_t *weight)
{
	*stack = nth_stack(w, g, i);
	*weight = 0;
	for (; i < g->n && nth_stack(w, g, i) == *stack; i++)
		*weight += w->x->samples[g->samples[i]].period;
	return i;
}

static void write_samples(struct writer *w, const struct export_group *g)
{
	uint64_t weight;
	uint32_t stack;

	fputs("   \"samples\": [", w->f);
	for (size_t i = 0; i < g->n;) {
		fputs(i ? ",\n    " : "\n    ", w->f);
		i = next_run(w, g, i, &stack, &weight);
		write_stack(w, stack);
	}
	fputs("],\n   \"weights\": [", w->f);
	for (size_t i = 0; i < g->n;) {
		fputs(i ? "," : "", w->f);
		i = next_run(w, g, i, &stack, &weight);
		fprintf(w->f, "%" PRIu64, weight);
	}
	fputs("]}", w->f);
}

static void write_profile(struct writer *w, const struct export_group *g)
{
	struct profile *p = w->x->profile;
	const struct export_event *e = &w->x->events[g->event];
	uint64_t total = 0;

	for (size_t i = 0; i < g->n; i++)
		total += w->x->samples[g->samples[i]].period;
	fputs("{\"type\": \"sampled\", \"name\": \"", w->f);
	if (p->has_guests) {
		json_fputs(export_vm(p, g->machine), w->f);
		fputs(", ", w->f);
	}
	json_fputs(e->name, w->f);
	fprintf(w->f, "\", \"unit\": \"%s\", \"startValue\": 0, \"endValue\": %" PRIu64 ",\n",
		e->is_time ? "nanoseconds" : "none", total);
	write_samples(w, g);
}

static uint32_t largest(const struct export_groups *g)
{
	uint32_t best = 0;

	for (uint32_t i = 0; i < g->n; i++)
		if (g->groups[i].n > g->groups[best].n)
			best = i;
	return best;
}

static void write_speedscope(struct export *x, FILE *f)
{
	struct writer w = {
		.x = x,
		.f = f,
		.frames.width = 2,
		.stacks.width = 1,
		.of_stack = xcalloc(profile_nr_stacks(x->profile), sizeof(*w.of_stack)),
	};
	struct export_groups g;

	export_group(x, false, &g);
	fputs("{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n \"name\": ",
	      f);
	export_json_string(x->title, f);
	fprintf(f, ", \"exporter\": \"vmprof %s\", \"activeProfileIndex\": %" PRIu32 ",\n",
		VMPROF_VERSION, largest(&g));
	write_frames(&w);
	fputs(" \"profiles\": [", f);
	for (uint32_t i = 0; i < g.n; i++) {
		fputs(i ? ",\n  " : "\n  ", f);
		write_profile(&w, &g.groups[i]);
	}
	fputs("\n ]}\n", f);
	export_groups_free(&g);
	keyset_free(&w.frames);
	keyset_free(&w.stacks);
	free(w.of_stack);
	free(w.chain);
}

const struct export_format export_speedscope = {
	.name = "speedscope",
	.has_samples = true,
	.write = write_speedscope,
};
