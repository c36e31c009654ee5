// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a count means beside the others: perf stat's metrics, with its words and formats.
 */
#ifndef VMPROF_STAT_METRIC_H
#define VMPROF_STAT_METRIC_H

#include "events/event.h"

#define METRICS_MAX 2 /* of one event */

struct metric {
	const char *fmt; /* of the value; NULL: the event has no such metric now */
	double value;
	char unit[40];
};

/*
 * The metrics of event @i of @l: 1 or 2, of which the first may have no ->fmt. @values: of all
 * events of @l; @counted: which of them are known. @elapsed_ns: 0 not known.
 */
unsigned metrics_of(struct metric m[METRICS_MAX], const struct event_list *l, const double *values,
		    const bool *counted, unsigned i, double elapsed_ns);

#endif
