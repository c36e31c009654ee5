// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/input.h"
#include "cli/messages.h"
#include "cmd/cmd.h"
#include "report/script.h"
#include "util/text.h"

static const char usage[] =
	"vmprof script [-i FILE|-] [-F FIELDS] [--time START,STOP] [FILTERS] [--header]\n"
	"\n"
	"  -i, --input FILE         read FILE (default perf.data); - is standard input\n"
	"  -F, --fields FIELDS      comm, tid, pid, time, cpu, event, ip, sym, symoff, dso, "
	"period,\n"
	"                           srcline, machine_pid, vcpu, vm; +FIELD and -FIELD change the "
	"default;\n"
	"                           TYPE:FIELDS for hw, sw, trace, raw, break events only\n"
	"  -G, --hide-call-graph    each sample on one line\n"
	"      --max-stack N        only N frames of a call chain\n"
	"      --inline, --no-inline  functions inlined into frames of call chains, by DWARF\n"
	"                           (default: of chains unwound from copies of the stack)\n"
	"      --full-source-path   source files by their whole path\n"
	"      --ns                 times in nanoseconds\n"
	"      --time START,STOP    only samples of this time, in seconds; either may be missing;\n"
	"                           or parts of all: 10%/2, 0%-10%\n"
	"      --vm LIST            only these VMs (names or UUIDs, 'host')\n"
	"  -c, --comms LIST, -d, --dsos LIST, -S, --symbols LIST, --pid LIST, --tid LIST,\n"
	"  -C, --cpu LIST           only these commands, shared objects, symbols, ...\n"
	"      --show-task-events   also processes that start, end and change their names\n"
	"      --show-mmap-events   also mappings\n"
	"      --show-switch-events, --show-lost-events\n"
	"                           also switches from task to task; what was lost\n"
	"      --header, --header-only  the file's header\n"
	"      --symfs, --vmlinux, --kallsyms [VM=]PATH, --buildid-dir DIR, --no-demangle\n"
	"                           where symbols are";

struct args {
	struct cli_input in;
	struct script_options opt;
	bool ignored; /* options of perf's that are how it is here anyway */
	struct vmprof_err err;
};

#define FLAG(member) CLI_FLAG(struct args, member)

static int set_fields(void *args, const char *arg, struct vmprof_err *err)
{
	struct args *a = args;

	return script_fields_parse(&a->opt.fields, arg, err);
}

static const struct cli_option opts[] = {
	{"fields", 'F', .argument = true, .set = set_fields},
	{"hide-call-graph", 'G', FLAG(opt.hide_chains)},
	{"ns", 0, FLAG(opt.ns)},
	{"time", 0, CLI_TEXT(struct args, in.time)},
	{"show-task-events", 0, FLAG(opt.task_events)},
	{"show-mmap-events", 0, FLAG(opt.mmap_events)},
	{"show-switch-events", 0, FLAG(opt.switch_events)},
	{"show-lost-events", 0, FLAG(opt.lost_events)},
	{"full-source-path", 0, FLAG(opt.full_paths)},
	{"force", 'f', FLAG(ignored)},
};

static int parse(struct args *a, int argc, char **argv)
{
	const struct cli_options tables[] = {
		{opts, sizeof(opts) / sizeof(*opts), a},
		cli_input_options(&a->in),
	};
	int ret;

	script_fields_init(&a->opt.fields);
	ret = cli_parse_options(tables, 2, argc, argv, &a->err);
	if (ret)
		return ret;
	if (optind < argc)
		return err_set(&a->err, EINVAL, "'%s': vmprof script runs no scripts; options only",
			       argv[optind]);
	ret = cli_input_check_time(&a->in, &a->err);
	if (ret)
		return ret;
	a->opt.filter = a->in.filter;
	a->opt.cpus = a->in.cpus;
	a->opt.inlines = cli_input_inlines(&a->in);
	return cli_input_max_stack(&a->in, &a->opt.max_stack, &a->err);
}

/* All records to standard output. */
static int print_records(struct args *a)
{
	struct script *s;
	int ret = cli_input_times(&a->in, &a->opt.times, &a->err);

	if (!ret)
		ret = script_new(&s, a->in.session, a->in.reader, &a->opt, stdout, &a->err);
	if (ret)
		return ret;
	ret = cli_input_read(&a->in, script_record, s, &a->err);
	if (script_error(s)->code)
		a->err = *script_error(s);
	script_flush(s);
	if (script_note(s))
		cli_note("script", "%s", script_note(s));
	if (!ret)
		ret = cli_input_check_vms(&a->in, &a->err);
	if (!ret && script_is_empty(s))
		cli_input_none_left(&a->in, "script");
	script_free(s);
	return ret;
}

static int run(struct args *a)
{
	int ret = cli_input_open(&a->in, &a->err);

	if (!ret && (a->in.header || a->in.header_only))
		perfdata_reader_print_header(a->in.reader, stdout, false);
	if (!ret && a->in.header_only)
		cli_input_read_header(&a->in);
	else if (!ret)
		ret = print_records(a);
	if (!ret && (fflush(stdout) || ferror(stdout)))
		ret = err_sys(&a->err, errno ? errno : EIO, "cannot write to standard output");
	time_ranges_free(&a->opt.times);
	return cli_input_end(&a->in, "script", ret, &a->err);
}

int cmd_script(int argc, char **argv)
{
	struct args a = {0};
	int ret = parse(&a, argc, argv);

	return ret ? cli_input_not_parsed(&a.in, "script", usage, ret, &a.err) : run(&a);
}
