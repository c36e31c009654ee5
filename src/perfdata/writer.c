// SPDX-License-Identifier: GPL-2.0-only
/*
 * On disk, in this order: header, ids, attributes, data, and behind the data the table and sections
 * of the features. A flush writes all of the latter anew and then, with one write, a header that
 * has the new size and the feature bits. The first write of data after it goes over the feature
 * sections, so that the bits are taken off before. Whenever the recorder is killed, the header
 * describes what is there.
 */
#include "perfdata/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "perfdata/writer_impl.h"
#include "util/clock.h"
#include "util/xalloc.h"

/* So much that a file is seldom without its features: they give way to the first byte of data. */
#define PENDING_MAX (4u << 20)
/* Where encode.c puts the time of a sample. */
#define SAMPLE_TIME_AT 32

/* ------------------------------------------------------------------ open */

/* /dev/stdout and its like: links to what is open, which are the system's and stay where they are.
 */
static bool is_descriptor(const char *path)
{
	static const char proc[] = "/proc/";
	char to[sizeof(proc)];

	return readlink(path, to, sizeof(to)) == sizeof(to) && !memcmp(to, proc, strlen(proc));
}

/* What is there is kept as PATH.old, as perf does. Only a file that has something in it. */
static int keep_old(const char *path, struct vmprof_err *err)
{
	char old[PATH_MAX];
	struct stat st;

	if (is_descriptor(path))
		return 0;
	if (stat(path, &st) || !S_ISREG(st.st_mode) || !st.st_size)
		return 0;
	if ((size_t)snprintf(old, sizeof(old), "%s.old", path) >= sizeof(old))
		return err_set(err, ENAMETOOLONG, "%s: the name is too long", path);
	if (rename(path, old))
		return err_sys(err, errno, "%s: cannot be kept as %s", path, old);
	return 0;
}

static int open_stdout(struct perfdata_writer *w, struct vmprof_err *err)
{
	w->path = xstrdup("standard output");
	w->pipe = true;
	if (isatty(STDOUT_FILENO))
		return err_set(err, EINVAL,
			       "perf.data is not written to a terminal: give -o FILE "
			       "or pipe the output into a command");
	w->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return w->fd < 0 ? err_sys(err, errno, "standard output") : 0;
}

/* A FIFO that nobody reads yet is waited for, but not beyond a signal. */
static int open_output(const char *path)
{
	const struct timespec patience = {.tv_nsec = WRITER_PATIENCE_MS * 1000000l};
	struct stat st;
	int fd, flags;

	if (stat(path, &st) || !S_ISFIFO(st.st_mode))
		return open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == ENXIO) {
		if (writer_interrupted()) {
			errno = ECANCELED;
			return -1;
		}
		nanosleep(&patience, NULL);
	}
	flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
	if (flags >= 0)
		fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
	return fd;
}

static int open_path(struct perfdata_writer *w, const struct perfdata_writer_config *cfg,
		     struct vmprof_err *err)
{
	const char *path = cfg->path ? cfg->path : "perf.data";
	struct stat st;
	int r;

	if (!strcmp(path, "-"))
		return open_stdout(w, err);
	w->path = xstrdup(path);
	r = cfg->force ? 0 : keep_old(path, err);
	if (r)
		return r;
	w->fd = open_output(path);
	if (w->fd < 0)
		return err_sys(err, errno, "%s: cannot be created", path);
	if (fstat(w->fd, &st))
		return err_sys(err, errno, "%s", path);
	w->pipe = S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
	return 0;
}

static void copy_event(struct perfdata_writer *w, struct writer_event *to,
		       const struct perfdata_event *from)
{
	const struct perfdata_clock *clock = &w->origin.clock;

	*to = (struct writer_event){
		.name = xstrdup(from->name),
		.attr = from->attr,
		.ids = xreallocarray(NULL, from->nr_ids + 1, sizeof(uint64_t)),
		.nr_ids = from->nr_ids,
		.group_size = from->group_size,
		.group_name = from->group_name ? xstrdup(from->group_name) : NULL,
	};
	if (from->nr_ids)
		memcpy(to->ids, from->ids, from->nr_ids * sizeof(uint64_t));
	to->attr.size = PERFDATA_ATTR_SIZE;
	to->attr.sample_type = PERFDATA_SAMPLE_TYPE;
	if (from->no_chains)
		to->attr.sample_type &= ~(uint64_t)PERF_SAMPLE_CALLCHAIN;
	if (from->user_copies)
		to->attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	to->attr.read_format = PERF_FORMAT_ID;
	to->attr.sample_id_all = 1;
	to->attr.mmap = to->attr.mmap2 = 1;
	to->attr.comm = to->attr.comm_exec = to->attr.task = 1;
	to->attr.use_clockid = clock->known;
	to->attr.clockid = clock->known ? clock->id : 0;
}

static const char *copy_or_null(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static void copy_raw(struct perfdata_origin *o)
{
	struct perfdata_raw_feature *raw = xcalloc(o->nr_raw + 1, sizeof(*raw));

	for (size_t i = 0; i < o->nr_raw; i++) {
		void *data = xmalloc(o->raw[i].size + 1);

		memcpy(data, o->raw[i].data, o->raw[i].size);
		raw[i] = o->raw[i];
		raw[i].data = data;
	}
	o->raw = raw;
}

/* This host's clock is read when the file is opened: CLOCK_DATA is of a moment in the record. */
static void set_origin(struct perfdata_writer *w, const struct perfdata_origin *from)
{
	struct perfdata_clock *clock = &w->origin.clock;
	struct timespec tod, res;

	w->start_ns = clock_now_ns();
	if (from) {
		w->foreign = true;
		w->origin = *from;
		w->origin.hostname = copy_or_null(from->hostname);
		w->origin.osrelease = copy_or_null(from->osrelease);
		w->origin.arch = copy_or_null(from->arch);
		w->origin.cpudesc = copy_or_null(from->cpudesc);
		w->host_kernel = from->host_kernel;
		copy_raw(&w->origin);
		return;
	}
	*clock = (struct perfdata_clock){.known = true, .has_wall = true, .id = CLOCK_MONOTONIC};
	clock_gettime(CLOCK_REALTIME, &tod);
	clock->clock_ns = w->start_ns;
	clock->wall_ns = (uint64_t)tod.tv_sec * 1000000000ull + (uint64_t)tod.tv_nsec;
	if (!clock_getres(CLOCK_MONOTONIC, &res))
		clock->res = (uint64_t)res.tv_sec * 1000000000ull + (uint64_t)res.tv_nsec;
}

static void copy_config(struct perfdata_writer *w, const struct perfdata_writer_config *cfg)
{
	size_t n = 0;

	set_origin(w, cfg->origin);
	w->events = xcalloc(cfg->nr_events + 1, sizeof(*w->events));
	w->nr_events = cfg->nr_events;
	for (size_t i = 0; i < cfg->nr_events; i++)
		copy_event(w, &w->events[i], &cfg->events[i]);
	while (cfg->argv && cfg->argv[n])
		n++;
	w->argv = xcalloc(n + 1, sizeof(*w->argv));
	for (size_t i = 0; i < n; i++)
		w->argv[i] = xstrdup(cfg->argv[i]);
}

static void writer_free(struct perfdata_writer *w)
{
	for (size_t i = 0; i < w->nr_events; i++) {
		free(w->events[i].name);
		free(w->events[i].ids);
		free(w->events[i].group_name);
	}
	free(w->events);
	for (size_t i = 0; w->argv && w->argv[i]; i++)
		free(w->argv[i]);
	free(w->argv);
	free((char *)w->origin.hostname);
	free((char *)w->origin.osrelease);
	free((char *)w->origin.arch);
	free((char *)w->origin.cpudesc);
	for (size_t i = 0; i < w->origin.nr_raw; i++)
		free((void *)w->origin.raw[i].data);
	free((void *)w->origin.raw);
	buf_free(&w->pending);
	buf_free(&w->build_ids);
	hashmap_free(&w->build_id_seen);
	free(w->path);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

int perfdata_writer_open(struct perfdata_writer **out, const struct perfdata_writer_config *cfg,
			 struct vmprof_err *err)
{
	struct perfdata_writer *w = xcalloc(1, sizeof(*w));
	int r;

	*out = NULL;
	w->fd = -1;
	copy_config(w, cfg);
	r = open_path(w, cfg, err);
	if (!r)
		r = w->pipe ? writer_put_pipe_header(w, err) : writer_put_ids_and_attrs(w, err);
	if (r) {
		writer_free(w);
		return r;
	}
	perfdata_encode_id_index(&w->pending, cfg->ids, cfg->nr_ids);
	w->total = w->pending.len;
	*out = w;
	return 0;
}

/* ------------------------------------------------------------------ data */

/* The disk is full or the like: what was whole at the last flush is put in order again. */
static void fall_back(struct perfdata_writer *w)
{
	struct vmprof_err ignored;

	if (w->pipe)
		return;
	w->written = w->flushed;
	if (ftruncate(w->fd, (off_t)(w->data_offset + w->written)))
		return;
	/* The truncation made room for the sections. If not, the header says that there are none.
	 */
	writer_put_features(w, &ignored);
	if (!w->features_valid)
		writer_put_header(w, w->written, NULL, 0, &ignored);
}

static int write_pending(struct perfdata_writer *w, struct vmprof_err *err)
{
	int r = 0;

	if (!w->pending.len)
		return 0;
	if (w->features_valid)
		r = writer_put_header(w, w->flushed, NULL, 0, err);
	w->features_valid = false;
	if (!r)
		r = writer_put(w, w->pending.data, w->pending.len, w->data_offset + w->written,
			       err);
	if (r) {
		fall_back(w);
		return r;
	}
	w->written += w->pending.len;
	buf_reset(&w->pending);
	return 0;
}

static int failed_before(const struct perfdata_writer *w, struct vmprof_err *err)
{
	return err_set(err, w->failed, "%s", w->failure);
}

/* Are these whole records? Takes the times of samples on the way. */
static bool check_records(struct perfdata_writer *w, const struct buf *b)
{
	struct perf_event_header h;
	uint64_t time;

	for (size_t at = 0; at < b->len; at += h.size) {
		if (b->len - at < sizeof(h))
			return false;
		memcpy(&h, b->data + at, sizeof(h));
		if (h.size < sizeof(h) || h.size > b->len - at)
			return false;
		if (h.type != PERF_RECORD_SAMPLE || h.size < SAMPLE_TIME_AT + sizeof(time))
			continue;
		memcpy(&time, b->data + at + SAMPLE_TIME_AT, sizeof(time));
		if (!w->last_time || time < w->first_time)
			w->first_time = time;
		if (time > w->last_time)
			w->last_time = time;
	}
	return true;
}

/*
 * The host's kernel comes right before the first sample, thus behind the guests' kernels: commands
 * of perf that do not know of guests (diff, buildid-list) put all of them into the host, and there
 * the last one wins.
 */
void perfdata_writer_add_host_kernel(struct perfdata_writer *w, uint64_t time)
{
	size_t before = w->pending.len;

	if (w->host_kernel)
		return;
	writer_host_kernel(w, &w->pending, time);
	w->host_kernel = true;
	w->total += w->pending.len - before;
}

int perfdata_writer_append(struct perfdata_writer *w, struct buf *b, struct vmprof_err *err)
{
	if (w->failed)
		return failed_before(w, err);
	if (!check_records(w, b))
		return err_set(err, EINVAL, "%s: a part of a record was to be written", w->path);
	if (w->last_time)
		perfdata_writer_add_host_kernel(w, w->first_time - 1);
	buf_add(&w->pending, b->data, b->len);
	w->total += b->len;
	buf_reset(b);
	return w->pending.len >= PENDING_MAX ? write_pending(w, err) : 0;
}

int perfdata_writer_flush(struct perfdata_writer *w, struct vmprof_err *err)
{
	struct perf_event_header round = {.type = PERFDATA_FINISHED_ROUND, .size = sizeof(round)};
	int r;

	if (w->failed)
		return failed_before(w, err);
	buf_add(&w->pending, &round, sizeof(round));
	w->total += sizeof(round);
	r = write_pending(w, err);
	if (r || w->pipe)
		return r;
	w->flushed = w->written;
	r = writer_put_features(w, err);
	if (r)
		fall_back(w);
	return r;
}

void perfdata_writer_add_build_id(struct perfdata_writer *w, const struct perfdata_build_id *id)
{
	size_t before = w->build_ids.len, n = strnlen(id->filename, PATH_MAX - 1);
	uint8_t len = id->len <= 20 ? id->len : 20, tail[24] = {0};
	struct perf_event_header h = {
		.type = PERFDATA_BUILD_ID,
		.misc = id->cpumode | PERFDATA_MISC_BUILD_ID_SIZE,
		.size = (uint16_t)(sizeof(h) + 4 + sizeof(tail) + (n + 8) / 8 * 8 + 4),
	};
	uint64_t key;

	memcpy(tail, id->id, len);
	tail[20] = len;
	buf_add(&w->build_ids, &h, sizeof(h));
	buf_u32(&w->build_ids, (uint32_t)id->machine_pid);
	buf_add(&w->build_ids, tail, sizeof(tail));
	buf_add(&w->build_ids, id->filename, n);
	buf_zero(&w->build_ids, before + h.size - w->build_ids.len);
	key = hash_bytes(w->build_ids.data + before, w->build_ids.len - before);
	if (hashmap_get(&w->build_id_seen, key))
		w->build_ids.len = before;
	else
		hashmap_set(&w->build_id_seen, key, w);
}

uint64_t perfdata_writer_bytes(const struct perfdata_writer *w)
{
	return w->total;
}

/* ------------------------------------------------------------------ close */

int perfdata_writer_close(struct perfdata_writer *w, struct vmprof_err *err)
{
	int r;

	if (!w->failed)
		perfdata_writer_add_host_kernel(w, w->start_ns);
	r = perfdata_writer_flush(w, err);
	if (!r && w->pipe)
		r = writer_finish_pipe(w, err);
	if (close(w->fd) && !r)
		r = writer_fail(w, errno, w->data_offset + w->written, err);
	w->fd = -1;
	writer_free(w);
	return r;
}
