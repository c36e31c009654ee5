// SPDX-License-Identifier: GPL-2.0-only
#include "cli/messages.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/text.h"

int cli_error(const char *name, const struct vmprof_err *err)
{
	fflush(stdout);
	fprintf(stderr, "vmprof %s: ", name);
	escape_fputs(err->msg, stderr); /* it may name a file, and anybody may have named that */
	fputc('\n', stderr);
	return 1;
}

void cli_note(const char *name, const char *fmt, ...)
{
	va_list ap;

	fflush(stdout);
	fprintf(stderr, "vmprof %s: ", name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

int cli_help(const char *name, const char *usage)
{
	printf("Usage: %s\nThe manual is vmprof-%s(1).\n", usage, name);
	return 0;
}

int cli_usage_error(const char *name, const char *usage)
{
	fprintf(stderr, "Usage: %.*s\nSee 'vmprof %s --help' or vmprof-%s(1).\n",
		(int)strcspn(usage, "\n"), usage, name, name);
	return 2;
}

int cli_not_parsed(const char *name, const char *usage, int ret, const struct vmprof_err *err)
{
	if (ret > 0)
		return cli_help(name, usage);
	if (!err->code)
		return cli_usage_error(name, usage);
	cli_error(name, err);
	return 2;
}

void cli_end_by_signal(int sig)
{
	fflush(NULL);
	signal(sig, SIG_DFL);
	raise(sig);
}
