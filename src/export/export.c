// SPDX-License-Identifier: GPL-2.0-only
#include "export/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"
#include "util/xalloc.h"

#define MIN_INTERVAL_MS 1e-3
#define MAX_INTERVAL_MS 1e6

static const struct export_format *const formats[] = {
	&export_pprof,
	&export_speedscope,
	&export_firefox,
};

const struct export_format *export_find_format(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
		if (!strcmp(formats[i]->name, name))
			return formats[i];
	return NULL;
}

void export_sample(void *ctx, const struct perfdata_record *rec, uint32_t stack)
{
	struct export *x = ctx;

	if (!x->keep_samples)
		return;
	x->samples = xgrow(x->samples, &x->cap_samples, x->nr_samples + 1, sizeof(*x->samples));
	x->samples[x->nr_samples] = (struct export_sample){
		.time = rec->time,
		.period = rec->period,
		.stack = stack,
		.number = (uint32_t)x->nr_samples,
	};
	x->nr_samples++;
}

static void describe_event(struct export_event *e, const struct perf_event_attr *attr)
{
	bool fixed = !attr->freq && attr->sample_period;

	e->is_time = attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
							  attr->config == PERF_COUNT_SW_TASK_CLOCK);
	e->no_times = !(attr->sample_type & PERF_SAMPLE_TIME);
	e->period = fixed ? attr->sample_period : 0;
	e->interval_ms = 1;
	if (fixed && e->is_time)
		e->interval_ms = (double)attr->sample_period / 1e6;
	else if (attr->freq && attr->sample_freq)
		e->interval_ms = 1e3 / (double)attr->sample_freq;
	/* whatever the file says */
	if (e->interval_ms < MIN_INTERVAL_MS)
		e->interval_ms = MIN_INTERVAL_MS;
	else if (e->interval_ms > MAX_INTERVAL_MS)
		e->interval_ms = MAX_INTERVAL_MS;
}

static void describe_events(struct export *x, const struct perfdata_reader *r)
{
	const struct profile *p = x->profile;

	x->nr_events = (uint32_t)p->nr_events;
	x->events = xcalloc(p->nr_events, sizeof(*x->events));
	for (size_t i = 0; i < p->nr_events && i < perfdata_reader_nr_evsels(r); i++) {
		x->events[i].name = p->events[i].name;
		describe_event(&x->events[i], &perfdata_reader_evsel(r, i)->attr);
	}
}

static void mark_wanted(struct export *x, const struct report_filter *filter, const char *event)
{
	struct profile *p = x->profile;
	struct stack s;

	x->wanted = xcalloc(profile_nr_stacks(p), sizeof(*x->wanted));
	for (uint32_t i = 0; i < profile_nr_stacks(p); i++) {
		struct export_event *e;

		profile_stack(p, i, &s);
		e = &x->events[s.event];
		if ((event && strcmp(event, e->name)) || !filter_stack(filter, p, &s))
			continue;
		x->wanted[i] = true;
		x->nr_wanted_events += !e->wanted;
		e->wanted = true;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct export_sample *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* A reader hands out in order what the file has in order; a few may be late. */
static void settle_samples(struct export *x)
{
	bool sorted = true;
	size_t n = 0;

	for (size_t i = 0; i < x->nr_samples; i++) {
		if (!x->wanted[x->samples[i].stack])
			continue;
		x->samples[n] = x->samples[i];
		sorted &= !n || x->samples[n - 1].time <= x->samples[n].time;
		n++;
	}
	x->nr_samples = n;
	if (!sorted)
		qsort(x->samples, n, sizeof(*x->samples), by_time);
}

static uint64_t clock_epoch(const struct perfdata_reader *r)
{
	struct perfdata_clock c;

	perfdata_reader_clock(r, &c);
	return c.has_wall && c.wall_ns > c.clock_ns ? c.wall_ns - c.clock_ns : 0;
}

int export_prepare(struct export *x, const struct perfdata_reader *r,
		   const struct report_filter *filter, const char *event, struct vmprof_err *err)
{
	const char *path = perfdata_reader_path(r), *slash = strrchr(path, '/');
	char text[512];

	describe_events(x, r);
	mark_wanted(x, filter, event);
	if (!x->nr_wanted_events)
		return err_set(err, ENOENT,
			       "nothing was exported: %s has no samples, or none that the filters "
			       "leave",
			       escape_str(text, sizeof(text), path));
	settle_samples(x);
	x->first_time = perfdata_reader_get_stats(r)->first_time;
	x->last_time = perfdata_reader_get_stats(r)->last_time;
	if (x->nr_samples) {
		x->first_time = x->samples[0].time;
		x->last_time = x->samples[x->nr_samples - 1].time;
	}
	x->clock_epoch = clock_epoch(r);
	x->title = profile_text(x->profile, slash ? slash + 1 : path);
	return 0;
}

void export_free(struct export *x)
{
	free(x->events);
	free(x->wanted);
	free(x->samples);
	*x = (struct export){0};
}

size_t export_chain(const struct profile *p, const struct stack *s, uint32_t **frames, size_t *cap)
{
	size_t n = profile_chain(p, s->node, frames, cap);

	if (n)
		return n;
	*frames = xgrow(*frames, cap, 1, sizeof(**frames));
	**frames = s->leaf;
	return 1;
}

const char *export_vm(struct profile *p, const struct machine *m)
{
	return machine_is_host(m) ? "host" : profile_vm_name(p, m);
}

void export_json_string(const char *s, FILE *f)
{
	fputc('"', f);
	json_fputs(s, f);
	fputc('"', f);
}
