// SPDX-License-Identifier: GPL-2.0-only
/*
 * Everything that vmprof report can make of a profile. Nothing here opens a file: all goes to a
 * FILE *.
 */
#ifndef VMPROF_REPORT_REPORT_H
#define VMPROF_REPORT_REPORT_H

#include "report/callgraph.h"
#include "report/filter.h"
#include "report/layout.h"
#include "report/profile.h"

struct perfdata_reader_stats;

struct report_options {
	struct report_filter filter;
	struct callgraph_config callgraph;
	const char *sort, *fields;
	const char *event; /* only this one; NULL: all */
	const char *time;  /* --time, which the collector has seen to; NULL: all */
	double percent_limit;
	bool children;
	bool no_groups; /* a table for each event, also where they were recorded as a group */
	bool show_samples, show_period, cpu_utilization;
	bool memory; /* --mem-mode, which the collector has seen to */
	bool relative;
	bool quiet;
	bool by_vm;
	bool hide_unresolved;
	unsigned verbose;
	unsigned max_stack;
};

struct report {
	struct report_options opt;
	struct profile *profile;
	const char *path;
	const char *path_text; /* escaped */
	bool chains;	       /* there are call chains, and they are wanted */
	bool children;	       /* the same for children */
	bool damaged;	       /* the file was not read to its end */
	struct layout layout;
};

/* After the profile is whole: what of the options applies to it. 0 or -errno with a sentence. */
int report_prepare(struct report *r, struct profile *p, const struct report_options *opt,
		   const char *path, struct vmprof_err *err);

/* perf report's tables, with the summary by VM before them where there are guests. */
void report_print(struct report *r, FILE *f);
void report_print_summary(struct report *r, uint32_t event, FILE *f);
/* perf report --stats, and the counters that a recorder has left in the file, a block a VM. */
void report_print_stats(struct profile *p, const struct perfdata_reader_stats *st, FILE *f);
/* Of a merged file: what it was made of, and how the clocks were aligned; "# ..." lines. */
void report_print_origin(const struct session *s, FILE *f);
void report_print_folded(struct report *r, FILE *f);
void report_print_json(struct report *r, FILE *f);
void report_print_flamegraph(struct report *r, FILE *f);

/* The event to show where only one can be shown: the first that has samples. */
uint32_t report_main_event(const struct report *r);
bool report_wants_event(const struct report *r, uint32_t event);
/* Do the filters leave a sample of it? */
bool report_has_wanted(const struct report *r, uint32_t event);
/* Of @nr_events from @event on: those of one group. */
void report_build_hist(struct report *r, struct hist *h, uint32_t event, uint32_t nr_events,
		       const struct machine *machine);

#endif
