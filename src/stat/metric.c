// SPDX-License-Identifier: GPL-2.0-only
#include "stat/metric.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

struct metric_ctx {
	const struct event_list *l;
	const double *values;
	const bool *counted;
	const struct event *e;
};

#define CACHE(id, op, result)                                                                      \
	(PERF_COUNT_HW_CACHE_##id | PERF_COUNT_HW_CACHE_OP_##op << 8 |                             \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)

/* An event as a share of another one, in the modes that both are counted in. */
static const struct share {
	uint32_t type;
	uint64_t config, of_config; /* of the same type */
	double factor;
	const char *fmt, *unit;
} shares[] = {
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CPU_CYCLES, 1, "%7.2f ",
	 "insn per cycle"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 100,
	 "%7.2f%%", "of all branches"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, PERF_COUNT_HW_CACHE_REFERENCES, 100,
	 "%8.3f %%", "of all cache refs"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, PERF_COUNT_HW_CPU_CYCLES, 100,
	 "%7.2f%%", "frontend cycles idle"},
	{PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, PERF_COUNT_HW_CPU_CYCLES, 100,
	 "%7.2f%%", "backend cycles idle"},
	{PERF_TYPE_HW_CACHE, CACHE(L1D, READ, MISS), CACHE(L1D, READ, ACCESS), 100, "%7.2f%%",
	 "of all L1-dcache accesses"},
	{PERF_TYPE_HW_CACHE, CACHE(L1I, READ, MISS), CACHE(L1I, READ, ACCESS), 100, "%7.2f%%",
	 "of all L1-icache accesses"},
	{PERF_TYPE_HW_CACHE, CACHE(DTLB, READ, MISS), CACHE(DTLB, READ, ACCESS), 100, "%7.2f%%",
	 "of all dTLB cache accesses"},
	{PERF_TYPE_HW_CACHE, CACHE(ITLB, READ, MISS), CACHE(ITLB, READ, ACCESS), 100, "%7.2f%%",
	 "of all iTLB cache accesses"},
	{PERF_TYPE_HW_CACHE, CACHE(LL, READ, MISS), CACHE(LL, READ, ACCESS), 100, "%7.2f%%",
	 "of all LL-cache accesses"},
};

static bool same_modes(const struct event *a, const struct event *b)
{
	return a->exclude_user == b->exclude_user && a->exclude_kernel == b->exclude_kernel &&
	       a->guest == b->guest && a->host == b->host;
}

/* What event @type/@config has counted in the modes of ours; 0: nothing, or it is not there. */
static double counted(const struct metric_ctx *c, uint32_t type, uint64_t config)
{
	for (unsigned i = 0; i < c->l->n; i++) {
		const struct event *e = &c->l->events[i];

		if (e->type == type && e->config == config && c->counted[i] && same_modes(e, c->e))
			return c->values[i];
	}
	return 0;
}

/* The CPU time of the vCPUs, ns. A clock runs in all modes, whatever its modifiers. */
static double cpu_time(const struct metric_ctx *c)
{
	for (unsigned i = 0; i < c->l->n; i++)
		if (event_is_clock(&c->l->events[i]) && c->counted[i])
			return c->values[i];
	return 0;
}

static const struct share *share_of(const struct event *e)
{
	for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++)
		if (shares[i].type == e->type && shares[i].config == e->config)
			return &shares[i];
	return NULL;
}

static void set(struct metric *m, const char *fmt, const char *unit, double value)
{
	m->fmt = fmt;
	m->value = value;
	snprintf(m->unit, sizeof(m->unit), "%s", unit);
}

/* How often a second of CPU time, in steps of a thousand. */
static void set_rate(struct metric *m, double value, double ns)
{
	static const char steps[] = " KMG";
	double rate = value * 1e9 / ns;
	unsigned step = 0;

	while (rate >= 1000 && step < 3) {
		rate /= 1000;
		step++;
	}
	set(m, "%8.3f", "", rate);
	if (step)
		snprintf(m->unit, sizeof(m->unit), "%c/sec", steps[step]);
	else
		snprintf(m->unit, sizeof(m->unit), "/sec");
}

/* Cycles that the pipeline stood still for each instruction. */
static unsigned add_stalls(struct metric *m, const struct metric_ctx *c, double instructions)
{
	double front = counted(c, PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND);
	double back = counted(c, PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND);
	double stalled = front > back ? front : back;

	if (stalled == 0 || instructions == 0)
		return 0;
	set(m, "%7.2f ", "stalled cycles per insn", stalled / instructions);
	return 1;
}

unsigned metrics_of(struct metric m[METRICS_MAX], const struct event_list *l, const double *values,
		    const bool *known, unsigned i, double elapsed_ns)
{
	struct metric_ctx c = {l, values, known, &l->events[i]};
	const struct event *e = c.e;
	const struct share *share = share_of(e);
	double ns = cpu_time(&c), of;

	m[0] = (struct metric){0};
	if (!known[i])
		return 1;
	if (event_is_clock(e)) {
		if (elapsed_ns > 0)
			set(&m[0], "%8.3f", "CPUs utilized", values[i] / elapsed_ns);
		return 1;
	}
	if (share) {
		of = counted(&c, share->type, share->of_config);
		if (of != 0)
			set(&m[0], share->fmt, share->unit, values[i] * share->factor / of);
		else
			snprintf(m[0].unit, sizeof(m[0].unit), "%s", share->unit);
		if (e->type == PERF_TYPE_HARDWARE && e->config == PERF_COUNT_HW_INSTRUCTIONS)
			return 1 + add_stalls(&m[1], &c, values[i]);
		return 1;
	}
	if (ns == 0)
		return 1;
	if (e->type == PERF_TYPE_HARDWARE && e->config == PERF_COUNT_HW_CPU_CYCLES)
		set(&m[0], "%8.3f", "GHz", values[i] / ns);
	else
		set_rate(&m[0], values[i], ns);
	return 1;
}
