// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/input.h"
#include "cli/messages.h"
#include "cmd/cmd.h"
#include "export/export.h"
#include "report/collect.h"
#include "util/text.h"

static const char usage[] =
	"vmprof export --format pprof|speedscope|firefox [-o FILE|-] [-i FILE|-] [FILTERS]\n"
	"\n"
	"      --format FORMAT      pprof: for go tool pprof and others, gzipped\n"
	"                           speedscope: JSON for speedscope, a profile for each VM\n"
	"                           firefox: JSON for profiler.firefox.com, with a time line\n"
	"  -o, --output FILE        where to (default: standard output); JSON is gzipped if the\n"
	"                           name ends in .gz\n"
	"  -i, --input FILE         read FILE (default perf.data); - is standard input\n"
	"      --event NAME         only this event\n"
	"      --vm LIST            only these VMs (names or UUIDs, 'host')\n"
	"  -c, --comms LIST, -d, --dsos LIST, -S, --symbols LIST, --pid LIST, --tid LIST,\n"
	"  -C, --cpu LIST           only these commands, shared objects, symbols, ...\n"
	"      --max-stack N        only N frames of a call chain\n"
	"      --inline             frames of inlined functions, too\n"
	"      --symfs, --vmlinux, --kallsyms [VM=]PATH, --buildid-dir DIR, --no-demangle\n"
	"                           where symbols are\n"
	"  -q, --quiet              do not say what was written";

struct args {
	struct cli_input in;
	const char *output, *event;
	const struct export_format *format;
	bool quiet;
	unsigned max_stack; /* 0: all */
	struct vmprof_err err;
};

#define TEXT(member) CLI_TEXT(struct args, member)
#define FLAG(member) CLI_FLAG(struct args, member)

static int set_format(void *args, const char *arg, struct vmprof_err *err)
{
	struct args *a = args;
	char text[64];

	a->format = export_find_format(arg);
	return a->format
		       ? 0
		       : err_set(err, EINVAL, "--format '%s' is none of pprof, speedscope, firefox",
				 escape_str(text, sizeof(text), arg));
}

static const struct cli_option opts[] = {
	{"format", 0, .argument = true, .set = set_format},
	{"output", 'o', TEXT(output)},
	{"event", 0, TEXT(event)},
	{"quiet", 'q', FLAG(quiet)},
};

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
	if (!a->format)
		return err_set(&a->err, EINVAL,
			       "--format says what to write: pprof, speedscope or firefox");
	if (!a->output)
		a->output = "-";
	if (a->in.max_stack)
		ret = cli_input_max_stack(&a->in, &a->max_stack, &a->err);
	return optind < argc ? -EINVAL : ret;
}

static bool to_stdout(const struct args *a)
{
	return !strcmp(a->output, "-");
}

static bool wants_gzip(const struct args *a)
{
	size_t n = strlen(a->output);

	return a->format->gzip ? export_has_gzip() : n > 3 && !strcmp(a->output + n - 3, ".gz");
}

/* Opening it for writing empties it, and what a pipe brings cannot be had again. */
static int check_output(struct args *a)
{
	struct stat out, in;

	if (to_stdout(a) && a->format->gzip && isatty(STDOUT_FILENO))
		return err_set(&a->err, EINVAL,
			       "%s is no text for a terminal; -o FILE says where to write it",
			       a->format->name);
	if (!to_stdout(a) && !stat(a->output, &out) && !stat(a->in.path, &in) &&
	    out.st_dev == in.st_dev && out.st_ino == in.st_ino)
		return err_set(&a->err, EINVAL, "-o %s is the file that is read", a->output);
	if (wants_gzip(a) && !export_has_gzip())
		return err_set(&a->err, ENOSYS,
			       "cannot write %s: this vmprof was built without zlib; leave out .gz",
			       a->output);
	return 0;
}

/* NULL with errno. */
static FILE *open_output(const struct args *a)
{
	int fd = to_stdout(a) ? dup(STDOUT_FILENO)
			      : open(a->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	FILE *f;

	if (fd < 0)
		return NULL;
	f = wants_gzip(a) ? export_gzip(fd) : fdopen(fd, "w");
	if (!f)
		close(fd);
	return f;
}

static int write_output(struct args *a, struct export *x)
{
	const char *name = to_stdout(a) ? "to standard output" : a->output;
	FILE *f = open_output(a);
	bool failed;

	if (!f)
		return err_sys(&a->err, errno, "cannot write %s", name);
	a->format->write(x, f);
	failed = ferror(f);
	failed |= fclose(f) != 0;
	if (failed)
		return err_sys(&a->err, errno ? errno : EIO, "cannot write %s", name);
	if (!to_stdout(a) && !a->quiet)
		printf("[ vmprof export: wrote %s ]\n", a->output);
	return 0;
}

static int check_records(struct args *a, const struct export *x)
{
	if (x->profile->no_cpus)
		return err_set(&a->err, EINVAL,
			       "-C was given, but samples in %s carry no CPU; record with -a or "
			       "--sample-cpu",
			       a->in.path);
	return cli_input_check_vms(&a->in, &a->err);
}

/* All records into @x. */
static int read_records(struct args *a, struct export *x)
{
	struct collect_options opt = {
		.chains = true,
		.inlines = cli_input_inlines(&a->in),
		.cpus = a->in.cpus,
		.max_stack = a->max_stack,
		.max_user_stack = a->max_stack,
		.sample = export_sample,
		.sample_ctx = x,
	};
	struct collector *c = NULL;
	int ret = collector_new(&c, x->profile, &opt, &a->err);

	if (!ret)
		ret = cli_input_read(&a->in, collector_record, c, &a->err);
	collector_free(c);
	return ret;
}

static int run(struct args *a)
{
	struct profile p = {0};
	struct export x = {.profile = &p, .keep_samples = a->format->has_samples};
	int ret = cli_input_open(&a->in, &a->err);

	if (!ret)
		ret = check_output(a);
	if (!ret) {
		profile_init(&p, a->in.session, a->format->needs | filter_needs(&a->in.filter));
		ret = read_records(a, &x);
	}
	if (!ret)
		ret = check_records(a, &x);
	if (!ret)
		ret = export_prepare(&x, a->in.reader, &a->in.filter, a->event, &a->err);
	if (!ret && a->format->check)
		ret = a->format->check(&x, &a->err);
	if (!ret)
		ret = write_output(a, &x);
	export_free(&x);
	profile_free(&p);
	return cli_input_end(&a->in, "export", ret, &a->err);
}

int cmd_export(int argc, char **argv)
{
	struct args a = {0};
	int ret = parse(&a, argc, argv);

	return ret ? cli_input_not_parsed(&a.in, "export", usage, ret, &a.err) : run(&a);
}
