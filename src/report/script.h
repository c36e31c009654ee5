// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples as lines, one after the other, in the form of perf script (tools/perf/builtin-script.c,
 * util/evsel_fprintf.c). Nothing is kept of a sample; memory is that of the session and of a
 * bounded number of rendered frames.
 */
#ifndef VMPROF_REPORT_SCRIPT_H
#define VMPROF_REPORT_SCRIPT_H

#include <stdio.h>

#include "report/filter.h"
#include "report/inlines.h"
#include "report/timerange.h"

enum script_field {
	SCRIPT_COMM = 1 << 0,
	SCRIPT_TID = 1 << 1,
	SCRIPT_PID = 1 << 2,
	SCRIPT_TIME = 1 << 3,
	SCRIPT_CPU = 1 << 4,
	SCRIPT_EVENT = 1 << 5,
	SCRIPT_TRACE = 1 << 6,
	SCRIPT_IP = 1 << 7,
	SCRIPT_SYM = 1 << 8,
	SCRIPT_SYMOFF = 1 << 9,
	SCRIPT_DSO = 1 << 10,
	SCRIPT_PERIOD = 1 << 11,
	SCRIPT_MACHINE_PID = 1 << 12,
	SCRIPT_VCPU = 1 << 13,
	SCRIPT_VM = 1 << 14,
	SCRIPT_ADDR = 1 << 15,
	SCRIPT_BRSTACK = 1 << 16,
	SCRIPT_BRSTACKSYM = 1 << 17,
	SCRIPT_BRSTACKOFF = 1 << 18,
	SCRIPT_DATA_SRC = 1 << 19,
	SCRIPT_WEIGHT = 1 << 20,
	SCRIPT_INS_LAT = 1 << 21,
	SCRIPT_IREGS = 1 << 22,
	SCRIPT_UREGS = 1 << 23,
	SCRIPT_PHYS_ADDR = 1 << 24,
	SCRIPT_DATA_PAGE_SIZE = 1 << 25,
	SCRIPT_CODE_PAGE_SIZE = 1 << 26,
	SCRIPT_MISC = 1 << 27,
	SCRIPT_BPF_OUTPUT = 1 << 28,
	SCRIPT_FLAGS = 1 << 29,
	SCRIPT_SRCLINE = 1 << 30,
};

/* What is before the frames, and behind them, of few samples. */
#define SCRIPT_VALUES                                                                              \
	(SCRIPT_FLAGS | SCRIPT_TRACE | SCRIPT_ADDR | SCRIPT_DATA_SRC | SCRIPT_WEIGHT |             \
	 SCRIPT_INS_LAT)
#define SCRIPT_BRANCHES (SCRIPT_BRSTACK | SCRIPT_BRSTACKSYM | SCRIPT_BRSTACKOFF)
#define SCRIPT_PARTS                                                                               \
	(SCRIPT_IREGS | SCRIPT_UREGS | SCRIPT_BRANCHES | SCRIPT_BPF_OUTPUT | SCRIPT_PHYS_ADDR |    \
	 SCRIPT_DATA_PAGE_SIZE | SCRIPT_CODE_PAGE_SIZE)
#define SCRIPT_FRAME (SCRIPT_IP | SCRIPT_SYM | SCRIPT_SYMOFF | SCRIPT_DSO)

/* Events of one type have the same fields: PERF_TYPE_*, then those perf makes up, then others. */
enum { SCRIPT_TYPE_SYNTH = PERF_TYPE_MAX, SCRIPT_TYPE_OTHER, SCRIPT_TYPES };

struct script_fields {
	struct script_type {
		uint32_t fields;
		uint32_t set; /* of these: asked for by name */
		bool chosen;  /* there was a -F for it */
	} types[SCRIPT_TYPES];
};

unsigned script_type_of(const struct perf_event_attr *attr);
bool script_is_dummy(const struct perf_event_attr *attr); /* it has no samples */
bool script_is_bpf_output(const struct perf_event_attr *attr);
void script_fields_init(struct script_fields *f);
/* One -F: "a,b", "+a,-b", "sw:a,b". 0 or -EINVAL with a sentence. */
int script_fields_parse(struct script_fields *f, const char *arg, struct vmprof_err *err);
/*
 * @f less what the events of the file do not have. 0, or -EINVAL with a sentence if that was asked
 * for. @chains: call chains are wanted.
 */
int script_fields_settle(struct script_fields *f, const struct perfdata_reader *r, bool chains,
			 struct vmprof_err *err);

struct script_options {
	struct script_fields fields;
	struct report_filter filter;
	const char *cpus; /* "0,2-3", NULL all */
	bool hide_chains;
	enum inlines_mode inlines;
	bool full_paths; /* of source files */
	bool ns;
	bool task_events, mmap_events;	 /* FORK, EXIT and COMM; MMAP and MMAP2 */
	bool switch_events, lost_events; /* SWITCH and SWITCH_CPU_WIDE; LOST */
	unsigned max_stack;
	struct time_ranges times; /* must outlive it */
};

struct script;

/* 0 or -errno with a sentence. @r may be a pipe whose events are not known yet. */
int script_new(struct script **out, struct session *session, struct perfdata_reader *r,
	       const struct script_options *opt, FILE *f, struct vmprof_err *err);
/* For perfdata_reader_run(); @ctx is the script. */
int script_record(void *ctx, const struct perfdata_record *rec);
/* Of script_record(): what it failed for, if it did. */
const struct vmprof_err *script_error(const struct script *s);
/* What a user should know of what was printed, a sentence; NULL: nothing. */
const char *script_note(const struct script *s);
bool script_is_empty(const struct script *s); /* no sample was printed */
void script_flush(struct script *s);
void script_free(struct script *s); /* NULL is fine */

#endif
