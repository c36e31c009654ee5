// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file through all that the commands make of one: every kind of report and export, script, the
 * time line, annotated code. What comes out is thrown away.
 */
#ifndef VMPROF_TESTS_UNIT_EVERY_COMMAND_H
#define VMPROF_TESTS_UNIT_EVERY_COMMAND_H

#include "annotate/annotate.h"
#include "export/export.h"
#include "report/collect.h"
#include "report/report.h"
#include "report/script.h"
#include "report/timeline.h"

/* Symbols are looked for in places where there are none, not of the running kernel either. */
static inline struct session *no_symbols(void)
{
	static const struct symbol_paths paths = {.symfs = {{NULL, "/nowhere"}},
						  .nr_symfs = 1,
						  .host_release = "of no kernel",
						  .buildid_dir = "/nowhere"};

	return session_new(&paths);
}

static inline void print_every_report(struct profile *p, const struct report_options *opt, FILE *f)
{
	static void (*const printers[])(struct report * r, FILE * f) = {
		report_print, report_print_folded, report_print_json, report_print_flamegraph};
	struct vmprof_err err;
	struct report r;

	/* the command prints nothing of a file without samples */
	if (!profile_nr_stacks(p))
		return;
	for (size_t i = 0; i < sizeof(printers) / sizeof(*printers); i++)
		if (!report_prepare(&r, p, opt, "every", &err))
			printers[i](&r, f);
}

static inline void write_every_export(struct export *x, struct perfdata_reader *reader,
				      const struct report_options *opt, FILE *f)
{
	static const struct export_format *const formats[] = {&export_pprof, &export_speedscope,
							      &export_firefox};
	struct vmprof_err err;

	if (!export_prepare(x, reader, &opt->filter, NULL, &err))
		for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
			if (!formats[i]->check || !formats[i]->check(x, &err))
				formats[i]->write(x, f);
	export_free(x);
}

/* What the run over the records returned. */
static inline int every_report(struct perfdata_reader *reader, const struct report_options *opt,
			       FILE *f, struct vmprof_err *err)
{
	struct session *s = no_symbols();
	struct profile p;
	struct export x = {.profile = &p, .keep_samples = true};
	struct collect_options collect = {
		.chains = true, .sample = export_sample, .sample_ctx = &x};
	struct collector *c;
	int ret;

	profile_init(&p, s,
		     PROFILE_BY_THREAD | PROFILE_BY_CPU | PROFILE_BY_VCPU | PROFILE_BY_CGROUP);
	ret = collector_new(&c, &p, &collect, err);
	if (!ret) {
		ret = perfdata_reader_run(reader, collector_record, c, err);
		collector_free(c);
		print_every_report(&p, opt, f);
		write_every_export(&x, reader, opt, f);
		report_print_stats(&p, perfdata_reader_get_stats(reader), f);
		perfdata_reader_print_header(reader, f, true);
	}
	profile_free(&p);
	session_free(s);
	return ret;
}

static inline int every_line(struct perfdata_reader *reader, const struct report_options *opt,
			     FILE *f, struct vmprof_err *err)
{
	struct script_options options = {
		.filter = opt->filter,
		.max_stack = opt->max_stack,
		.task_events = true,
		.mmap_events = true,
		.switch_events = true,
		.lost_events = true,
	};
	struct session *s = no_symbols();
	struct script *script;
	int ret;

	script_fields_init(&options.fields);
	ret = script_new(&script, s, reader, &options, f, err);
	if (!ret) {
		ret = perfdata_reader_run(reader, script_record, script, err);
		script_flush(script);
		script_free(script);
	}
	session_free(s);
	return ret;
}

static inline int every_moment(struct perfdata_reader *reader, const struct report_options *opt,
			       FILE *f, struct vmprof_err *err)
{
	const struct timeline_options options = {.filter = opt->filter};
	struct session *s = no_symbols();
	struct timeline *t;
	int ret = timeline_new(&t, s, reader, &options, f, err);

	if (!ret) {
		ret = perfdata_reader_run(reader, timeline_record, t, err);
		timeline_flush(t);
		timeline_free(t);
	}
	session_free(s);
	return ret;
}

static inline int every_function(struct perfdata_reader *reader, const struct report_options *opt,
				 FILE *f, struct vmprof_err *err)
{
	const struct annotate_options options = {.group = opt->verbose};
	struct annotate_result result;
	struct session *s = no_symbols();
	struct hits h = {0};
	int ret = hits_init(&h, s, &opt->filter, NULL, NULL, err);

	if (!ret) {
		ret = perfdata_reader_run(reader, hits_record, &h, err);
		hits_sort(&h);
		annotate_print(&h, &options, f, &result);
	}
	hits_free(&h);
	session_free(s);
	return ret;
}

static int (*const every_command[])(struct perfdata_reader *reader,
				    const struct report_options *opt, FILE *f,
				    struct vmprof_err *err) = {every_report, every_line,
							       every_moment, every_function};
#define EVERY_COMMAND (sizeof(every_command) / sizeof(*every_command))

#endif
