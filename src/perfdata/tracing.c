// SPDX-License-Identifier: GPL-2.0-only
/*
 * TRACING_DATA: what the kernel said of its tracepoints when the file was made. Its layout is that
 * of an old trace.dat (tools/perf/util/trace-event-info.c): pages and events of ftrace, formats by
 * system, kallsyms, the strings of trace_printk, command names. It has a byte order of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "perfdata/reader_impl.h"
#include "util/xalloc.h"

#define POINTS_MAX   65536u
#define NAME_MAX_LEN 512u

static const uint8_t magic[10] = {23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g'};

/* The string from here, with its end. */
static const char *next_string(struct feature_cursor *c)
{
	const uint8_t *end = memchr(c->p, 0, (size_t)(c->end - c->p));

	if (c->bad || !end) {
		c->bad = true;
		return "";
	}
	return (const char *)feature_bytes(c, (size_t)(end + 1 - c->p));
}

/* A text behind its size; not terminated. */
static const char *next_text(struct feature_cursor *c, uint64_t size)
{
	if (size > (uint64_t)(c->end - c->p))
		c->bad = true;
	return (const char *)feature_bytes(c, c->bad ? 0 : (size_t)size);
}

/* What is behind @key in a line that begins with it, up to the end of the line. NULL: no such. */
static const char *line_value(const char *text, size_t size, const char *key, size_t *len)
{
	const char *end = text + size, *eol;
	size_t n = strlen(key);

	for (const char *p = text; p < end; p = eol + 1) {
		eol = memchr(p, '\n', (size_t)(end - p));
		eol = eol ? eol : end;
		if ((size_t)(eol - p) < n || memcmp(p, key, n))
			continue;
		*len = (size_t)(eol - p) - n;
		return p + n;
	}
	return NULL;
}

/* Decimal digits at the start of @s. */
static uint64_t number(const char *s, size_t len)
{
	uint64_t v = 0;

	for (size_t i = 0; i < len && i < 18 && s[i] >= '0' && s[i] <= '9'; i++)
		v = v * 10 + (uint64_t)(s[i] - '0');
	return v;
}

static void add_point(struct perfdata_reader *r, const char *system, const char *format,
		      size_t size)
{
	struct perfdata_tracing *t = &r->tracing;
	size_t name_len, id_len;
	const char *name = line_value(format, size, "name: ", &name_len);
	const char *id = line_value(format, size, "ID: ", &id_len);

	if (!name || !id || t->nr_points >= POINTS_MAX || name_len + strlen(system) > NAME_MAX_LEN)
		return;
	t->points = xgrow(t->points, &r->points_cap, t->nr_points + 1, sizeof(*t->points));
	t->points[t->nr_points++] = (struct perfdata_tracepoint){
		.id = number(id, id_len),
		.system = system,
		.name = xasprintf("%s:%.*s", system, (int)name_len, name),
		.format = format,
		.size = size,
	};
}

/* The kernel's long is as wide as the field of it in a page of ftrace's buffer. */
static void read_long_size(struct perfdata_reader *r, const char *page, uint64_t size)
{
	const char *commit = size ? memmem(page, (size_t)size, " commit;", 8) : NULL;
	const char *end = page + size, *width = NULL;
	uint64_t v;

	if (commit)
		width = memmem(commit, (size_t)(end - commit), "size:", 5);
	v = width ? number(width + 5, (size_t)(end - width) - 5) : 0;
	if (v == 4 || v == 8)
		r->tracing.long_size = (unsigned)v;
}

static void read_head(struct perfdata_reader *r, struct feature_cursor *c)
{
	const uint8_t *p;
	const char *text;
	uint64_t size;

	next_string(c); /* version; what 0.6 has more is at the end */
	p = feature_bytes(c, 2);
	if (!p)
		return;
	r->tracing.big_endian = p[0];
	r->tracing.long_size = p[1];
	c->swap = r->tracing.big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	r->tracing.page_size = feature_u32(c);
	c->bad |= strcmp(next_string(c), "header_page");
	size = feature_u64(c);
	text = next_text(c, size);
	if (text)
		read_long_size(r, text, size);
	c->bad |= strcmp(next_string(c), "header_event");
	size = feature_u64(c);
	next_text(c, size);
}

static void read_formats(struct perfdata_reader *r, struct feature_cursor *c, const char *system)
{
	uint32_t n = feature_u32(c);

	for (uint32_t i = 0; i < n && !c->bad; i++) {
		uint64_t size = feature_u64(c);
		const char *text = next_text(c, size);

		if (text)
			add_point(r, system, text, (size_t)size);
	}
}

static void read_tail(struct perfdata_reader *r, struct feature_cursor *c)
{
	uint32_t size = feature_u32(c);

	next_text(c, size); /* kallsyms, of perf before 3.18 */
	size = feature_u32(c);
	r->tracing.printk = next_text(c, size);
	r->tracing.printk_size = r->tracing.printk ? size : 0;
}

static int by_id(const void *a, const void *b)
{
	const struct perfdata_tracepoint *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

void tracing_load(struct perfdata_reader *r)
{
	const struct feature *f = &r->features[PERFDATA_FEAT_TRACING_DATA];
	struct feature_cursor c;
	const uint8_t *start, *p;
	uint32_t systems;

	if (r->has_tracing || !feature_open(r, PERFDATA_FEAT_TRACING_DATA, &c))
		return;
	start = c.p;
	p = feature_bytes(&c, sizeof(magic));
	if (!p || memcmp(p, magic, sizeof(magic))) {
		damaged(r, f->offset, "these are no formats of tracepoints");
		return;
	}
	r->has_tracing = true;
	read_head(r, &c);
	read_formats(r, &c, "ftrace");
	systems = feature_u32(&c);
	for (uint32_t i = 0; i < systems && !c.bad; i++) {
		const char *system = next_string(&c);

		read_formats(r, &c, system);
	}
	read_tail(r, &c);
	if (c.bad)
		damaged(r, f->offset + (uint64_t)(c.p - start),
			"the formats of the tracepoints are damaged from here on");
	if (r->tracing.nr_points)
		qsort(r->tracing.points, r->tracing.nr_points, sizeof(*r->tracing.points), by_id);
	tracing_name_events(r);
}

void tracing_name_events(struct perfdata_reader *r)
{
	for (size_t i = 0; i < r->nr_evsels; i++) {
		struct evsel *e = r->evsels[i];
		const struct perfdata_tracepoint *p;

		if (e->pub.attr.type != PERF_TYPE_TRACEPOINT || e->named)
			continue;
		p = perfdata_reader_tracepoint(r, e->pub.attr.config);
		if (p)
			event_set_name(e, p->name);
	}
}

void tracing_free(struct perfdata_reader *r)
{
	for (size_t i = 0; i < r->tracing.nr_points; i++)
		free(r->tracing.points[i].name);
	free(r->tracing.points);
}

const struct perfdata_tracing *perfdata_reader_tracing(const struct perfdata_reader *r)
{
	return r->has_tracing ? &r->tracing : NULL;
}

const struct perfdata_tracepoint *perfdata_reader_tracepoint(const struct perfdata_reader *r,
							     uint64_t id)
{
	const struct perfdata_tracepoint key = {.id = id};

	if (!r->tracing.nr_points)
		return NULL;
	return bsearch(&key, r->tracing.points, r->tracing.nr_points, sizeof(key), by_id);
}
