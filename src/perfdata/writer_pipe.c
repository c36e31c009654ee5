// SPDX-License-Identifier: GPL-2.0-only
/* What a pipe has instead of a file's header and sections: records. */
#include <errno.h>
#include <string.h>

#include "perfdata/writer_impl.h"

#define PIPE_HEADER_SIZE  16
#define RECORD_MAX	  0xffffu
#define EVENT_UPDATE_NAME 2 /* PERF_EVENT_UPDATE__NAME */

static int put_record(struct perfdata_writer *w, uint32_t type, const struct buf *body,
		      struct vmprof_err *err)
{
	struct perf_event_header h = {.type = type};
	size_t size = sizeof(h) + (body->len + 7) / 8 * 8;
	struct buf b = {0};
	int r;

	if (size > RECORD_MAX)
		return -E2BIG;
	h.size = (uint16_t)size;
	buf_add(&b, &h, sizeof(h));
	buf_add(&b, body->data, body->len);
	buf_zero(&b, size - b.len);
	r = writer_put(w, b.data, b.len, w->written, err);
	w->written += b.len;
	buf_free(&b);
	return r;
}

static int put_pipe_attr(struct perfdata_writer *w, const struct writer_event *e,
			 struct vmprof_err *err)
{
	struct buf b = {0};
	int r;

	buf_add(&b, &e->attr, PERFDATA_ATTR_SIZE);
	buf_add(&b, e->ids, e->nr_ids * sizeof(uint64_t));
	r = put_record(w, PERFDATA_HEADER_ATTR, &b, err);
	if (r == -E2BIG)
		err_set(err, E2BIG,
			"event %s has %zu ids, which do not fit into a pipe; write to a file",
			e->name, e->nr_ids);
	buf_reset(&b);
	if (!r && e->nr_ids) {
		buf_u64(&b, EVENT_UPDATE_NAME);
		buf_u64(&b, e->ids[0]);
		buf_add(&b, e->name, strlen(e->name) + 1);
		r = put_record(w, PERFDATA_EVENT_UPDATE, &b, err);
	}
	buf_free(&b);
	return r;
}

/* Only those that are known by now, or, at the end (@late), only those that were not. */
static int put_pipe_features(struct perfdata_writer *w, bool late, struct vmprof_err *err)
{
	struct writer_section sections[WRITER_FEATURES_MAX];
	struct buf all = {0}, one = {0};
	size_t n = writer_features(w, &all, sections), at = 0;
	int r = 0;

	for (size_t i = 0; i < n && !r; at += sections[i++].size) {
		if (late != (sections[i].feature == PERFDATA_FEAT_SAMPLE_TIME))
			continue;
		buf_reset(&one);
		buf_u64(&one, sections[i].feature);
		buf_add(&one, all.data + at, sections[i].size);
		r = put_record(w, PERFDATA_HEADER_FEATURE, &one, err);
		if (r == -E2BIG)
			r = 0; /* a long command line: a pipe cannot carry it */
	}
	buf_free(&all);
	buf_free(&one);
	return r;
}

int writer_put_pipe_header(struct perfdata_writer *w, struct vmprof_err *err)
{
	uint64_t h[2] = {PERFDATA_MAGIC, PIPE_HEADER_SIZE};
	int r = writer_put(w, h, sizeof(h), 0, err);

	w->written = sizeof(h);
	for (size_t i = 0; i < w->nr_events && !r; i++)
		r = put_pipe_attr(w, &w->events[i], err);
	return r ? r : put_pipe_features(w, false, err);
}

int writer_finish_pipe(struct perfdata_writer *w, struct vmprof_err *err)
{
	int r = writer_put(w, w->build_ids.data, w->build_ids.len, w->written, err);

	return r ? r : put_pipe_features(w, true, err);
}
