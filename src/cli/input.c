// SPDX-License-Identifier: GPL-2.0-only
#include "cli/input.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/messages.h"
#include "util/buf.h"
#include "util/openfile.h"
#include "util/text.h"
#include "util/xalloc.h"

#define LOST_MAX (1ull << 48) /* more samples than any machine takes in its life */

/* A path that was given and is not there is a mistake, which fewer symbols would not tell. */
static int check_path(const char *option, const char *path, bool dir, struct vmprof_err *err)
{
	struct stat st;
	int code = stat(path, &st) || access(path, R_OK) ? errno
		   : dir && !S_ISDIR(st.st_mode)	 ? ENOTDIR
		   : !dir && S_ISDIR(st.st_mode)	 ? EISDIR
							 : 0;

	if (code)
		return err_sys(err, code, "%s %s cannot be read", option, path);
	if (!dir && !is_plain_file(&st))
		return err_set(err, EINVAL,
			       "%s %s cannot be read: it is a pipe or a device, and not a file",
			       option, path);
	return 0;
}

static int add_path(struct symbol_path *list, unsigned *n, size_t max, const char *option,
		    const char *arg, struct vmprof_err *err)
{
	const char *equals = strchr(arg, '=');

	if (*n == max)
		return err_set(err, EINVAL, "more than %zu paths of one kind", max);
	/* a path may hold '=' as well; a VM's name has no '/' */
	if (equals && memchr(arg, '/', (size_t)(equals - arg)))
		equals = NULL;
	/* freed by cli_input_close() */
	list[*n].vm = equals ? xstrndup(arg, (size_t)(equals - arg)) : NULL;
	list[*n].path = equals ? equals + 1 : arg;
	return check_path(option, list[(*n)++].path, !strcmp(option, "--symfs"), err);
}

#define PATHS(list)                                                                                \
	add_path(in->symbols.list, &in->symbols.nr_##list,                                         \
		 sizeof(in->symbols.list) / sizeof(*in->symbols.list), "--" #list, arg, err)

static int set_symfs(void *args, const char *arg, struct vmprof_err *err)
{
	struct cli_input *in = args;

	return PATHS(symfs);
}

static int set_vmlinux(void *args, const char *arg, struct vmprof_err *err)
{
	struct cli_input *in = args;

	return PATHS(vmlinux);
}

static int set_kallsyms(void *args, const char *arg, struct vmprof_err *err)
{
	struct cli_input *in = args;

	return PATHS(kallsyms);
}

static int set_guestvmlinux(void *args, const char *arg, struct vmprof_err *err)
{
	struct cli_input *in = args;

	in->symbols.guest_vmlinux = arg;
	return check_path("--guestvmlinux", arg, false, err);
}

static int set_guestkallsyms(void *args, const char *arg, struct vmprof_err *err)
{
	struct cli_input *in = args;

	in->symbols.guest_kallsyms = arg;
	return check_path("--guestkallsyms", arg, false, err);
}

static int set_guestmodules(void *args, const char *arg, struct vmprof_err *err)
{
	struct cli_input *in = args;

	in->symbols.guest_modules = arg;
	return check_path("--guestmodules", arg, false, err);
}

static int set_guestmount(void *args, const char *arg, struct vmprof_err *err)
{
	struct cli_input *in = args;

	in->symbols.guest_mount = arg;
	return check_path("--guestmount", arg, true, err);
}

/* "12,34"; -1 is the process of samples that have none. */
static int check_ids(const char *option, const char *list, struct vmprof_err *err)
{
	char text[64], *end;

	for (const char *s = list;; s = end + 1) {
		if (!isdigit((unsigned char)s[*s == '-']))
			break;
		errno = 0;
		if (strtol(s, &end, 10) > INT32_MAX || errno || (*end && *end != ','))
			break;
		if (!*end)
			return 0;
	}
	return err_set(err, EINVAL, "%s '%s' is no list of numbers; write it like 12,34", option,
		       escape_str(text, sizeof(text), list));
}

static int set_pid(void *args, const char *arg, struct vmprof_err *err)
{
	struct cli_input *in = args;

	in->filter.pids = arg;
	return check_ids("--pid", arg, err);
}

static int set_tid(void *args, const char *arg, struct vmprof_err *err)
{
	struct cli_input *in = args;

	in->filter.tids = arg;
	return check_ids("--tid", arg, err);
}

static int set_cpu(void *args, const char *arg, struct vmprof_err *err)
{
	struct cli_input *in = args;
	struct cpu_list l;
	int ret = cpu_list_parse(&l, arg, err);

	in->cpus = arg;
	if (!ret)
		cpu_list_free(&l);
	return ret;
}

#define TEXT(member) CLI_TEXT(struct cli_input, member)
#define FLAG(member) CLI_FLAG(struct cli_input, member)

static const struct cli_option options[] = {
	{"input", 'i', TEXT(path)},
	{"max-stack", 0, TEXT(max_stack)},
	{"vm", 0, TEXT(filter.vms)},
	{"comms", 'c', TEXT(filter.comms)},
	{"dsos", 'd', TEXT(filter.dsos)},
	{"symbols", 'S', TEXT(filter.symbols)},
	{"pid", 0, .argument = true, .set = set_pid},
	{"tid", 0, .argument = true, .set = set_tid},
	{"cpu", 'C', .argument = true, .set = set_cpu},
	{"header", 0, FLAG(header)},
	{"header-only", 0, FLAG(header_only)},
	{"symfs", 0, .argument = true, .set = set_symfs},
	{"vmlinux", 'k', .argument = true, .set = set_vmlinux},
	{"kallsyms", 0, .argument = true, .set = set_kallsyms},
	{"guestvmlinux", 0, .argument = true, .set = set_guestvmlinux},
	{"guestkallsyms", 0, .argument = true, .set = set_guestkallsyms},
	{"guestmodules", 0, .argument = true, .set = set_guestmodules},
	{"guestmount", 0, .argument = true, .set = set_guestmount},
	{"buildid-dir", 0, TEXT(symbols.buildid_dir)},
	{"no-demangle", 0, FLAG(symbols.no_demangle)},
	{"inline", 0, FLAG(inlined)},
	{"no-inline", 0, FLAG(not_inlined)},
};

struct cli_options cli_input_options(struct cli_input *in)
{
	return (struct cli_options){options, sizeof(options) / sizeof(*options), in};
}

int cli_input_max_stack(const struct cli_input *in, unsigned *n, struct vmprof_err *err)
{
	unsigned long v;
	char *end;

	*n = CLI_INPUT_MAX_STACK;
	if (!in->max_stack)
		return 0;
	v = strtoul(in->max_stack, &end, 10);
	if (!isdigit((unsigned char)*in->max_stack) || *end || !v || v > 100000)
		return err_set(err, EINVAL, "--max-stack '%s' is not a number of frames",
			       in->max_stack);
	*n = (unsigned)v;
	return 0;
}

int cli_input_no_header(const struct cli_input *in, struct vmprof_err *err)
{
	return in->header || in->header_only
		       ? err_set(err, EINVAL, "the header is shown by vmprof report")
		       : 0;
}

int cli_input_not_parsed(struct cli_input *in, const char *name, const char *usage, int ret,
			 const struct vmprof_err *err)
{
	cli_input_close(in);
	return cli_not_parsed(name, usage, ret, err);
}

static const char *default_path(void)
{
	struct stat st;

	return !fstat(STDIN_FILENO, &st) && S_ISFIFO(st.st_mode) ? "-" : "perf.data";
}

static bool is_dir(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/*
 * The store of symbols beside the file. A recorder that wrote to a pipe could not know what it
 * would be saved as: its store has the name of a pipe's, there or where it is read. To be freed.
 */
static char *find_store(const struct cli_input *in)
{
	char *own = elfstore_beside(in->path), *pipes = elfstore_beside("-"), *there;
	const char *slash = strrchr(in->path, '/');

	if (is_dir(own) || !perfdata_reader_is_pipe(in->reader)) {
		free(pipes);
		return own;
	}
	free(own);
	if (!slash)
		return pipes;
	there = xasprintf("%.*s/%s", (int)(slash - in->path), in->path, pipes);
	if (is_dir(there)) {
		free(pipes);
		return there;
	}
	free(there);
	return pipes;
}

int cli_input_open(struct cli_input *in, struct vmprof_err *err)
{
	const struct perfdata_reader_build_id *ids;
	char *store;
	size_t n;
	int ret;

	/* 'vmprof report | head' ends quietly, whatever the caller has set */
	signal(SIGPIPE, SIG_DFL);
	if (!in->path)
		in->path = default_path();
	ret = perfdata_reader_open(&in->reader, in->path, err);
	if (ret == -ENOENT)
		return err_set(err, ENOENT,
			       "failed to open %s: No such file or directory (try 'vmprof record' "
			       "first)",
			       in->path);
	if (ret)
		return ret;
	/* Of a pipe it may not be there yet. */
	in->symbols.store = store = find_store(in);
	in->symbols.host_release = perfdata_reader_feature_str(in->reader, PERFDATA_FEAT_OSRELEASE);
	in->session = session_new(&in->symbols);
	in->symbols.store = NULL;
	free(store);
	n = perfdata_reader_build_ids(in->reader, &ids);
	for (size_t i = 0; i < n; i++)
		session_add_build_id(in->session, &ids[i]);
	return 0;
}

/* ---------- reading, and what is said of it ---------- */

int cli_input_read(struct cli_input *in, int (*fn)(void *ctx, const struct perfdata_record *rec),
		   void *ctx, struct vmprof_err *err)
{
	int ret = perfdata_reader_run(in->reader, fn, ctx, err);

	if (ret != -EBADMSG)
		return ret;
	in->damage = *err;
	return 0;
}

void cli_input_read_header(struct cli_input *in)
{
	perfdata_reader_damage(in->reader, &in->damage);
}

/* One more in the list @b. */
static void __attribute__((format(printf, 3, 4)))
add_item(struct buf *b, const char *separator, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_printf(b, "%s%s", b->len ? separator : "", text);
}

static const char *text_of(struct buf *b)
{
	buf_add(b, "", 1);
	return (const char *)b->data;
}

static void add_count(struct buf *b, uint64_t n, const char *what)
{
	if (n)
		add_item(b, ", ", "%s (%" PRIu64 ")", what, n);
}

/* Who reads only the numbers must know what is not in them. */
static void say_odd(const struct cli_input *in, const char *name)
{
	const struct perfdata_reader_stats *st = perfdata_reader_get_stats(in->reader);
	const char *path = perfdata_reader_path(in->reader);
	struct buf passed = {0}, line = {0};

	add_count(&passed, st->unknown, "records of unknown types");
	add_count(&passed, st->unknown_features, "unknown features of the header");
	add_count(&passed, st->no_event, "samples whose event it does not have");
	add_count(&passed, st->empty_compressed, "compressed records with nothing in them");
	if (passed.len)
		add_item(&line, "; ", "passed over: %s", text_of(&passed));
	if (st->lost > LOST_MAX)
		add_item(&line, "; ", "that %" PRIu64 " samples were lost makes no sense",
			 st->lost);
	if (line.len)
		cli_note(name, "%s: %s", path, text_of(&line));
	buf_free(&passed);
	buf_free(&line);
}

/* Wrong symbols are refused; without a word that would look as if there were none. */
static void say_bad_paths(const struct cli_input *in, const char *name)
{
	struct bad_path p;
	char shown[512];

	if (in->symbols.buildid_dir && !is_dir(in->symbols.buildid_dir))
		cli_note(name, "--buildid-dir %s is not used: there is no such directory",
			 escape_str(shown, sizeof(shown), in->symbols.buildid_dir));
	for (size_t i = 0; session_bad_path(in->session, &i, &p);) {
		escape_str(shown, sizeof(shown), p.path);
		if (!p.used)
			cli_note(name, "%s %s is not used: %s", p.option, shown, p.why);
		else
			cli_note(name, "%s %s: %u of its files %s not used, the first: %s",
				 p.option, shown, p.refused, p.refused == 1 ? "is" : "are", p.why);
	}
}

int cli_input_end(struct cli_input *in, const char *name, int ret, const struct vmprof_err *err)
{
	int status = ret || in->damage.code ? 1 : 0;

	if (in->reader)
		say_odd(in, name);
	if (in->session)
		say_bad_paths(in, name);
	if (in->damage.code)
		cli_error(name, &in->damage);
	/* that there are no samples is a consequence of the damage, which was said */
	if (ret && !(ret == -ENODATA && in->damage.code))
		cli_error(name, err);
	cli_input_close(in);
	return status;
}

int cli_input_check_time(const struct cli_input *in, struct vmprof_err *err)
{
	struct time_ranges some = {0};
	/* with some times or other */
	int ret = in->time ? time_ranges_parse(&some, in->time, 1, 2, err) : 0;

	time_ranges_free(&some);
	return ret;
}

int cli_input_times(const struct cli_input *in, struct time_ranges *times, struct vmprof_err *err)
{
	uint64_t first, last;

	if (!in->time)
		return 0;
	perfdata_reader_sample_times(in->reader, &first, &last);
	return time_ranges_parse(times, in->time, first, last, err);
}

bool cli_input_none_left(const struct cli_input *in, const char *name)
{
	const struct perfdata_reader_stats *st = perfdata_reader_get_stats(in->reader);
	const struct report_filter *f = &in->filter;
	const struct {
		const char *option, *value;
	} filters[] = {
		{"--vm", f->vms},
		{"--comms", f->comms},
		{"--dsos", f->dsos},
		{"--symbols", f->symbols},
		{"--pid", f->pids},
		{"--tid", f->tids},
		{"--cpu", in->cpus},
		{"--time", in->time},
		{"--symbol-filter", f->symbol_part},
	};
	struct buf given = {0};
	char text[128];

	if (st->records[PERF_RECORD_SAMPLE] <= st->no_event + st->broken)
		return false;
	for (size_t i = 0; i < sizeof(filters) / sizeof(*filters); i++)
		if (filters[i].value)
			add_item(&given, ", ", "%s %s", filters[i].option,
				 escape_str(text, sizeof(text), filters[i].value));
	cli_note(name, "no sample of %s is left by %s", perfdata_reader_path(in->reader),
		 given.len ? text_of(&given) : "the options that were given");
	buf_free(&given);
	return true;
}

static void free_vms(struct symbol_path *list, unsigned *n)
{
	for (unsigned i = 0; i < *n; i++)
		free((char *)list[i].vm);
	*n = 0;
}

void cli_input_close(struct cli_input *in)
{
	free_vms(in->symbols.symfs, &in->symbols.nr_symfs);
	free_vms(in->symbols.vmlinux, &in->symbols.nr_vmlinux);
	free_vms(in->symbols.kallsyms, &in->symbols.nr_kallsyms);
	session_free(in->session);
	if (in->reader)
		perfdata_reader_close(in->reader);
	in->session = NULL;
	in->reader = NULL;
}

/* As --vm takes it, a list with patterns. */
static bool in_list(const char *vms, const struct machine *m)
{
	const struct report_filter filter = {.vms = vms};

	return filter_machine(&filter, m);
}

/* As the symbols' options take it; session_path() */
static bool is_vm(const char *vm, const struct machine *m)
{
	return !strcmp(vm, m->name) || (*m->uuid && !strcmp(vm, m->uuid));
}

static int check_vm(const struct cli_input *in, const char *option, const char *vm,
		    bool (*match)(const char *vm, const struct machine *m), struct vmprof_err *err)
{
	struct buf known = {0};
	char text[128];
	int ret;

	for (size_t i = 0; i < session_nr_machines(in->session); i++) {
		const struct machine *m = session_machine_nth(in->session, i);

		if (match(vm, m)) {
			buf_free(&known);
			return 0;
		}
		add_item(&known, ", ", "%s", escape_str(text, sizeof(text), m->name));
	}
	ret = err_set(err, ENOENT, "%s: no VM '%s' is in %s; there are: %.600s", option,
		      escape_str(text, sizeof(text), vm), in->path, text_of(&known));
	buf_free(&known);
	return ret;
}

int cli_input_check_vms(const struct cli_input *in, struct vmprof_err *err)
{
	const struct {
		const char *option;
		const struct symbol_path *list;
		unsigned n;
	} paths[] = {
		{"--symfs", in->symbols.symfs, in->symbols.nr_symfs},
		{"--vmlinux", in->symbols.vmlinux, in->symbols.nr_vmlinux},
		{"--kallsyms", in->symbols.kallsyms, in->symbols.nr_kallsyms},
	};
	int ret = in->filter.vms ? check_vm(in, "--vm", in->filter.vms, in_list, err) : 0;

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		for (unsigned j = 0; j < paths[i].n && !ret; j++)
			if (paths[i].list[j].vm)
				ret = check_vm(in, paths[i].option, paths[i].list[j].vm, is_vm,
					       err);
	return ret;
}
