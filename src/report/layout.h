// SPDX-License-Identifier: GPL-2.0-only
/*
 * Columns: what can be sorted by and what can be shown, and the lists that --sort and --fields make
 * of them (as tools/perf/util/sort.c makes them).
 */
#ifndef VMPROF_REPORT_LAYOUT_H
#define VMPROF_REPORT_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "util/buf.h"
#include "util/err.h"

struct hist;
struct hist_entry;
struct hist_weights;
struct context;
struct frame;

enum column_kind {
	COLUMN_VALUE,	 /* a number of the entry: overhead, samples */
	COLUMN_CONTEXT,	 /* who ran: by struct context */
	COLUMN_LOCATION, /* where: by struct frame */
	COLUMN_BRANCH,	 /* by struct branch, where the profile is one of branches */
};

/* What tells locations apart. */
enum location_part {
	LOCATION_DSO = 1 << 0,
	LOCATION_SYMBOL = 1 << 1,
	LOCATION_SRCLINE = 1 << 2,
	LOCATION_SRCFILE = 1 << 3,
	LOCATION_SIZE = 1 << 4,
};

/* Where a sample is; of branches their target, by the names of samples and of branches. */
enum location_end { LOCATION_OWN, LOCATION_TO, LOCATION_FROM, LOCATION_ENDS };

struct column {
	const char *key; /* for --sort and --fields, which may cut it short */
	const char *header;
	enum column_kind kind;
	unsigned needs; /* PROFILE_BY_* */
	unsigned part;	/* enum location_part: of a location, or of this end of a branch */
	enum location_end end;
	/* Two values are the same if this is. Location columns are told apart in hist.c. */
	uint64_t (*context_id)(const struct hist *h, const struct context *ctx);
	/* Of a number: its value of each event of a group, and whether it is shown as a percentage.
	 */
	uint64_t (*value)(const struct hist_weights *w);
	bool percent;
	/*
	 * < 0: @a stands before @b. NULL: by the numbers, the largest first, or as sortkeys.c says.
	 */
	int (*sort)(const struct hist *h, const struct hist_entry *a, const struct hist_entry *b);
	unsigned fixed_width; /* at least, besides the header; of each value of a number */
	unsigned (*width)(const struct hist *h, const struct hist_entry *e);
	/* @width 0: neither padded nor cut. Of a number NULL. */
	void (*print)(const struct hist *h, const struct hist_entry *e, unsigned width,
		      struct buf *b);
	bool number; /* in JSON */
};

/* In the order in which shortened names are looked up, as perf has it. */
enum column_id {
	COLUMN_PID,
	COLUMN_COMM,
	COLUMN_DSO,
	COLUMN_SYMBOL,
	COLUMN_PARENT,
	COLUMN_CPU,
	COLUMN_SRCLINE,
	COLUMN_SRCFILE,
	COLUMN_LOCAL_WEIGHT,
	COLUMN_WEIGHT,
	COLUMN_TRANSACTION,
	COLUMN_SYMBOL_SIZE,
	COLUMN_CGROUP,
	COLUMN_TIME,
	COLUMN_CODE_PAGE_SIZE,
	COLUMN_LOCAL_INS_LAT,
	COLUMN_INS_LAT,
	COLUMN_LOCAL_STAGE_CYCLES,
	COLUMN_STAGE_CYCLES,
	COLUMN_VM,
	COLUMN_VCPU,
	COLUMN_TID,
	COLUMN_TGID,
	COLUMN_DSO_FROM,
	COLUMN_DSO_TO,
	COLUMN_SYMBOL_FROM,
	COLUMN_SYMBOL_TO,
	COLUMN_SRCLINE_FROM,
	COLUMN_SRCLINE_TO,
	COLUMN_MISPREDICT,
	COLUMN_IN_TX,
	COLUMN_ABORT,
	COLUMN_CYCLES,
	COLUMN_LOCKED,
	COLUMN_TLB,
	COLUMN_MEM,
	COLUMN_SNOOP,
	COLUMN_PHYS_DADDR,
	COLUMN_DATA_PAGE_SIZE,
	COLUMN_BLOCKED,
	COLUMN_OVERHEAD,
	COLUMN_OVERHEAD_SYS,
	COLUMN_OVERHEAD_US,
	COLUMN_OVERHEAD_GUEST_SYS,
	COLUMN_OVERHEAD_GUEST_US,
	COLUMN_CHILDREN,
	COLUMN_SAMPLES,
	COLUMN_PERIOD,
	COLUMN_COUNT
};
extern const struct column columns[COLUMN_COUNT];

/* By what is shown. */
int column_sort(const struct column *c, const struct hist *h, const struct hist_entry *x,
		const struct hist_entry *y);
void column_print(const struct column *c, const struct hist *h, const struct hist_entry *e,
		  unsigned width, struct buf *b);

/* Each comes once. */
#define LAYOUT_MAX_COLUMNS COLUMN_COUNT

struct layout_field {
	const struct column *column;
	const char *header;
	bool elide; /* not shown: a filter leaves one value of it */
};

struct layout {
	const struct column *sort[LAYOUT_MAX_COLUMNS];
	bool sort_skipped[LAYOUT_MAX_COLUMNS]; /* tell entries apart, but are elided */
	unsigned nr_sort;
	struct layout_field fields[LAYOUT_MAX_COLUMNS];
	unsigned nr_fields;
	unsigned needs;
	bool has_vm;		       /* among the sort keys */
	unsigned parts[LOCATION_ENDS]; /* enum location_part, of the sort keys */
	bool symbol_first; /* --sort begins with the symbol: chains need not repeat it */
};

struct layout_config {
	const char *sort, *fields; /* as given, or NULL */
	bool children, samples, period, cpu_utilization, guests, branches, memory;
};

/* 0, or -EINVAL with a sentence. */
int layout_setup(struct layout *l, const struct layout_config *cfg, struct vmprof_err *err);
/* "comm, dso, ..." for messages and help. */
void layout_print_keys(FILE *f);

#endif
