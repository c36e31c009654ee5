// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/messages.h"
#include "cli/options.h"
#include "cmd/cmd.h"
#include "stat/stat.h"
#include "util/text.h"

#define INTERVAL_MIN_MS 10 /* perf's */
#define REPEAT_MAX	100000

static const char usage[] =
	"vmprof stat [-e EVENTS] [--vm NAME [-e EVENTS]]... [-a] [--exits] [-- CMD...]\n"
	"\n"
	"  -e, --event EVENTS       what to count; behind a --vm it is for that VM\n"
	"      --vm NAME            a VM by name, UUID or pid; may be repeated\n"
	"  -a, --all-vms            all VMs of this host\n"
	"      --per-vcpu           each vCPU by itself\n"
	"  -I, --interval-print MS  print every MS milliseconds what was counted since\n"
	"      --interval-count N   end after N intervals\n"
	"      --timeout MS         end after MS milliseconds\n"
	"  -r, --repeat N           run CMD N times, print means and their spread\n"
	"  -x, --field-separator SEP  values separated by SEP, for programs\n"
	"  -j, --json-output        the same as JSON, an object a line (also --json)\n"
	"  -o, --output FILE        write to FILE\n"
	"      --append             to what is in it\n"
	"      --backend NAME       count by this backend\n"
	"      --exits              why the vCPUs left guest mode, how often, for how long\n"
	"  -i, --input FILE         exits: those that perf has recorded into FILE\n"
	"      --vcpu N             exits: of this vCPU only\n"
	"      --sort time|count    exits: what the rows are ordered by (default count)\n"
	"  -- CMD...                count while CMD runs";

static int number(const char *what, const char *arg, unsigned long min, unsigned long max,
		  unsigned long *v, struct vmprof_err *err)
{
	char shown[64], *end;

	errno = 0;
	*v = strtoul(arg, &end, 10);
	if (errno || end == arg || *end || *arg == '-' || *v < min || *v > max)
		return err_set(err, EINVAL, "%s '%s' is not a number from %lu to %lu", what,
			       escape_str(shown, sizeof(shown), arg), min, max);
	return 0;
}

static int set_event(void *args, const char *arg, struct vmprof_err *err)
{
	return wanted_add_event(&((struct stat_options *)args)->wanted, arg, err);
}

static int set_vm(void *args, const char *arg, struct vmprof_err *err)
{
	wanted_add_vm(&((struct stat_options *)args)->wanted, arg);
	return 0;
}

static int set_interval(void *args, const char *arg, struct vmprof_err *err)
{
	struct stat_options *o = args;
	unsigned long ms;
	int rc = number("-I", arg, INTERVAL_MIN_MS, 1000000000, &ms, err);

	o->interval_ns = rc ? 0 : ms * 1000000ull;
	return rc;
}

static int set_interval_count(void *args, const char *arg, struct vmprof_err *err)
{
	struct stat_options *o = args;
	unsigned long n;
	int rc = number("--interval-count", arg, 1, 1000000000, &n, err);

	o->interval_count = rc ? 0 : (unsigned)n;
	return rc;
}

static int set_timeout(void *args, const char *arg, struct vmprof_err *err)
{
	struct stat_options *o = args;
	unsigned long ms;
	int rc = number("--timeout", arg, 1, 1000000000, &ms, err);

	o->duration_ns = rc ? 0 : ms * 1000000ull;
	return rc;
}

static int set_repeat(void *args, const char *arg, struct vmprof_err *err)
{
	struct stat_options *o = args;
	unsigned long n;
	int rc = number("-r", arg, 1, REPEAT_MAX, &n, err);

	o->repeat = rc ? 0 : (unsigned)n;
	return rc;
}

static int set_separator(void *args, const char *arg, struct vmprof_err *err)
{
	struct stat_options *o = args;

	if (!*arg)
		return err_set(err, EINVAL, "-x '': a separator is missing");
	o->sep = strcmp(arg, "\\t") != 0 ? arg : "\t";
	return 0;
}

static int set_vcpu(void *args, const char *arg, struct vmprof_err *err)
{
	struct stat_options *o = args;
	unsigned long n;
	int rc = number("--vcpu", arg, 0, 1000000, &n, err);

	o->vcpu = rc ? -1 : (int)n;
	return rc;
}

static int set_sort(void *args, const char *arg, struct vmprof_err *err)
{
	struct stat_options *o = args;
	char shown[64];

	/* perf kvm stat's word for it is sample */
	if (!strcmp(arg, "count") || !strcmp(arg, "sample"))
		o->sort = EXITS_BY_COUNT;
	else if (!strcmp(arg, "time"))
		o->sort = EXITS_BY_TIME;
	else
		return err_set(err, EINVAL, "--sort '%s': it is time or count",
			       escape_str(shown, sizeof(shown), arg));
	return 0;
}

struct stat_args {
	struct stat_options o; /* first: the functions above get it */
	bool json;
};

static const struct cli_option options[] = {
	{.name = "event", .letter = 'e', .argument = true, .set = set_event},
	{.name = "vm", .argument = true, .set = set_vm},
	{.name = "all-vms", .letter = 'a', CLI_FLAG(struct stat_args, o.all_vms)},
	{.name = "per-vcpu", CLI_FLAG(struct stat_args, o.per_vcpu)},
	{.name = "interval-print", .letter = 'I', .argument = true, .set = set_interval},
	{.name = "interval-count", .argument = true, .set = set_interval_count},
	{.name = "timeout", .argument = true, .set = set_timeout},
	{.name = "repeat", .letter = 'r', .argument = true, .set = set_repeat},
	{.name = "field-separator", .letter = 'x', .argument = true, .set = set_separator},
	{.name = "json-output", .letter = 'j', CLI_FLAG(struct stat_args, json)},
	{.name = "json", CLI_FLAG(struct stat_args, json)},
	{.name = "output", .letter = 'o', CLI_TEXT(struct stat_args, o.output)},
	{.name = "append", CLI_FLAG(struct stat_args, o.append)},
	{.name = "backend", CLI_TEXT(struct stat_args, o.backend)},
	{.name = "exits", CLI_FLAG(struct stat_args, o.exits)},
	{.name = "input", .letter = 'i', CLI_TEXT(struct stat_args, o.input)},
	{.name = "vcpu", .argument = true, .set = set_vcpu},
	{.name = "sort", .argument = true, .set = set_sort},
};

static bool has_events(const struct wanted *w)
{
	bool any = w->events.n;

	for (unsigned i = 0; i < w->nr_vms; i++)
		any = any || w->vms[i].events.n;
	return any;
}

/* What does not go together. */
static int check(const struct stat_args *a, struct vmprof_err *err)
{
	const struct stat_options *o = &a->o;
	const struct {
		bool bad;
		const char *why;
	} rules[] = {
		{a->json && o->sep, "-x and -j are two formats: one of them"},
		{o->append && !o->output, "--append wants -o FILE"},
		{o->output && !*o->output, "-o '' is not a file: it has no name"},
		{o->repeat > 1 && !o->command, "-r wants a command to be repeated: -- CMD..."},
		{o->repeat > 1 && o->interval_ns, "-r and -I do not go together"},
		{o->interval_count && !o->interval_ns, "--interval-count wants -I"},
		{o->exits && has_events(&o->wanted), "--exits has events of its own: no -e"},
		{o->exits && o->repeat > 1, "--exits and -r do not go together"},
		{o->exits && o->backend, "--exits is had by tracepoints: no --backend"},
		{o->exits && o->per_vcpu, "--exits: use --vcpu N for one vCPU"},
		{o->input && !o->exits, "-i FILE is for --exits"},
		{o->input && (o->command || o->interval_ns || o->duration_ns),
		 "-i FILE is of a time that is over: no command, -I, --timeout"},
		{!o->exits && o->vcpu >= 0, "--vcpu is for --exits; counts have --per-vcpu"},
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
		if (rules[i].bad)
			return err_set(err, EINVAL, "%s", rules[i].why);
	return 0;
}

static int parse(struct stat_args *a, int argc, char **argv, struct vmprof_err *err)
{
	const struct cli_options table = {
		.opts = options,
		.n = sizeof(options) / sizeof(*options),
		.args = a,
	};
	int rc = cli_parse_command_options(&table, 1, argc, argv, err);

	if (rc)
		return rc;
	if (optind < argc)
		a->o.command = argv + optind;
	a->o.format = a->json ? STAT_JSON : a->o.sep ? STAT_SEPARATED : STAT_TEXT;
	return check(a, err);
}

int cmd_stat(int argc, char **argv)
{
	struct stat_args a = {.o = {.repeat = 1, .vcpu = -1, .sort = EXITS_BY_COUNT}};
	struct stat_result result = {0};
	struct vmprof_err err = {0};
	int rc = parse(&a, argc, argv, &err);

	/* the locale's groups of digits are for people */
	if (a.o.format == STAT_TEXT)
		setlocale(LC_NUMERIC, "");
	if (rc) {
		result.status = cli_not_parsed("stat", usage, rc, &err);
	} else if (stat_run(&a.o, &result, &err)) {
		result.status = cli_error("stat", &err);
	} else if (result.signal) {
		cli_end_by_signal(result.signal);
	}
	wanted_free(&a.o.wanted);
	return result.status;
}
