// SPDX-License-Identifier: GPL-2.0-only
#include "stat/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stat/metric.h"
#include "util/text.h"
#include "util/xalloc.h"

#define METRIC_WIDTH	35 /* perf's widths */
#define HEADER_INTERVAL 25 /* rounds of -I from one headline to the next */

/* Where a line is: of which VM, vCPU, round. */
struct place {
	const struct stat_print *p;
	const struct stat_block *b;
	unsigned column;
	const char *time; /* "     1.000123456" of a round, or NULL */
};

void stat_print_separated(FILE *f, const char *sep, const char *name)
{
	for (const char *s = name; *s; s++) {
		if (strchr(sep, *s) || *s == '"')
			fprintf(f, "\\x%02x", (unsigned char)*s);
		else
			putc(*s, f);
	}
}

/* What all lines begin with. */
static void print_place(const struct place *at)
{
	const struct stat_print *p = at->p;

	switch (p->format) {
	case STAT_JSON:
		putc('{', p->f);
		if (at->time)
			fprintf(p->f, "\"interval\" : %s, ", at->time + strspn(at->time, " "));
		fputs("\"vm\" : \"", p->f);
		json_fputs(at->b->name, p->f);
		fputs("\", ", p->f);
		if (at->b->per_vcpu)
			fprintf(p->f, "\"vcpu\" : \"%u\", ", at->column);
		return;
	case STAT_SEPARATED:
		if (at->time)
			fprintf(p->f, "%s%s", at->time, p->sep);
		stat_print_separated(p->f, p->sep, at->b->name);
		fputs(p->sep, p->f);
		if (at->b->per_vcpu)
			fprintf(p->f, "vCPU%u%s", at->column, p->sep);
		return;
	default:
		if (at->time)
			fprintf(p->f, "%s %-*s ", at->time, p->vm_width, at->b->name);
		if (at->b->per_vcpu)
			fprintf(p->f, "vCPU%-6u ", at->column);
	}
}

static const char *unit_of(const struct event *e)
{
	return event_is_clock(e) ? "msec" : "";
}

static void print_name(const struct place *at, const char *name, int width)
{
	size_t columns;

	if (at->p->format == STAT_SEPARATED) {
		stat_print_separated(at->p->f, at->p->sep, name);
		return;
	}
	columns = escape_fputs(name, at->p->f);
	for (; columns < (size_t)width; columns++)
		putc(' ', at->p->f);
}

/* @word: instead of the value, where there is none. */
static void print_value(const struct place *at, const struct event *e, double value,
			const char *word)
{
	const struct stat_print *p = at->p;
	bool clock = event_is_clock(e);
	double v = clock ? value / 1e6 : value;

	print_place(at);
	if (p->format == STAT_JSON) {
		if (word)
			fprintf(p->f, "\"counter-value\" : \"%s\", ", word);
		else
			fprintf(p->f, "\"counter-value\" : \"%f\", ", v);
		fprintf(p->f, "\"unit\" : \"%s\", \"event\" : \"", unit_of(e));
		json_fputs(e->name, p->f);
		fputs("\", ", p->f);
		return;
	}
	if (p->format == STAT_SEPARATED) {
		if (word)
			fputs(word, p->f);
		else
			fprintf(p->f, "%.*f", clock ? 2 : 0, v);
		fprintf(p->f, "%s%s%s", p->sep, unit_of(e), p->sep);
	} else {
		if (word)
			fprintf(p->f, "%18s", word);
		else
			fprintf(p->f, "%'18.*f", clock ? 2 : 0, v);
		fprintf(p->f, " %-4s ", unit_of(e));
	}
	print_name(at, e->name, word ? 25 : 32);
}

static void print_noise(const struct stat_print *p, double noise)
{
	if (p->runs < 2)
		return;
	if (p->format == STAT_JSON)
		fprintf(p->f, "\"variance\" : %.2f, ", noise);
	else if (p->format == STAT_SEPARATED)
		fprintf(p->f, "%s%.2f%%", p->sep, noise);
	else if (noise > 0)
		fprintf(p->f, "  ( +-%6.2f%% )", noise);
}

static void print_running(const struct stat_print *p, const struct stat_value *v)
{
	double share = v->enabled ? 100.0 * (double)v->running / (double)v->enabled : 100;

	if (p->format == STAT_JSON)
		fprintf(p->f, "\"event-runtime\" : %" PRIu64 ", \"pcnt-running\" : %.2f, ",
			v->running, share);
	else if (p->format == STAT_SEPARATED)
		fprintf(p->f, "%s%" PRIu64 "%s%.2f", p->sep, v->running, p->sep, share);
	else if (v->running != v->enabled)
		fprintf(p->f, "  (%.2f%%)", share);
}

static void print_metric(const struct stat_print *p, const struct metric *m)
{
	char text[64];
	int n;

	if (p->format == STAT_JSON) {
		fprintf(p->f, "\"metric-value\" : %f, \"metric-unit\" : \"%s\"}",
			m->fmt ? m->value : 0, m->unit);
		return;
	}
	if (!m->fmt) {
		if (p->format == STAT_SEPARATED)
			fprintf(p->f, "%s%s", p->sep, p->sep);
		else
			fprintf(p->f, "%-*s", METRIC_WIDTH, "");
		return;
	}
	snprintf(text, sizeof(text), m->fmt, m->value);
	if (p->format == STAT_SEPARATED) {
		const char *number = text + strspn(text, " ");

		fprintf(p->f, "%s%.*s%s%s", p->sep, (int)strspn(number, "0123456789."), number,
			p->sep, m->unit);
		return;
	}
	n = fprintf(p->f, " # %s", text);
	fprintf(p->f, " %-*s", METRIC_WIDTH - n - 1, m->unit);
}

/* A second metric has a line of its own, with nothing else in it. */
static void print_more(const struct place *at, const struct metric *m)
{
	const struct stat_print *p = at->p;

	putc('\n', p->f);
	print_place(at);
	if (p->format == STAT_SEPARATED)
		for (unsigned i = 0; i < (p->runs > 1 ? 5 : 4); i++)
			fputs(p->sep, p->f);
	else if (p->format == STAT_TEXT)
		fprintf(p->f, "%*s", 18 + 1 + 4 + 1 + 32, "");
	print_metric(p, m);
}

static void print_line(const struct place *at, unsigned event, const struct metric *m, unsigned nr)
{
	const struct stat_print *p = at->p;
	const struct event *e = &at->b->events->events[event];
	const struct stat_value *v = &at->b->values[event * at->b->nr_columns + at->column];
	const char *word = !at->b->supported[event] ? "<not supported>"
			   : v->running		    ? NULL
						    : "<not counted>";
	bool text = p->format == STAT_TEXT;

	print_value(at, e, v->value, word);
	if (text)
		print_metric(p, &m[0]);
	/* in perf's text these two are behind the last of the metrics */
	for (unsigned i = 1; i < nr && text; i++)
		print_more(at, &m[i]);
	print_noise(p, v->noise);
	print_running(p, v);
	if (!text)
		print_metric(p, &m[0]);
	for (unsigned i = 1; i < nr && !text; i++)
		print_more(at, &m[i]);
	putc('\n', p->f);
}

static void print_event(const struct place *base, unsigned event)
{
	const struct stat_block *b = base->b;
	double values[EVENTS_MAX];
	bool counted[EVENTS_MAX];

	for (unsigned col = 0; col < b->nr_columns; col++) {
		struct place at = *base;
		struct metric m[METRICS_MAX];
		unsigned nr;

		at.column = col;
		for (unsigned i = 0; i < b->events->n; i++) {
			const struct stat_value *v = &b->values[i * b->nr_columns + col];

			values[i] = v->value;
			counted[i] = b->supported[i] && v->running;
		}
		nr = metrics_of(m, b->events, values, counted, event, b->elapsed_ns);
		print_line(&at, event, m, nr);
	}
}

static void print_elapsed(const struct stat_print *p, const struct stat_block *b)
{
	double mean = b->elapsed_ns / 1e9, sd = b->noise_ns / 1e9;

	if (p->runs < 2) {
		fprintf(p->f, "\n %17.9f seconds time elapsed\n\n", mean);
	} else {
		/* two digits more than are sure */
		int digits = sd > 0 && sd <= 1 ? (int)ceil(-log10(sd)) + 2 : sd > 1 ? 2 : 9;

		fprintf(p->f, "\n %17.*f +- %.*f seconds time elapsed", digits, mean, digits, sd);
		print_noise(p, mean > 0 ? 100 * sd / mean : 0);
		fputs("\n\n", p->f);
	}
}

void stat_print_block(const struct stat_print *p, const struct stat_block *b)
{
	const struct place at = {.p = p, .b = b};

	if (p->format == STAT_TEXT) {
		fprintf(p->f, "\n Performance counter stats for VM '%s'", b->name);
		if (p->runs > 1)
			fprintf(p->f, " (%u runs)", p->runs);
		fputs(":\n\n", p->f);
	}
	for (unsigned i = 0; i < b->events->n; i++)
		print_event(&at, i);
	if (p->format == STAT_TEXT)
		print_elapsed(p, b);
}

void stat_print_interval(struct stat_print *p, const struct stat_block *b, unsigned n, uint64_t t)
{
	char time[48];

	snprintf(time, sizeof(time), "%6" PRIu64 ".%09" PRIu64, t / 1000000000, t % 1000000000);
	if (p->format == STAT_TEXT && p->intervals++ % HEADER_INTERVAL == 0)
		fprintf(p->f, "#           time %-*s %s            counts unit events\n",
			p->vm_width, "VM", b->per_vcpu ? "vCPU       " : "");
	for (unsigned i = 0; i < n; i++) {
		const struct place at = {.p = p, .b = &b[i], .time = time};

		for (unsigned e = 0; e < b[i].events->n; e++)
			print_event(&at, e);
	}
	fflush(p->f);
}
