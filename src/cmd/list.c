// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/messages.h"
#include "cli/options.h"
#include "cmd/cmd.h"
#include "list/list.h"
#include "util/xalloc.h"

static const char usage[] =
	"vmprof list [-v] [--json] [--vm NAME]...\n"
	"\n"
	"  -v, --verbose   all that is known of each VM, and why a backend cannot profile it\n"
	"      --json      the same for programs\n"
	"      --vm NAME   this VM only, by name, UUID or pid; may be repeated";

struct options {
	bool verbose, json;
	const char **vms;
	unsigned nr_vms;
};

/* The VMs that were asked for, in the list's order and each once. */
static int select_vms(const struct vm_list *list, const struct options *o, bool *selected,
		      struct vmprof_err *err)
{
	for (size_t i = 0; i < list->n; i++)
		selected[i] = !o->nr_vms;
	for (unsigned n = 0; n < o->nr_vms; n++) {
		const struct vm *vm = vm_list_find(list, o->vms[n], err);

		if (!vm)
			return -err->code;
		for (size_t i = 0; i < list->n; i++)
			selected[i] |= list->vms[i] == vm;
	}
	return 0;
}

static void print(const struct options *o, const struct list_row *rows, size_t n)
{
	if (o->json)
		list_print_json(rows, n, stdout);
	else if (o->verbose)
		list_print_details(rows, n, stdout);
	else if (n)
		list_print_table(rows, n, stdout);
}

static void say_hidden(const struct vm_list *vms, unsigned hidden)
{
	fflush(stdout);
	if (vms->xen.code)
		fprintf(stderr, "vmprof list: %s\n", vms->xen.msg);
	else if (!vms->n)
		fputs("vmprof list: no VMs found\n", stderr);
	if (hidden)
		fprintf(stderr,
			"vmprof list: %u process%s could not be looked at; run as root to see all "
			"VMs\n",
			hidden, hidden == 1 ? "" : "es");
}

static int list(const struct options *o)
{
	struct vmprof_err err = {0};
	struct vm_list vms;
	struct list_row *rows;
	bool *selected;
	unsigned hidden = 0;
	size_t n = 0;
	int r = vm_list_get(&vms, &hidden, &err);

	if (r)
		return cli_error("list", &err);
	selected = xcalloc(vms.n + 1, sizeof(*selected));
	rows = xcalloc(vms.n + 1, sizeof(*rows));
	r = select_vms(&vms, o, selected, &err);
	for (size_t i = 0; i < vms.n && !r; i++)
		if (selected[i])
			list_row_fill(&rows[n++], vms.vms[i]);
	if (!r) {
		print(o, rows, n);
		say_hidden(&vms, hidden);
	}
	for (size_t i = 0; i < n; i++)
		list_row_free(&rows[i]);
	free(rows);
	free(selected);
	vm_list_free(&vms);
	if (r)
		return cli_error("list", &err);
	if (fflush(stdout) || ferror(stdout)) {
		err_sys(&err, errno, "cannot write the list");
		return cli_error("list", &err);
	}
	return 0;
}

int cmd_list(int argc, char **argv)
{
	static const struct option longopts[] = {
		{"verbose", no_argument, NULL, 'v'},
		{"json", no_argument, NULL, 'j'},
		{"vm", required_argument, NULL, 'm'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options o = {.vms = xcalloc((size_t)argc, sizeof(*o.vms))};
	int c, status = -1;

	while (status < 0 && (c = cli_getopt(argc, argv, "vh", longopts)) != -1) {
		switch (c) {
		case 'v':
			o.verbose = true;
			break;
		case 'j':
			o.json = true;
			break;
		case 'm':
			o.vms[o.nr_vms++] = optarg;
			break;
		case 'h':
			status = cli_help("list", usage);
			break;
		default:
			status = cli_usage_error("list", usage);
		}
	}
	if (status < 0 && optind < argc)
		status = cli_usage_error("list", usage);
	if (status < 0)
		status = list(&o);
	free(o.vms);
	return status;
}
