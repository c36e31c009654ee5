// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time order. perf record writes each CPU's buffer in turn and then FINISHED_ROUND: no record that
 * comes later is older than the newest record of the round before. So at the end of a round all up
 * to that time can go out. Within one buffer times rise, so that a round is a few sorted runs,
 * which a heap merges.
 */
#include <stdlib.h>
#include <string.h>

#include "perfdata/reader_impl.h"
#include "util/xalloc.h"

#define RUNS_MAX (1u << 20) /* 40 MB of them; a round of a large machine has a few thousand */

static bool before(const struct run *a, const struct run *b)
{
	return a->time != b->time ? a->time < b->time : a->seq < b->seq;
}

static void sift_down(struct order *o, size_t i)
{
	struct run moved = o->heap[i];

	for (size_t child; (child = 2 * i + 1) < o->nr; i = child) {
		if (child + 1 < o->nr && before(&o->heap[child + 1], &o->heap[child]))
			child++;
		if (!before(&o->heap[child], &moved))
			break;
		o->heap[i] = o->heap[child];
	}
	o->heap[i] = moved;
}

static void push(struct order *o, const struct run *run)
{
	size_t i = o->nr++;

	o->heap = xgrow(o->heap, &o->cap, o->nr, sizeof(*o->heap));
	for (size_t up; i && before(run, &o->heap[up = (i - 1) / 2]); i = up)
		o->heap[i] = o->heap[up];
	o->heap[i] = *run;
}

void order_close_run(struct perfdata_reader *r)
{
	if (r->order.open.chunk)
		push(&r->order, &r->order.open);
	r->order.open.chunk = NULL;
}

/* ------------------------------------------------------------------ delivery */

static int deliver(struct perfdata_reader *r, const struct perfdata_record *rec)
{
	if (rec->time < r->order.delivered)
		r->stats.out_of_order++;
	else
		r->order.delivered = rec->time;
	return deliver_record(r, rec);
}

/* The oldest of all runs but the heap's first. */
static struct run second(const struct order *o)
{
	struct run other = {.time = UINT64_MAX, .seq = UINT64_MAX};

	for (size_t i = 1; i < 3 && i < o->nr; i++)
		if (before(&o->heap[i], &other))
			other = o->heap[i];
	return other;
}

/* 0: not the record that was there when it was queued. The file was written to since. */
static uint32_t size_in_run(struct perfdata_reader *r, const struct run *run)
{
	struct perf_event_header h;

	memcpy(&h, run->chunk->buf + run->pos, sizeof(h));
	if (h.size >= sizeof(h) && h.size <= run->end - run->pos)
		return h.size;
	damaged(r, run->chunk->offset + run->pos, "the file has changed while it was read");
	return 0;
}

/* Records of the heap's first run, as long as they are the oldest and not newer than @limit. */
static int deliver_run(struct perfdata_reader *r, uint64_t limit)
{
	struct order *o = &r->order;
	struct run run = o->heap[0], other = second(o);
	struct perfdata_record rec;
	int ret = 0;

	chunk_ensure(r, run.chunk);
	run.chunk->pinned = true;
	while (!ret && run.pos < run.end) {
		uint32_t size = size_in_run(r, &run);

		if (!size) {
			run.pos = run.end; /* lost; remembered as damage */
			break;
		}
		if (parse_in_chunk(r, run.chunk, run.pos, &rec)) {
			run.time = rec.time;
			if (run.time > limit || before(&other, &run))
				break;
			ret = deliver(r, &rec);
		}
		run.pos += size;
	}
	run.chunk->pinned = run.chunk == r->file.cur || run.chunk == r->decomp.cur;
	o->heap[0] = run;
	if (run.pos >= run.end) {
		o->heap[0] = o->heap[--o->nr];
		chunk_put(r, run.chunk);
	}
	if (o->nr)
		sift_down(o, 0);
	return ret;
}

static int flush_to(struct perfdata_reader *r, uint64_t limit)
{
	int ret = 0;

	while (!ret && r->order.nr && r->order.heap[0].time <= limit)
		ret = deliver_run(r, limit);
	return ret;
}

/* Too much waits: what cannot be read again, or runs (of a file whose times fall all the way). */
static bool overfull(const struct perfdata_reader *r)
{
	return source_overfull(r) || r->order.nr > RUNS_MAX;
}

/* Hands out the older half, though its round is not finished. */
static int relieve(struct perfdata_reader *r)
{
	struct order *o = &r->order;
	int ret = 0;

	order_close_run(r);
	while (!ret && o->nr && overfull(r)) {
		uint64_t first = o->heap[0].time;

		ret = flush_to(r, first + (o->max_time - first) / 2);
	}
	return ret;
}

int order_queue(struct perfdata_reader *r, struct chunk *c, uint32_t pos, uint32_t size,
		uint64_t time)
{
	struct order *o = &r->order;

	if (time > o->max_time)
		o->max_time = time;
	if (o->open.chunk && (o->open.chunk != c || o->open.end != pos || time < o->open_last))
		order_close_run(r);
	if (!o->open.chunk) {
		o->open = (struct run){.time = time, .seq = o->seq++, .chunk = c, .pos = pos};
		c->refs++;
	}
	o->open.end = pos + size;
	o->open_last = time;
	return overfull(r) ? relieve(r) : 0;
}

int order_round(struct perfdata_reader *r)
{
	int ret;

	order_close_run(r);
	ret = flush_to(r, r->order.round_time);
	r->order.round_time = r->order.max_time;
	return ret;
}

int order_flush(struct perfdata_reader *r)
{
	order_close_run(r);
	return flush_to(r, UINT64_MAX);
}

void order_free(struct perfdata_reader *r)
{
	order_close_run(r);
	while (r->order.nr)
		chunk_put(r, r->order.heap[--r->order.nr].chunk);
	free(r->order.heap);
}
