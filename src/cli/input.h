// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the commands that read a profile have in common: the file, where its symbols are, and which
 * samples are wanted.
 */
#ifndef VMPROF_CLI_INPUT_H
#define VMPROF_CLI_INPUT_H

#include "cli/options.h"
#include "report/filter.h"
#include "report/inlines.h"
#include "report/timerange.h"

struct cli_input {
	const char *path; /* as given, until cli_input_open() settles it */
	struct symbol_paths symbols;
	struct report_filter filter;
	const char *cpus;
	const char *time;      /* as given; the command's matter */
	const char *max_stack; /* text; cli_input_max_stack() */
	bool header, header_only;
	bool inlined, not_inlined; /* --inline, --no-inline: cli_input_inlines() */

	struct perfdata_reader *reader;
	struct session *session;
	struct vmprof_err damage; /* of the file, as far as it was read */
};

#define CLI_INPUT_MAX_STACK 127 /* perf's default */

/* All options of the above: add to a command's own. */
struct cli_options cli_input_options(struct cli_input *in);
/* 0 or -EINVAL with a sentence. */
int cli_input_max_stack(const struct cli_input *in, unsigned *n, struct vmprof_err *err);
/* For a command that shows no header: -EINVAL with a sentence if it was asked for, else 0. */
int cli_input_no_header(const struct cli_input *in, struct vmprof_err *err);

static inline enum inlines_mode cli_input_inlines(const struct cli_input *in)
{
	return in->not_inlined ? INLINES_NONE : in->inlined ? INLINES_ALL : INLINES_UNWOUND;
}

/* --time: whether it is written well, before there is a file. 0 or -EINVAL with a sentence */
int cli_input_check_time(const struct cli_input *in, struct vmprof_err *err);
/* What it means for the file, which is open. The ranges are the caller's to free. */
int cli_input_times(const struct cli_input *in, struct time_ranges *times, struct vmprof_err *err);

/*
 * The end of command @name whose parsing has come to @ret, which is not 0: as cli_not_parsed(), and
 * the input is closed.
 */
int cli_input_not_parsed(struct cli_input *in, const char *name, const char *usage, int ret,
			 const struct vmprof_err *err);

/*
 * Opens the file, and a session with all that its header tells. 0 or -errno with a sentence. From
 * here on the command prints: a reader that goes ends it.
 */
int cli_input_open(struct cli_input *in, struct vmprof_err *err);
void cli_input_close(struct cli_input *in); /* also if only options were parsed */
/*
 * Hands all records to @fn, as perfdata_reader_run(). Damage of the file is no failure of this: it
 * is kept, what is whole is shown, and cli_input_end() says it.
 */
int cli_input_read(struct cli_input *in, int (*fn)(void *ctx, const struct perfdata_record *rec),
		   void *ctx, struct vmprof_err *err);
/* The same for those who read the header only. */
void cli_input_read_header(struct cli_input *in);
/*
 * The end of command @name, which has come to @ret (0 or -errno with @err): says what was odd in
 * the file, its damage, and @err, and closes it. Returns the exit status.
 */
int cli_input_end(struct cli_input *in, const char *name, int ret, const struct vmprof_err *err);
/*
 * For a command that has shown nothing: if the file has samples that can be read, says on stderr
 * which options leave none of them, and returns true.
 */
bool cli_input_none_left(const struct cli_input *in, const char *name);
/* After all was read: -ENOENT with a sentence if --vm, or an option for one VM, names none of
 * the file's VMs. */
int cli_input_check_vms(const struct cli_input *in, struct vmprof_err *err);

#endif
