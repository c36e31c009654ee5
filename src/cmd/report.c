// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/input.h"
#include "cli/messages.h"
#include "cmd/cmd.h"
#include "report/collect.h"
#include "report/parents.h"
#include "report/report.h"
#include "report/timeline.h"
#include "util/text.h"
#include "util/xalloc.h"

static const char usage[] =
	"vmprof report [-i FILE|-] [--sort KEYS] [-g TREE] [--by-vm] [FILTERS] [--folded|--json|"
	"--flamegraph FILE|--timeline|--stats|--header]\n"
	"\n"
	"  -i, --input FILE         read FILE (default perf.data); - is standard input\n"
	"  -s, --sort KEYS          one row for each value of: vm, comm, dso, symbol, pid, tid, "
	"tgid,\n"
	"                           cpu, vcpu, cgroup, srcline, srcfile, parent, symbol_size, "
	"weight,\n"
	"                           time, transaction, ins_lat, p_stage_cyc, code_page_size,\n"
	"                           local_weight, ...;\n"
	"                           '+KEYS' adds to the default\n"
	"  -p, --parent REGEX       a key: the function of the call chain that REGEX matches\n"
	"  -F, --fields KEYS        show these, also: overhead, overhead_children, overhead_sys,\n"
	"                           overhead_us, overhead_guest_sys, overhead_guest_us, sample, "
	"period\n"
	"  -n, --show-nr-samples    a column with the number of samples\n"
	"      --show-total-period  a column with the event count\n"
	"      --show-cpu-utilization  columns for kernel and user, of host and guests\n"
	"      --children           count what a function has called as its own (default with "
	"call\n"
	"                           chains); --no-children\n"
	"  -g, --call-graph TREE    graph|fractal|flat|folded|none, threshold, print limit,\n"
	"                           caller|callee, percent|period|count\n"
	"  -G, --inverted           the same in caller order\n"
	"      --max-stack N        only N frames of a call chain\n"
	"      --percent-limit N    no entries below N percent\n"
	"      --percentage relative|absolute  of what the filters leave, or of all\n"
	"  -b, --branch-stack       rows are branches (default for files recorded with -b),\n"
	"                           by dso_from, dso_to, symbol_from, symbol_to, mispredict, "
	"in_tx,\n"
	"                           abort, cycles, srcline_from, srcline_to; --no-branch-stack\n"
	"      --by-vm              a table for each VM\n"
	"      --group, --no-group  events side by side (default as they were recorded)\n"
	"      --vm LIST            only these VMs (names or UUIDs, 'host')\n"
	"      --event NAME         only this event\n"
	"  -c, --comms LIST, -d, --dsos LIST, -S, --symbols LIST, --symbol-filter PART,\n"
	"      --pid LIST, --tid LIST, -C, --cpu LIST\n"
	"                           only these commands, shared objects, symbols, ...\n"
	"      --inline, --no-inline  functions inlined into frames of call chains, by DWARF\n"
	"                           (default: of chains unwound from copies of the stack)\n"
	"  -U, --hide-unresolved    only what a symbol was found for\n"
	"      --folded             one line a call chain: vm;comm;frame;... count\n"
	"      --flamegraph FILE    write a flame graph, an SVG for a browser; - is standard "
	"output\n"
	"      --time START,STOP    only samples of this time, in seconds; either may be missing;\n"
	"                           or parts of all: 10%/2, 0%-10%\n"
	"      --time-quantum TIME  what key time counts in (default 100ms)\n"
	"      --mem-mode           weights of accesses to memory; also by mem, snoop, tlb, "
	"locked,\n"
	"                           blocked, phys_daddr, data_page_size\n"
	"      --timeline           each sample in the order of time: CPU, VM, pid, address, "
	"symbol\n"
	"      --json               everything for programs\n"
	"      --stats              what is in the file, and what each VM's recorder counted\n"
	"      --header, --header-only  the file's header\n"
	"      --symfs, --vmlinux, --kallsyms [VM=]PATH, --buildid-dir DIR, --no-demangle,\n"
	"      --guestmount DIR, --guestkallsyms, --guestmodules, --guestvmlinux FILE\n"
	"                           where symbols are\n"
	"  -q, --quiet              rows only\n"
	"  -v, --verbose            whole paths, and where symbols came from";

struct args {
	struct cli_input in;
	struct report_options opt;
	const char *parent, *flamegraph, *call_graph, *percent_limit, *percentage;
	char *sort; /* opt.sort, if it is not as it was given */
	bool branch_stack, no_branch_stack;
	uint64_t time_quantum;
	bool group; /* all events side by side */
	bool no_children, no_call_graph, inverted;
	bool stats, folded, json, timeline;
	struct time_ranges times; /* of --time, when the file is open */
	bool ignored;		  /* options that other front ends of perf need */
	struct vmprof_err err;
};

#define TEXT(member) CLI_TEXT(struct args, member)
#define FLAG(member) CLI_FLAG(struct args, member)

static int set_call_graph(void *args, const char *arg, struct vmprof_err *err)
{
	struct args *a = args;

	a->call_graph = arg ? arg : "graph,0.5,caller,function,percent";
	return 0;
}

static int set_verbose(void *args, const char *arg, struct vmprof_err *err)
{
	struct args *a = args;

	a->opt.verbose++;
	return 0;
}

static int set_children(void *args, const char *arg, struct vmprof_err *err)
{
	struct args *a = args;

	a->no_children = false;
	return 0;
}

/* perf's: a whole number of units, without one of nanoseconds. */
static int set_time_quantum(void *args, const char *arg, struct vmprof_err *err)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"", 1}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	struct args *a = args;
	char *end, text[64];
	uint64_t n;

	errno = 0;
	n = strtoull(arg, &end, 10);
	for (size_t i = 0; i < sizeof(units) / sizeof(*units) && *arg >= '0' && *arg <= '9'; i++)
		if (!errno && !strcmp(end, units[i].name) &&
		    !__builtin_mul_overflow(n, units[i].ns, &a->time_quantum) && a->time_quantum)
			return 0;
	return err_set(err, EINVAL, "--time-quantum '%s' is not a time as 100ms, 20us or 1s",
		       escape_str(text, sizeof(text), arg));
}

static const struct cli_option opts[] = {
	{"sort", 's', TEXT(opt.sort)},
	{"parent", 'p', TEXT(parent)},
	{"fields", 'F', TEXT(opt.fields)},
	{"show-nr-samples", 'n', FLAG(opt.show_samples)},
	{"show-total-period", 0, FLAG(opt.show_period)},
	{"show-cpu-utilization", 0, FLAG(opt.cpu_utilization)},
	{"showcpuutilization", 0, FLAG(opt.cpu_utilization)}, /* perf knows both */
	{"children", 0, .set = set_children},
	{"no-children", 0, FLAG(no_children)},
	{"call-graph", 'g', .optional = true, .set = set_call_graph},
	{"no-call-graph", 0, FLAG(no_call_graph)},
	{"inverted", 'G', FLAG(inverted)},
	{"percent-limit", 0, TEXT(percent_limit)},
	{"percentage", 0, TEXT(percentage)},
	{"branch-stack", 'b', FLAG(branch_stack)},
	{"no-branch-stack", 0, FLAG(no_branch_stack)},
	{"group", 0, FLAG(group)},
	{"no-group", 0, FLAG(opt.no_groups)},
	{"by-vm", 0, FLAG(opt.by_vm)},
	{"event", 0, TEXT(opt.event)},
	{"symbol-filter", 0, TEXT(in.filter.symbol_part)},
	{"hide-unresolved", 'U', FLAG(opt.hide_unresolved)},
	{"folded", 0, FLAG(folded)},
	{"flamegraph", 0, TEXT(flamegraph)},
	{"json", 0, FLAG(json)},
	{"timeline", 0, FLAG(timeline)},
	{"time", 0, CLI_TEXT(struct args, in.time)},
	{"time-quantum", 0, .argument = true, .set = set_time_quantum},
	{"mem-mode", 0, FLAG(opt.memory)},
	{"stats", 0, FLAG(stats)},
	{"quiet", 'q', FLAG(opt.quiet)},
	{"verbose", 'v', .set = set_verbose},
	{"stdio", 0, FLAG(ignored)},
	{"force", 'f', FLAG(ignored)},
};

static int parse_percent(struct args *a, const char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	if (end == text || *end || !(*value >= 0 && *value <= 100))
		return err_set(&a->err, EINVAL, "--percent-limit '%s' is not a percentage", text);
	return 0;
}

static int parse_percentage(struct args *a)
{
	a->opt.relative = !strcmp(a->percentage, "relative");
	if (!a->opt.relative && strcmp(a->percentage, "absolute"))
		return err_set(&a->err, EINVAL,
			       "--percentage '%s' is neither relative nor absolute", a->percentage);
	return 0;
}

static int check_outputs(struct args *a)
{
	if (a->folded + a->json + a->stats + a->timeline + !!a->flamegraph > 1)
		return err_set(&a->err, EINVAL,
			       "--folded, --json, --stats, --timeline and --flamegraph exclude "
			       "each other");
	return 0;
}

/* As in perf the parent that is asked for is a key. Its pattern is wrong whatever the file has. */
static int sort_by_parent(struct args *a)
{
	struct parents *ps;

	if (!a->parent)
		return 0;
	if (parents_new(&ps, NULL, a->parent, false, &a->err))
		return -EINVAL;
	parents_free(ps);
	a->sort = a->opt.sort ? xasprintf("%s,parent", a->opt.sort) : xstrdup("+parent");
	a->opt.sort = a->sort;
	return 0;
}

/* What the options mean together. */
static int settle(struct args *a)
{
	struct callgraph_config *cg = &a->opt.callgraph;
	/* whether there are branches is not known yet */
	struct layout_config columns = {
		.fields = a->opt.fields, .branches = true, .memory = a->opt.memory};
	struct layout l = {0};
	int ret = check_outputs(a);

	if (a->opt.memory && !a->opt.sort)
		a->opt.sort = "local_weight,mem,symbol,dso,snoop,tlb,locked,blocked,local_ins_lat,"
			      "local_p_stage_cyc";
	if (!ret)
		ret = sort_by_parent(a);
	columns.sort = a->opt.sort;
	*cg = (struct callgraph_config){.mode = CALLGRAPH_GRAPH, .min_percent = 0.5};
	a->opt.filter = a->in.filter;
	a->opt.time = a->in.time;
	a->opt.children = !a->no_children;
	if (!ret)
		ret = cli_input_max_stack(&a->in, &a->opt.max_stack, &a->err);
	if (!ret && a->percent_limit)
		ret = parse_percent(a, a->percent_limit, &a->opt.percent_limit);
	if (a->percent_limit)
		cg->min_percent = a->opt.percent_limit;
	if (!ret && a->percentage)
		ret = parse_percentage(a);
	if (!ret && a->call_graph)
		ret = callgraph_parse(cg, a->call_graph, &a->err);
	if (a->no_call_graph)
		cg->mode = CALLGRAPH_NONE;
	if (a->inverted)
		cg->caller = true;
	/* rows of JSON say their VM */
	if (a->json)
		a->opt.by_vm = false;
	if (!ret)
		ret = layout_setup(&l, &columns, &a->err);
	return ret;
}

/* 0, 1 for --help, or -EINVAL, with a sentence where getopt has printed none. */
static int parse(struct args *a, int argc, char **argv)
{
	const struct cli_options tables[] = {
		{opts, sizeof(opts) / sizeof(*opts), a},
		cli_input_options(&a->in),
	};
	int ret = cli_parse_options(tables, 2, argc, argv, &a->err);

	if (ret)
		return ret;
	/* perf takes a lone argument for a part of a symbol */
	if (optind < argc && !a->in.filter.symbol_part)
		a->in.filter.symbol_part = argv[optind++];
	ret = cli_input_check_time(&a->in, &a->err);
	return ret ? ret : optind < argc ? -EINVAL : settle(a);
}

struct run {
	struct args *a;
	struct profile profile;
};

static bool wants_chains(const struct args *a)
{
	if (a->stats)
		return false;
	return a->folded || a->flamegraph || a->opt.children ||
	       a->opt.callgraph.mode != CALLGRAPH_NONE;
}

/*
 * perf's rule: a file with branch stacks is a profile of branches, unless it has user stacks, of
 * which it is likelier that call chains are wanted. Lines and frames are of samples.
 */
static int choose_branches(struct args *a, bool *branches)
{
	uint64_t types = 0;

	for (size_t i = 0; i < perfdata_reader_nr_evsels(a->in.reader); i++)
		types |= perfdata_reader_evsel(a->in.reader, i)->attr.sample_type;
	*branches = a->branch_stack || (!a->no_branch_stack && types & PERF_SAMPLE_BRANCH_STACK &&
					!(types & PERF_SAMPLE_STACK_USER));
	*branches &= !a->opt.memory && !a->folded && !a->flamegraph && !a->stats;
	if (a->branch_stack && !(types & PERF_SAMPLE_BRANCH_STACK))
		return err_set(&a->err, EINVAL,
			       "-b was given, but %s has no branch stacks; record with -b",
			       a->in.path);
	return 0;
}

/* All records into the profile. */
static int read_records(struct run *r)
{
	struct args *a = r->a;
	struct collect_options opt = {
		.chains = wants_chains(a),
		.user_stacks = a->stats,
		.hide_unresolved = a->opt.hide_unresolved,
		.inlines = cli_input_inlines(&a->in),
		.parent = a->parent,
		.parent_outermost = a->opt.children && !a->opt.callgraph.order_set,
		.cpus = a->in.cpus,
		.times = a->in.time ? &a->times : NULL,
		.max_user_stack = a->opt.max_stack,
		.time_quantum = a->time_quantum,
		.memory = a->opt.memory,
	};
	struct layout_config columns = {
		.sort = a->opt.sort, .fields = a->opt.fields, .memory = a->opt.memory};
	struct layout l = {0};
	struct collector *c = NULL;
	unsigned needs = filter_needs(&a->opt.filter);
	int ret = choose_branches(a, &columns.branches);

	if (!ret && !a->folded && !a->flamegraph && !a->stats)
		ret = layout_setup(&l, &columns, &a->err);
	profile_init(&r->profile, a->in.session, needs | l.needs);
	r->profile.branches = columns.branches;
	if (!ret)
		ret = collector_new(&c, &r->profile, &opt, &a->err);
	if (!ret)
		ret = cli_input_read(&a->in, collector_record, c, &a->err);
	r->profile.aux_bytes = perfdata_reader_get_stats(a->in.reader)->aux_bytes;
	collector_free(c);
	return ret;
}

static int no_flamegraph(struct args *a)
{
	return err_set(&a->err, ENOENT,
		       "no flame graph was written: %s has no samples, or none that the filters "
		       "leave",
		       a->in.path);
}

static int write_flamegraph(struct report *rep, struct args *a)
{
	bool to_stdout = !strcmp(a->flamegraph, "-"), failed;
	FILE *f;

	if (!report_has_wanted(rep, report_main_event(rep)))
		return no_flamegraph(a);
	f = to_stdout ? stdout : fopen(a->flamegraph, "we");
	if (!f)
		return err_sys(&a->err, errno, "cannot write %s", a->flamegraph);
	report_print_flamegraph(rep, f);
	if (to_stdout)
		return 0;
	failed = ferror(f);
	failed |= fclose(f) != 0;
	if (failed)
		return err_sys(&a->err, errno ? errno : EIO, "cannot write %s", a->flamegraph);
	if (!a->opt.quiet)
		printf("[ vmprof report: wrote %s ]\n", a->flamegraph);
	return 0;
}

static void set_group(struct run *r, const struct perfdata_group *g, bool forced)
{
	struct profile *p = &r->profile;
	struct profile_event *e;

	for (uint32_t i = 0; i < g->nr; i++) {
		const struct perfdata_evsel *evsel =
			perfdata_reader_evsel(r->a->in.reader, g->leader + i);

		profile_set_event(p, evsel->index, evsel->name,
				  evsel->attr.sample_type & PERF_SAMPLE_CALLCHAIN);
	}
	e = &p->events[g->leader];
	e->group_size = g->nr;
	e->group_name = g->name ? profile_text(p, g->name) : NULL;
	e->group_forced = forced;
}

/* Those that were recorded as such; with --group, if there are none, all events are one. */
static void set_groups(struct run *r)
{
	struct perfdata_group g = {0},
			      all = {.nr = (uint32_t)perfdata_reader_nr_evsels(r->a->in.reader)};
	bool any = false;

	for (; perfdata_reader_next_group(r->a->in.reader, &g); any = true)
		set_group(r, &g, false);
	if (r->a->group && !any && all.nr > 1)
		set_group(r, &all, true);
}

static bool has_samples(const struct profile *p)
{
	for (size_t i = 0; i < p->nr_events; i++)
		if (p->events[i].samples)
			return true;
	return false;
}

/* Of the events that are shown, when all else is ready. */
static bool any_left(struct report *rep)
{
	for (uint32_t i = 0; i < rep->profile->nr_events; i++)
		if (report_wants_event(rep, i) && report_has_wanted(rep, i))
			return true;
	return false;
}

/* As perf says it of a file without samples. */
static void say_no_samples(struct args *a)
{
	if (cli_input_none_left(&a->in, "report") || a->in.damage.code)
		return;
	fflush(stdout);
	fprintf(stderr, "The %s data has no samples!\n", a->in.path);
}

static void print_header(struct args *a)
{
	perfdata_reader_print_header(a->in.reader, stdout, a->opt.verbose > 0);
	report_print_origin(a->in.session, stdout);
}

/* What a merged file says of itself stands before its samples. */
static int read_marks(void *session, const struct perfdata_record *rec)
{
	if (rec->is_private)
		session_process(session, rec);
	return rec->type == PERF_RECORD_SAMPLE ? -ECANCELED : 0;
}

/* Of the samples it is only asked whether the file is long enough to have them all. */
static void print_header_only(struct args *a)
{
	struct vmprof_err ignored;

	perfdata_reader_run(a->in.reader, read_marks, a->in.session, &ignored);
	cli_input_read_header(&a->in);
	print_header(a);
}

static int print_report(struct run *r)
{
	struct args *a = r->a;
	struct report rep;
	int ret;

	if (a->stats) {
		report_print_stats(&r->profile, perfdata_reader_get_stats(a->in.reader), stdout);
		return 0;
	}
	if (a->in.header && !a->opt.quiet)
		print_header(a);
	else if (!a->opt.quiet && !a->folded && !a->json && !a->flamegraph)
		fputs("# To display the perf.data header info, please use --header/--header-only "
		      "options.\n#\n",
		      stdout);
	if (r->profile.no_cpus)
		return err_set(&a->err, EINVAL,
			       "-C was given, but samples in %s carry no CPU; record with -a or "
			       "--sample-cpu",
			       a->in.path);
	if (!has_samples(&r->profile) && !a->json) {
		if (a->flamegraph)
			return no_flamegraph(a);
		say_no_samples(a);
		return 0;
	}
	set_groups(r);
	ret = cli_input_check_vms(&a->in, &a->err);
	if (!ret)
		ret = report_prepare(&rep, &r->profile, &a->opt, a->in.path, &a->err);
	if (ret)
		return ret;
	rep.damaged = a->in.damage.code != 0;
	if (a->call_graph && a->opt.callgraph.mode != CALLGRAPH_NONE && !rep.chains &&
	    !r->profile.branches)
		return err_set(&a->err, EINVAL,
			       "-g was given, but %s has no call chains; record with -g",
			       a->in.path);
	if (a->flamegraph)
		return write_flamegraph(&rep, a);
	if (!any_left(&rep))
		cli_input_none_left(&a->in, "report");
	if (a->folded)
		report_print_folded(&rep, stdout);
	else if (a->json)
		report_print_json(&rep, stdout);
	else
		report_print(&rep, stdout);
	return 0;
}

/* Samples are printed as they are read. */
static int print_timeline(struct run *r)
{
	struct args *a = r->a;
	struct timeline_options opt = {
		.filter = a->opt.filter,
		.event = a->opt.event,
		.cpus = a->in.cpus,
		.times = a->in.time ? &a->times : NULL,
		.hide_unresolved = a->opt.hide_unresolved,
		.quiet = a->opt.quiet,
	};
	struct timeline *t;
	int ret;

	if (a->in.header && !a->opt.quiet)
		perfdata_reader_print_header(a->in.reader, stdout, a->opt.verbose > 0);
	ret = timeline_new(&t, a->in.session, a->in.reader, &opt, stdout, &a->err);
	if (ret)
		return ret;
	ret = cli_input_read(&a->in, timeline_record, t, &a->err);
	if (timeline_error(t)->code)
		a->err = *timeline_error(t);
	timeline_flush(t);
	if (!ret && timeline_is_empty(t))
		cli_input_none_left(&a->in, "report");
	timeline_free(t);
	return ret ? ret : cli_input_check_vms(&a->in, &a->err);
}

static int make_report(struct run *r)
{
	struct args *a = r->a;
	int ret;

	if (a->in.header_only) {
		print_header_only(a);
		return 0;
	}
	if (a->timeline)
		return print_timeline(r);
	ret = read_records(r);
	return ret ? ret : print_report(r);
}

static int run(struct args *a)
{
	struct run r = {.a = a};
	int ret = cli_input_open(&a->in, &a->err);

	if (!ret)
		ret = cli_input_times(&a->in, &a->times, &a->err);
	if (!ret)
		ret = make_report(&r);
	if (!ret && (fflush(stdout) || ferror(stdout)))
		ret = err_sys(&a->err, errno ? errno : EIO, "cannot write to standard output");
	profile_free(&r.profile);
	time_ranges_free(&a->times);
	free(a->sort);
	return cli_input_end(&a->in, "report", ret, &a->err);
}

int cmd_report(int argc, char **argv)
{
	struct args a = {0};
	int ret = parse(&a, argc, argv);

	if (!ret)
		return run(&a);
	free(a.sort);
	return cli_input_not_parsed(&a.in, "report", usage, ret, &a.err);
}
