// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bytes of the file in chunks. A record lies whole in one chunk: what is cut off at a chunk's end
 * is moved to the start of the next one. Chunks whose records wait for the end of a round are kept;
 * beyond a bound, those of a file are given back and read again when their turn comes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perfdata/reader_impl.h"
#include "util/xalloc.h"

#define CHUNK_SIZE	(256u * 1024)
#define RESIDENT_MAX	(48ull << 20)
#define PINNED_DOWN_MAX (128ull << 20)

/* ------------------------------------------------------------------ memory */

void chunk_pool_init(struct chunk_pool *p)
{
	p->head.next = p->head.prev = &p->head;
}

void chunk_pool_free(struct chunk_pool *p)
{
	while (p->nr_spare)
		free(p->spare[--p->nr_spare]);
}

static void give_back(struct perfdata_reader *r, struct chunk *c)
{
	struct chunk_pool *p = &r->pool;

	c->prev->next = c->next;
	c->next->prev = c->prev;
	p->bytes -= c->cap;
	if (!c->reloadable)
		p->pinned_down -= c->cap;
	if (c->cap == CHUNK_SIZE && p->nr_spare < sizeof(p->spare) / sizeof(*p->spare))
		p->spare[p->nr_spare++] = c->buf;
	else
		free(c->buf);
	c->buf = NULL;
}

static void make_room(struct perfdata_reader *r)
{
	struct chunk *c = r->pool.head.next, *next;

	for (; r->pool.bytes > RESIDENT_MAX && c != &r->pool.head; c = next) {
		next = c->next;
		if (c->reloadable && !c->pinned)
			give_back(r, c);
	}
}

static void take_memory(struct perfdata_reader *r, struct chunk *c)
{
	struct chunk_pool *p = &r->pool;

	make_room(r);
	c->buf = c->cap == CHUNK_SIZE && p->nr_spare ? p->spare[--p->nr_spare] : xmalloc(c->cap);
	c->prev = p->head.prev;
	c->next = &p->head;
	c->prev->next = c->next->prev = c;
	p->bytes += c->cap;
	if (!c->reloadable)
		p->pinned_down += c->cap;
}

static struct chunk *chunk_alloc(struct perfdata_reader *r, uint32_t cap, bool reloadable)
{
	struct chunk *c = xcalloc(1, sizeof(*c));

	c->cap = cap > CHUNK_SIZE ? cap : CHUNK_SIZE;
	c->refs = 1;
	c->reloadable = reloadable;
	c->fd = r->fd;
	take_memory(r, c);
	return c;
}

struct chunk *chunk_new(struct perfdata_reader *r, uint32_t cap)
{
	return chunk_alloc(r, cap, false);
}

void chunk_put(struct perfdata_reader *r, struct chunk *c)
{
	if (!c || --c->refs)
		return;
	if (c->buf)
		give_back(r, c);
	free(c);
}

bool source_overfull(const struct perfdata_reader *r)
{
	return r->pool.pinned_down > PINNED_DOWN_MAX;
}

/* ------------------------------------------------------------------ reading */

/* All of @n bytes at @offset. */
int read_at(int fd, void *p, size_t n, uint64_t offset)
{
	uint8_t *b = p;

	while (n) {
		ssize_t got = pread(fd, b, n, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got ? -errno : -ENODATA;
		b += got;
		offset += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

/* The memory of a chunk that was given back, filled again: with zeros if that cannot be. */
void chunk_ensure(struct perfdata_reader *r, struct chunk *c)
{
	if (c->buf)
		return;
	take_memory(r, c);
	if (read_at(c->fd, c->buf, c->len, c->offset))
		memset(c->buf, 0, c->len);
}

/* What there is, at most @n bytes: 0 is the end. */
static ssize_t read_some(struct perfdata_reader *r, void *p, size_t n)
{
	ssize_t got;

	if (n > r->data_end - r->file_pos)
		n = (size_t)(r->data_end - r->file_pos);
	if (!n)
		return 0;
	do
		got = r->seekable ? pread(r->fd, p, n, (off_t)r->file_pos) : read(r->fd, p, n);
	while (got < 0 && errno == EINTR);
	if (got > 0)
		r->file_pos += (uint64_t)got;
	return got < 0 ? -errno : got;
}

/* A chunk with room for @room more bytes, what is left of the current one at its start. */
void source_add_room(struct perfdata_reader *r, struct source *s, uint32_t room)
{
	uint32_t left = s->cur ? s->cur->len - s->pos : 0;
	struct chunk *c;

	if (s->cur && s->cur->cap - s->cur->len >= room)
		return;
	order_close_run(r);
	c = chunk_alloc(r, left + room, s == &r->file && r->seekable && !r->swap);
	c->pinned = true;
	if (s->cur) {
		memcpy(c->buf, s->cur->buf + s->pos, left);
		c->offset = s->cur->offset + s->pos;
		s->cur->len = s->pos;
		s->cur->pinned = false;
		chunk_put(r, s->cur);
	} else {
		c->offset = r->file_pos;
	}
	c->len = left;
	s->cur = c;
	s->pos = 0;
}

/* At least one byte more behind the current one's: 1, or 0 at the end, or -errno. */
int source_fill(struct perfdata_reader *r, struct source *s)
{
	ssize_t got;

	if (s != &r->file)
		return 0;
	source_add_room(r, s, RECORD_MAX + 1);
	got = read_some(r, s->cur->buf + s->cur->len, s->cur->cap - s->cur->len);
	if (got <= 0)
		return (int)got;
	s->cur->len += (uint32_t)got;
	return 1;
}

static int at_end(struct perfdata_reader *r, struct source *s, uint32_t have)
{
	if (!have || s != &r->file)
		return 0; /* of a decompressed record the rest comes with the next body */
	return damaged(r, s->cur->offset + s->pos, "the file ends in the middle of a record");
}

int source_peek(struct perfdata_reader *r, struct source *s, struct perf_event_header *h)
{
	uint32_t need = sizeof(*h), have;
	int got;

	for (;;) {
		have = s->cur ? s->cur->len - s->pos : 0;
		if (have >= sizeof(*h)) {
			memcpy(h, s->cur->buf + s->pos, sizeof(*h));
			if (r->swap)
				swap_header(h);
			if (h->size < sizeof(*h))
				return damaged(r, s->cur->offset + s->pos,
					       "a record of %u bytes; a record has at least %zu",
					       h->size, sizeof(*h));
			need = h->size;
		}
		if (have >= need)
			return 1;
		got = source_fill(r, s);
		if (got < 0)
			return damaged(r, r->file_pos, "cannot be read: %s", strerror(-got));
		if (!got)
			return at_end(r, s, have);
	}
}

/* Passes over @n bytes that are no record; the first of them go to @keep if it is not NULL. */
int source_skip(struct perfdata_reader *r, uint64_t n, struct buf *keep)
{
	struct source *s = &r->file;

	while (n) {
		uint32_t have = s->cur->len - s->pos, step = n < have ? (uint32_t)n : have;
		int got;

		if (keep)
			buf_add(keep, s->cur->buf + s->pos, step);
		s->pos += step;
		n -= step;
		if (!n)
			break;
		if (r->seekable && !keep && n <= r->data_end - r->file_pos) {
			/* the next chunk begins behind them */
			order_close_run(r);
			s->cur->pinned = false;
			chunk_put(r, s->cur);
			s->cur = NULL;
			r->file_pos += n;
			return 0;
		}
		got = source_fill(r, s);
		if (got <= 0)
			return damaged(r, r->file_pos, "the file ends in the middle of trace data");
	}
	return 0;
}
