// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the records of a file to a profile: every distinct address of every address space is
 * resolved once.
 */
#ifndef VMPROF_REPORT_COLLECT_H
#define VMPROF_REPORT_COLLECT_H

#include "perfdata/reader.h"
#include "report/inlines.h"
#include "report/profile.h"
#include "report/timerange.h"

struct collect_options {
	bool chains;	  /* look at call chains at all */
	bool user_stacks; /* look for those in copies of the stack in any case, to count their ends
			   */
	bool hide_unresolved;
	enum inlines_mode inlines;
	const char *parent;    /* regular expression for context.parent, where that is needed */
	bool parent_outermost; /* the outermost function that it matches, not the innermost */
	const char *cpus;      /* "0,2-3": only samples of these CPUs; NULL all */
	uint64_t time_quantum; /* nanoseconds of one PROFILE_BY_TIME; 0: 100 ms */
	bool memory;	       /* what counts is weights: how long accesses to memory took */
	const struct time_ranges *times; /* only samples of these times; NULL all */
	unsigned max_stack;		 /* only the innermost frames of a chain; 0 all */
	/* Frames that are looked for in a copy of the stack; 0: as many as the kernel looks for. */
	unsigned max_user_stack;
	/* Also told of each sample, for views with a time line. @stack is profile_add()'s. */
	void (*sample)(void *ctx, const struct perfdata_record *rec, uint32_t stack);
	void *sample_ctx;
};

struct collector;

/* @cpus that is no list, and @parent that is no expression, are -EINVAL with a sentence. */
int collector_new(struct collector **out, struct profile *p, const struct collect_options *opt,
		  struct vmprof_err *err);
void collector_free(struct collector *c); /* NULL is fine */
/* For perfdata_reader_run(); @ctx is the collector. */
int collector_record(void *ctx, const struct perfdata_record *rec);

#endif
