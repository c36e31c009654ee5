// SPDX-License-Identifier: GPL-2.0-only
/* What comes before the data: in a file the header and its sections, in a pipe records. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata/reader_impl.h"
#include "util/text.h"
#include "util/xalloc.h"

#define MAGIC_V1	  0x454c494646524550ull /* "PERFFILE": byte order by attr_size */
#define PIPE_HEADER_SIZE  16
#define HEADER_SIZE_V0	  offsetof(struct perfdata_file_header, features)
#define ATTR_SIZE_MIN	  64
#define ATTR_SIZE_MAX	  4096
#define EVENTS_MAX	  65536
#define IDS_MAX		  (16u << 20)
#define TRACING_DATA_MAX  (64u << 20)
#define EVENT_UPDATE_NAME 2

/* ------------------------------------------------------------------ events and ids */

static void set_id(struct perfdata_reader *r, uint64_t id, struct evsel *evsel)
{
	struct id_entry *e = hashmap_get(&r->ids, id);

	if (!e) {
		e = xcalloc(1, sizeof(*e));
		e->id = id;
		e->vcpu = -1;
		hashmap_set(&r->ids, id, e);
	}
	if (evsel)
		e->evsel = evsel;
}

struct id_entry *id_find(struct perfdata_reader *r, uint64_t id)
{
	struct id_entry **recent = &r->recent_ids[id % 64];

	if (!*recent || (*recent)->id != id)
		*recent = hashmap_get(&r->ids, id);
	return *recent;
}

/*
 * @attr as it is in the file. A longer one is from a newer perf, whose additions are not needed to
 * find one's way through a sample.
 */
static struct evsel *add_event(struct perfdata_reader *r, const void *attr, size_t size)
{
	struct evsel *e = xcalloc(1, sizeof(*e));

	memcpy(&e->pub.attr, attr, size < sizeof(e->pub.attr) ? size : sizeof(e->pub.attr));
	if (r->swap)
		swap_attr(&e->pub.attr);
	e->pub.index = (uint32_t)r->nr_evsels;
	e->pub.name = event_name(&e->pub.attr);
	layout_init(&e->layout, &e->pub.attr);
	r->evsels = xgrow(r->evsels, &r->evsels_cap, r->nr_evsels + 1, sizeof(struct evsel *));
	r->evsels[r->nr_evsels++] = e;
	r->uniform = (r->uniform || r->nr_evsels == 1) &&
		     e->layout.time == r->evsels[0]->layout.time &&
		     e->layout.tail_time == r->evsels[0]->layout.tail_time;
	r->any_raw |= !!(e->layout.type & PERF_SAMPLE_RAW);
	tracing_name_events(r);
	return e;
}

/* A sample's event must be known before its form is: all have the id at the same place. */
bool layouts_agree(const struct perfdata_reader *r)
{
	const struct sample_layout *first = r->nr_evsels ? &r->evsels[0]->layout : NULL;

	for (size_t i = 1; i < r->nr_evsels; i++) {
		const struct sample_layout *l = &r->evsels[i]->layout;

		if (l->id != first->id || l->tail_id != first->tail_id || l->id == NO_FIELD ||
		    r->evsels[i]->pub.attr.sample_id_all != r->evsels[0]->pub.attr.sample_id_all)
			return false;
	}
	return true;
}

/* @n ids, in the file's byte order and not aligned. */
static void add_ids(struct perfdata_reader *r, struct evsel *e, const uint8_t *ids, size_t n)
{
	e->pub.ids = xreallocarray(e->pub.ids, n + 1, sizeof(uint64_t));
	e->pub.nr_ids = n;
	memcpy(e->pub.ids, ids, n * sizeof(uint64_t));
	if (r->swap)
		swap_words(e->pub.ids, n * sizeof(uint64_t));
	for (size_t i = 0; i < n; i++)
		set_id(r, e->pub.ids[i], e);
	r->nr_ids += n;
}

/* ------------------------------------------------------------------ header of a file */

static bool inside(const struct perfdata_reader *r, const struct perfdata_section *s)
{
	return s->offset <= r->file_size && s->size <= r->file_size - s->offset;
}

static int bad_header(struct perfdata_reader *r, struct vmprof_err *err, uint64_t offset,
		      const char *what)
{
	return err_set(err, EBADMSG, "%s: offset %llu: %s", r->path, (unsigned long long)offset,
		       what);
}

static int read_event(struct perfdata_reader *r, uint64_t offset, struct vmprof_err *err)
{
	uint8_t attr[ATTR_SIZE_MAX];
	size_t size = (size_t)r->header.attr_size - sizeof(struct perfdata_section);
	struct perfdata_section ids;
	struct evsel *e;
	struct buf b = {0};
	size_t n;

	if (read_at(r->fd, attr, size, offset) || read_at(r->fd, &ids, sizeof(ids), offset + size))
		return bad_header(r, err, offset, "cannot be read");
	if (r->swap)
		swap_words(&ids, sizeof(ids));
	e = add_event(r, attr, size);
	n = (size_t)(ids.size / sizeof(uint64_t));
	if (!n)
		return 0;
	if (!inside(r, &ids))
		return bad_header(r, err, offset + size, "the ids of an event leave the file");
	if (n > IDS_MAX || r->nr_ids + n > r->file_size / sizeof(uint64_t))
		return bad_header(r, err, offset + size,
				  "more ids of events than the file can hold");
	if (read_at(r->fd, buf_grow(&b, n * sizeof(uint64_t)), n * sizeof(uint64_t), ids.offset)) {
		buf_free(&b);
		return bad_header(r, err, ids.offset, "cannot be read");
	}
	add_ids(r, e, b.data, n);
	buf_free(&b);
	return 0;
}

static int read_events(struct perfdata_reader *r, struct vmprof_err *err)
{
	const struct perfdata_file_header *h = &r->header;
	uint64_t n;
	int ret = 0;

	if (h->attr_size < ATTR_SIZE_MIN + sizeof(struct perfdata_section) ||
	    h->attr_size > ATTR_SIZE_MAX)
		return err_set(err, EBADMSG,
			       "%s: offset 16: the size of an attribute is %llu, which cannot be "
			       "(was the recorder killed at its start?)",
			       r->path, (unsigned long long)h->attr_size);
	if (!inside(r, &h->attrs))
		return bad_header(r, err, 24, "the attributes leave the file");
	n = h->attrs.size / h->attr_size;
	if (n > EVENTS_MAX)
		return bad_header(r, err, 24, "more than 65536 events");
	for (uint64_t i = 0; i < n && !ret; i++)
		ret = read_event(r, h->attrs.offset + i * h->attr_size, err);
	return ret;
}

static bool overlap(const struct perfdata_section *a, const struct perfdata_section *b)
{
	return a->size && b->size && a->offset < b->offset + b->size &&
	       b->offset < a->offset + a->size;
}

static bool read_section(const struct perfdata_reader *r, uint64_t at, struct perfdata_section *s)
{
	if (read_at(r->fd, s, sizeof(*s), at))
		return false;
	if (r->swap)
		swap_words(s, sizeof(*s));
	return true;
}

/*
 * A recorder writes the header when it begins, perf with all bits of features, and again with the
 * size of the data when it ends. If it was killed meanwhile, records stand where no data and the
 * table of features should be: the first word of one is no offset in a file.
 */
static bool was_not_closed(const struct perfdata_reader *r)
{
	const struct perfdata_file_header *h = &r->header;
	struct perfdata_section s;

	if (h->data.size || h->data.offset >= r->file_size)
		return false;
	return !h->features[0] || !read_section(r, h->data.offset, &s) || !inside(r, &s);
}

static int check_data(struct perfdata_reader *r, struct vmprof_err *err)
{
	const struct perfdata_section *data = &r->header.data;
	const struct perfdata_section head = {0, r->header.size};
	struct perfdata_section whole = *data; /* what of it is there */
	uint64_t end = data->offset + data->size;

	if (data->offset > r->file_size)
		return bad_header(r, err, 40, "the data begins behind the end of the file");
	if (was_not_closed(r)) {
		memset(r->header.features, 0, sizeof(r->header.features));
		whole.size = r->file_size - data->offset;
		damaged(r, 48,
			"the size of the data is 0: the file was not closed (was the recorder "
			"killed?)");
	} else if (end < data->offset || end > r->file_size) {
		whole.size = r->file_size - data->offset;
		damaged(r, r->file_size, "the file ends here, its data should go on to %llu",
			(unsigned long long)end);
	}
	if (overlap(&whole, &head) || overlap(&whole, &r->header.attrs))
		return bad_header(r, err, 40, "the data lies over the header or the attributes");
	r->file_pos = whole.offset;
	r->data_end = whole.offset + whole.size;
	return 0;
}

/* The table behind the data: a section for each bit that is set. */
static void read_feature_table(struct perfdata_reader *r)
{
	uint64_t at = r->header.data.offset + r->header.data.size;
	struct perfdata_section s;

	if (r->damage)
		return; /* the end of the data is not where it should be */
	for (unsigned bit = 0; bit < 256; bit++) {
		if (!(r->header.features[bit / 64] >> bit % 64 & 1))
			continue;
		if (!read_section(r, at, &s)) {
			damaged(r, at, "the table of features leaves the file");
			return;
		}
		if (bit > PERFDATA_FEAT_PMU_CAPS)
			r->stats.unknown_features++;
		if (!inside(r, &s))
			damaged(r, at, "the section of feature %u leaves the file", bit);
		else if (bit < NR_FEATURES)
			r->features[bit] = (struct feature){
				.present = true, .offset = s.offset, .size = s.size};
		at += sizeof(s);
	}
}

/*
 * The bits are words of the recorder's unsigned long, 32 or 64 bits wide; HOSTNAME is always set.
 */
static void swap_feature_bits(struct perfdata_file_header *h)
{
	const uint64_t hostname = 1ull << PERFDATA_FEAT_HOSTNAME;

	swap_words(h->features, sizeof(h->features));
	if (h->features[0] & hostname)
		return;
	for (int i = 0; i < 4; i++)
		h->features[i] = h->features[i] << 32 | h->features[i] >> 32;
	if (h->features[0] & hostname)
		return;
	memset(h->features, 0, sizeof(h->features));
}

static int read_file_header(struct perfdata_reader *r, struct vmprof_err *err)
{
	struct perfdata_file_header *h = &r->header;
	size_t n = r->file_size < sizeof(*h) ? (size_t)r->file_size : sizeof(*h);
	int ret;

	memset(h, 0, sizeof(*h));
	if (n < HEADER_SIZE_V0 || read_at(r->fd, h, n, 0))
		return bad_header(r, err, n, "the file ends in the middle of its header");
	if (r->swap)
		swap_words(h, HEADER_SIZE_V0);
	if (h->size == HEADER_SIZE_V0)
		memset(h->features, 0, sizeof(h->features));
	else if (h->size != sizeof(*h))
		return bad_header(r, err, 8, "a header of a size that no perf.data has");
	else if (n < sizeof(*h))
		return bad_header(r, err, n, "the file ends in the middle of its header");
	else if (r->swap)
		swap_feature_bits(h);
	ret = read_events(r, err);
	if (!ret)
		ret = check_data(r, err);
	if (ret)
		return ret;
	read_feature_table(r);
	feature_name_events(r);
	feature_load_build_ids(r);
	tracing_load(r);
	return 0;
}

/* ------------------------------------------------------------------ either form */

static bool plausible_attr_size(uint64_t v)
{
	return v >= ATTR_SIZE_MIN && v <= ATTR_SIZE_MAX;
}

static int check_magic(struct perfdata_reader *r, const uint64_t head[3], struct vmprof_err *err)
{
	r->swap = head[0] == __builtin_bswap64(PERFDATA_MAGIC);
	if (r->swap || head[0] == PERFDATA_MAGIC)
		return 0;
	if (head[0] != MAGIC_V1)
		return err_set(err, EBADMSG, "%s: is not a perf.data file", r->path);
	/* The first version's magic is a string and tells nothing about the order. */
	r->swap =
		head[1] == __builtin_bswap64(PIPE_HEADER_SIZE) ||
		(!plausible_attr_size(head[2]) && plausible_attr_size(__builtin_bswap64(head[2])));
	return 0;
}

/* The first @n bytes of something that cannot be read twice. */
static int read_stream(struct perfdata_reader *r, void *p, size_t n, struct vmprof_err *err)
{
	struct source *s = &r->file;
	int ret;

	r->data_end = UINT64_MAX;
	source_add_room(r, s, RECORD_MAX + 1);
	while (s->cur->len < n) {
		ret = source_fill(r, s);
		if (ret < 0)
			return err_sys(err, -ret, "%s: cannot be read", r->path);
		if (!ret)
			return err_set(err, EBADMSG,
				       s->cur->len ? "%s: is not a perf.data file" : "%s: is empty",
				       r->path);
	}
	memcpy(p, s->cur->buf, n);
	s->pos = (uint32_t)n;
	return 0;
}

int header_open(struct perfdata_reader *r, struct vmprof_err *err)
{
	uint64_t head[3] = {0}, size;
	int ret;

	if (!r->seekable)
		ret = read_stream(r, head, PIPE_HEADER_SIZE, err);
	else if (r->file_size < PIPE_HEADER_SIZE)
		ret = err_set(err, EBADMSG, "%s: is not a perf.data file", r->path);
	else
		ret = read_at(r->fd, head,
			      r->file_size < sizeof(head) ? PIPE_HEADER_SIZE : sizeof(head), 0);
	if (!ret)
		ret = check_magic(r, head, err);
	if (ret)
		return ret;
	size = r->swap ? __builtin_bswap64(head[1]) : head[1];
	r->pipe = size == PIPE_HEADER_SIZE;
	if (!r->pipe && r->seekable)
		return read_file_header(r, err);
	if (!r->pipe)
		return err_set(err, EBADMSG,
			       "%s: is a perf.data file, which cannot be read from a pipe: give "
			       "its name, or record with -o - into the pipe",
			       r->path);
	if (r->seekable) {
		r->file_pos = PIPE_HEADER_SIZE;
		r->data_end = r->file_size;
	}
	return 0;
}

/* ------------------------------------------------------------------ records */

static const uint32_t header_types[] = {
	PERFDATA_HEADER_ATTR, PERFDATA_EVENT_TYPE,   PERFDATA_TRACING_DATA,   PERFDATA_BUILD_ID,
	PERFDATA_ID_INDEX,    PERFDATA_EVENT_UPDATE, PERFDATA_HEADER_FEATURE,
};

bool is_header_record(uint32_t type)
{
	for (size_t i = 0; i < sizeof(header_types) / sizeof(*header_types); i++)
		if (header_types[i] == type)
			return true;
	return false;
}

static int attr_record(struct perfdata_reader *r, struct feature_cursor *c, uint64_t offset)
{
	uint32_t size;
	struct evsel *e;
	size_t left = (size_t)(c->end - c->p);

	if (left < ATTR_SIZE_MIN)
		return damaged(r, offset, "an attribute of %zu bytes", left);
	memcpy(&size, c->p + 4, sizeof(size));
	if (r->swap)
		size = __builtin_bswap32(size);
	if (!size)
		size = ATTR_SIZE_MIN;
	if (size < ATTR_SIZE_MIN || size > left || size > ATTR_SIZE_MAX)
		return damaged(r, offset, "an attribute that says it has %u bytes", size);
	if (r->nr_evsels >= EVENTS_MAX)
		return damaged(r, offset, "more than 65536 events");
	if (r->nr_ids > IDS_MAX)
		return damaged(r, offset, "more ids of events than can be");
	e = add_event(r, c->p, size);
	add_ids(r, e, c->p + size, (left - size) / sizeof(uint64_t));
	if (r->ran && !layouts_agree(r))
		return damaged(r, offset, "an event whose samples have another form comes late");
	return 0;
}

/* The first array says which id; the second, which is there if there is room for it, whose. */
static int id_index_record(struct perfdata_reader *r, struct feature_cursor *c, uint64_t offset)
{
	uint64_t n = feature_u64(c), left = (uint64_t)(c->end - c->p);
	struct feature_cursor machines = *c;
	bool has_machines;

	if (c->bad || n > left / 32)
		return damaged(r, offset, "an index of ids that is longer than its record");
	has_machines = n <= left / 48;
	machines.p += n * 32;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t id = feature_u64(c);
		struct id_entry *e;

		feature_bytes(c, 24); /* idx, cpu, tid */
		if (!has_machines)
			continue;
		if (hashmap_get(&r->ids, id) || r->ids.n < IDS_MAX)
			set_id(r, id, NULL);
		e = hashmap_get(&r->ids, id);
		if (!e)
			return damaged(r, offset, "more ids of events than can be");
		e->machine_pid = (int32_t)feature_u64(&machines);
		e->vcpu = (int32_t)feature_u64(&machines);
		if (!e->machine_pid)
			e->vcpu = -1;
	}
	return 0;
}

static int event_update_record(struct perfdata_reader *r, struct feature_cursor *c)
{
	uint64_t what = feature_u64(c), id = feature_u64(c);
	struct id_entry *e = id_find(r, id);
	const char *name = (const char *)c->p;

	if (c->bad || what != EVENT_UPDATE_NAME || !e || !e->evsel ||
	    !memchr(name, 0, (size_t)(c->end - c->p)))
		return 0;
	event_set_name(e->evsel, name);
	return 0;
}

static int feature_record(struct perfdata_reader *r, struct feature_cursor *c)
{
	uint64_t bit = feature_u64(c);

	if (c->bad || !bit || bit > PERFDATA_FEAT_PMU_CAPS) {
		/* the one behind the last is perf's end mark */
		r->stats.unknown_features += bit > PERFDATA_FEAT_PMU_CAPS + 1;
		return 0;
	}
	feature_set(r, (unsigned)bit, c->p, (size_t)(c->end - c->p));
	if (bit == PERFDATA_FEAT_EVENT_DESC)
		feature_name_events(r);
	return 0;
}

int header_record(struct perfdata_reader *r, const struct perf_event_header *h,
		  const uint8_t *record, uint64_t offset)
{
	struct feature_cursor c = {
		.p = record + sizeof(*h), .end = record + h->size, .swap = r->swap};

	switch (h->type) {
	case PERFDATA_HEADER_ATTR:
		return attr_record(r, &c, offset);
	case PERFDATA_ID_INDEX:
		return id_index_record(r, &c, offset);
	case PERFDATA_EVENT_UPDATE:
		return event_update_record(r, &c);
	case PERFDATA_HEADER_FEATURE:
		return feature_record(r, &c);
	case PERFDATA_BUILD_ID:
		feature_add_build_id(r, record, h->size);
		return 0;
	default:
		return 0;
	}
}

/* In a pipe the tracer's formats follow their record. */
int header_tracing_data(struct perfdata_reader *r, const struct perf_event_header *h,
			uint64_t offset)
{
	const uint8_t *record = r->file.cur->buf + r->file.pos;
	struct buf data = {0};
	uint32_t size;
	int ret;

	if (h->size < sizeof(*h) + sizeof(size))
		return damaged(r, offset, "trace data with a record of %u bytes", h->size);
	memcpy(&size, record + sizeof(*h), sizeof(size));
	if (r->swap)
		size = __builtin_bswap32(size);
	r->file.pos += h->size;
	ret = source_skip(r, ((uint64_t)size + 7) / 8 * 8, size <= TRACING_DATA_MAX ? &data : NULL);
	if (!ret && size <= TRACING_DATA_MAX)
		feature_set(r, PERFDATA_FEAT_TRACING_DATA, data.data, size);
	r->features[PERFDATA_FEAT_TRACING_DATA].offset = offset + h->size;
	if (!ret)
		tracing_load(r);
	buf_free(&data);
	return ret;
}
