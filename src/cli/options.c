// SPDX-License-Identifier: GPL-2.0-only
#include "cli/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"
#include "util/xalloc.h"

#define FIRST_LONG 256 /* getopt's values of long options: above all letters */

/* getopt tells neither whether an option that it refuses is a long one, nor what is wrong. */
struct refused {
	const char *name; /* with its dashes, and "=VALUE" */
	char letter[3];	  /* the name of a short one */
	size_t len;	  /* of the name */
};

/* The long option that is meant by @name, as far as getopt_long() has found one. */
static const struct option *long_option(const struct option *longopts, const struct refused *r)
{
	for (const struct option *o = longopts; o->name; o++)
		if (o->val == optopt && !strncmp(o->name, r->name + 2, r->len - 2))
			return o;
	return NULL;
}

static const char *why_refused(const char *letters, const struct option *longopts,
			       struct refused *r)
{
	const struct option *o = NULL;
	size_t alike = 0;

	r->len = strcspn(r->name, "=");
	if (!strncmp(r->name, "--", 2))
		o = long_option(longopts, r);
	if (o)
		return o->has_arg == required_argument ? "needs an argument" : "takes no argument";
	if (optopt) {
		r->letter[0] = '-';
		r->letter[1] = (char)optopt;
		r->name = r->letter;
		return strchr("+:", optopt) == NULL && strchr(letters, optopt) ? "needs an argument"
									       : "is not known";
	}
	for (o = longopts; o->name; o++)
		alike += !strncmp(o->name, r->name + 2, r->len - 2);
	return alike ? "is the beginning of several" : "is not known";
}

int cli_getopt(int argc, char **argv, const char *letters, const struct option *longopts)
{
	struct refused r = {0};
	const char *why;
	char shown[256];
	int c;

	opterr = 0;
	c = getopt_long(argc, argv, letters, longopts, NULL);
	if (c != '?')
		return c;
	r.name = argv[optind - 1];
	why = why_refused(letters, longopts, &r);
	fprintf(stderr, "vmprof %s: option '%s' %s\n", argv[0],
		escape_str(shown, sizeof(shown), r.name), why);
	return c;
}

struct parser {
	const struct cli_options *tables;
	size_t n, nr_opts;
	struct option *longopts;
	char *letters;
};

/* The @i-th option of all tables, and whose it is; NULL behind the last. */
static const struct cli_option *nth(const struct parser *p, size_t i, void **args)
{
	for (size_t t = 0; t < p->n; t++) {
		if (i < p->tables[t].n) {
			*args = p->tables[t].args;
			return &p->tables[t].opts[i];
		}
		i -= p->tables[t].n;
	}
	return NULL;
}

static const struct cli_option *find(const struct parser *p, int c, void **args)
{
	const struct cli_option *o;

	if (c >= FIRST_LONG)
		return nth(p, (size_t)(c - FIRST_LONG), args);
	for (size_t i = 0; (o = nth(p, i, args)); i++)
		if (c && o->letter == c)
			return o;
	return NULL;
}

static int argument_of(const struct cli_option *o)
{
	if (o->optional)
		return optional_argument;
	return o->text || o->argument ? required_argument : no_argument;
}

static void make_getopt(struct parser *p, bool command)
{
	const struct cli_option *o;
	void *args;
	char *l;

	for (size_t t = 0; t < p->n; t++)
		p->nr_opts += p->tables[t].n;
	p->longopts = xcalloc(p->nr_opts + 2, sizeof(*p->longopts));
	l = p->letters = xcalloc(3 * p->nr_opts + 3, 1);
	if (command)
		*l++ = '+'; /* getopt stops there */
	for (size_t i = 0; (o = nth(p, i, &args)); i++) {
		int arg = argument_of(o);

		p->longopts[i] = (struct option){o->name, arg, NULL, FIRST_LONG + (int)i};
		if (!o->letter)
			continue;
		*l++ = o->letter;
		for (; arg; arg--)
			*l++ = ':';
	}
	p->longopts[p->nr_opts] = (struct option){"help", no_argument, NULL, 'h'};
	*l = 'h';
}

/* As perf does it: an option with an optional argument takes the next one if that is no option. */
static const char *optional_text(int argc, char **argv)
{
	if (!optarg && optind < argc && argv[optind][0] != '-')
		return argv[optind++];
	return optarg;
}

static int apply(const struct cli_option *o, void *args, const char *arg, struct vmprof_err *err)
{
	if (o->set)
		return o->set(args, arg, err);
	if (o->text)
		*(const char **)((char *)args + o->text - 1) = arg;
	else
		*(bool *)((char *)args + o->flag - 1) = true;
	return 0;
}

static int parse(const struct parser *p, int argc, char **argv, struct vmprof_err *err)
{
	int c, ret = 0;

	while (!ret && (c = cli_getopt(argc, argv, p->letters, p->longopts)) != -1) {
		const struct cli_option *o;
		void *args;

		if (c == 'h')
			return 1;
		o = find(p, c, &args);
		if (!o)
			return -EINVAL;
		ret = apply(o, args, o->optional ? optional_text(argc, argv) : optarg, err);
	}
	return ret;
}

static int parse_all(const struct cli_options *tables, size_t n, bool command, int argc,
		     char **argv, struct vmprof_err *err)
{
	struct parser p = {.tables = tables, .n = n};
	int ret;

	make_getopt(&p, command);
	ret = parse(&p, argc, argv, err);
	free(p.longopts);
	free(p.letters);
	return ret;
}

int cli_parse_options(const struct cli_options *tables, size_t n, int argc, char **argv,
		      struct vmprof_err *err)
{
	return parse_all(tables, n, false, argc, argv, err);
}

int cli_parse_command_options(const struct cli_options *tables, size_t n, int argc, char **argv,
			      struct vmprof_err *err)
{
	return parse_all(tables, n, true, argc, argv, err);
}
