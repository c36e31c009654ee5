// SPDX-License-Identifier: GPL-2.0-only
#include "stat/exits.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"
#include "util/xalloc.h"

/* ---------- counting ---------- */

static struct exit_row *row_of(struct exit_table *t, enum exit_kind kind, uint32_t reason)
{
	uint64_t key = (uint64_t)kind << 32 | reason;
	uintptr_t at = (uintptr_t)hashmap_get(&t->by_reason, key);

	if (at)
		return &t->rows[at - 1];
	if (t->n >= EXIT_REASONS_MAX && kind != EXIT_UNKNOWN)
		return row_of(t, EXIT_UNKNOWN, 0);
	t->rows = xgrow(t->rows, &t->cap, t->n + 1, sizeof(*t->rows));
	t->rows[t->n] = (struct exit_row){.kind = kind, .reason = reason, .min = UINT64_MAX};
	hashmap_set(&t->by_reason, key, (void *)(uintptr_t)++t->n);
	return &t->rows[t->n - 1];
}

void exit_seen(struct exit_vcpu *v, enum exit_kind kind, uint32_t reason, uint64_t time)
{
	*v = (struct exit_vcpu){.out = true, .kind = kind, .reason = reason, .time = time};
}

void entry_seen(struct exit_table *t, struct exit_vcpu *v, uint64_t time)
{
	uint64_t ns = time - v->time;
	struct exit_row *r;
	double delta;

	if (!v->out || time < v->time)
		return;
	v->out = false;
	r = row_of(t, v->kind, v->reason);
	r->count++;
	r->time += ns;
	r->min = ns < r->min ? ns : r->min;
	r->max = ns > r->max ? ns : r->max;
	delta = (double)ns - r->mean;
	r->mean += delta / (double)r->count;
	r->m2 += delta * ((double)ns - r->mean);
	t->count++;
	t->time += ns;
}

void exits_lost(struct exit_table *t, struct exit_vcpu *v, uint64_t n)
{
	t->lost += n;
	v->out = false;
}

void exit_table_reset(struct exit_table *t)
{
	hashmap_free(&t->by_reason);
	free(t->rows);
	*t = (struct exit_table){0};
}

/* ---------- printing ---------- */

static int by_number(uint64_t a, uint64_t b, const struct exit_row *x, const struct exit_row *y)
{
	if (a != b)
		return a < b ? 1 : -1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->reason < y->reason ? -1 : 1;
}

static int by_count(const void *a, const void *b)
{
	const struct exit_row *x = a, *y = b;

	return by_number(x->count, y->count, x, y);
}

static int by_time(const void *a, const void *b)
{
	const struct exit_row *x = a, *y = b;

	return by_number(x->time, y->time, x, y);
}

/* What a row says: shares and the error of the mean in percent, times in microseconds. */
struct figures {
	char name[32];
	double samples, time, min, max, avg, error;
};

static struct figures figures_of(const struct exit_table *t, const struct exit_row *r)
{
	struct figures f = {
		.samples = 100.0 * (double)r->count / (double)t->count,
		.time = t->time ? 100.0 * (double)r->time / (double)t->time : 0,
		.min = (double)r->min / 1e3,
		.max = (double)r->max / 1e3,
		.avg = (double)r->time / (double)r->count / 1e3,
	};

	if (r->kind == EXIT_UNKNOWN)
		snprintf(f.name, sizeof(f.name), "(others)");
	else
		exit_reason_name(f.name, sizeof(f.name), r->kind, r->reason);
	if (r->count > 1 && r->mean > 0)
		f.error = 100 * sqrt(r->m2 / (double)(r->count - 1) / (double)r->count) / r->mean;
	return f;
}

static void print_row(const struct exit_table *t, const struct exit_row *r,
		      const struct stat_options *o, const char *vm, FILE *f)
{
	struct figures n = figures_of(t, r);

	switch (o->format) {
	case STAT_JSON:
		fputs("{\"vm\" : \"", f);
		json_fputs(vm, f);
		fprintf(f,
			"\", \"exit\" : \"%s\", \"samples\" : %" PRIu64
			", \"samples-pct\" : %.2f, \"time-pct\" : %.2f, \"min-us\" : %.2f, "
			"\"max-us\" : %.2f, \"avg-us\" : %.2f, \"variance\" : %.2f}\n",
			n.name, r->count, n.samples, n.time, n.min, n.max, n.avg, n.error);
		return;
	case STAT_SEPARATED:
		stat_print_separated(f, o->sep, vm);
		fprintf(f, "%s%s%s%" PRIu64 "%s%.2f%s%.2f%s%.2f%s%.2f%s%.2f%s%.2f%%\n", o->sep,
			n.name, o->sep, r->count, o->sep, n.samples, o->sep, n.time, o->sep, n.min,
			o->sep, n.max, o->sep, n.avg, o->sep, n.error);
		return;
	default:
		fprintf(f,
			"%20s %10" PRIu64
			" %8.2f%% %8.2f%% %9.2fus %9.2fus %9.2fus ( +-%7.2f%% )\n",
			n.name, r->count, n.samples, n.time, n.min, n.max, n.avg, n.error);
	}
}

static void print_head(const struct stat_options *o, const char *vm, FILE *f)
{
	fprintf(f, "\n\nAnalyze events for VM '%s', ", vm);
	if (o->vcpu < 0)
		fputs("all VCPUs:\n\n", f);
	else
		fprintf(f, "VCPU %d:\n\n", o->vcpu);
	fprintf(f, "%20s %10s %9s %9s %11s %11s %16s \n\n", "VM-EXIT", "Samples", "Samples%",
		"Time%", "Min Time", "Max Time", "Avg time");
}

void exit_table_print(struct exit_table *t, const struct stat_options *o, const char *vm, FILE *f)
{
	bool text = o->format == STAT_TEXT;

	if (text)
		print_head(o, vm, f);
	if (t->n)
		qsort(t->rows, t->n, sizeof(*t->rows),
		      o->sort == EXITS_BY_TIME ? by_time : by_count);
	hashmap_free(&t->by_reason); /* the rows are not where it says */
	t->by_reason = (struct hashmap){0};
	for (size_t i = 0; i < t->n; i++)
		print_row(t, &t->rows[i], o, vm, f);
	if (text)
		fprintf(f, "\nTotal Samples:%" PRIu64 ", Total events handled time:%.2fus.\n\n",
			t->count, (double)t->time / 1e3);
	if (t->lost && text)
		fprintf(f, "\nWARNING: Lost events: %" PRIu64 "\n\n", t->lost);
	else if (t->lost)
		fprintf(stderr, "vmprof stat: %s: lost events: %" PRIu64 "\n", vm, t->lost);
}
