// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options as tables: what each is called and where in the command's struct its value goes.
 */
#ifndef VMPROF_CLI_OPTIONS_H
#define VMPROF_CLI_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "util/err.h"

struct cli_option {
	const char *name;
	char letter;	   /* 0: none */
	size_t text, flag; /* offset + 1 of a const char * for its argument, of a bool; 0: none */
	bool argument;	   /* set() gets one */
	bool optional;	   /* it may be left out: NULL */
	/* 0 or -EINVAL with a sentence. @arg lives as long as argv. */
	int (*set)(void *args, const char *arg, struct vmprof_err *err);
};

#define CLI_TEXT(type, member) .text = offsetof(type, member) + 1
#define CLI_FLAG(type, member) .flag = offsetof(type, member) + 1

struct cli_options {
	const struct cli_option *opts;
	size_t n;
	void *args; /* what the offsets are in */
};

/*
 * Takes the options out of @argv; what is no option starts at optind. 0, 1 for --help, or -EINVAL,
 * with a sentence unless getopt has printed one. @tables is @n of them, none with a name twice.
 */
int cli_parse_options(const struct cli_options *tables, size_t n, int argc, char **argv,
		      struct vmprof_err *err);
/* The same where what is no option begins a command, with options of its own. */
int cli_parse_command_options(const struct cli_options *tables, size_t n, int argc, char **argv,
			      struct vmprof_err *err);

/*
 * getopt_long() whose complaints have the command's name, argv[0], in them and are escaped: what
 * was typed, or pasted, goes to a terminal. Returns '?' behind one.
 */
int cli_getopt(int argc, char **argv, const char *letters, const struct option *longopts);

#endif
