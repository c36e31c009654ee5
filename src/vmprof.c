// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"
#include "util/text.h"

static const struct command commands[] = {
	{"agent", cmd_agent, "Record domains of Xen when they ask for it by XenStore"},
	{"annotate", cmd_annotate, "Show the code of functions with each instruction's share"},
	{"buildid-list", cmd_buildid_list, "List the build ids of a profile, as perf does"},
	{"export", cmd_export, "Write a profile in the format of another program"},
	{"list", cmd_list, "Show the VMs of this host and what can profile them"},
	{"merge", cmd_merge, "Merge profiles of a host and its VMs into one"},
	{"record", cmd_record, "Sample VMs into perf.data"},
	{"report", cmd_report, "Read perf.data and show the profile, by VM and system-wide"},
	{"script", cmd_script, "Print every sample, as perf script does"},
	{"stat", cmd_stat, "Count VMs' events, or why their vCPUs leave guest mode"},
	{"version", cmd_version, "Show the version and what it was built with"},
};

static int usage(FILE *f)
{
	fputs("Usage: vmprof COMMAND [ARGS]\n\nCommands:\n", f);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		fprintf(f, "  %-12s %s\n", commands[i].name, commands[i].summary);
	fputs("\nSee 'vmprof COMMAND --help' and the manual page vmprof-COMMAND(1).\n", f);
	return f == stderr ? 2 : 0;
}

/*
 * A standard stream that the caller has closed is a number that the next open() gets, and then what
 * is meant for the stream goes there. It becomes one that can only be used the wrong way round, so
 * that it fails as a closed one does. Returns false if that cannot be had.
 */
static bool open_closed_streams(void)
{
	static const int wrong_way[] = {O_WRONLY, O_RDONLY, O_RDONLY};

	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", wrong_way[fd]) != fd)
			return false;
	return true;
}

/* What was printed must have arrived. A command that failed has said why. */
static int check_output(int status)
{
	if (status || (!fflush(stdout) && !ferror(stdout)))
		return status;
	fprintf(stderr, "vmprof: cannot write to standard output: %s\n", strerror(errno));
	return 1;
}

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static void not_a_command(const char *name, const char *advice)
{
	char shown[128];

	fprintf(stderr, "vmprof: '%s' is not a vmprof command.%s\n",
		escape_str(shown, sizeof(shown), name), advice);
}

/* "vmprof help NAME" is "vmprof NAME --help". */
static int help(int argc, char **argv)
{
	const struct command *c = argc > 2 ? find_command(argv[2]) : NULL;
	char *args[] = {argc > 2 ? argv[2] : NULL, (char[]){"--help"}, NULL};

	if (c)
		return c->run(2, args);
	if (argc > 2)
		not_a_command(argv[2], "");
	return usage(argc > 2 ? stderr : stdout);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct command *c;

	if (!open_closed_streams())
		return 1; /* with no stream to say it on */
	if (!name)
		return usage(stderr);
	if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
		return check_output(help(argc, argv));
	if (!strcmp(name, "--version") || !strcmp(name, "-v"))
		name = "version";
	c = find_command(name);
	if (c)
		return check_output(c->run(argc - 1, argv + 1));
	not_a_command(name, " See 'vmprof help'.");
	return 2;
}
