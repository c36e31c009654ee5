// SPDX-License-Identifier: GPL-2.0-only
/*
 * pprof's profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto), gzipped:
 * samples with a value for each event; a location for each frame; VM and command as outermost
 * frames and, with the process, as labels; a mapping for each DSO.
 *
 * A DSO is at another address in each process that has it, so that the addresses here are the DSO's
 * own, and its mapping starts at 0. Of a frame that has a name only the function is known, and none
 * of its addresses.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "export/protobuf.h"
#include "util/text.h"
#include "util/xalloc.h"

/* Numbers of fields. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14,
};
enum { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STRING = 2, LABEL_NUMBER = 3 };
enum {
	MAPPING_ID = 1,
	MAPPING_LIMIT = 3,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_NAMED = 7
};
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

/* pprof's views are titled by the first mapping, which is of no DSO here but the file that was
 * read. */
#define TITLE_MAPPING 1ull
#define FIRST_DSO     2ull

struct mapping {
	const struct dso *dso;
	uint64_t limit;
};

struct writer {
	struct export *x;
	FILE *f;
	struct buf message, part; /* a field of the whole, and one of that */

	struct keyset strings;	 /* interned texts */
	struct keyset functions; /* name, file */
	struct keyset dsos;	 /* pointers */
	struct mapping *mappings;
	size_t mappings_cap;
	uint32_t *of_frame;  /* locations; 0 until there is one */
	struct keyset names; /* of VMs and commands: locations behind those of frames */
	uint32_t nr_locations;

	uint32_t *of_event;    /* which of a sample's values */
	struct keyset who;     /* machine and process; command */
	struct keyset samples; /* who; chain, or leaf without one */
	uint32_t *stacks;      /* of samples: one of theirs */
	uint64_t *values;      /* of samples: nr_wanted_events each */
	size_t stacks_cap, values_cap;
	uint32_t *chain;
	size_t chain_cap;
};

/* ---------- what is the same for a sample is summed up ---------- */

static uint32_t who_of(struct writer *w, const struct context *ctx)
{
	uint64_t key[2] = {(uint64_t)ctx->machine->index << 32 | (uint32_t)ctx->thread->pid,
			   (uintptr_t)profile_text(w->x->profile, ctx->comm)};

	return keyset_add(&w->who, key, NULL);
}

static void add_stack(struct writer *w, uint32_t stack, uint32_t *of_context)
{
	uint32_t nr_values = w->x->nr_wanted_events, id;
	uint64_t key[2];
	struct stack s;
	bool added;

	profile_stack(w->x->profile, stack, &s);
	if (!of_context[s.context])
		of_context[s.context] = who_of(w, &w->x->profile->contexts[s.context]) + 1;
	key[0] = of_context[s.context];
	key[1] = s.node == PROFILE_NO_CHAIN ? (uint64_t)s.leaf << 32 : s.node;
	id = keyset_add(&w->samples, key, &added);
	if (added) {
		size_t n = (id + 1ull) * nr_values;

		w->stacks = xgrow(w->stacks, &w->stacks_cap, id + 1ull, sizeof(*w->stacks));
		w->stacks[id] = stack;
		w->values = xgrow(w->values, &w->values_cap, n, sizeof(*w->values));
		memset(w->values + n - nr_values, 0, nr_values * sizeof(*w->values));
	}
	w->values[(size_t)id * nr_values + w->of_event[s.event]] += s.period;
}

static void add_stacks(struct writer *w)
{
	struct profile *p = w->x->profile;
	uint32_t *of_context = xcalloc(p->context_keys.n, sizeof(*of_context));

	for (uint32_t i = 0; i < profile_nr_stacks(p); i++)
		if (w->x->wanted[i])
			add_stack(w, i, of_context);
	free(of_context);
}

/* ---------- tables ---------- */

/* A field of the whole is complete: out with it. */
static void flush(struct writer *w, uint32_t field)
{
	struct buf whole = {0};

	pb_message(&whole, field, &w->message);
	fwrite(whole.data, 1, whole.len, w->f);
	buf_free(&whole);
	buf_reset(&w->message);
}

/* @text is one of the profile's own. */
static uint64_t string(struct writer *w, const char *text)
{
	return keyset_add1(&w->strings, (uintptr_t)text, NULL);
}

static uint64_t literal(struct writer *w, const char *text)
{
	return string(w, strtab_intern(w->x->profile->texts, text));
}

static uint64_t function(struct writer *w, const char *name, const char *system_name,
			 const char *file)
{
	uint64_t key[2] = {(uintptr_t)name, (uintptr_t)file};
	bool added;
	uint32_t id = keyset_add(&w->functions, key, &added) + 1;

	if (!added)
		return id;
	pb_number(&w->message, FUNCTION_ID, id);
	pb_number(&w->message, FUNCTION_NAME, string(w, name));
	pb_number(&w->message, FUNCTION_SYSTEM_NAME, string(w, system_name));
	pb_number(&w->message, FUNCTION_FILE, string(w, file));
	flush(w, PROFILE_FUNCTION);
	return id;
}

static uint64_t mapping(struct writer *w, const struct dso *dso, uint64_t address)
{
	bool added;
	uint32_t id = keyset_add1(&w->dsos, (uintptr_t)dso, &added);
	struct mapping *m;

	w->mappings = xgrow(w->mappings, &w->mappings_cap, id + 1ull, sizeof(*w->mappings));
	m = &w->mappings[id];
	if (added)
		*m = (struct mapping){.dso = dso};
	/* 0 would be one that goes on where the next one starts, and be taken for a part of that */
	if (m->limit <= address)
		m->limit = address == UINT64_MAX ? address : address + 1;
	return id + FIRST_DSO;
}

static void write_location(struct writer *w, uint32_t id, const struct frame *f, uint64_t fn)
{
	uint64_t address = f && !f->sym ? f->addr : 0;

	pb_number(&w->message, LOCATION_ID, id);
	if (f && f->dso)
		pb_number(&w->message, LOCATION_MAPPING, mapping(w, f->dso, address));
	pb_number(&w->message, LOCATION_ADDRESS, address);
	buf_reset(&w->part);
	pb_number(&w->part, LINE_FUNCTION, fn);
	pb_message(&w->message, LOCATION_LINE, &w->part);
	flush(w, PROFILE_LOCATION);
}

static uint64_t frame_location(struct writer *w, uint32_t frame)
{
	struct profile *p = w->x->profile;
	const struct frame *f = &p->frames[frame];
	const char *text, *file;
	uint64_t fn;

	if (w->of_frame[frame])
		return w->of_frame[frame];
	text = profile_frame_text(p, frame);
	file = f->dso ? profile_dso_name(p, f->dso, true) : profile_text(p, "");
	fn = function(w, text, f->sym ? profile_text(p, f->sym->name) : text, file);
	w->of_frame[frame] = ++w->nr_locations;
	write_location(w, w->of_frame[frame], f, fn);
	return w->of_frame[frame];
}

static uint64_t name_location(struct writer *w, const char *name)
{
	bool added;
	uint64_t id = w->x->profile->frame_keys.n + 1ull +
		      keyset_add1(&w->names, (uintptr_t)name, &added);

	if (added)
		write_location(w, (uint32_t)id, NULL,
			       function(w, name, name, profile_text(w->x->profile, "")));
	return id;
}

/* ---------- samples ---------- */

static void add_label(struct writer *w, const char *key, uint32_t field, uint64_t value,
		      struct buf *sample)
{
	buf_reset(&w->part);
	pb_number(&w->part, LABEL_KEY, literal(w, key));
	pb_number(&w->part, field, value);
	pb_message(sample, SAMPLE_LABEL, &w->part);
}

static void write_sample(struct writer *w, uint32_t id)
{
	struct profile *p = w->x->profile;
	uint32_t nr_values = w->x->nr_wanted_events;
	const struct context *ctx;
	const char *vm, *comm;
	struct buf sample = {0}, numbers = {0};
	struct stack s;
	size_t n;

	profile_stack(p, w->stacks[id], &s);
	ctx = &p->contexts[s.context];
	vm = profile_text(p, export_vm(p, ctx->machine));
	comm = profile_text(p, ctx->comm);
	n = export_chain(p, &s, &w->chain, &w->chain_cap);
	for (size_t i = 0; i < n; i++)
		pb_varint(&numbers, frame_location(w, w->chain[i]));
	pb_varint(&numbers, name_location(w, comm));
	if (p->has_guests)
		pb_varint(&numbers, name_location(w, vm));
	pb_message(&sample, SAMPLE_LOCATION, &numbers);
	buf_reset(&numbers);
	for (uint32_t i = 0; i < nr_values; i++)
		pb_varint(&numbers, w->values[(size_t)id * nr_values + i]);
	pb_message(&sample, SAMPLE_VALUE, &numbers);
	add_label(w, "vm", LABEL_STRING, string(w, vm), &sample);
	add_label(w, "comm", LABEL_STRING, string(w, comm), &sample);
	add_label(w, "pid", LABEL_NUMBER, (uint64_t)(int64_t)ctx->thread->pid, &sample);
	buf_add(&w->message, sample.data, sample.len);
	flush(w, PROFILE_SAMPLE);
	buf_free(&sample);
	buf_free(&numbers);
}

static void write_mappings(struct writer *w)
{
	pb_number(&w->message, MAPPING_ID, TITLE_MAPPING);
	pb_number(&w->message, MAPPING_LIMIT, 1);
	pb_number(&w->message, MAPPING_FILE, string(w, w->x->title));
	pb_number(&w->message, MAPPING_NAMED, true);
	flush(w, PROFILE_MAPPING);
	for (uint32_t i = 0; i < w->dsos.n; i++) {
		const struct mapping *m = &w->mappings[i];
		char id[2 * sizeof(m->dso->build_id) + 1];

		hex_str(id, m->dso->build_id, m->dso->build_id_len);
		pb_number(&w->message, MAPPING_ID, i + FIRST_DSO);
		pb_number(&w->message, MAPPING_LIMIT, m->limit);
		pb_number(&w->message, MAPPING_FILE,
			  string(w, profile_dso_name(w->x->profile, m->dso, true)));
		pb_number(&w->message, MAPPING_BUILD_ID, literal(w, id));
		pb_number(&w->message, MAPPING_NAMED, true);
		flush(w, PROFILE_MAPPING);
	}
}

/* ---------- the whole ---------- */

static void add_value_type(struct writer *w, const struct export_event *e, struct buf *b)
{
	pb_number(b, VALUE_TYPE, string(w, e->name));
	pb_number(b, VALUE_UNIT, literal(w, e->is_time ? "nanoseconds" : "count"));
}

/* Returns the first event. */
static const struct export_event *write_types(struct writer *w)
{
	const struct export_event *first = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->x->nr_events; i++) {
		const struct export_event *e = &w->x->events[i];

		if (!e->wanted)
			continue;
		w->of_event[i] = n++;
		first = first ? first : e;
		add_value_type(w, e, &w->message);
		flush(w, PROFILE_SAMPLE_TYPE);
	}
	return first;
}

/* Numbers of the whole. */
static void write_header(struct writer *w, const struct export_event *first)
{
	const struct export *x = w->x;
	struct buf b = {0};
	char comment[64];

	snprintf(comment, sizeof(comment), "vmprof %s", VMPROF_VERSION);
	pb_number(&b, PROFILE_TIME, x->clock_epoch ? x->clock_epoch + x->first_time : 0);
	pb_number(&b, PROFILE_DURATION, x->last_time - x->first_time);
	if (x->nr_wanted_events == 1 && first->period) {
		buf_reset(&w->part);
		add_value_type(w, first, &w->part);
		pb_message(&b, PROFILE_PERIOD_TYPE, &w->part);
		pb_number(&b, PROFILE_PERIOD, first->period);
	}
	pb_number(&b, PROFILE_COMMENT, literal(w, comment));
	pb_number(&b, PROFILE_DEFAULT_SAMPLE_TYPE, string(w, first->name));
	fwrite(b.data, 1, b.len, w->f);
	buf_free(&b);
}

static void write_strings(struct writer *w)
{
	for (uint32_t i = 0; i < w->strings.n; i++) {
		const char *s = (const char *)(uintptr_t)*keyset_key(&w->strings, i);

		buf_add(&w->message, s, strlen(s));
		flush(w, PROFILE_STRING);
	}
}

static void write_pprof(struct export *x, FILE *f)
{
	struct writer w = {
		.x = x,
		.f = f,
		.strings.width = 1,
		.functions.width = 2,
		.dsos.width = 1,
		.names.width = 1,
		.who.width = 2,
		.samples.width = 2,
		.of_frame = xcalloc(x->profile->frame_keys.n, sizeof(*w.of_frame)),
		.of_event = xcalloc(x->nr_events, sizeof(*w.of_event)),
	};
	struct keyset *sets[] = {&w.strings, &w.functions, &w.dsos, &w.names, &w.who, &w.samples};

	literal(&w, ""); /* string 0 */
	write_header(&w, write_types(&w));
	add_stacks(&w);
	for (uint32_t i = 0; i < w.samples.n; i++)
		write_sample(&w, i);
	write_mappings(&w);
	write_strings(&w);
	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		keyset_free(sets[i]);
	buf_free(&w.message);
	buf_free(&w.part);
	free(w.mappings);
	free(w.of_frame);
	free(w.of_event);
	free(w.stacks);
	free(w.values);
	free(w.chain);
}

const struct export_format export_pprof = {
	.name = "pprof",
	.needs = PROFILE_BY_THREAD,
	.gzip = true,
	.write = write_pprof,
};
