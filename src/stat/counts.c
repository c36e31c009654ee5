// SPDX-License-Identifier: GPL-2.0-only
/* Counts of VMs' events: once, after each interval, or as the mean of several runs. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stat/counters.h"
#include "stat/run.h"
#include "util/clock.h"
#include "util/xalloc.h"

/* Mean and spread of a number that comes one by one (Welford). */
struct series {
	unsigned n;
	double mean, m2;
};

static void series_add(struct series *s, double x)
{
	double delta = x - s->mean;

	s->n++;
	s->mean += delta / s->n;
	s->m2 += delta * (x - s->mean);
}

/* Standard error of the mean. */
static double series_error(const struct series *s)
{
	return s->n < 2 ? 0 : sqrt(s->m2 / (s->n - 1) / s->n);
}

struct sums {
	struct series value, enabled, running;
};

struct counted_vm {
	struct counters c;
	unsigned nr_columns;
	struct sums *sums; /* [event][column], of all runs */
	struct stat_value *values;
};

struct counts {
	struct counted_vm *vms;
	struct stat_block *blocks;
	unsigned n;
	struct stat_print print;
	struct series elapsed;
	uint64_t last; /* when the interval began, ns after the start */
};

static int open_counts(struct stat_run *r, const struct vm *vm, const struct event_list *events,
		       struct vmprof_err *err)
{
	struct counts *c = r->what;
	struct counted_vm *v;
	size_t n;
	int rc;

	if (!c) {
		r->what = c = xcalloc(1, sizeof(*c));
		c->vms = xcalloc(r->vms.n, sizeof(*c->vms));
		c->blocks = xcalloc(r->vms.n, sizeof(*c->blocks));
	}
	v = &c->vms[c->n];
	rc = counters_open(&v->c, vm, events, r->o->backend, err);
	if (rc) {
		counters_close(&v->c);
		return rc;
	}
	c->n++;
	if (v->c.note[0])
		fprintf(stderr, "vmprof stat: %s: %s\n", v->c.name, v->c.note);
	v->nr_columns = r->o->per_vcpu ? v->c.nr_vcpus : 1;
	n = (size_t)v->c.events.n * v->nr_columns + 1;
	v->sums = xcalloc(n, sizeof(*v->sums));
	v->values = xcalloc(n, sizeof(*v->values));
	return 0;
}

static int start_counts(struct stat_run *r, struct vmprof_err *err)
{
	struct counts *c = r->what;
	int width = 0, rc = 0;

	for (unsigned i = 0; i < c->n && !rc; i++) {
		rc = counters_start(&c->vms[i].c, err);
		if (rc)
			err_prefix(err, "VM '%s'", c->vms[i].c.name);
		if ((int)strlen(c->vms[i].c.name) > width)
			width = (int)strlen(c->vms[i].c.name);
	}
	c->print = (struct stat_print){
		.f = r->out,
		.format = r->o->format,
		.sep = r->o->sep,
		.runs = r->o->repeat,
		.vm_width = width,
	};
	return rc;
}

static void read_all(struct counts *c)
{
	for (unsigned i = 0; i < c->n; i++)
		counters_read(&c->vms[i].c);
}

static void restart(struct counts *c)
{
	for (unsigned i = 0; i < c->n; i++)
		counters_restart(&c->vms[i].c);
}

/* What was counted since the restart, as one more of a series. */
static void take(struct counts *c)
{
	read_all(c);
	for (unsigned i = 0; i < c->n; i++) {
		struct counted_vm *v = &c->vms[i];

		for (unsigned n = 0; n < v->c.events.n * v->nr_columns; n++) {
			uint32_t column = n % v->nr_columns;
			struct count now = counters_get(
				&v->c, n / v->nr_columns,
				v->nr_columns == v->c.nr_vcpus ? column : BACKEND_ALL_VCPUS);

			series_add(&v->sums[n].value, now.value);
			series_add(&v->sums[n].enabled, (double)now.enabled);
			series_add(&v->sums[n].running, (double)now.running);
		}
	}
}

static void make_blocks(struct stat_run *r, double elapsed_ns)
{
	struct counts *c = r->what;

	for (unsigned i = 0; i < c->n; i++) {
		struct counted_vm *v = &c->vms[i];

		for (unsigned n = 0; n < v->c.events.n * v->nr_columns; n++) {
			const struct sums *s = &v->sums[n];

			v->values[n] = (struct stat_value){
				.value = s->value.mean,
				.noise = s->value.mean > 0
						 ? 100 * series_error(&s->value) / s->value.mean
						 : 0,
				.enabled = (uint64_t)s->enabled.mean,
				.running = (uint64_t)s->running.mean,
			};
		}
		c->blocks[i] = (struct stat_block){
			.name = v->c.name,
			.events = &v->c.events,
			.supported = v->c.supported,
			.values = v->values,
			.nr_columns = v->nr_columns,
			.per_vcpu = r->o->per_vcpu,
			.elapsed_ns = elapsed_ns,
			.noise_ns = series_error(&c->elapsed),
		};
	}
}

static int end_interval(void *ctx, uint64_t since_start_ns, struct vmprof_err *err)
{
	struct stat_run *r = ctx;
	struct counts *c = r->what;

	take(c);
	restart(c);
	make_blocks(r, (double)(since_start_ns - c->last));
	c->last = since_start_ns;
	stat_print_interval(&c->print, c->blocks, c->n, since_start_ns);
	for (unsigned i = 0; i < c->n; i++)
		memset(c->vms[i].sums, 0,
		       (size_t)c->vms[i].c.events.n * c->vms[i].nr_columns *
			       sizeof(*c->vms[i].sums));
	return ferror(r->out) ? err_sys(err, errno, "cannot write the counts") : 0;
}

static void begin_counts(struct stat_run *r, struct stat_loop *l)
{
	struct counts *c = r->what;

	if (r->o->interval_ns)
		l->interval = end_interval;
	c->last = 0;
	read_all(c);
	restart(c);
}

static void end_counts(struct stat_run *r, const struct stat_loop *l)
{
	struct counts *c = r->what;

	if (r->o->interval_ns)
		return;
	take(c);
	series_add(&c->elapsed, (double)l->elapsed_ns);
}

static int finish_counts(struct stat_run *r, struct vmprof_err *err)
{
	struct counts *c = r->what;

	if (r->o->interval_ns)
		return 0;
	make_blocks(r, c->elapsed.mean);
	c->print.runs = c->elapsed.n;
	for (unsigned i = 0; i < c->n; i++)
		stat_print_block(&c->print, &c->blocks[i]);
	return 0;
}

static void close_counts(struct stat_run *r)
{
	struct counts *c = r->what;

	if (!c)
		return;
	for (unsigned i = 0; i < c->n; i++) {
		counters_close(&c->vms[i].c);
		free(c->vms[i].sums);
		free(c->vms[i].values);
	}
	free(c->vms);
	free(c->blocks);
	free(c);
}

const struct stat_kind stat_counts = {
	.open = open_counts,
	.start = start_counts,
	.begin = begin_counts,
	.end = end_counts,
	.finish = finish_counts,
	.close = close_counts,
};
