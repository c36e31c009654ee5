// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/messages.h"
#include "cli/options.h"
#include "cmd/cmd.h"
#include "merge/merge.h"
#include "util/text.h"
#include "util/xalloc.h"

static const char usage[] =
	"vmprof merge -o OUT [OPTIONS] [VM=]FILE...\n"
	"\n"
	"  -o, --output OUT           write OUT; - is standard output\n"
	"      --clock-offset IN=NS   move the times of IN (a label or file) by so many ns\n"
	"      --no-align             no common time line; the file says so\n"
	"      --prefer guest|host    whose samples of a VM count where both have its time\n"
	"                             (default guest)\n"
	"      --machine VM=PID       VM is the process PID of the host\n"
	"  -q, --quiet                say nothing but what is lost";

struct args {
	struct merge_options opt;
	struct merge_named *offsets, *machines; /* of opt */
	size_t cap_offsets, cap_machines;
	struct vmprof_err err;
};

/* "NAME=NUMBER", the last '=' counts: a path may have one. */
static int add_named(struct merge_named **list, size_t *n, size_t *cap, const char *option,
		     const char *arg, int64_t min, int64_t max, struct vmprof_err *err)
{
	const char *equals = strrchr(arg, '=');
	char shown[128], *end;
	long long v;

	errno = 0;
	v = equals ? strtoll(equals + 1, &end, 10) : 0;
	if (!equals || equals == arg || end == equals + 1 || *end || errno || v < min || v > max)
		return err_set(err, EINVAL, "%s '%s' is no NAME=NUMBER", option,
			       escape_str(shown, sizeof(shown), arg));
	*list = xgrow(*list, cap, *n + 1, sizeof(**list));
	(*list)[(*n)++] = (struct merge_named){xstrndup(arg, (size_t)(equals - arg)), (int64_t)v};
	return 0;
}

static int set_offset(void *args, const char *arg, struct vmprof_err *err)
{
	struct args *a = args;

	return add_named(&a->offsets, &a->opt.nr_offsets, &a->cap_offsets, "--clock-offset", arg,
			 -INT64_MAX, INT64_MAX, err);
}

static int set_machine(void *args, const char *arg, struct vmprof_err *err)
{
	struct args *a = args;

	return add_named(&a->machines, &a->opt.nr_machines, &a->cap_machines, "--machine", arg, 1,
			 INT32_MAX, err);
}

static int set_prefer(void *args, const char *arg, struct vmprof_err *err)
{
	struct args *a = args;
	char shown[64];

	a->opt.prefer_host = !strcmp(arg, "host");
	if (!a->opt.prefer_host && strcmp(arg, "guest") != 0)
		return err_set(err, EINVAL, "--prefer '%s' is neither guest nor host",
			       escape_str(shown, sizeof(shown), arg));
	return 0;
}

static const struct cli_option opts[] = {
	{"output", 'o', CLI_TEXT(struct args, opt.output)},
	{"clock-offset", 0, .argument = true, .set = set_offset},
	{"no-align", 0, CLI_FLAG(struct args, opt.no_align)},
	{"prefer", 0, .argument = true, .set = set_prefer},
	{"machine", 0, .argument = true, .set = set_machine},
	{"quiet", 'q', CLI_FLAG(struct args, opt.quiet)},
};

/* "-", or "LABEL=-" */
static bool is_stdin(const char *input)
{
	const char *equals = strchr(input, '=');

	if (!equals || memchr(input, '/', (size_t)(equals - input)))
		return !strcmp(input, "-");
	return !strcmp(equals + 1, "-");
}

/* 0, 1 for --help, or -EINVAL, with a sentence where nothing has been printed yet. */
static int parse(struct args *a, int argc, char **argv)
{
	const struct cli_options tables[] = {{opts, sizeof(opts) / sizeof(*opts), a}};
	int ret = cli_parse_options(tables, 1, argc, argv, &a->err);
	unsigned from_stdin = 0;

	a->opt.offsets = a->offsets;
	a->opt.machines = a->machines;
	if (ret)
		return ret;
	a->opt.inputs = argv + optind;
	a->opt.nr_inputs = (size_t)(argc - optind);
	if (!a->opt.output)
		return err_set(&a->err, EINVAL, "no output is given; use -o OUT");
	if (!a->opt.nr_inputs)
		return err_set(&a->err, EINVAL, "no profile to merge is given");
	if (a->opt.nr_inputs > MERGE_INPUTS_MAX)
		return err_set(&a->err, EINVAL, "more than %d profiles at once", MERGE_INPUTS_MAX);
	for (size_t i = 0; i < a->opt.nr_inputs; i++)
		from_stdin += is_stdin(a->opt.inputs[i]);
	if (from_stdin > 1)
		return err_set(&a->err, EINVAL,
			       "standard input (-) is given %u times, and can be read once only",
			       from_stdin);
	if (a->opt.no_align && a->opt.nr_offsets)
		return err_set(&a->err, EINVAL, "--no-align and --clock-offset exclude each other");
	return 0;
}

static void args_free(struct args *a)
{
	for (size_t i = 0; i < a->opt.nr_offsets; i++)
		free(a->offsets[i].name);
	for (size_t i = 0; i < a->opt.nr_machines; i++)
		free(a->machines[i].name);
	free(a->offsets);
	free(a->machines);
}

/* The whole command line, as a file's header has it. */
static char **with_program(int argc, char **argv)
{
	char **all = xcalloc((size_t)argc + 2, sizeof(*all));

	all[0] = (char *)"vmprof";
	memcpy(all + 1, argv, (size_t)argc * sizeof(*all));
	return all;
}

static int run(struct args *a)
{
	struct merge_result result;
	int ret = merge_run(&a->opt, &result, &a->err);

	if (ret)
		cli_error("merge", &a->err);
	if (result.signal)
		return 128 + result.signal;
	return ret || result.damaged ? 1 : 0;
}

int cmd_merge(int argc, char **argv)
{
	char **all = with_program(argc, argv);
	struct args a = {.opt.argv = all};
	int ret = parse(&a, argc, argv);

	ret = ret ? cli_not_parsed("merge", usage, ret, &a.err) : run(&a);
	args_free(&a);
	free(all);
	return ret;
}
