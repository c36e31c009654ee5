// SPDX-License-Identifier: GPL-2.0-only
#include "perfdata/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perfdata/reader_impl.h"
#include "util/saturate.h"
#include "util/text.h"
#include "util/xalloc.h"

/* The last type of the kernel's that this reader knows. */
#define KERNEL_TYPE_LAST PERF_RECORD_AUX_OUTPUT_HW_ID
#define PERF_TYPE_LAST	 PERFDATA_BPF_METADATA

int damaged(struct perfdata_reader *r, uint64_t offset, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (r->damage)
		return r->damage;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->damage = err_set(&r->damage_err, EBADMSG, "%s: offset %llu: %s",
			    r->part ? r->part : r->path, (unsigned long long)offset, text);
	return r->damage;
}

/* ------------------------------------------------------------------ the walk */

static int call(struct perfdata_reader *r, const struct perfdata_record *rec)
{
	int ret = r->fn(r->ctx, rec);

	if (ret < 0)
		r->stop = ret;
	return ret < 0 ? ret : 0;
}

/*
 * A sample with counter values stands for a sample of each event of its group, whose period is what
 * the event has counted since the last one; none for events that have not counted.
 */
static int deliver_group(struct perfdata_reader *r, const struct perfdata_record *rec)
{
	const struct read_values v = r->read;
	struct perfdata_record one = *rec;
	int ret = 0;

	for (uint64_t i = 0; i < v.nr && !ret; i++) {
		const uint64_t *value = v.values + i * v.stride;
		struct id_entry *e = id_find(r, value[v.id_at]);

		if (!e || !e->evsel) {
			r->stats.no_event++;
			continue;
		}
		one.id = e->id;
		one.evsel = &e->evsel->pub;
		one.machine_pid = e->machine_pid;
		one.vcpu = e->vcpu;
		one.period = value[0] - e->value;
		e->value = value[0];
		if (one.period)
			ret = call(r, &one);
	}
	return ret;
}

static void count_times(struct perfdata_reader_stats *s, uint64_t time)
{
	if (!s->first_time || time < s->first_time)
		s->first_time = time;
	if (time > s->last_time)
		s->last_time = time;
}

int deliver_record(struct perfdata_reader *r, const struct perfdata_record *rec)
{
	if (rec->type == PERF_RECORD_LOST || rec->type == PERF_RECORD_LOST_SAMPLES)
		add_saturated(&r->stats.lost, rec->lost.lost);
	if (rec->type != PERF_RECORD_SAMPLE)
		return call(r, rec);
	if (rec->time)
		count_times(&r->stats, rec->time);
	return r->read.values ? deliver_group(r, rec) : call(r, rec);
}

/* A record whose body makes no sense is passed over; the first one is remembered. */
static void skip_broken(struct perfdata_reader *r, uint64_t offset, const char *what)
{
	r->stats.broken++;
	damaged(r, offset, "%s", what);
}

bool parse_in_chunk(struct perfdata_reader *r, const struct chunk *c, uint32_t pos,
		    struct perfdata_record *rec)
{
	const uint8_t *record = c->buf + pos;
	struct perf_event_header h;
	const char *what;
	int ret;

	memcpy(&h, record, sizeof(h));
	if ((uintptr_t)record % 8) {
		memcpy(r->scratch, record, h.size);
		record = (const uint8_t *)r->scratch;
	}
	ret = parse_record(r, record, c->offset + pos, rec, &what);
	if (ret == -ENOENT)
		r->stats.no_event++;
	else if (ret)
		skip_broken(r, c->offset + pos, what);
	return !ret;
}

static int kernel_record(struct perfdata_reader *r, struct source *s,
			 const struct perf_event_header *h)
{
	const uint8_t *record = s->cur->buf + s->pos;
	struct perfdata_record rec;
	uint64_t time;

	if (h->type > KERNEL_TYPE_LAST) {
		r->stats.unknown++;
		return 0;
	}
	if (h->type == PERF_RECORD_SAMPLE && !r->nr_evsels) {
		skip_broken(r, s->cur->offset + s->pos,
			    "a sample, and no attribute says what is in it");
		return 0;
	}
	if (record_time(r, h, record, &time)) {
		skip_broken(r, s->cur->offset + s->pos, "a record that is too short for its event");
		return 0;
	}
	if (time && time != ~0ull)
		return order_queue(r, s->cur, s->pos, h->size, time);
	/* perf's own records, which say how things stood at the start, have no time */
	if (!parse_in_chunk(r, s->cur, s->pos, &rec))
		return 0;
	return deliver_record(r, &rec);
}

/* AUXTRACE is followed by as many bytes as it says, which are no records. */
static int skip_auxtrace(struct perfdata_reader *r, const struct perf_event_header *h,
			 uint64_t offset)
{
	const uint8_t *record = r->file.cur->buf + r->file.pos;
	uint64_t size;

	if (h->size < sizeof(*h) + sizeof(size))
		return damaged(r, offset, "an AUX area record of %u bytes", h->size);
	memcpy(&size, record + sizeof(*h), sizeof(size));
	if (r->swap)
		swap_words(&size, sizeof(size));
	r->file.pos += h->size;
	add_saturated(&r->stats.aux_bytes, size);
	return source_skip(r, size, NULL);
}

static int user_record(struct perfdata_reader *r, struct source *s,
		       const struct perf_event_header *h)
{
	const uint8_t *record = s->cur->buf + s->pos;
	uint64_t offset = s->cur->offset + s->pos;

	switch (h->type) {
	case PERFDATA_FINISHED_ROUND:
		/* the files of a directory are read one after the other, their rounds are not */
		return r->dir ? 0 : order_round(r);
	case PERFDATA_COMPRESSED:
	case PERFDATA_COMPRESSED2:
		if (s == &r->decomp)
			return damaged(r, offset, "compressed data inside of compressed data");
		return decompress_record(r, h, record, offset);
	default:
		if (is_header_record(h->type))
			return header_record(r, h, record, offset);
		r->stats.unknown += h->type > PERF_TYPE_LAST;
		return 0;
	}
}

static int one_record(struct perfdata_reader *r, struct source *s,
		      const struct perf_event_header *h)
{
	r->stats.total++;
	r->stats.records[h->type < 255 ? h->type : 255]++;
	if (h->type < PERFDATA_HEADER_ATTR) {
		if (r->swap)
			swap_record(r, s->cur->buf + s->pos);
		return kernel_record(r, s, h);
	}
	return user_record(r, s, h);
}

/* Records with bytes behind them. They move the source on themselves. */
static bool has_tail(uint32_t type)
{
	return type == PERFDATA_AUXTRACE || type == PERFDATA_TRACING_DATA;
}

static int record_with_tail(struct perfdata_reader *r, struct source *s,
			    const struct perf_event_header *h)
{
	uint64_t offset = s->cur->offset + s->pos;

	r->stats.total++;
	r->stats.records[h->type]++;
	if (s != &r->file)
		return damaged(r, offset, "trace data inside of compressed data");
	return h->type == PERFDATA_AUXTRACE ? skip_auxtrace(r, h, offset)
					    : header_tracing_data(r, h, offset);
}

/* All whole records that there are. 0 at the end, or the first error. */
int walk_source(struct perfdata_reader *r, struct source *s)
{
	struct perf_event_header h;
	int ret;

	while ((ret = source_peek(r, s, &h)) > 0) {
		if (has_tail(h.type)) {
			ret = record_with_tail(r, s, &h);
		} else {
			ret = one_record(r, s, &h);
			s->pos += h.size;
		}
		if (ret)
			return ret;
	}
	return ret;
}

/* The same of a file, and what comes out of compressed records must end with a record. */
int walk_file(struct perfdata_reader *r)
{
	int ret = walk_source(r, &r->file);

	if (!ret && r->decomp.cur && r->decomp.pos < r->decomp.cur->len)
		ret = damaged(r, r->decomp.cur->offset,
			      "compressed data ends in the middle of a record");
	return ret;
}

/* The records at the start of a pipe that a file has in its header. */
static int walk_pipe_header(struct perfdata_reader *r)
{
	struct perf_event_header h;
	int ret;

	while ((ret = source_peek(r, &r->file, &h)) > 0 && is_header_record(h.type)) {
		if (has_tail(h.type)) {
			ret = record_with_tail(r, &r->file, &h);
		} else {
			ret = one_record(r, &r->file, &h);
			r->file.pos += h.size;
		}
		if (ret)
			return ret;
	}
	return ret < 0 ? ret : 0;
}

int perfdata_reader_run(struct perfdata_reader *r,
			int (*fn)(void *ctx, const struct perfdata_record *rec), void *ctx,
			struct vmprof_err *err)
{
	if (r->ran)
		return err_set(err, EINVAL, "%s: was read already", r->path);
	r->ran = true;
	r->fn = fn;
	r->ctx = ctx;
	if (!walk_file(r) && r->dir)
		dir_walk(r);
	if (!r->stop)
		order_flush(r);
	if (r->stop)
		return r->stop;
	return perfdata_reader_damage(r, err);
}

/* ------------------------------------------------------------------ open */

/* What can be told of r->fd: @path is for a directory, NULL if it cannot be one. */
static int look_at_fd(struct perfdata_reader *r, const char *path, struct vmprof_err *err)
{
	struct stat st;

	if (fstat(r->fd, &st))
		return err_sys(err, errno, "%s", r->path);
	if (S_ISDIR(st.st_mode) && path) {
		int ret = dir_open(r, path, err);

		if (ret)
			return ret;
		if (fstat(r->fd, &st))
			return err_sys(err, errno, "%s", r->path);
	}
	r->seekable = S_ISREG(st.st_mode);
	r->file_size = r->seekable ? (uint64_t)st.st_size : UINT64_MAX;
	r->mtime = st.st_mtime;
	if (r->seekable && !st.st_size)
		return err_set(err, EBADMSG, "%s: is empty", r->path);
	return 0;
}

static int open_path(struct perfdata_reader *r, const char *path, struct vmprof_err *err)
{
	char shown[512];

	if (!path)
		path = "perf.data";
	if (!strcmp(path, "-")) {
		r->path = xstrdup("standard input");
		r->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	} else {
		r->path = xstrdup(escape_str(shown, sizeof(shown), path));
		r->fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (r->fd < 0)
		return err_sys(err, errno, "%s: cannot be opened", r->path);
	return look_at_fd(r, path, err);
}

static int open_fd(struct perfdata_reader *r, int fd, const char *name, struct vmprof_err *err)
{
	char shown[512];

	r->path = xstrdup(escape_str(shown, sizeof(shown), name));
	r->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (r->fd < 0)
		return err_sys(err, errno, "%s: cannot be opened", r->path);
	return look_at_fd(r, NULL, err);
}

static struct perfdata_reader *reader_new(void)
{
	struct perfdata_reader *r = xcalloc(1, sizeof(*r));

	r->fd = -1;
	chunk_pool_init(&r->pool);
	return r;
}

/* @ret: of the opening. Hands @r out, or closes it. */
static int read_header(struct perfdata_reader **out, struct perfdata_reader *r, int ret,
		       struct vmprof_err *err)
{
	*out = NULL;
	if (!ret)
		ret = header_open(r, err);
	if (!ret && r->pipe && walk_pipe_header(r))
		ret = err_set(err, r->damage, "%s", r->damage_err.msg);
	if (!ret && !layouts_agree(r))
		ret = err_set(err, EBADMSG,
			      "%s: its events have samples of different form and no id at a common "
			      "place to tell them apart",
			      r->path);
	if (ret) {
		perfdata_reader_close(r);
		return ret;
	}
	*out = r;
	return 0;
}

int perfdata_reader_open(struct perfdata_reader **out, const char *path, struct vmprof_err *err)
{
	struct perfdata_reader *r = reader_new();

	return read_header(out, r, open_path(r, path, err), err);
}

int perfdata_reader_open_fd(struct perfdata_reader **out, int fd, const char *name,
			    struct vmprof_err *err)
{
	struct perfdata_reader *r = reader_new();

	return read_header(out, r, open_fd(r, fd, name, err), err);
}

static void free_events(struct perfdata_reader *r)
{
	struct id_entry *e;

	for (size_t i = 0; i < r->nr_evsels; i++) {
		free(r->evsels[i]->pub.name);
		free(r->evsels[i]->pub.ids);
		free(r->evsels[i]);
	}
	free(r->evsels);
	for (size_t i = 0; (e = hashmap_next(&r->ids, &i, NULL));)
		free(e);
	hashmap_free(&r->ids);
}

void perfdata_reader_close(struct perfdata_reader *r)
{
	if (!r)
		return;
	order_free(r);
	chunk_put(r, r->file.cur);
	chunk_put(r, r->decomp.cur);
	chunk_pool_free(&r->pool);
	decompress_free(r);
	free_events(r);
	tracing_free(r);
	for (size_t i = 0; i < NR_FEATURES; i++)
		buf_free(&r->features[i].data);
	for (size_t i = 0; i < r->nr_build_ids; i++)
		free((void *)r->build_ids[i].id);
	free(r->build_ids);
	dir_free(r);
	if (r->fd >= 0)
		close(r->fd);
	free(r->path);
	free(r);
}

/* ------------------------------------------------------------------ what is asked */

int perfdata_reader_damage(const struct perfdata_reader *r, struct vmprof_err *err)
{
	return r->damage ? err_set(err, r->damage, "%s", r->damage_err.msg) : 0;
}

size_t perfdata_reader_nr_evsels(const struct perfdata_reader *r)
{
	return r->nr_evsels;
}

struct perfdata_evsel *perfdata_reader_evsel(const struct perfdata_reader *r, size_t i)
{
	return i < r->nr_evsels ? &r->evsels[i]->pub : NULL;
}

bool perfdata_reader_is_pipe(const struct perfdata_reader *r)
{
	return r->pipe;
}

const char *perfdata_reader_path(const struct perfdata_reader *r)
{
	return r->path;
}

const char *perfdata_reader_feature_str(const struct perfdata_reader *r,
					enum perfdata_feature feature)
{
	struct feature_cursor c;
	const char *s;

	if (!feature_open(r, feature, &c))
		return NULL;
	s = feature_string(&c);
	return c.bad ? NULL : s;
}

bool perfdata_reader_feature_raw(const struct perfdata_reader *r, enum perfdata_feature feature,
				 const void **data, size_t *size)
{
	struct feature_cursor c;

	if (r->swap || !feature_open(r, feature, &c))
		return false;
	*data = c.p;
	*size = (size_t)(c.end - c.p);
	return true;
}

bool perfdata_reader_next_group(const struct perfdata_reader *r, struct perfdata_group *g)
{
	uint32_t end = g->leader + g->nr;
	struct feature_cursor c;
	const uint8_t *start;

	if (!feature_open(r, PERFDATA_FEAT_GROUP_DESC, &c))
		return false;
	start = c.p;
	/* how many there are; the section's end tells as well */
	if (g->at)
		c.p += g->at;
	else
		feature_u32(&c);
	for (;;) {
		g->name = feature_string(&c);
		g->leader = feature_u32(&c);
		g->nr = feature_u32(&c);
		if (c.bad)
			return false;
		if (g->nr > 1 && g->leader >= end && g->leader < r->nr_evsels &&
		    g->nr <= r->nr_evsels - g->leader)
			break;
	}
	if (!strcmp(g->name, "{anon_group}"))
		g->name = NULL;
	g->at = (size_t)(c.p - start);
	return true;
}

bool perfdata_reader_sample_times(const struct perfdata_reader *r, uint64_t *first, uint64_t *last)
{
	struct feature_cursor c;

	*first = *last = 0;
	if (!feature_open(r, PERFDATA_FEAT_SAMPLE_TIME, &c))
		return false;
	*first = feature_u64(&c);
	*last = feature_u64(&c);
	return !c.bad;
}

size_t perfdata_reader_build_ids(const struct perfdata_reader *r,
				 const struct perfdata_reader_build_id **ids)
{
	*ids = r->build_ids;
	return r->nr_build_ids;
}

const struct perfdata_reader_stats *perfdata_reader_get_stats(const struct perfdata_reader *r)
{
	return &r->stats;
}
