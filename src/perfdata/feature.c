// SPDX-License-Identifier: GPL-2.0-only
/* Feature sections: found by the header or sent as records, read when somebody asks. */
#include <stdlib.h>
#include <string.h>

#include "perfdata/reader_impl.h"
#include "util/xalloc.h"

#define SECTION_MAX   (64u << 20)
#define BUILD_IDS_MAX 1000000u
#define BUILD_ID_HEAD 36u /* header, pid, 20 bytes of id, its size, 3 of padding */
#define OLD_HEAD      32u /* the same without a pid */

/* The first one counts: what was handed out of it stays valid. */
void feature_set(struct perfdata_reader *r, unsigned bit, const void *data, size_t n)
{
	struct feature *f = &r->features[bit];

	if (f->present)
		return;
	buf_add(&f->data, data, n);
	f->present = f->loaded = true;
	f->size = n;
}

static void load(const struct perfdata_reader *r, struct feature *f)
{
	f->loaded = true;
	if (!f->size || f->size > SECTION_MAX)
		return;
	/* in a directory r->fd moves on, and the first file has the sections */
	if (read_at(r->nr_fds ? r->fds[0] : r->fd, buf_grow(&f->data, (size_t)f->size),
		    (size_t)f->size, f->offset))
		buf_free(&f->data);
}

bool feature_open(const struct perfdata_reader *r, unsigned bit, struct feature_cursor *c)
{
	/* a cache, filled on first use */
	struct feature *f = (struct feature *)&r->features[bit];
	static const uint8_t nothing[1];

	*c = (struct feature_cursor){.p = nothing, .end = nothing, .swap = r->swap};
	if (!f->present)
		return false;
	if (!f->loaded)
		load(r, f);
	if (!f->data.len)
		return false;
	c->p = f->data.data;
	c->end = c->p + f->data.len;
	return true;
}

const uint8_t *feature_bytes(struct feature_cursor *c, size_t n)
{
	const uint8_t *p = c->p;

	if (c->bad || n > (size_t)(c->end - c->p)) {
		c->bad = true;
		return NULL;
	}
	c->p += n;
	return p;
}

uint32_t feature_u32(struct feature_cursor *c)
{
	const uint8_t *p = feature_bytes(c, 4);
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, 4);
	return c->swap ? __builtin_bswap32(v) : v;
}

uint64_t feature_u64(struct feature_cursor *c)
{
	const uint8_t *p = feature_bytes(c, 8);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, 8);
	return c->swap ? __builtin_bswap64(v) : v;
}

bool perfdata_reader_has_feature(const struct perfdata_reader *r, enum perfdata_feature feature)
{
	return r->features[feature].present;
}

const char *feature_string(struct feature_cursor *c)
{
	uint32_t n = feature_u32(c);
	const uint8_t *p = feature_bytes(c, n);

	if (!p || !memchr(p, 0, n)) {
		c->bad = true;
		return "";
	}
	return (const char *)p;
}

/* ------------------------------------------------------------------ EVENT_DESC */

bool feature_open_events(const struct perfdata_reader *r, struct feature_events *it)
{
	if (!feature_open(r, PERFDATA_FEAT_EVENT_DESC, &it->c))
		return false;
	it->left = feature_u32(&it->c);
	it->attr_size = feature_u32(&it->c);
	return !it->c.bad;
}

bool feature_next_event(struct feature_events *it, struct feature_event *e)
{
	size_t n = it->attr_size < sizeof(e->attr) ? it->attr_size : sizeof(e->attr);
	const uint8_t *attr;

	if (!it->left)
		return false;
	it->left--;
	attr = feature_bytes(&it->c, it->attr_size);
	e->nr_ids = feature_u32(&it->c);
	e->name = feature_string(&it->c);
	e->ids = feature_bytes(&it->c, (size_t)e->nr_ids * sizeof(uint64_t));
	if (it->c.bad)
		return false;
	memset(&e->attr, 0, sizeof(e->attr));
	memcpy(&e->attr, attr, n);
	if (it->c.swap)
		swap_attr(&e->attr);
	return true;
}

/* perf's names, by position. */
void feature_name_events(struct perfdata_reader *r)
{
	struct feature_events it;
	struct feature_event e;

	if (!feature_open_events(r, &it))
		return;
	for (size_t i = 0; i < r->nr_evsels && feature_next_event(&it, &e); i++) {
		if (e.name[0])
			event_set_name(r->evsels[i], e.name);
	}
}

/* ------------------------------------------------------------------ the system */

void perfdata_reader_clock(const struct perfdata_reader *r, struct perfdata_clock *clock)
{
	const struct perf_event_attr *attr = r->nr_evsels ? &r->evsels[0]->pub.attr : NULL;
	struct feature_cursor c;
	uint32_t id;

	*clock = (struct perfdata_clock){.known = attr && attr->use_clockid};
	if (clock->known)
		clock->id = attr->clockid;
	if (feature_open(r, PERFDATA_FEAT_CLOCKID, &c))
		clock->res = feature_u64(&c);
	if (!feature_open(r, PERFDATA_FEAT_CLOCK_DATA, &c))
		return;
	feature_u32(&c); /* version */
	id = feature_u32(&c);
	clock->wall_ns = feature_u64(&c);
	clock->clock_ns = feature_u64(&c);
	clock->has_wall = !c.bad && clock->known && id == (uint32_t)clock->id;
}

void perfdata_reader_host(const struct perfdata_reader *r, struct perfdata_host *host)
{
	struct feature_cursor c;

	*host = (struct perfdata_host){0};
	if (feature_open(r, PERFDATA_FEAT_NRCPUS, &c)) {
		host->cpus_avail = feature_u32(&c);
		host->cpus_online = feature_u32(&c);
	}
	if (feature_open(r, PERFDATA_FEAT_TOTAL_MEM, &c))
		host->total_mem_kb = feature_u64(&c);
}

/* ------------------------------------------------------------------ BUILD_ID */

static void add_build_id(struct perfdata_reader *r, int32_t pid, uint16_t misc, const uint8_t *id,
			 const uint8_t *name, size_t name_size)
{
	uint8_t len = misc & PERFDATA_MISC_BUILD_ID_SIZE ? id[20] : 20;
	size_t n = strnlen((const char *)name, name_size);
	uint8_t *copy;

	if (r->nr_build_ids >= BUILD_IDS_MAX)
		return;
	copy = xcalloc(1, 20 + n + 1);
	memcpy(copy, id, 20);
	memcpy(copy + 20, name, n);
	r->build_ids =
		xgrow(r->build_ids, &r->build_ids_cap, r->nr_build_ids + 1, sizeof(*r->build_ids));
	r->build_ids[r->nr_build_ids++] = (struct perfdata_reader_build_id){
		.pid = pid,
		.cpumode = misc & PERF_RECORD_MISC_CPUMODE_MASK,
		.id = copy,
		.len = len <= 20 ? len : 20,
		.filename = (const char *)copy + 20,
	};
}

static void record_header(const struct perfdata_reader *r, const uint8_t *record,
			  struct perf_event_header *h)
{
	memcpy(h, record, sizeof(*h));
	if (r->swap)
		swap_header(h);
}

void feature_add_build_id(struct perfdata_reader *r, const uint8_t *record, size_t size)
{
	struct perf_event_header h;
	uint32_t pid;

	if (size < BUILD_ID_HEAD)
		return;
	record_header(r, record, &h);
	memcpy(&pid, record + 8, 4);
	if (r->swap)
		pid = __builtin_bswap32(pid);
	add_build_id(r, (int32_t)pid, h.misc, record + 12, record + BUILD_ID_HEAD,
		     size - BUILD_ID_HEAD);
}

/* Before perf knew of guests there was no pid: its four bytes are missing in all of the section. */
static void add_old_build_id(struct perfdata_reader *r, const uint8_t *record, size_t size)
{
	struct perf_event_header h;
	uint16_t mode;

	if (size < OLD_HEAD)
		return;
	record_header(r, record, &h);
	mode = h.misc & PERF_RECORD_MISC_CPUMODE_MASK;
	add_build_id(r,
		     mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER
			     ? 0
			     : -1,
		     mode, record + 8, record + OLD_HEAD, size - OLD_HEAD);
}

/* A section of the old form shows by the kernel's name, which lacks as many at its start. */
static bool old_form(const uint8_t *record, size_t size)
{
	static const char cut[] = "nel.kallsyms]";

	return size >= BUILD_ID_HEAD + sizeof(cut) - 1 &&
	       !memcmp(record + BUILD_ID_HEAD, cut, sizeof(cut) - 1);
}

void feature_load_build_ids(struct perfdata_reader *r)
{
	struct feature_cursor c;
	struct perf_event_header h;
	bool old = false;

	if (!feature_open(r, PERFDATA_FEAT_BUILD_ID, &c))
		return;
	for (const uint8_t *p = c.p; (size_t)(c.end - p) >= sizeof(h); p += h.size) {
		record_header(r, p, &h);
		if (h.size < sizeof(h) || h.size > (size_t)(c.end - p))
			break;
		old |= old_form(p, h.size);
	}
	for (const uint8_t *p = c.p; (size_t)(c.end - p) >= sizeof(h); p += h.size) {
		record_header(r, p, &h);
		if (h.size < sizeof(h) || h.size > (size_t)(c.end - p))
			break;
		if (old)
			add_old_build_id(r, p, h.size);
		else
			feature_add_build_id(r, p, h.size);
	}
}
