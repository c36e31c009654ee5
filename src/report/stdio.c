// SPDX-License-Identifier: GPL-2.0-only
/* Tables, as perf report --stdio lays them out. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "util/text.h"

struct table {
	struct report *r;
	struct hist *h;
	FILE *f;
	unsigned widths[LAYOUT_MAX_COLUMNS];
	struct callgraph graph;
};

/* A list of one: a column that shows the same in each row is left out. */
static bool is_single(const char *list)
{
	return list && *list && !strchr(list, ',');
}

static const struct elision {
	enum column_id column;
	const char *name;
	size_t list; /* in struct report_filter */
} elisions[] = {
	{COLUMN_VM, "vm", offsetof(struct report_filter, vms)},
	{COLUMN_COMM, "comm", offsetof(struct report_filter, comms)},
	{COLUMN_DSO, "dso", offsetof(struct report_filter, dsos)},
	{COLUMN_SYMBOL, "symbol", offsetof(struct report_filter, symbols)},
};

static const char *elided_value(const struct report_filter *filter, const struct column *c,
				const char **name)
{
	for (size_t i = 0; i < sizeof(elisions) / sizeof(*elisions); i++) {
		const char *list;

		if (c != &columns[elisions[i].column])
			continue;
		list = *(const char *const *)((const char *)filter + elisions[i].list);
		*name = elisions[i].name;
		return is_single(list) ? list : NULL;
	}
	return NULL;
}

static void setup_elision(struct report *r)
{
	bool all = true;
	const char *name;

	for (unsigned i = 0; i < r->layout.nr_fields; i++) {
		struct layout_field *field = &r->layout.fields[i];

		if (field->column->kind == COLUMN_VALUE)
			continue;
		field->elide = elided_value(&r->opt.filter, field->column, &name);
		all &= field->elide;
	}
	for (unsigned i = 0; all && i < r->layout.nr_fields; i++)
		r->layout.fields[i].elide = false;
	for (unsigned i = 0; !all && i < r->layout.nr_sort; i++) {
		const struct column *c = r->layout.sort[i];

		r->layout.sort_skipped[i] = elided_value(&r->opt.filter, c, &name);
	}
}

static void print_elided(const struct report *r, FILE *f)
{
	for (unsigned i = 0; i < r->layout.nr_fields; i++) {
		const char *name, *value;

		value = elided_value(&r->opt.filter, r->layout.fields[i].column, &name);
		if (!value)
			continue;
		fprintf(f, "# %s: ", name);
		escape_fputs(value, f);
		fputc('\n', f);
	}
}

static int check_event(const struct report *r, struct vmprof_err *err)
{
	char text[128];

	for (uint32_t i = 0; i < r->profile->nr_events; i++)
		if (report_wants_event(r, i))
			return 0;
	return err_set(err, ENOENT, "no sample of event '%s' is in the file",
		       escape_str(text, sizeof(text), r->opt.event));
}

int report_prepare(struct report *r, struct profile *p, const struct report_options *opt,
		   const char *path, struct vmprof_err *err)
{
	struct layout_config cfg;
	bool can_chain = false;
	int ret;

	*r = (struct report){
		.opt = *opt, .profile = p, .path = path, .path_text = profile_text(p, path)};
	for (size_t i = 0; i < p->nr_events; i++)
		can_chain |= p->events[i].has_chains;
	/* our own files have room for a chain in each sample, also where none was asked for */
	if (p->has_guests && !p->has_chains)
		can_chain = false;
	can_chain &= !p->branches;
	r->chains = can_chain && opt->callgraph.mode != CALLGRAPH_NONE;
	r->children = can_chain && opt->children;
	if (r->children && !opt->callgraph.order_set)
		r->opt.callgraph.caller = true;
	cfg = (struct layout_config){
		.sort = opt->sort,
		.fields = opt->fields,
		.children = r->children,
		.samples = opt->show_samples,
		.period = opt->show_period,
		.cpu_utilization = opt->cpu_utilization,
		.branches = p->branches,
		.memory = opt->memory,
		.guests = p->has_guests && !opt->by_vm,
	};
	ret = layout_setup(&r->layout, &cfg, err);
	if (ret)
		return ret;
	setup_elision(r);
	return opt->event ? check_event(r, err) : 0;
}

bool report_wants_event(const struct report *r, uint32_t event)
{
	const struct profile_event *e = &r->profile->events[event];

	return e->samples && (!r->opt.event || !strcmp(r->opt.event, e->name));
}

bool report_has_wanted(const struct report *r, uint32_t event)
{
	struct stack s;

	for (uint32_t i = 0; i < profile_nr_stacks(r->profile); i++) {
		profile_stack(r->profile, i, &s);
		if (s.event == event && filter_stack(&r->opt.filter, r->profile, &s))
			return true;
	}
	return false;
}

uint32_t report_main_event(const struct report *r)
{
	for (uint32_t i = 0; i < r->profile->nr_events; i++)
		if (report_wants_event(r, i))
			return i;
	return 0;
}

void report_build_hist(struct report *r, struct hist *h, uint32_t event, uint32_t nr_events,
		       const struct machine *machine)
{
	struct hist_config cfg = {
		.event = event,
		.nr_events = nr_events,
		.machine = machine,
		.filter = &r->opt.filter,
		.children = r->children,
		.chains = r->chains,
		.caller_order = r->opt.callgraph.caller,
		.relative = r->opt.relative,
		.long_names = r->opt.verbose > 0,
		.max_stack = r->opt.max_stack,
	};

	hist_build(h, r->profile, &r->layout, &cfg);
}

static unsigned column_width(const struct hist *h, const struct layout_field *field)
{
	unsigned width = (unsigned)strlen(field->header), least = field->column->fixed_width;

	if (field->column->value)
		least *= h->cfg.nr_events;
	if (width < least)
		width = least;
	for (uint32_t i = 0; field->column->width && i < h->nr_entries; i++) {
		unsigned w = h->entries[i].filtered ? 0 : field->column->width(h, &h->entries[i]);

		if (width < w)
			width = w;
	}
	return width;
}

static void print_headers(const struct table *t)
{
	const struct layout *l = &t->r->layout;
	const char *sep = "# ";

	for (unsigned i = 0; i < l->nr_fields; i++) {
		bool right = l->fields[i].column->kind == COLUMN_VALUE;

		if (l->fields[i].elide)
			continue;
		fprintf(t->f, "%s%*s", sep, right ? (int)t->widths[i] : -(int)t->widths[i],
			l->fields[i].header);
		sep = "  ";
	}
	fputc('\n', t->f);
	sep = "# ";
	for (unsigned i = 0; i < l->nr_fields; i++) {
		if (l->fields[i].elide)
			continue;
		fputs(sep, t->f);
		for (unsigned w = t->widths[i]; w; w--)
			fputc('.', t->f);
		sep = "  ";
	}
	fputs("\n#\n", t->f);
}

static void print_row(const struct table *t, const struct hist_entry *e, struct buf *b)
{
	const struct layout *l = &t->r->layout;

	buf_reset(b);
	for (unsigned i = 0; i < l->nr_fields; i++) {
		size_t start;

		if (l->fields[i].elide)
			continue;
		buf_add(b, "  ", 2);
		start = b->len;
		column_print(l->fields[i].column, t->h, e, t->widths[i], b);
		/* the last column is not padded: names can be very long */
		while (i + 1 < l->nr_fields && b->len - start < t->widths[i])
			buf_add(b, " ", 1);
	}
	buf_add(b, "\n", 1);
	fwrite(b->data, 1, b->len, t->f);
}

static void print_rows(struct table *t)
{
	struct buf line = {0};

	if (t->r->chains)
		hist_collect_chains(t->h, callgraph_min_hit(&t->r->opt.callgraph, t->h));
	for (uint32_t i = 0; i < t->h->nr_entries; i++) {
		const struct hist_entry *e = &t->h->entries[t->h->order[i]];

		if (e->filtered || hist_percent(t->h, e) < (float)t->r->opt.percent_limit)
			continue;
		print_row(t, e, &line);
		if (!e->chains)
			continue;
		callgraph_build(&t->graph, t->h, e);
		callgraph_print(&t->graph, &t->r->opt.callgraph, t->h, e, t->f);
	}
	buf_free(&line);
}

/* 12345 -> "12K", as perf shortens it. */
static uint64_t shorten(uint64_t v, char *unit)
{
	static const char units[] = " KMG";
	double d = (double)v;
	unsigned i = 0;

	for (; d > 1000.0 && i < 3; i++)
		d /= 1000.0;
	*unit = units[i];
	return (uint64_t)d;
}

static void print_event_names(const struct hist *h, FILE *f)
{
	const struct profile_event *e = &h->profile->events[h->cfg.event];
	bool braces = h->cfg.nr_events > 1 && !e->group_forced;

	if (braces)
		fprintf(f, "%s { ", e->group_name ? e->group_name : "anon group");
	for (uint32_t i = 0; i < h->cfg.nr_events; i++)
		fprintf(f, "%s%s", i ? ", " : "", e[i].name);
	if (braces)
		fputs(" }", f);
}

static void print_title(const struct table *t)
{
	const struct hist *h = t->h;
	uint64_t samples = 0, total = 0;
	char unit, slices[256];

	for (uint32_t i = 0; i < h->cfg.nr_events; i++) {
		samples += h->cfg.relative ? h->sums[i].filtered_samples : h->sums[i].samples;
		total += hist_total(h, i);
	}
	samples = shorten(samples, &unit);
	if (h->cfg.machine)
		fprintf(t->f, "# VM: %s\n", profile_vm_name(h->profile, h->cfg.machine));
	fprintf(t->f, "# Samples: %" PRIu64 "%c of event%s '", samples, unit,
		h->cfg.nr_events > 1 ? "s" : "");
	print_event_names(h, t->f);
	fputc('\'', t->f);
	if (t->r->opt.time)
		fprintf(t->f, " (time slices: %s)",
			escape_str(slices, sizeof(slices), t->r->opt.time));
	fprintf(t->f, "\n# %s: %" PRIu64 "\n",
		t->r->opt.memory ? "Total weight " : "Event count (approx.)", total);
	if (t->r->opt.memory) {
		fputs("# Sort order   : ", t->f);
		escape_fputs(t->r->opt.sort, t->f);
		fputc('\n', t->f);
	}
	fputs("#\n", t->f);
}

static void print_table(struct report *r, uint32_t event, uint32_t nr_events,
			const struct machine *machine, FILE *f)
{
	struct hist h;
	struct table t = {.r = r, .h = &h, .f = f};

	report_build_hist(r, &h, event, nr_events, machine);
	for (unsigned i = 0; i < r->layout.nr_fields; i++)
		t.widths[i] = column_width(&h, &r->layout.fields[i]);
	if (h.nr_entries) {
		if (!r->opt.quiet) {
			print_title(&t);
			print_headers(&t);
		}
		print_rows(&t);
		fputs("\n\n", f);
	}
	callgraph_free(&t.graph);
	hist_free(&h);
}

/* One event, or a group of them side by side. */
static void print_events(struct report *r, uint32_t event, uint32_t nr_events, FILE *f)
{
	struct session *s = r->profile->session;

	for (uint32_t i = event; i < event + nr_events; i++)
		if (r->profile->has_guests && !r->opt.quiet && r->profile->events[i].samples)
			report_print_summary(r, i, f);
	if (!r->opt.by_vm) {
		print_table(r, event, nr_events, NULL, f);
		return;
	}
	for (size_t i = 0; i < session_nr_machines(s); i++)
		print_table(r, event, nr_events, session_machine_nth(s, i), f);
}

/* How many events share a table with @event. */
static uint32_t group_size(const struct report *r, uint32_t event)
{
	uint32_t n = r->profile->events[event].group_size;

	return n > 1 && !r->opt.event && !r->opt.no_groups && n <= r->profile->nr_events - event
		       ? n
		       : 1;
}

static bool wants_any(const struct report *r, uint32_t event, uint32_t n)
{
	while (n && !report_wants_event(r, event + n - 1))
		n--;
	return n;
}

/* Of each object that was looked into: the file with its symbols, or why there are none. */
static void print_symbol_sources(const struct report *r, FILE *f)
{
	struct session *s = r->profile->session;

	for (size_t i = 0; i < session_nr_dsos(s); i++) {
		const struct dso *d = session_dso_nth(s, i);

		if (!d->loaded)
			continue;
		fputs("# ", f);
		escape_fputs(d->long_name, f);
		fputs(": ", f);
		escape_fputs(d->symbol_source ? d->symbol_source : "no symbols", f);
		fputc('\n', f);
	}
}

void report_print(struct report *r, FILE *f)
{
	if (!r->opt.quiet) {
		print_elided(r, f);
		fprintf(f, "#\n# Total Lost Samples: %" PRIu64 "\n#\n", r->profile->lost_samples);
		if (r->profile->aux_bytes)
			fprintf(f,
				"# Not decoded: %" PRIu64 " bytes of processor traces (AUX)\n#\n",
				r->profile->aux_bytes);
		if (r->profile->discarded_chains)
			fprintf(f, "# Unusable call chains: %" PRIu64 "\n#\n",
				r->profile->discarded_chains);
	}
	for (uint32_t i = 0, n; i < r->profile->nr_events; i += n) {
		n = group_size(r, i);
		if (wants_any(r, i, n))
			print_events(r, i, n, f);
	}
	if (r->opt.verbose && !r->opt.quiet)
		print_symbol_sources(r, f);
}
