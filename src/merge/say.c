// SPDX-License-Identifier: GPL-2.0-only
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "merge/impl.h"
#include "util/saturate.h"
#include "util/text.h"

void merge_say(const struct merge *m, const char *fmt, ...)
{
	va_list ap;

	if (m->opts->quiet)
		return;
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
}

void merge_warn(const char *fmt, ...)
{
	va_list ap;

	fputs("vmprof merge: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* Whose clock, and how it was brought to the output's. */
static void say_clock(const struct merge *m, const struct merge_input *in)
{
	merge_say(m, "%s, %s", merge_clock_name(&in->clock), merge_align_name(in->align));
	if (in->align == MERGE_RECORDED)
		merge_say(m, " (%+" PRId64 " ns, within %.3f ms)", in->offset,
			  (double)in->error / 1e6);
	else if (in->align != MERGE_REFERENCE && in->align != MERGE_NONE)
		merge_say(m, " (%+" PRId64 " ns)", in->offset);
	if (in->align == MERGE_WALL_CLOCK)
		merge_say(m, "; as exact as the two machines' time of day");
}

static void say_duplicates(const struct merge *m, const struct merge_input *in)
{
	for (size_t i = 0; i < in->nr_sources; i++) {
		const struct merge_source *s = in->sources[i];

		if (s->duplicates)
			merge_warn("%s: %" PRIu64 " samples of %s left out: another input has that "
				   "time of it (--prefer %s keeps these)",
				   in->shown, s->duplicates, s->vm->name,
				   m->opts->prefer_host ? "guest" : "host");
	}
}

static const struct {
	uint32_t type;
	const char *name;
} types[] = {
	{PERF_RECORD_READ, "READ"},
	{PERF_RECORD_AUX, "AUX"},
	{PERF_RECORD_ITRACE_START, "ITRACE_START"},
	{PERF_RECORD_AUX_OUTPUT_HW_ID, "AUX_OUTPUT_HW_ID"},
	{PERF_RECORD_BPF_EVENT, "BPF_EVENT"},
	{PERF_RECORD_CGROUP, "CGROUP"},
	{PERF_RECORD_TEXT_POKE, "TEXT_POKE"},
	{PERFDATA_AUXTRACE, "AUXTRACE"},
	{PERFDATA_AUXTRACE_ERROR, "AUXTRACE_ERROR"},
	{PERFDATA_STAT, "STAT"},
	{PERFDATA_BPF_METADATA, "BPF_METADATA"},
};

static const char *type_name(uint32_t type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (types[i].type == type)
			return types[i].name;
	return NULL;
}

static void add_count(char *text, size_t size, uint64_t n, const char *what)
{
	size_t at = strlen(text);

	if (n)
		snprintf(text + at, size - at, "%s%" PRIu64 " %s", at ? ", " : "", n, what);
}

static void say_left_out(const struct merge_input *in)
{
	const struct perfdata_reader_stats *st = perfdata_reader_get_stats(in->header);
	char text[800] = "", number[32];

	for (uint32_t t = 0; t < MERGE_TYPES; t++) {
		const char *name = type_name(t);

		snprintf(number, sizeof(number), "of type %" PRIu32, t);
		add_count(text, sizeof(text), in->left_out[t], name ? name : number);
	}
	for (uint32_t t = PERFDATA_HEADER_ATTR; t < 255; t++)
		if (type_name(t))
			add_count(text, sizeof(text), st->records[t], type_name(t));
	add_count(text, sizeof(text), st->unknown, "of unknown types");
	add_count(text, sizeof(text), st->no_event, "samples of no event");
	add_count(text, sizeof(text), st->empty_compressed, "compressed with nothing in them");
	add_count(text, sizeof(text), st->broken, "damaged");
	add_count(text, sizeof(text), st->unknown_features, "unknown features of the header");
	if (*text)
		merge_warn("%s: left out: %s", in->shown, text);
	if (in->chains_cut)
		merge_warn("%s: %" PRIu64 " call chains were too long for a record and are cut",
			   in->shown, in->chains_cut);
	if (st->out_of_order)
		merge_warn("%s: %" PRIu64 " records came later than its order allows and stand "
			   "where they came",
			   in->shown, st->out_of_order);
}

static void say_parts(const struct merge *m, const struct merge_input *in)
{
	for (size_t i = 0; i < perfdata_reader_nr_evsels(in->header); i++) {
		const struct perfdata_evsel *e = perfdata_reader_evsel(in->header, i);
		char parts[256], name[128];

		if (in->events[i] == UINT32_MAX)
			continue;
		merge_parts_left_out(&m->events[in->events[i]], e, parts, sizeof(parts));
		if (*parts)
			merge_warn("%s: left out of the samples of %s: %s", in->shown,
				   escape_str(name, sizeof(name), e->name), parts);
	}
}

void merge_say_input(const struct merge *m, const struct merge_input *in)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < in->nr_sources; i++)
		add_saturated(&lost, in->sources[i]->lost);
	merge_say(m, "vmprof merge: %s: ", in->shown);
	if (in->in_guest)
		merge_say(m, "recorded in %s, ", in->label);
	say_clock(m, in);
	merge_say(m, ", %" PRIu64 " samples", in->samples);
	if (lost)
		merge_say(m, ", %" PRIu64 " lost when it was recorded", lost);
	merge_say(m, "\n");
	say_duplicates(m, in);
	say_left_out(in);
	say_parts(m, in);
}
