// SPDX-License-Identifier: GPL-2.0-only
/* The parts of a file around the data: header, ids, attributes, features. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "perfdata/writer_impl.h"

int writer_fail(struct perfdata_writer *w, int code, uint64_t offset, struct vmprof_err *err)
{
	struct vmprof_err e = {0};

	if (w->pipe)
		err_sys(&e, code, "%s: cannot write behind byte %llu", w->path,
			(unsigned long long)offset);
	else
		err_sys(&e, code, "%s: cannot write at offset %llu", w->path,
			(unsigned long long)offset);
	if (!w->failed) {
		w->failed = -e.code;
		snprintf(w->failure, sizeof(w->failure), "%s", e.msg);
	}
	return err_set(err, w->failed, "%s", w->failure);
}

/*
 * The recorder blocks the signals that end it. Where the other end of a pipe decides how long we
 * wait, one that has come ends the wait.
 */
bool writer_interrupted(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	sigset_t set;

	if (sigpending(&set))
		return false;
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (sigismember(&set, signals[i]) == 1)
			return true;
	return false;
}

/* No more than this does not block if poll() says so. */
static ssize_t write_pipe(int fd, const void *p, size_t n)
{
	struct pollfd pfd = {fd, POLLOUT, 0};
	int ready;

	while ((ready = poll(&pfd, 1, WRITER_PATIENCE_MS)) == 0) {
		if (!writer_interrupted())
			continue;
		errno = ECANCELED; /* not EINTR, which is tried again */
		return -1;
	}
	return ready < 0 ? -1 : write(fd, p, n < PIPE_BUF ? n : PIPE_BUF);
}

/* All of @n bytes, whatever the kernel takes at a time. A pipe has no offsets. */
int writer_put(struct perfdata_writer *w, const void *p, size_t n, uint64_t offset,
	       struct vmprof_err *err)
{
	const uint8_t *b = p;

	while (n) {
		ssize_t r = w->pipe ? write_pipe(w->fd, b, n) : pwrite(w->fd, b, n, (off_t)offset);

		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return writer_fail(w, r ? errno : EIO, offset, err);
		b += r;
		offset += (uint64_t)r;
		n -= (size_t)r;
	}
	return 0;
}

static void attrs_section(const struct perfdata_writer *w, struct perfdata_section *s)
{
	s->offset = sizeof(struct perfdata_file_header);
	for (size_t i = 0; i < w->nr_events; i++)
		s->offset += w->events[i].nr_ids * sizeof(uint64_t);
	s->size = w->nr_events * (PERFDATA_ATTR_SIZE + sizeof(struct perfdata_section));
}

int writer_put_header(struct perfdata_writer *w, uint64_t data_size,
		      const struct writer_section *sections, size_t n, struct vmprof_err *err)
{
	struct perfdata_file_header h = {
		.magic = PERFDATA_MAGIC,
		.size = sizeof(h),
		.attr_size = PERFDATA_ATTR_SIZE + sizeof(struct perfdata_section),
		.data = {w->data_offset, data_size},
	};

	_Static_assert(sizeof(h) == 104, "the header has no holes");
	attrs_section(w, &h.attrs);
	for (size_t i = 0; i < n; i++)
		h.features[sections[i].feature / 64] |= 1ull << sections[i].feature % 64;
	return writer_put(w, &h, sizeof(h), 0, err);
}

int writer_put_ids_and_attrs(struct perfdata_writer *w, struct vmprof_err *err)
{
	struct perfdata_section attrs, ids = {sizeof(struct perfdata_file_header), 0};
	struct buf b = {0};
	int r;

	for (size_t i = 0; i < w->nr_events; i++)
		buf_add(&b, w->events[i].ids, w->events[i].nr_ids * sizeof(uint64_t));
	for (size_t i = 0; i < w->nr_events; i++) {
		ids.size = w->events[i].nr_ids * sizeof(uint64_t);
		buf_add(&b, &w->events[i].attr, PERFDATA_ATTR_SIZE);
		buf_add(&b, &ids, sizeof(ids));
		ids.offset += ids.size;
	}
	attrs_section(w, &attrs);
	w->data_offset = attrs.offset + attrs.size;
	r = writer_put(w, b.data, b.len, sizeof(struct perfdata_file_header), err);
	buf_free(&b);
	return r ? r : writer_put_header(w, 0, NULL, 0, err);
}

/* The features behind the data, then the header that names both. */
int writer_put_features(struct perfdata_writer *w, struct vmprof_err *err)
{
	struct writer_section sections[WRITER_FEATURES_MAX];
	struct buf body = {0}, table = {0};
	size_t n = writer_features(w, &body, sections);
	uint64_t at = w->data_offset + w->written;
	struct perfdata_section s = {.offset = at + n * sizeof(s)};
	int r;

	for (size_t i = 0; i < n; i++, s.offset += s.size) {
		s.size = sections[i].size;
		buf_add(&table, &s, sizeof(s));
	}
	buf_add(&table, body.data, body.len);
	r = writer_put(w, table.data, table.len, at, err);
	buf_free(&body);
	buf_free(&table);
	if (!r)
		r = writer_put_header(w, w->written, sections, n, err);
	w->features_valid = !r;
	return r;
}
