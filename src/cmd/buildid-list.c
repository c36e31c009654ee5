// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/input.h"
#include "cli/messages.h"
#include "cmd/cmd.h"
#include "util/text.h"
#include "util/xalloc.h"

static const char usage[] =
	"vmprof buildid-list [-i FILE|-] [-H] [--vm LIST]\n"
	"\n"
	"  -i, --input FILE  read FILE (default perf.data); - is standard input. Of an ELF file\n"
	"                    its own build id\n"
	"  -H, --with-hits   only what samples lay in\n"
	"      --vm LIST     only these VMs (names or UUIDs, 'host')\n"
	"  -k, --kernel      the build id of the kernel that runs here\n"
	"  -m, --kernel-maps the same with its modules, and where they are";

enum { MAX_ID = 20 };

/* A line: what the header has, or what a record has mapped. */
struct row {
	int32_t pid; /* of the machine */
	uint8_t id[MAX_ID];
	uint32_t len;
	const char *name;
	bool hit;
	size_t order;
};

struct args {
	struct cli_input in;
	bool with_hits, kernel, kernel_maps;
	bool ignored; /* options of perf's that are how it is here anyway */
	struct row *rows;
	size_t nr_rows, cap_rows;
	bool *hits; /* by dso.index */
	size_t cap_hits;
	struct vmprof_err err;
};

static const struct cli_option opts[] = {
	{"input", 'i', CLI_TEXT(struct args, in.path)},
	{"vm", 0, CLI_TEXT(struct args, in.filter.vms)},
	{"with-hits", 'H', CLI_FLAG(struct args, with_hits)},
	{"kernel", 'k', CLI_FLAG(struct args, kernel)},
	{"kernel-maps", 'm', CLI_FLAG(struct args, kernel_maps)},
	{"force", 'f', CLI_FLAG(struct args, ignored)},
	{"verbose", 'v', CLI_FLAG(struct args, ignored)},
};

static void print_id(const uint8_t *id, uint32_t len, const char *name)
{
	char hex[2 * MAX_ID + 1], shown[4096];

	hex_str(hex, id, len);
	if (name)
		printf("%-40s %s\n", hex, escape_str(shown, sizeof(shown), name));
	else
		printf("%s\n", hex);
}

static void add_row(struct args *a, int32_t pid, const uint8_t *id, uint32_t len, const char *name,
		    bool hit)
{
	struct row row = {.pid = pid, .name = name, .hit = hit, .order = a->nr_rows};

	row.len = len < MAX_ID ? len : MAX_ID;
	memcpy(row.id, id, row.len);
	a->rows = xgrow(a->rows, &a->cap_rows, a->nr_rows + 1, sizeof(*a->rows));
	a->rows[a->nr_rows++] = row;
}

/* The host first, then guests by their processes; a machine's in the order of the file. */
static int by_machine(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void add_header_rows(struct args *a)
{
	const struct perfdata_reader_build_id *ids;
	size_t n = perfdata_reader_build_ids(a->in.reader, &ids);

	for (size_t i = 0; i < n; i++) {
		uint8_t mode = ids[i].cpumode & PERF_RECORD_MISC_CPUMODE_MASK;
		bool guest = mode == PERF_RECORD_MISC_GUEST_KERNEL ||
			     mode == PERF_RECORD_MISC_GUEST_USER;

		if (ids[i].filename)
			add_row(a, guest ? ids[i].pid : -1, ids[i].id, ids[i].len, ids[i].filename,
				false);
	}
}

static int order_of_key(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int c = x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : strcmp(x->name, y->name);

	if (c || x->len != y->len)
		return c ? c : x->len < y->len ? -1 : 1;
	return memcmp(x->id, y->id, x->len);
}

static int by_key(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int c = order_of_key(a, b);

	return c ? c : x->order < y->order ? -1 : x->order > y->order;
}

/* The first of each machine, name and id stays; one that was hit makes it hit. */
static void drop_twice(struct args *a)
{
	size_t n = 0;

	qsort(a->rows, a->nr_rows, sizeof(*a->rows), by_key);
	for (size_t i = 0; i < a->nr_rows; i++) {
		if (n && !order_of_key(&a->rows[n - 1], &a->rows[i]))
			a->rows[n - 1].hit |= a->rows[i].hit;
		else
			a->rows[n++] = a->rows[i];
	}
	a->nr_rows = n;
}

static void add_session_rows(struct args *a)
{
	for (size_t i = 0; i < session_nr_dsos(a->in.session); i++) {
		const struct dso *d = session_dso_nth(a->in.session, i);
		const struct machine *m = session_dso_machine(d);

		if (!a->in.filter.vms || filter_machine(&a->in.filter, m))
			add_row(a, m->pid, d->build_id, d->build_id_len, d->long_name,
				d->index < a->cap_hits && a->hits[d->index]);
	}
}

static void mark_hit(struct args *a, const struct perfdata_record *rec)
{
	struct thread *t = session_thread(a->in.session, rec);
	const struct map *map = session_find_map(a->in.session, t, rec->cpumode, rec->ip);
	size_t old = a->cap_hits;

	if (!map)
		return;
	if (map->dso->index >= old) {
		a->hits = xgrow(a->hits, &a->cap_hits, map->dso->index + 1, sizeof(*a->hits));
		memset(a->hits + old, 0, (a->cap_hits - old) * sizeof(*a->hits));
	}
	a->hits[map->dso->index] = true;
}

static int take_record(void *ctx, const struct perfdata_record *rec)
{
	struct args *a = ctx;

	if (rec->type == PERF_RECORD_SAMPLE && !rec->is_private)
		mark_hit(a, rec);
	return session_process(a->in.session, rec);
}

static void print_rows(struct args *a)
{
	drop_twice(a);
	qsort(a->rows, a->nr_rows, sizeof(*a->rows), by_machine);
	for (size_t i = 0; i < a->nr_rows; i++)
		if (a->rows[i].hit || !a->with_hits)
			print_id(a->rows[i].id, a->rows[i].len, a->rows[i].name);
}

/*
 * As in perf, only the header is read where it has the ids and nothing else was asked for; a file
 * without them has its list made from the samples. What a hardware trace lay in is not known
 * without decoding it.
 */
static int list(struct args *a)
{
	const struct perfdata_reader_build_id *ids;
	bool pipe = perfdata_reader_is_pipe(a->in.reader);
	int ret = 0;

	if (!perfdata_reader_build_ids(a->in.reader, &ids))
		a->with_hits = true;
	if (perfdata_reader_has_feature(a->in.reader, PERFDATA_FEAT_AUXTRACE))
		a->with_hits = false;
	if (pipe || a->with_hits || a->in.filter.vms) {
		ret = perfdata_reader_run(a->in.reader, take_record, a, &a->err);
		if (!ret)
			ret = cli_input_check_vms(&a->in, &a->err);
	} else {
		ret = perfdata_reader_damage(a->in.reader, &a->err);
	}
	if (!a->in.filter.vms)
		add_header_rows(a);
	add_session_rows(a);
	print_rows(a);
	return ret;
}

/* perf lists the build id of an ELF file as well. */
static bool print_of_elf(const char *path)
{
	uint8_t id[MAX_ID];
	int len = path ? elf_build_id(path, id) : 0;

	if (len > 0)
		print_id(id, (uint32_t)len, NULL);
	return len > 0;
}

static int print_running(struct args *a)
{
	uint8_t id[MAX_ID];
	uint32_t len = running_kernel_build_id(id);

	if (!len) {
		err_set(&a->err, ENOENT, "/sys/kernel/notes has no build id");
		return cli_error("buildid-list", &a->err);
	}
	print_id(id, len, NULL);
	return 0;
}

static int print_running_maps(struct args *a)
{
	struct running_maps m;
	char hex[2 * MAX_ID + 1];

	if (running_maps_read(&m, &a->err))
		return cli_error("buildid-list", &a->err);
	for (size_t i = 0; i < m.n; i++) {
		hex_str(hex, m.map[i].id, m.map[i].id_len);
		printf("%s %16" PRIx64 " %16" PRIx64 " %s\n", hex, m.map[i].start, m.map[i].end,
		       m.map[i].name);
	}
	running_maps_free(&m);
	return 0;
}

static int run(struct args *a)
{
	int ret;

	if (a->kernel)
		return print_running(a);
	if (a->kernel_maps)
		return print_running_maps(a);
	if (print_of_elf(a->in.path))
		return 0;
	ret = cli_input_open(&a->in, &a->err);
	if (!ret)
		ret = list(a);
	free(a->rows);
	free(a->hits);
	return cli_input_end(&a->in, "buildid-list", ret, &a->err);
}

int cmd_buildid_list(int argc, char **argv)
{
	struct args a = {0};
	const struct cli_options tables[] = {{opts, sizeof(opts) / sizeof(*opts), &a}};
	int ret = cli_parse_options(tables, 1, argc, argv, &a.err);

	if (!ret && optind < argc)
		ret = err_set(&a.err, EINVAL, "'%s': options only", argv[optind]);
	if (ret)
		return cli_not_parsed("buildid-list", usage, ret, &a.err);
	/* 'vmprof buildid-list | head' ends quietly, whatever the caller has set */
	signal(SIGPIPE, SIG_DFL);
	return run(&a);
}
