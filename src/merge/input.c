// SPDX-License-Identifier: GPL-2.0-only
/*
 * The inputs as files. Each is read twice; what can be read only once (a pipe) is kept in a file
 * without a name first.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "merge/impl.h"
#include "util/buf.h"
#include "util/text.h"
#include "util/xalloc.h"

#define MAGIC_BYTES 8
#define PATIENCE_MS 100 /* between looks for a signal */

static char *shown_path(const char *path)
{
	char shown[256];

	return xstrdup(
		escape_str(shown, sizeof(shown), strcmp(path, "-") ? path : "standard input"));
}

/* "LABEL=PATH"; a path may hold '=' as well, and a VM's name has no '/'. */
static int split_label(struct merge_input *in, const char *arg, struct vmprof_err *err)
{
	const char *equals = strchr(arg, '=');
	char raw[MERGE_NAME_MAX + 2], safe[MERGE_NAME_MAX + 1];
	size_t len = equals ? (size_t)(equals - arg) : 0;

	in->fd = -1;
	in->path = arg;
	if (!len || memchr(arg, '/', len)) {
		in->shown = shown_path(arg);
		return 0;
	}
	in->path = equals + 1;
	in->shown = shown_path(in->path);
	snprintf(raw, sizeof(raw), "%.*s", (int)len, arg);
	escape_str(safe, sizeof(safe), raw);
	if (len > MERGE_NAME_MAX || !strcmp(safe, "host"))
		return err_set(err, EINVAL,
			       "'%.64s' is no label: a VM's name has at most %d bytes and is not "
			       "'host'",
			       safe, MERGE_NAME_MAX);
	if (!*in->path)
		return err_set(err, EINVAL, "'%s=': there is no file behind the label", safe);
	in->label = xstrdup(safe);
	return 0;
}

/* A file that is gone from its directory. */
static int unnamed_file(const char *dir, struct vmprof_err *err)
{
	char *path = xasprintf("%s/vmprof-merge.XXXXXX", dir);
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0)
		err_sys(err, errno, "a pipe cannot be kept in a file in %s", dir);
	else
		unlink(path);
	free(path);
	return fd;
}

/* 1: there is something to read, or an end; 0: a signal has come. */
static int wait_for(int fd)
{
	struct pollfd pfd = {fd, POLLIN, 0};
	int n = 0;

	/* before each wait: what never makes one wait is interrupted all the same */
	while (n == 0 || (n < 0 && errno == EINTR)) {
		if (merge_pending_signal())
			return 0;
		n = poll(&pfd, 1, PATIENCE_MS);
	}
	return 1;
}

/* The magic number of a perf.data file, of either byte order and of the versions before this. */
static bool is_perf_data(const char *head)
{
	static const char *const magics[] = {"PERFILE2", "2ELIFREP", "PERFFILE"};

	for (size_t i = 0; i < sizeof(magics) / sizeof(*magics); i++)
		if (!memcmp(head, magics[i], MAGIC_BYTES))
			return true;
	return false;
}

static int copy_all(int to, struct merge_input *in, struct vmprof_err *err)
{
	static char block[1 << 16];
	char head[MAGIC_BYTES];
	size_t have = 0;
	ssize_t n;
	int ret;

	for (;;) {
		if (!wait_for(in->fd))
			return err_set(err, ECANCELED, "%s: interrupted", in->shown);
		n = read(in->fd, block, sizeof(block));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return err_sys(err, errno, "%s: cannot be read", in->shown);
		if (!n)
			return 0;
		for (ssize_t i = 0; i < n && have < sizeof(head); i++)
			head[have++] = block[i];
		/* What has no end, like /dev/zero, is not to fill the disk first. */
		if (have == sizeof(head) && !is_perf_data(head))
			return err_set(err, EBADMSG, "%s: not a perf.data file (no magic number)",
				       in->shown);
		ret = write_all(to, block, (size_t)n);
		if (ret)
			return err_sys(err, -ret, "%s: cannot be kept for a second reading",
				       in->shown);
	}
}

static int keep_pipe(struct merge *m, struct merge_input *in, struct vmprof_err *err)
{
	int fd = unnamed_file(m->tmp_dir, err), ret;

	if (fd < 0)
		return -err->code;
	ret = copy_all(fd, in, err);
	close(in->fd);
	in->fd = fd;
	return ret;
}

static int open_input(struct merge *m, struct merge_input *in, struct vmprof_err *err)
{
	struct stat st;

	if (!strcmp(in->path, "-"))
		in->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		/* a FIFO that nobody writes to yet is waited for later, not beyond a signal */
		in->fd = open(in->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (in->fd < 0 || fstat(in->fd, &st))
		return err_sys(err, errno, "%s: cannot be opened", in->shown);
	if (S_ISDIR(st.st_mode)) {
		close(in->fd);
		in->fd = -1;
		return 0;
	}
	return S_ISREG(st.st_mode) ? 0 : keep_pipe(m, in, err);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool stat_input(const struct merge_input *in, struct stat *st)
{
	return !(strcmp(in->path, "-") ? stat(in->path, st) : fstat(STDIN_FILENO, st));
}

/* The output, and what an older one of its name will be kept as, must be none of the inputs. */
static int check_output(const struct merge *m, const struct merge_input *in, struct vmprof_err *err)
{
	const char *suffixes[] = {"", ".old"};
	struct stat st, out;
	int ret = 0;

	if (!strcmp(m->opts->output, "-") || !stat_input(in, &st) || S_ISCHR(st.st_mode))
		return 0;
	for (size_t i = 0; i < 2 && !ret; i++) {
		char *path = xasprintf("%s%s", m->opts->output, suffixes[i]);

		if (!stat(path, &out) && same_file(&st, &out))
			ret = err_set(err, EINVAL,
				      i ? "%s would be written over: the %s that there is is kept "
					  "as that; choose another name for the output"
					: "%s is an input and the output; choose another name for "
					  "the output",
				      in->shown, m->opts->output);
		free(path);
	}
	return ret;
}

static int check_twice(const struct merge *m, const struct merge_input *in, struct vmprof_err *err)
{
	struct stat st, other;

	if (!stat_input(in, &st) || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
		return 0;
	for (const struct merge_input *o = m->inputs; o < in; o++)
		if (stat_input(o, &other) && same_file(&st, &other))
			return err_set(err, EINVAL,
				       "%s and %s are the same file, whose samples would count "
				       "twice",
				       o->shown, in->shown);
	return 0;
}

int merge_open_inputs(struct merge *m, struct vmprof_err *err)
{
	int ret = 0;

	m->inputs = xcalloc(m->opts->nr_inputs, sizeof(*m->inputs));
	for (size_t i = 0; i < m->opts->nr_inputs && !ret; i++) {
		ret = split_label(&m->inputs[m->nr_inputs++], m->opts->inputs[i], err);
		if (!ret)
			ret = check_output(m, &m->inputs[i], err);
		if (!ret)
			ret = check_twice(m, &m->inputs[i], err);
	}
	for (size_t i = 0; i < m->nr_inputs && !ret; i++)
		ret = open_input(m, &m->inputs[i], err);
	return ret;
}

int merge_open_reader(const struct merge_input *in, struct perfdata_reader **r,
		      struct vmprof_err *err)
{
	if (in->fd < 0)
		return perfdata_reader_open(r, in->path, err);
	return perfdata_reader_open_fd(r, in->fd, in->shown, err);
}

static void free_source(struct merge_source *s)
{
	free(s->name);
	free(s->uuid);
	free(s->vm_json);
	free(s->stats_json);
	free(s->kernel);
	free(s);
}

void merge_free_inputs(struct merge *m)
{
	for (size_t i = 0; i < m->nr_inputs; i++) {
		struct merge_input *in = &m->inputs[i];
		struct merge_combo *c;

		for (size_t k = 0; (c = hashmap_next(&in->combos, &k, NULL));) {
			free(c->yield);
			free(c);
		}
		for (size_t k = 0; k < in->nr_sources; k++)
			free_source(in->sources[k]);
		hashmap_free(&in->combos);
		hashmap_free(&in->source_by_pid);
		hashmap_free(&in->build_ids);
		free(in->sources);
		free(in->events);
		free(in->points);
		perfdata_reader_close(in->header);
		if (in->fd >= 0)
			close(in->fd);
		free(in->shown);
		free(in->label);
	}
	free(m->inputs);
}
