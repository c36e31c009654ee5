// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sub-commands. Each is one file, src/cmd/NAME.c, with one function that gets its own arguments
 * (argv[0] is the sub-command's name) and returns the exit status: 0, 1 for an error, 2 for a wrong
 * option or argument, 128 + n after signal n. It has a man page, docs/man/vmprof-NAME.1, and a
 * test, tests/cli/NAME.bats; what sub-commands share is in src/cli.
 */
#ifndef VMPROF_CMD_CMD_H
#define VMPROF_CMD_CMD_H

struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary; /* one line for vmprof help */
};

int cmd_agent(int argc, char **argv);
int cmd_annotate(int argc, char **argv);
int cmd_buildid_list(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_record(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_script(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_version(int argc, char **argv);

#endif
