// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a sub-command says of itself, and its exit status with it.
 */
#ifndef VMPROF_CLI_MESSAGES_H
#define VMPROF_CLI_MESSAGES_H

#include "util/err.h"

/* Prints "vmprof NAME: sentence" to stderr, once; returns 1, the exit status of an error. */
int cli_error(const char *name, const struct vmprof_err *err);

/* Prints the same of something that is no error. */
void cli_note(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --help of a sub-command: @usage, and where its manual is. Returns 0. */
int cli_help(const char *name, const char *usage);

/*
 * The end of a command whose options were not taken: help if @ret is 1, else what was wrong with
 * them, @err or (where getopt has said so) @usage. What cli_parse_options() returned is @ret.
 */
int cli_not_parsed(const char *name, const char *usage, int ret, const struct vmprof_err *err);

/* Ends as the signal would have ended us, so that a shell sees 128 + n and a loop stops. */
void cli_end_by_signal(int sig);

/* A wrong option or argument: @usage's first line to stderr, where to read on; returns 2. */
int cli_usage_error(const char *name, const char *usage);

#endif
