// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts printed as perf stat prints them: for people, separated (-x), or JSON. A VM is a block of
 * its own, or a column where lines are of several times (-I) or for programs.
 */
#ifndef VMPROF_STAT_PRINT_H
#define VMPROF_STAT_PRINT_H

#include <stdio.h>

#include "events/event.h"

struct stat_value {
	double value; /* mean of all runs; of a clock ns */
	double noise; /* standard error of the mean, percent of it */
	uint64_t enabled, running;
};

/* What was counted of one VM. */
struct stat_block {
	const char *name; /* escaped */
	const struct event_list *events;
	const bool *supported;		 /* by event */
	const struct stat_value *values; /* [event][column] */
	unsigned nr_columns;		 /* vCPUs; without --per-vcpu 1 */
	bool per_vcpu;
	double elapsed_ns; /* that was counted for; mean of all runs */
	double noise_ns;   /* its standard error */
};

enum stat_format { STAT_TEXT, STAT_SEPARATED, STAT_JSON };

struct stat_print {
	FILE *f;
	enum stat_format format;
	const char *sep; /* of STAT_SEPARATED */
	unsigned runs;	 /* > 1: with noise */
	int vm_width;	 /* of -I's column */
	unsigned intervals;
};

/* A VM may be called as it likes: what separates columns is written as \xNN in @name. */
void stat_print_separated(FILE *f, const char *sep, const char *name);
/* All of a run, or of several. */
void stat_print_block(const struct stat_print *p, const struct stat_block *b);
/* A round of -I, over all VMs; @t: when it ended, ns after the start. */
void stat_print_interval(struct stat_print *p, const struct stat_block *b, unsigned n, uint64_t t);

#endif
