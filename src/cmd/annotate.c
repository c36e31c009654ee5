// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "annotate/annotate.h"
#include "cli/input.h"
#include "cli/messages.h"
#include "cmd/cmd.h"
#include "util/text.h"

static const char usage[] =
	"vmprof annotate [-i FILE|-] [SYMBOL] [FILTERS]\n"
	"\n"
	"  -i, --input FILE         read FILE (default perf.data); - is standard input\n"
	"  -s, --symbol SYMBOL      only this function, like SYMBOL itself\n"
	"      --percent-type TYPE  local-period (default), global-period, local-hits, "
	"global-hits:\n"
	"                           of the function or of all, by period or number of samples\n"
	"  -n, --show-nr-samples    samples instead of percent\n"
	"      --show-total-period  the event count instead of percent\n"
	"      --percent-limit N    no functions below N percent of all\n"
	"      --group              all events side by side\n"
	"      --no-jumps           no arrows from jumps to their targets\n"
	"      --source             source lines between the instructions (default)\n"
	"      --no-source          no source lines between the instructions\n"
	"  -l, --print-line         source lines by their share, and before instructions that have "
	"one\n"
	"      --event NAME         only this event\n"
	"  -P, --full-paths         whole paths of files\n"
	"      --vm LIST            only these VMs (names or UUIDs, 'host')\n"
	"  -c, --comms LIST, -d, --dsos LIST, -S, --symbols LIST, --pid LIST, --tid LIST,\n"
	"  -C, --cpu LIST           only these commands, shared objects, symbols, ...\n"
	"      --symfs, --vmlinux, --kallsyms [VM=]PATH, --buildid-dir DIR, --no-demangle\n"
	"                           where symbols and code are\n"
	"  -q, --quiet              do not say what could not be annotated";

struct args {
	struct cli_input in;
	struct annotate_options opt;
	const char *symbol, *percent_limit;
	bool quiet, samples, period;
	bool ignored; /* options of perf that are how it is here */
	struct vmprof_err err;
};

#define TEXT(member) CLI_TEXT(struct args, member)
#define FLAG(member) CLI_FLAG(struct args, member)

static int set_type(void *args, const char *arg, struct vmprof_err *err)
{
	return annotate_parse_type(&((struct args *)args)->opt, arg, err);
}

static const struct cli_option opts[] = {
	{"symbol", 's', TEXT(symbol)},
	{"percent-type", 0, .argument = true, .set = set_type},
	{"show-nr-samples", 'n', FLAG(samples)},
	{"show-total-period", 0, FLAG(period)},
	{"percent-limit", 0, TEXT(percent_limit)},
	{"group", 0, FLAG(opt.group)},
	{"no-jumps", 0, FLAG(opt.no_jumps)},
	{"source", 0, FLAG(ignored)},
	{"no-source", 0, FLAG(opt.no_source)},
	{"print-line", 'l', FLAG(opt.print_lines)},
	{"event", 0, TEXT(opt.event)},
	{"full-paths", 'P', FLAG(opt.full_paths)},
	{"quiet", 'q', FLAG(quiet)},
	{"stdio", 0, FLAG(ignored)},
	{"force", 'f', FLAG(ignored)},
};

static int parse_limit(struct args *a)
{
	double *v = &a->opt.percent_limit;
	char *end;

	if (!a->percent_limit)
		return 0;
	*v = strtod(a->percent_limit, &end);
	if (end == a->percent_limit || *end || !(*v >= 0 && *v <= 100))
		return err_set(&a->err, EINVAL, "--percent-limit '%s' is not a percentage",
			       a->percent_limit);
	return 0;
}

/* 0, 1 for --help, or -EINVAL, with a sentence where getopt has printed none. */
static int parse(struct args *a, int argc, char **argv)
{
	const struct cli_options tables[] = {
		{opts, sizeof(opts) / sizeof(*opts), a},
		cli_input_options(&a->in),
	};
	int ret = cli_parse_options(tables, 2, argc, argv, &a->err);

	if (!ret)
		ret = cli_input_no_header(&a->in, &a->err);
	if (ret)
		return ret;
	if (a->in.max_stack)
		return err_set(&a->err, EINVAL,
			       "--max-stack is of no use: call chains are not annotated");
	if (a->samples && a->period)
		return err_set(&a->err, EINVAL,
			       "--show-nr-samples and --show-total-period exclude each other");
	a->opt.column = a->samples  ? ANNOTATE_SAMPLES
			: a->period ? ANNOTATE_PERIOD
				    : ANNOTATE_PERCENT;
	if (optind < argc && !a->symbol)
		a->symbol = argv[optind++];
	return optind < argc ? -EINVAL : parse_limit(a);
}

static int check_samples(struct args *a, const struct hits *h)
{
	char text[256];

	if (h->no_cpus)
		return err_set(&a->err, EINVAL,
			       "-C was given, but samples in %s carry no CPU; record with -a or "
			       "--sample-cpu",
			       a->in.path);
	if (!hits_nr_symbols(h) && a->symbol)
		return err_set(&a->err, ENOENT,
			       "no sample of %s is in %s; vmprof report shows what is",
			       escape_str(text, sizeof(text), a->symbol), a->in.path);
	if (!hits_nr_symbols(h))
		return err_set(&a->err, ENODATA,
			       "no function has samples in %s that the filters leave", a->in.path);
	return 0;
}

static int print(struct args *a, struct hits *h)
{
	struct annotate_result r;

	hits_sort(h);
	annotate_print(h, &a->opt, stdout, &r);
	if (!r.shown && r.first.code) {
		a->err = r.first;
		return -a->err.code;
	}
	if (!r.failed || a->quiet)
		return 0;
	cli_note("annotate",
		 "%" PRIu32 " functions with %" PRIu64
		 " samples could not be annotated; the first: %s",
		 r.failed, r.failed_samples, r.first.msg);
	return 0;
}

static int run(struct args *a)
{
	struct hits h = {0};
	int ret = cli_input_open(&a->in, &a->err);

	if (!ret)
		ret = hits_init(&h, a->in.session, &a->in.filter, a->symbol, a->in.cpus, &a->err);
	if (!ret)
		ret = cli_input_read(&a->in, hits_record, &h, &a->err);
	if (!ret)
		ret = cli_input_check_vms(&a->in, &a->err);
	if (!ret)
		ret = check_samples(a, &h);
	if (!ret)
		ret = print(a, &h);
	hits_free(&h);
	return cli_input_end(&a->in, "annotate", ret, &a->err);
}

int cmd_annotate(int argc, char **argv)
{
	struct args a = {0};
	int ret = parse(&a, argc, argv);

	return ret ? cli_input_not_parsed(&a.in, "annotate", usage, ret, &a.err) : run(&a);
}
