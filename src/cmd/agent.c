// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdint.h>

#include "agent/serve.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cmd/cmd.h"
#include "util/text.h"

static const char usage[] =
	"vmprof agent -o DIR [-g] [--max-time TIME] [--max-size BYTES]\n"
	"\n"
	"  -o, --output DIR      a folder in it for each record of each domain\n"
	"  -g                    record call chains\n"
	"      --max-time TIME   a record ends after it (default 10m): 10, 10s, 500ms, 2m\n"
	"      --max-size BYTES  no file of a record gets larger (default 256M): 64K, 2M, 3G\n"
	"  -v, --verbose         what each domain is told";

struct options {
	struct records_options records;
	bool verbose;
};

static int set_time(void *args, const char *arg, struct vmprof_err *err)
{
	struct options *o = args;

	if (parse_duration(arg, &o->records.max_time_ns) || o->records.max_time_ns < 1000000)
		return err_set(err, EINVAL, "--max-time '%s' is not a time: 10, 10s, 500ms, 2m",
			       arg);
	return 0;
}

static int set_size(void *args, const char *arg, struct vmprof_err *err)
{
	struct options *o = args;

	if (parse_size(arg, 1, &o->records.max_bytes) || !o->records.max_bytes)
		return err_set(err, EINVAL, "--max-size '%s' is not a size: 64K, 2M, 3G", arg);
	return 0;
}

static const struct cli_option opts[] = {
	{"output", 'o', CLI_TEXT(struct options, records.output), .argument = true},
	{"call-chains", 'g', CLI_FLAG(struct options, records.chains)},
	{"max-time", .argument = true, .set = set_time},
	{"max-size", .argument = true, .set = set_size},
	{"verbose", 'v', CLI_FLAG(struct options, verbose)},
};

int cmd_agent(int argc, char **argv)
{
	struct options o = {
		.records = {.program = "/proc/self/exe",
			    .max_time_ns = 600000000000ull,
			    .max_bytes = 256ull << 20},
	};
	const struct cli_options table = {opts, sizeof(opts) / sizeof(*opts), &o};
	struct vmprof_err err = {0};
	int rc = cli_parse_options(&table, 1, argc, argv, &err);

	if (rc)
		return cli_not_parsed("agent", usage, rc, &err);
	if (optind < argc || !o.records.output || !*o.records.output)
		return cli_usage_error("agent", usage);
	return agent_serve(&o.records, o.verbose, &err) ? cli_error("agent", &err) : 0;
}
