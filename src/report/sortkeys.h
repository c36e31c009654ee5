// SPDX-License-Identifier: GPL-2.0-only
/*
 * What entries of a histogram are compared by, gathered: of each entry its words beside each other,
 * texts as their ranks. perf's trees compare each entry with twenty others, and what columns look
 * at (contexts, DSOs, names, weights) is all over the memory.
 */
#ifndef VMPROF_REPORT_SORTKEYS_H
#define VMPROF_REPORT_SORTKEYS_H

#include "report/hist.h"

struct sort_term;

struct sortkeys {
	const struct hist *h;
	struct sort_term *terms;
	unsigned nr_terms, width;
	uint64_t *words; /* width of each entry */
};

enum sortkeys_by {
	SORTKEYS_BY_KEYS,  /* as entries are told apart: no weights */
	SORTKEYS_AS_SHOWN, /* as rows stand */
};

/* The entries and their weights must not change as long as it is used. */
void sortkeys_init(struct sortkeys *k, const struct hist *h, enum sortkeys_by by);
void sortkeys_free(struct sortkeys *k);

/* As the columns' functions one after the other: < 0: entry @a stands before entry @b. */
int sortkeys_compare(const struct sortkeys *k, uint32_t a, uint32_t b);

#endif
