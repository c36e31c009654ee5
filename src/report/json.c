// SPDX-License-Identifier: GPL-2.0-only
/* --json: vmprof-report(1) describes it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "report/summary.h"
#include "util/text.h"

static void print_string(const char *s, FILE *f)
{
	fputc('"', f);
	json_fputs(s, f);
	fputc('"', f);
}

static void print_member(const char *key, const char *value, FILE *f)
{
	fprintf(f, "\"%s\": ", key);
	print_string(value, f);
}

/* A number that may be unknown. */
static void print_known(const char *key, uint64_t v, uint64_t unknown, FILE *f)
{
	if (v == unknown)
		fprintf(f, ", \"%s\": null", key);
	else
		fprintf(f, ", \"%s\": %" PRIu64, key, v);
}

static void print_vms(struct report *r, uint32_t event, FILE *f)
{
	size_t n;
	struct vm_summary *vms = summary_by_vm(r->profile, event, &r->opt.filter, &n);

	fputs("   \"vms\": [", f);
	for (size_t i = 0; i < n; i++) {
		const struct vm_summary *v = &vms[i];

		fputs(i ? ",\n    {" : "\n    {", f);
		print_member("name", v->name, f);
		fprintf(f, ", \"host\": %s, ", machine_is_host(v->machine) ? "true" : "false");
		print_member("uuid", v->machine->uuid ? v->machine->uuid : "", f);
		fputs(", ", f);
		print_member("kernel", v->kernel, f);
		fprintf(f,
			", \"samples\": %" PRIu64 ", \"period\": %" PRIu64
			", \"kernel_period\": %" PRIu64 ", \"user_period\": %" PRIu64
			", \"unattributed\": %" PRIu64 ", \"unsymbolized\": %" PRIu64,
			v->samples, v->period, v->kernel_period, v->user_period, v->unattributed,
			v->unsymbolized);
		print_known("vcpus", v->vcpus, 0, f);
		print_known("lost", v->lost, UINT64_MAX, f);
		print_known("merged", v->merged, UINT64_MAX, f);
		print_known("torn", v->torn, UINT64_MAX, f);
		fputc('}', f);
	}
	fputs("\n   ],\n", f);
	free(vms);
}

static void print_symbol(const struct hist *h, const struct hist_entry *e, FILE *f)
{
	const char *name = profile_frame_name(h->profile, e->frame);

	fprintf(f, "\"mark\": \"%c\", \"address\": \"%#" PRIx64 "\", \"symbol\": ", e->level,
		name ? hist_frame_of(h, e)->sym->start : e->addr);
	if (name)
		print_string(name, f);
	else
		fputs("null", f);
}

static void print_row(const struct hist *h, const struct hist_entry *e, struct buf *b, FILE *f)
{
	for (unsigned i = 0; i < h->layout->nr_fields; i++) {
		const struct column *c = h->layout->fields[i].column;

		if (i)
			fputs(", ", f);
		if (c == &columns[COLUMN_SYMBOL]) {
			print_symbol(h, e, f);
			continue;
		}
		buf_reset(b);
		column_print(c, h, e, 0, b);
		buf_add(b, "", 1);
		fprintf(f, "\"%s\": ", c->key);
		if (c->number)
			fputs((const char *)b->data, f);
		else
			print_string((const char *)b->data, f);
	}
}

static void print_rows(struct report *r, uint32_t event, const struct machine *m, FILE *f)
{
	struct buf b = {0};
	struct hist h;
	bool first = true;

	report_build_hist(r, &h, event, 1, m);
	for (uint32_t i = 0; i < h.nr_entries; i++) {
		const struct hist_entry *e = &h.entries[h.order[i]];
		const struct hist_weights *w;

		if (e->filtered || hist_percent(&h, e) < (float)r->opt.percent_limit)
			continue;
		fputs(first ? "\n    {" : ",\n    {", f);
		print_row(&h, e, &b, f);
		w = hist_weights(&h, e, 0);
		fprintf(f, ", \"samples\": %" PRIu64 ", \"event_count\": %" PRIu64, w->samples,
			w->period);
		if (h.cfg.children)
			fprintf(f, ", \"children_event_count\": %" PRIu64, w->children_period);
		fputc('}', f);
		first = false;
	}
	buf_free(&b);
	hist_free(&h);
}

static void print_event(struct report *r, uint32_t event, FILE *f)
{
	const struct profile_event *e = &r->profile->events[event];

	fputs("  {", f);
	print_member("name", e->name, f);
	fprintf(f,
		", \"samples\": %" PRIu64 ", \"event_count\": %" PRIu64
		", \"lost_samples\": %" PRIu64 ",\n",
		e->samples, e->period, e->lost);
	print_vms(r, event, f);
	fputs("   \"rows\": [", f);
	print_rows(r, event, NULL, f);
	fputs("\n   ]}", f);
}

void report_print_json(struct report *r, FILE *f)
{
	bool first = true;

	fputs("{\"vmprof_report\": 1, ", f);
	print_member("file", r->path, f);
	fprintf(f,
		", \"complete\": %s, \"lost_samples\": %" PRIu64 ", \"discarded_chains\": %" PRIu64,
		r->damaged ? "false" : "true", r->profile->lost_samples,
		r->profile->discarded_chains);
	fputs(", \"events\": [", f);
	for (uint32_t i = 0; i < r->profile->nr_events; i++) {
		if (!report_wants_event(r, i))
			continue;
		fputs(first ? "\n" : ",\n", f);
		print_event(r, i, f);
		first = false;
	}
	fputs("\n]}\n", f);
}
