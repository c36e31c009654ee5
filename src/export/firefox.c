// SPDX-License-Identifier: GPL-2.0-only
/*
 * The Firefox Profiler's "processed profile" (firefox-devtools/profiler, src/types/profile.ts and
 * docs-developer/CHANGELOG-formats.md) as of version 60, the first whose threads share their
 * tables. profiler.firefox.com brings older versions up to its own.
 *
 * A process is a machine; a thread is a thread of it under one command, for each event. Tables are
 * of columns, each an array.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "util/text.h"
#include "util/xalloc.h"

#define PROCESSED_VERSION 60
#define GECKO_VERSION	  33 /* of what Firefox itself writes, at that time */
#define RESOURCE_LIBRARY  1
#define MAX_ADDRESS	  (1ull << 53) /* above it a number of JavaScript is not exact */

/* By frame kind. There has to be a grey one. */
static const struct {
	const char *name, *color;
} categories[] = {
	[FRAME_HOST_USER] = {"Host user", "yellow"},
	[FRAME_HOST_KERNEL] = {"Host kernel", "orange"},
	[FRAME_GUEST_USER] = {"Guest user", "green"},
	[FRAME_GUEST_KERNEL] = {"Guest kernel", "lightblue"},
	{"Other", "grey"},
};

struct writer {
	struct export *x;
	FILE *f;
	struct keyset strings; /* interned texts */
	struct keyset libs;    /* pointers to dso */
	struct keyset funcs;   /* text; lib + 1 */
	struct keyset frames;  /* the profile's */
	uint32_t *frame_funcs; /* of frames */
	size_t frame_funcs_cap;
	struct keyset stacks; /* outer stack + 1 and frame */
	uint32_t *of_stack;   /* by the profile's stack */
	uint32_t *chain;
	size_t chain_cap;
};

/* ---------- tables, filled ---------- */

static uint32_t string(struct writer *w, const char *text)
{
	return keyset_add1(&w->strings, (uintptr_t)text, NULL);
}

static uint32_t frame_of(struct writer *w, uint32_t frame)
{
	const struct dso *dso = w->x->profile->frames[frame].dso;
	uint64_t key[2];
	bool added;
	uint32_t id = keyset_add1(&w->frames, frame, &added);

	if (!added)
		return id;
	key[0] = (uintptr_t)profile_frame_text(w->x->profile, frame);
	key[1] = dso ? keyset_add1(&w->libs, (uintptr_t)dso, NULL) + 1ull : 0;
	w->frame_funcs =
		xgrow(w->frame_funcs, &w->frame_funcs_cap, id + 1ull, sizeof(*w->frame_funcs));
	w->frame_funcs[id] = keyset_add(&w->funcs, key, NULL);
	return id;
}

static void fill_tables(struct writer *w)
{
	struct profile *p = w->x->profile;
	struct stack s;

	for (uint32_t i = 0; i < profile_nr_stacks(p); i++) {
		uint64_t outer = 0;
		size_t n;

		if (!w->x->wanted[i])
			continue;
		profile_stack(p, i, &s);
		n = export_chain(p, &s, &w->chain, &w->chain_cap);
		while (n--)
			outer = keyset_add1(&w->stacks, outer << 32 | frame_of(w, w->chain[n]),
					    NULL) +
				1ull;
		w->of_stack[i] = (uint32_t)outer - 1;
	}
}

/* ---------- tables, written ---------- */

static void column(struct writer *w, const char *key, uint32_t n,
		   void (*cell)(struct writer *w, uint32_t i))
{
	fprintf(w->f, "\"%s\": [", key);
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			fputc(',', w->f);
		cell(w, i);
	}
	fputs("],\n   ", w->f);
}

/* The same in each row. */
static void constant(struct writer *w, const char *key, uint32_t n, const char *value)
{
	fprintf(w->f, "\"%s\": [", key);
	for (uint32_t i = 0; i < n; i++)
		fprintf(w->f, i ? ",%s" : "%s", value);
	fputs("],\n   ", w->f);
}

static void table(struct writer *w, const char *name)
{
	fprintf(w->f, "  \"%s\": {", name);
}

static void table_end(struct writer *w, uint32_t n)
{
	fprintf(w->f, "\"length\": %" PRIu32 "},\n", n);
}

static void stack_frame(struct writer *w, uint32_t i)
{
	fprintf(w->f, "%" PRIu32, (uint32_t)*keyset_key(&w->stacks, i));
}

static void stack_prefix(struct writer *w, uint32_t i)
{
	uint32_t outer = (uint32_t)(*keyset_key(&w->stacks, i) >> 32);

	if (outer)
		fprintf(w->f, "%" PRIu32, outer - 1);
	else
		fputs("null", w->f);
}

static const struct frame *nth_frame(const struct writer *w, uint32_t i)
{
	return &w->x->profile->frames[*keyset_key(&w->frames, i)];
}

/* Of a function no address is known. */
static void frame_address(struct writer *w, uint32_t i)
{
	const struct frame *f = nth_frame(w, i);

	if (f->sym || !f->dso || f->addr > MAX_ADDRESS)
		fputs("-1", w->f);
	else
		fprintf(w->f, "%" PRIu64, f->addr);
}

static void frame_category(struct writer *w, uint32_t i)
{
	fprintf(w->f, "%d", nth_frame(w, i)->kind);
}

static void frame_func(struct writer *w, uint32_t i)
{
	fprintf(w->f, "%" PRIu32, w->frame_funcs[i]);
}

static void func_name(struct writer *w, uint32_t i)
{
	const uint64_t *key = keyset_key(&w->funcs, i);

	fprintf(w->f, "%" PRIu32, string(w, (const char *)(uintptr_t)key[0]));
}

static void func_resource(struct writer *w, uint32_t i)
{
	fprintf(w->f, "%" PRId64, (int64_t)keyset_key(&w->funcs, i)[1] - 1);
}

static const struct dso *nth_lib(const struct writer *w, uint32_t i)
{
	return (const struct dso *)(uintptr_t)*keyset_key(&w->libs, i);
}

static void resource_lib(struct writer *w, uint32_t i)
{
	fprintf(w->f, "%" PRIu32, i);
}

static void resource_name(struct writer *w, uint32_t i)
{
	fprintf(w->f, "%" PRIu32, string(w, profile_dso_name(w->x->profile, nth_lib(w, i), false)));
}

static void write_frame_tables(struct writer *w)
{
	uint32_t stacks = w->stacks.n, frames = w->frames.n;

	table(w, "stackTable");
	column(w, "frame", stacks, stack_frame);
	column(w, "prefix", stacks, stack_prefix);
	table_end(w, stacks);
	table(w, "frameTable");
	column(w, "address", frames, frame_address);
	column(w, "category", frames, frame_category);
	column(w, "func", frames, frame_func);
	constant(w, "inlineDepth", frames, "0");
	constant(w, "subcategory", frames, "0");
	constant(w, "nativeSymbol", frames, "null");
	constant(w, "innerWindowID", frames, "null");
	constant(w, "line", frames, "null");
	constant(w, "column", frames, "null");
	table_end(w, frames);
}

static void write_func_tables(struct writer *w)
{
	uint32_t funcs = w->funcs.n, libs = w->libs.n;
	char type[8];

	snprintf(type, sizeof(type), "%d", RESOURCE_LIBRARY);
	table(w, "funcTable");
	column(w, "name", funcs, func_name);
	column(w, "resource", funcs, func_resource);
	constant(w, "isJS", funcs, "false");
	constant(w, "relevantForJS", funcs, "false");
	constant(w, "source", funcs, "null");
	constant(w, "lineNumber", funcs, "null");
	constant(w, "columnNumber", funcs, "null");
	table_end(w, funcs);
	table(w, "resourceTable");
	column(w, "lib", libs, resource_lib);
	column(w, "name", libs, resource_name);
	constant(w, "host", libs, "null");
	constant(w, "type", libs, type);
	table_end(w, libs);
}

static void write_shared(struct writer *w)
{
	fputs(" \"shared\": {\n", w->f);
	write_frame_tables(w);
	write_func_tables(w);
	fputs("  \"nativeSymbols\": {\"libIndex\": [], \"address\": [], \"name\": [], "
	      "\"functionSize\": [], \"length\": 0},\n"
	      "  \"sources\": {\"uuid\": [], \"filename\": [], \"length\": 0},\n"
	      "  \"stringArray\": [",
	      w->f);
	/* last: the others have collected them */
	for (uint32_t i = 0; i < w->strings.n; i++) {
		fputs(i ? ",\n   " : "", w->f);
		export_json_string((const char *)(uintptr_t)*keyset_key(&w->strings, i), w->f);
	}
	fputs("]},\n", w->f);
}

static void write_libs(struct writer *w)
{
	struct profile *p = w->x->profile;

	fputs(" \"libs\": [", w->f);
	for (uint32_t i = 0; i < w->libs.n; i++) {
		const struct dso *dso = nth_lib(w, i);
		const char *names[] = {"name", "debugName", "path", "debugPath"};
		char id[2 * sizeof(dso->build_id) + 1];

		hex_str(id, dso->build_id, dso->build_id_len);
		fprintf(w->f, "%s\n  {\"arch\": \"\", \"breakpadId\": \"\", \"codeId\": \"%s\"",
			i ? "," : "", id);
		for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++) {
			fprintf(w->f, ", \"%s\": ", names[n]);
			export_json_string(profile_dso_name(p, dso, n >= 2), w->f);
		}
		fputc('}', w->f);
	}
	fputs("],\n", w->f);
}

/* ---------- threads ---------- */

static void put_ms(FILE *f, uint64_t ns)
{
	fprintf(f, "%" PRIu64 ".%06u", ns / 1000000, (unsigned)(ns % 1000000));
}

typedef void sample_cell(struct writer *w, const struct export_sample *s, bool is_time);

static void sample_stack(struct writer *w, const struct export_sample *s, bool is_time)
{
	fprintf(w->f, "%" PRIu32, w->of_stack[s->stack]);
}

static void sample_time(struct writer *w, const struct export_sample *s, bool is_time)
{
	put_ms(w->f, s->time - w->x->first_time);
}

static void sample_weight(struct writer *w, const struct export_sample *s, bool is_time)
{
	if (is_time)
		put_ms(w->f, s->period);
	else
		fprintf(w->f, "%" PRIu64, s->period);
}

/* CPU time that the thread has used since its last sample. */
static void sample_cpu(struct writer *w, const struct export_sample *s, bool is_time)
{
	fprintf(w->f, "%" PRIu64, s->period);
}

static void sample_column(struct writer *w, const struct export_group *g, const char *key,
			  sample_cell *cell)
{
	bool is_time = w->x->events[g->event].is_time;

	fprintf(w->f, "\"%s\": [", key);
	for (size_t i = 0; i < g->n; i++) {
		if (i)
			fputc(',', w->f);
		cell(w, &w->x->samples[g->samples[i]], is_time);
	}
	fputs("],\n    ", w->f);
}

static void write_samples(struct writer *w, const struct export_group *g)
{
	bool is_time = w->x->events[g->event].is_time;

	fputs("\n   \"samples\": {", w->f);
	sample_column(w, g, "stack", sample_stack);
	sample_column(w, g, "time", sample_time);
	sample_column(w, g, "weight", sample_weight);
	if (is_time)
		sample_column(w, g, "threadCPUDelta", sample_cpu);
	fprintf(w->f, "\"weightType\": \"%s\", \"length\": %zu},\n",
		is_time ? "tracing-ms" : "samples", g->n);
	fputs("   \"markers\": {\"data\": [], \"name\": [], \"startTime\": [], \"endTime\": [], "
	      "\"phase\": [], \"category\": [], \"length\": 0}}",
	      w->f);
}

/* Names of VMs tell threads of the same number apart. */
static void write_ids(struct writer *w, const struct thread *t)
{
	struct profile *p = w->x->profile;

	fputs(", \"tid\": \"", w->f);
	if (p->has_guests) {
		json_fputs(export_vm(p, t->machine), w->f);
		fputc(':', w->f);
	}
	fprintf(w->f, "%" PRId32 "/%" PRId32 "\", \"pid\": \"", t->pid, t->tid);
	if (machine_is_host(t->machine))
		fputs("host", w->f);
	else
		fprintf(w->f, "%" PRId32, t->machine->pid);
	fputc('"', w->f);
}

static void write_thread(struct writer *w, const struct export_group *g)
{
	struct profile *p = w->x->profile;
	const struct context *ctx = &p->contexts[g->context];
	uint64_t start = w->x->samples[g->samples[0]].time - w->x->first_time;

	fputs("{\"processType\": \"default\", \"isMainThread\": false, \"name\": \"", w->f);
	json_fputs(profile_text(p, ctx->comm), w->f);
	if (w->x->nr_wanted_events > 1) {
		fputs(", ", w->f);
		json_fputs(w->x->events[g->event].name, w->f);
	}
	fputs("\", \"processName\": ", w->f);
	export_json_string(export_vm(p, ctx->machine), w->f);
	write_ids(w, ctx->thread);
	fputs(",\n   \"processStartupTime\": 0, \"processShutdownTime\": null, \"registerTime\": ",
	      w->f);
	put_ms(w->f, start);
	fputs(", \"unregisterTime\": null, \"pausedRanges\": [],", w->f);
	write_samples(w, g);
}

static void write_threads(struct writer *w)
{
	struct export_groups g;

	export_group(w->x, true, &g);
	fputs(" \"threads\": [", w->f);
	for (uint32_t i = 0; i < g.n; i++) {
		fputs(i ? ",\n  " : "\n  ", w->f);
		write_thread(w, &g.groups[i]);
	}
	fputs("]}\n", w->f);
	export_groups_free(&g);
}

/* ---------- the whole ---------- */

static void write_categories(struct writer *w)
{
	fputs("  \"categories\": [", w->f);
	for (size_t i = 0; i < sizeof(categories) / sizeof(*categories); i++)
		fprintf(w->f,
			"%s\n   {\"name\": \"%s\", \"color\": \"%s\", \"subcategories\": "
			"[\"Other\"]}",
			i ? "," : "", categories[i].name, categories[i].color);
	fputs("],\n", w->f);
}

static double shortest_interval(const struct export *x)
{
	double ms = 0;

	for (uint32_t i = 0; i < x->nr_events; i++)
		if (x->events[i].wanted && (ms == 0 || x->events[i].interval_ms < ms))
			ms = x->events[i].interval_ms;
	return ms;
}

static void write_meta(struct writer *w)
{
	const struct export *x = w->x;

	fprintf(w->f, "{\"meta\": {\"preprocessedProfileVersion\": %d, \"version\": %d,\n",
		PROCESSED_VERSION, GECKO_VERSION);
	fputs("  \"product\": ", w->f);
	export_json_string(x->title, w->f);
	fprintf(w->f, ", \"importedFrom\": \"vmprof %s\", \"interval\": %.6f, \"startTime\": ",
		VMPROF_VERSION, shortest_interval(x));
	put_ms(w->f, x->clock_epoch ? x->clock_epoch + x->first_time : 0);
	fputs(", \"profilingStartTime\": 0, \"profilingEndTime\": ", w->f);
	/* behind the last sample, which else was not in the range */
	put_ms(w->f, x->last_time - x->first_time + (uint64_t)(shortest_interval(x) * 1e6));
	fputs(",\n  \"processType\": 0, \"stackwalk\": 1, \"debug\": false, \"symbolicated\": "
	      "true,\n"
	      "  \"usesOnlyOneStackType\": true, \"sourceCodeIsNotOnSearchfox\": true, "
	      "\"markerSchema\": [],\n",
	      w->f);
	write_categories(w);
	fputs("  \"sampleUnits\": {\"time\": \"ms\", \"eventDelay\": \"ms\", \"threadCPUDelta\": "
	      "\"ns\"}},\n",
	      w->f);
}

static int check_times(const struct export *x, struct vmprof_err *err)
{
	for (uint32_t i = 0; i < x->nr_events; i++)
		if (x->events[i].wanted && x->events[i].no_times)
			return err_set(err, EINVAL,
				       "samples of %s in %s do not say when they were taken, and "
				       "this format has a time line; take another one",
				       x->events[i].name, x->title);
	return 0;
}

static void write_firefox(struct export *x, FILE *f)
{
	struct writer w = {
		.x = x,
		.f = f,
		.strings.width = 1,
		.libs.width = 1,
		.funcs.width = 2,
		.frames.width = 1,
		.stacks.width = 1,
		.of_stack = xcalloc(profile_nr_stacks(x->profile), sizeof(*w.of_stack)),
	};
	struct keyset *sets[] = {&w.strings, &w.libs, &w.funcs, &w.frames, &w.stacks};

	fill_tables(&w);
	write_meta(&w);
	write_libs(&w);
	write_shared(&w);
	write_threads(&w);
	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		keyset_free(sets[i]);
	free(w.frame_funcs);
	free(w.of_stack);
	free(w.chain);
}

const struct export_format export_firefox = {
	.name = "firefox",
	.needs = PROFILE_BY_THREAD,
	.has_samples = true,
	.check = check_times,
	.write = write_firefox,
};
