// SPDX-License-Identifier: GPL-2.0-only
#include "annotate/hits.h"

#include <stdlib.h>
#include <string.h>

#include "util/xalloc.h"

enum { MAX_EVENTS = 1 << 16 };

int hits_init(struct hits *h, struct session *s, const struct report_filter *filter,
	      const char *symbol, const char *cpus, struct vmprof_err *err)
{
	*h = (struct hits){
		.session = s,
		.filter = filter,
		.symbol = symbol,
		.symbol_keys.width = 2,
		.addr_keys.width = 2,
	};
	return cpus ? cpu_list_parse(&h->cpus, cpus, err) : 0;
}

void hits_free(struct hits *h)
{
	for (uint32_t i = 0; i < h->symbol_keys.n; i++)
		free(h->symbols[i].addrs);
	free(h->symbols);
	free(h->events);
	free(h->weights);
	keyset_free(&h->symbol_keys);
	keyset_free(&h->addr_keys);
	cpu_list_free(&h->cpus);
}

static struct hits_event *event_of(struct hits *h, const struct perfdata_evsel *evsel)
{
	if (!evsel || evsel->index >= MAX_EVENTS)
		return NULL;
	h->events = xgrow(h->events, &h->cap_events, evsel->index + 1ull, sizeof(*h->events));
	while (h->nr_events <= evsel->index)
		h->events[h->nr_events++] = (struct hits_event){0};
	h->events[evsel->index].name = evsel->name;
	return &h->events[evsel->index];
}

static void add_weight(struct hits_weight *w, uint64_t period)
{
	w->samples++;
	w->period += period;
}

static uint32_t symbol_of(struct hits *h, const struct thread *t, const struct location *loc)
{
	uint64_t key[2] = {(uintptr_t)loc->dso, (uintptr_t)loc->sym};
	bool added;
	uint32_t id = keyset_add(&h->symbol_keys, key, &added);

	if (!added)
		return id;
	h->symbols = xgrow(h->symbols, &h->cap_symbols, id + 1ull, sizeof(*h->symbols));
	h->symbols[id] = (struct hits_symbol){
		.machine = t->machine,
		.dso = loc->dso,
		.sym = loc->sym,
		.name = session_symbol_name(h->session, loc->sym),
		.bias = loc->dso->kernel ? loc->ip - loc->offset - loc->sym->start : 0,
	};
	return id;
}

static void add_address(struct hits *h, uint32_t symbol, uint32_t event, uint64_t addr,
			uint64_t period)
{
	uint64_t key[2] = {(uint64_t)symbol << 32 | event, addr};
	struct hits_symbol *s = &h->symbols[symbol];
	bool added;
	uint32_t id = keyset_add(&h->addr_keys, key, &added);

	if (added) {
		h->weights = xgrow(h->weights, &h->cap_weights, id + 1ull, sizeof(*h->weights));
		h->weights[id] = (struct hits_weight){0};
		s->addrs = xgrow(s->addrs, &s->cap_addrs, s->nr_addrs + 1, sizeof(*s->addrs));
		s->addrs[s->nr_addrs++] = id;
	}
	add_weight(&h->weights[id], period);
}

static bool is_wanted(struct hits *h, const struct location *loc)
{
	const char *name;

	if (!loc->sym)
		return false;
	name = session_symbol_name(h->session, loc->sym);
	if (h->symbol && strcmp(h->symbol, name) != 0 && strcmp(h->symbol, loc->sym->name) != 0)
		return false;
	return filter_location(h->filter, loc->dso, name);
}

static void take_sample(struct hits *h, const struct perfdata_record *rec)
{
	struct hits_event *e = event_of(h, rec->evsel);
	struct thread *t = session_thread(h->session, rec);
	const struct context ctx = {.machine = t->machine, .thread = t, .comm = t->comm};
	struct location loc;

	if (!e)
		return;
	if (h->cpus.has && !(rec->evsel->attr.sample_type & PERF_SAMPLE_CPU))
		h->no_cpus = true;
	if ((h->cpus.has && !cpu_list_has(&h->cpus, rec->cpu)) || !filter_context(h->filter, &ctx))
		return;
	add_weight(&e->all, rec->period);
	session_resolve(h->session, t, rec->cpumode, rec->ip, &loc);
	if (is_wanted(h, &loc))
		add_address(h, symbol_of(h, t, &loc), rec->evsel->index,
			    loc.sym->start + loc.offset, rec->period);
}

int hits_record(void *ctx, const struct perfdata_record *rec)
{
	struct hits *h = ctx;
	int ret;

	if (rec->type == PERF_RECORD_SAMPLE) {
		take_sample(h, rec);
		return 0;
	}
	ret = session_process(h->session, rec);
	/* a record that makes no sense is the session's to skip; only its memory can fail */
	return ret < 0 ? ret : 0;
}

/* qsort_r is glibc's and takes the keys along. */
static int by_address(const void *a, const void *b, void *ctx)
{
	const struct hits *h = ctx;
	uint64_t x = keyset_key(&h->addr_keys, *(const uint32_t *)a)[1];
	uint64_t y = keyset_key(&h->addr_keys, *(const uint32_t *)b)[1];

	return x < y ? -1 : x > y;
}

void hits_sort(struct hits *h)
{
	for (uint32_t i = 0; i < h->symbol_keys.n; i++)
		qsort_r(h->symbols[i].addrs, h->symbols[i].nr_addrs, sizeof(uint32_t), by_address,
			h);
}

/* The first of them that is not below @start. */
static size_t lower_bound(const struct hits *h, const struct hits_symbol *s, uint64_t start)
{
	size_t lo = 0, hi = s->nr_addrs;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (keyset_key(&h->addr_keys, s->addrs[mid])[1] < start)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct hits_weight hits_range(const struct hits *h, uint32_t i, uint32_t event, uint64_t start,
			      uint64_t end)
{
	const struct hits_symbol *s = &h->symbols[i];
	struct hits_weight w = {0};

	for (size_t j = lower_bound(h, s, start); j < s->nr_addrs; j++) {
		const uint64_t *key = keyset_key(&h->addr_keys, s->addrs[j]);

		if (key[1] >= end)
			break;
		if ((uint32_t)key[0] != event)
			continue;
		w.samples += h->weights[s->addrs[j]].samples;
		w.period += h->weights[s->addrs[j]].period;
	}
	return w;
}
