// SPDX-License-Identifier: GPL-2.0-only
/* --stats: what records the file has, and what each VM's recorder counted. */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "report/summary.h"
#include "symbolize/userstack.h"
#include "util/text.h"

static const char *const record_names[] = {
	[PERF_RECORD_MMAP] = "MMAP",
	[PERF_RECORD_LOST] = "LOST",
	[PERF_RECORD_COMM] = "COMM",
	[PERF_RECORD_EXIT] = "EXIT",
	[PERF_RECORD_THROTTLE] = "THROTTLE",
	[PERF_RECORD_UNTHROTTLE] = "UNTHROTTLE",
	[PERF_RECORD_FORK] = "FORK",
	[PERF_RECORD_READ] = "READ",
	[PERF_RECORD_SAMPLE] = "SAMPLE",
	[PERF_RECORD_MMAP2] = "MMAP2",
	[PERF_RECORD_AUX] = "AUX",
	[PERF_RECORD_ITRACE_START] = "ITRACE_START",
	[PERF_RECORD_LOST_SAMPLES] = "LOST_SAMPLES",
	[PERF_RECORD_SWITCH] = "SWITCH",
	[PERF_RECORD_SWITCH_CPU_WIDE] = "SWITCH_CPU_WIDE",
	[PERF_RECORD_NAMESPACES] = "NAMESPACES",
	[PERF_RECORD_KSYMBOL] = "KSYMBOL",
	[PERF_RECORD_BPF_EVENT] = "BPF_EVENT",
	[PERF_RECORD_CGROUP] = "CGROUP",
	[PERF_RECORD_TEXT_POKE] = "TEXT_POKE",
	[PERF_RECORD_AUX_OUTPUT_HW_ID] = "AUX_OUTPUT_HW_ID",
	[PERFDATA_HEADER_ATTR] = "ATTR",
	[PERFDATA_EVENT_TYPE] = "EVENT_TYPE",
	[PERFDATA_TRACING_DATA] = "TRACING_DATA",
	[PERFDATA_BUILD_ID] = "BUILD_ID",
	[PERFDATA_FINISHED_ROUND] = "FINISHED_ROUND",
	[PERFDATA_ID_INDEX] = "ID_INDEX",
	[PERFDATA_AUXTRACE_INFO] = "AUXTRACE_INFO",
	[PERFDATA_AUXTRACE] = "AUXTRACE",
	[PERFDATA_AUXTRACE_ERROR] = "AUXTRACE_ERROR",
	[PERFDATA_THREAD_MAP] = "THREAD_MAP",
	[PERFDATA_CPU_MAP] = "CPU_MAP",
	[PERFDATA_STAT_CONFIG] = "STAT_CONFIG",
	[PERFDATA_STAT] = "STAT",
	[PERFDATA_STAT_ROUND] = "STAT_ROUND",
	[PERFDATA_EVENT_UPDATE] = "EVENT_UPDATE",
	[PERFDATA_TIME_CONV] = "TIME_CONV",
	[PERFDATA_HEADER_FEATURE] = "FEATURE",
	[PERFDATA_COMPRESSED] = "COMPRESSED",
	[PERFDATA_FINISHED_INIT] = "FINISHED_INIT",
	[PERFDATA_COMPRESSED2] = "COMPRESSED2",
	[PERFDATA_BPF_METADATA] = "BPF_METADATA",
};

static void print_count(const char *name, uint64_t n, FILE *f)
{
	fprintf(f, "%16s events: %10" PRIu64, name, n);
}

static void print_record_counts(const struct perfdata_reader_stats *st, FILE *f)
{
	fputs("\nAggregated stats:\n", f);
	if (st->total) {
		print_count("TOTAL", st->total, f);
		fputc('\n', f);
	}
	for (size_t i = 0; i < sizeof(record_names) / sizeof(*record_names); i++) {
		if (!record_names[i] || !st->records[i])
			continue;
		print_count(record_names[i], st->records[i], f);
		fprintf(f, "  (%4.1f%%)\n", 100.0 * (double)st->records[i] / (double)st->total);
	}
	if (st->unknown) {
		print_count("UNKNOWN", st->unknown, f);
		fprintf(f, "  (%4.1f%%)\n", 100.0 * (double)st->unknown / (double)st->total);
	}
}

static void print_event_counts(const struct profile *p, FILE *f)
{
	for (size_t i = 0; i < p->nr_events; i++) {
		const struct profile_event *e = &p->events[i];

		if (!e->samples && !e->lost)
			continue;
		fprintf(f, "%s stats:\n", e->name);
		if (e->samples) {
			print_count("SAMPLE", e->samples, f);
			fputc('\n', f);
		}
		if (e->lost) {
			print_count("LOST_SAMPLES", e->lost, f);
			fputc('\n', f);
		}
	}
}

/*
 * A recorder's counters are printed as it wrote them, whatever it counts: numbers, sentences, and
 * groups of them one level down.
 */
static void print_counters(struct json_object *o, const char *group, FILE *f)
{
	char key[64], name[160], text[256];

	json_object_object_foreach(o, k, v)
	{
		if (!strcmp(k, "machine"))
			continue;
		escape_str(key, sizeof(key), k);
		snprintf(name, sizeof(name), "%s%s%s", group, *group ? " " : "", key);
		if (json_object_is_type(v, json_type_object) && !*group)
			print_counters(v, key, f);
		else if (json_object_is_type(v, json_type_int))
			fprintf(f, "%24s: %10" PRIu64 "\n", name, json_object_get_uint64(v));
		else if (json_object_is_type(v, json_type_string))
			fprintf(f, "%24s: %s\n", name,
				escape_str(text, sizeof(text), json_object_get_string(v)));
	}
}

static void print_vm(struct profile *p, const struct machine *m, const struct vm_summary *seen,
		     FILE *f)
{
	struct json_object *o = m->stats_json ? json_tokener_parse(m->stats_json) : NULL;

	fprintf(f, "VM %s stats:\n", profile_vm_name(p, m));
	fprintf(f, "%24s: %10" PRIu64 "\n", "in this file", seen->samples);
	fprintf(f, "%24s: %10" PRIu64 "\n", "unattributed", seen->unattributed);
	fprintf(f, "%24s: %10" PRIu64 "\n", "unsymbolized", seen->unsymbolized);
	if (json_object_is_type(o, json_type_object))
		print_counters(o, "", f);
	json_object_put(o);
}

/* How the chains out of copied stacks ended: whole, or why not. */
static void print_user_stacks(const struct session *s, FILE *f)
{
	static const char *const names[USERSTACK_END_COUNT] = {
		[USERSTACK_OUTERMOST] = "outermost",  [USERSTACK_DEPTH] = "depth",
		[USERSTACK_CUT] = "not copied",	      [USERSTACK_NO_FILE] = "no file",
		[USERSTACK_NO_RULE] = "no_rule",      [USERSTACK_BAD_FRAME] = "bad_frame",
		[USERSTACK_NO_REGS] = "no registers",
	};
	const uint64_t *ends = session_user_stack_ends(s);

	fputs("user stacks (--call-graph dwarf) stats:\n", f);
	for (int i = 0; i < USERSTACK_END_COUNT; i++)
		if (ends[i] || i == USERSTACK_OUTERMOST)
			fprintf(f, "%24s: %10" PRIu64 "\n", names[i], ends[i]);
}

void report_print_stats(struct profile *p, const struct perfdata_reader_stats *st, FILE *f)
{
	const struct report_filter all = {0};
	struct vm_summary *vms;
	size_t n;

	report_print_origin(p->session, f);
	print_record_counts(st, f);
	print_event_counts(p, f);
	if (p->has_user_stacks)
		print_user_stacks(p->session, f);
	if (!p->has_guests)
		return;
	vms = summary_by_vm(p, SUMMARY_ALL_EVENTS, &all, &n);
	for (size_t i = 0; i < n; i++)
		print_vm(p, vms[i].machine, &vms[i], f);
	free(vms);
}
