// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples by address: of each function that a sample's own address lies in, how many samples and
 * events each of its addresses has.
 */
#ifndef VMPROF_ANNOTATE_HITS_H
#define VMPROF_ANNOTATE_HITS_H

#include "report/filter.h"
#include "report/keyset.h"

struct hits_weight {
	uint64_t samples, period;
};

/* A function of one DSO. */
struct hits_symbol {
	const struct machine *machine;
	const struct dso *dso;
	const struct symbol *sym;
	const char *name; /* as it is shown; owned by the session */
	uint64_t bias;	  /* kernels: run-time address less the DSO's own; else 0 */
	uint32_t *addrs;  /* ids of addr_keys, of all events */
	size_t nr_addrs, cap_addrs;
};

struct hits_event {
	const char *name;	/* raw; NULL: no sample was seen */
	struct hits_weight all; /* samples that the filters leave, of any function */
};

struct hits {
	struct session *session;
	const struct report_filter *filter;
	const char *symbol;   /* only this one; NULL: all */
	struct cpu_list cpus; /* .has NULL: all */

	struct hits_symbol *symbols;
	struct hits_event *events;
	size_t cap_symbols, nr_events, cap_events;
	struct keyset symbol_keys;   /* dso, symbol */
	struct keyset addr_keys;     /* symbol and event, address (in the DSO) */
	struct hits_weight *weights; /* of addr_keys */
	size_t cap_weights;
	bool no_cpus; /* samples of some CPUs are wanted, but they do not tell theirs */
};

/* @cpus: a list or NULL. @filter and what it points to outlive it. 0 or -EINVAL with a sentence. */
int hits_init(struct hits *h, struct session *s, const struct report_filter *filter,
	      const char *symbol, const char *cpus, struct vmprof_err *err);
void hits_free(struct hits *h);
/* For perfdata_reader_run(). */
int hits_record(void *ctx, const struct perfdata_record *rec);

static inline uint32_t hits_nr_symbols(const struct hits *h)
{
	return h->symbol_keys.n;
}

/* Once all samples are in, before the following. */
void hits_sort(struct hits *h);
/* The weight of @event in [@start, @end) of symbol @i (addresses of the DSO's own). */
struct hits_weight hits_range(const struct hits *h, uint32_t i, uint32_t event, uint64_t start,
			      uint64_t end);

#endif
