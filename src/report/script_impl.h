// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shared by script.c (samples), script_parts.c (what few of them have) and script_sideband.c (other
 * records).
 */
#ifndef VMPROF_REPORT_SCRIPT_IMPL_H
#define VMPROF_REPORT_SCRIPT_IMPL_H

#include "report/frametext.h"
#include "report/regnames.h"
#include "report/script.h"
#include "report/tracepoint.h"

struct comm_text {
	const char *text; /* escaped */
	size_t len;
};

struct script {
	struct session *session;
	struct perfdata_reader *reader;
	struct script_options opt;
	FILE *f;
	struct vmprof_err err;

	struct script_fields fields; /* settled for the first @nr_events events */
	size_t nr_events;
	const char **events; /* their names, escaped */
	size_t event_width;
	bool printed; /* a sample: the width stays */
	struct cpu_list cpus;

	struct strtab *texts;
	struct hashmap comms; /* struct comm_text by the raw one's address */
	struct frametext frames;
	struct tracepoints *tracepoints;
	const struct regnames *regnames; /* of the recorded host */
	size_t source_width;		 /* of the widest data source so far */
	struct buf out;
};

static inline bool is_mmap_record(uint32_t type)
{
	return type == PERF_RECORD_MMAP || type == PERF_RECORD_MMAP2;
}

static inline bool is_switch_record(uint32_t type)
{
	return type == PERF_RECORD_SWITCH || type == PERF_RECORD_SWITCH_CPU_WIDE;
}

int script_settle(struct script *s);
/* What a line begins with: who, where and when. */
void script_start(struct script *s, const struct perfdata_record *rec, const struct thread *t,
		  const struct perfdata_evsel *e);
/* What a sample has of SCRIPT_VALUES and SCRIPT_PARTS. Its thread is s->frames.thread. */
void script_values(struct script *s, const struct perfdata_record *rec, uint32_t fields);
void script_parts(struct script *s, const struct perfdata_record *rec, uint32_t fields);
bool script_wanted_cpu(const struct script *s, const struct perfdata_record *rec);
bool script_wanted_thread(const struct script *s, const struct thread *t);
/* Other records than samples: is it asked for; prints it. */
bool script_wants(const struct script *s, const struct perfdata_record *rec);
void script_sideband(struct script *s, const struct perfdata_record *rec);

#endif
