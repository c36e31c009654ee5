// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exits of one VM by their reason: how often, and how long until the vCPU entered the guest again.
 */
#ifndef VMPROF_STAT_EXITS_H
#define VMPROF_STAT_EXITS_H

#include <stdbool.h>

#include "stat/reasons.h"
#include "stat/stat.h"
#include "util/hashmap.h"

#define EXIT_REASONS_MAX 4096 /* of a VM; more are no reasons, and are one row together */

struct exit_row {
	enum exit_kind kind;
	uint32_t reason;
	uint64_t count, time, min, max; /* ns */
	double mean, m2;		/* of the times, and their squared deviations */
};

/* Rows are found by their reason. All 0 is an empty table. */
struct exit_table {
	struct hashmap by_reason; /* to row + 1 */
	struct exit_row *rows;
	size_t n, cap;
	uint64_t count, time; /* of all rows */
	uint64_t lost;	      /* records of the tracepoints that had no room */
};

/* What one vCPU is at. */
struct exit_vcpu {
	bool out; /* it has left the guest: */
	enum exit_kind kind;
	uint32_t reason;
	uint64_t time;
};

void exit_seen(struct exit_vcpu *v, enum exit_kind kind, uint32_t reason, uint64_t time);
/* @v entered: the exit that it comes from is complete, if that was seen. */
void entry_seen(struct exit_table *t, struct exit_vcpu *v, uint64_t time);
/* Records of this vCPU are missing: what it has left for is not known. */
void exits_lost(struct exit_table *t, struct exit_vcpu *v, uint64_t n);

void exit_table_reset(struct exit_table *t); /* empty; memory is freed */
/* perf kvm stat's table, or rows for programs. @vcpu: -1 all. Sorts the rows. */
void exit_table_print(struct exit_table *t, const struct stat_options *o, const char *vm, FILE *f);

#endif
