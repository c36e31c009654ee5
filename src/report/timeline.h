// SPDX-License-Identifier: GPL-2.0-only
/*
 * report --timeline: each sample on a line, of the whole system in the order of time, and of one
 * time in the order of CPU numbers. Nothing is kept of a sample that was printed.
 */
#ifndef VMPROF_REPORT_TIMELINE_H
#define VMPROF_REPORT_TIMELINE_H

#include <stdio.h>

#include "report/filter.h"
#include "report/timerange.h"

struct timeline_options {
	struct report_filter filter;
	const char *event;		 /* only this one; NULL: all */
	const char *cpus;		 /* "0,2-3", NULL all */
	const struct time_ranges *times; /* NULL all */
	bool hide_unresolved;
	bool quiet; /* no header */
};

struct timeline;

/* 0 or -errno with a sentence. */
int timeline_new(struct timeline **out, struct session *session, struct perfdata_reader *r,
		 const struct timeline_options *opt, FILE *f, struct vmprof_err *err);
/* For perfdata_reader_run(); @ctx is the timeline. */
int timeline_record(void *ctx, const struct perfdata_record *rec);
/* Of timeline_record(): what it failed for, if it did. */
const struct vmprof_err *timeline_error(const struct timeline *t);
bool timeline_is_empty(const struct timeline *t); /* no sample was printed */
void timeline_flush(struct timeline *t);
void timeline_free(struct timeline *t); /* NULL is fine */

#endif
