// SPDX-License-Identifier: GPL-2.0-only
#include "backend/direct_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/xalloc.h"

#define LOST_MAX      (1ull << 48) /* of one ring: more cannot be, and sums of it are numbers */
#define ALLOWED_FIRST 1024	   /* samples of one ring */
#define ALLOWED_MAX   (1ull << 32)
#define RECORDS	      3 /* of a sample: itself, its thread's name, what was lost before it */

void direct_rings_init(struct direct_rings *r, uint32_t n, uint32_t nr_events)
{
	*r = (struct direct_rings){
		.ring = xcalloc(n + 1u, sizeof(*r->ring)), .n = n, .nr_events = nr_events};
}

static void allow(struct direct_ring *ring, uint64_t samples, uint64_t records)
{
	ring->samples = samples < ALLOWED_MAX ? samples : ALLOWED_MAX;
	ring->records = records < ALLOWED_MAX ? records : ALLOWED_MAX;
}

int direct_rings_set(struct direct_rings *r, uint32_t i, void *memory, size_t bytes)
{
	if (vmp_reader_init(&r->ring[i].reader, memory, bytes))
		return -EPROTO;
	r->ring[i].next = xcalloc(1, sizeof(*r->ring[i].next));
	allow(&r->ring[i], ALLOWED_FIRST, ALLOWED_FIRST * RECORDS);
	return 0;
}

void direct_rings_free(struct direct_rings *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		free(r->ring[i].next);
	free(r->ring);
	*r = (struct direct_rings){0};
}

void direct_rings_allow(struct direct_rings *r, uint64_t samples)
{
	if (samples > ALLOWED_MAX)
		samples = ALLOWED_MAX;
	for (uint32_t i = 0; i < r->n; i++)
		allow(&r->ring[i], r->ring[i].samples + samples,
		      r->ring[i].records + samples * RECORDS);
}

static bool sample_ok(const struct direct_rings *r, const struct vmp_guest_sample *s, size_t size)
{
	return size >= sizeof(*s) && (size - sizeof(*s)) / 8 == s->nr_chain &&
	       s->event < r->nr_events && s->time >= r->first && s->pid <= INT32_MAX &&
	       s->tgid <= INT32_MAX;
}

/* Of a record that was read, or not (@size < 0). */
static void see(struct direct_rings *r, struct direct_ring *ring, long size)
{
	const struct vmp_guest_task *task = &ring->next->task;

	if (size < 0) {
		r->bad++;
	} else if (ring->next->header.type == VMP_REC_GUEST_SAMPLE) {
		ring->has = sample_ok(r, &ring->next->sample, (size_t)size);
		ring->samples -= ring->has;
		r->bad += !ring->has;
	} else if (ring->next->header.type == VMP_REC_GUEST_TASK && (size_t)size >= sizeof(*task)) {
		ring->task = *task;
		ring->task.comm[sizeof(task->comm) - 1] = 0;
	}
}

/*
 * Reads on until there is a sample, or until all that was there at first is read: a guest that
 * writes on meanwhile does not keep us here. Nor does it read more than is allowed.
 */
static void fill(struct direct_rings *r, struct direct_ring *ring)
{
	uint64_t end;
	long size;

	if (ring->has || !ring->next)
		return;
	end = r->stopped ? ring->end : vmp_load_acquire(&ring->reader.page->head);
	while (!ring->has && (int64_t)(end - ring->reader.tail) > 0) {
		if (!ring->samples || !ring->records) {
			r->flooded = true;
			return;
		}
		size = vmp_ring_read(&ring->reader, ring->next, sizeof(*ring->next));
		if (!size)
			return;
		ring->records--;
		see(r, ring, size);
	}
}

/* What was handed out is done with. */
static void drop_taken(struct direct_rings *r)
{
	if (!r->taken)
		return;
	r->taken->has = false;
	fill(r, r->taken);
	r->taken = NULL;
}

void direct_rings_start(struct direct_rings *r)
{
	r->taken = NULL;
	for (uint32_t i = 0; i < r->n; i++) {
		struct direct_ring *ring = &r->ring[i];
		uint64_t end = ring->next ? vmp_load_acquire(&ring->reader.page->head) : 0;

		do {
			ring->has = false;
			allow(ring, 1, ALLOWED_MAX);
			fill(r, ring);
		} while (ring->has && (int64_t)(end - ring->reader.tail) > 0);
		ring->has = false;
		allow(ring, ALLOWED_FIRST, ALLOWED_FIRST * RECORDS);
	}
	r->bad = 0;
	r->flooded = false;
}

void direct_rings_stop(struct direct_rings *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (r->ring[i].next)
			r->ring[i].end = vmp_load_acquire(&r->ring[i].reader.page->head);
	r->stopped = true;
}

static struct direct_ring *oldest(const struct direct_rings *r)
{
	struct direct_ring *found = NULL;

	for (uint32_t i = 0; i < r->n; i++) {
		struct direct_ring *ring = &r->ring[i];

		if (ring->has && (!found || ring->next->sample.time < found->next->sample.time))
			found = ring;
	}
	return found;
}

void direct_rings_fill(struct direct_rings *r)
{
	drop_taken(r);
	for (uint32_t i = 0; i < r->n; i++)
		fill(r, &r->ring[i]);
}

/* What was there before it was now and says that it comes from later would wait for ever. */
bool direct_rings_look(struct direct_rings *r, uint64_t now)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (r->ring[i].has && r->ring[i].next->sample.time > now) {
			r->ring[i].has = false;
			r->bad++;
		}
	r->now = now;
	return oldest(r);
}

/* The leaf first; which part is the kernel's is seen by the addresses. */
static uint32_t make_chain(struct direct_rings *r, const struct vmp_guest_sample *s,
			   struct raw_sample *out)
{
	const uint64_t *from = (const uint64_t *)(s + 1);
	uint32_t n = 0;

	r->chain[n++] = s->ip;
	for (uint32_t i = 0; i < s->nr_chain && n < SAMPLE_MAX_CHAIN; i++) {
		if (from[i] == VMP_CHAIN_LINK && i + 1 < s->nr_chain) {
			out->link = from[++i];
			out->has |= RAW_HAS_LINK;
		} else if (from[i] != VMP_CHAIN_USER && from[i] != VMP_CHAIN_LINK) {
			r->chain[n++] = from[i];
		}
	}
	return n;
}

bool direct_rings_take(struct direct_rings *r, struct raw_sample *out)
{
	const struct vmp_guest_sample *s;
	struct direct_ring *ring;

	drop_taken(r);
	ring = oldest(r);
	if (!ring || ring->next->sample.time > r->now)
		return false;
	r->taken = ring;
	s = &ring->next->sample;
	*out = (struct raw_sample){
		.has = RAW_HAS_IP | RAW_HAS_MODE | RAW_HAS_PROCESS | RAW_HAS_CHAIN,
		.event = s->event,
		.vcpu = (uint32_t)(ring - r->ring),
		.host_cpu = UINT32_MAX,
		.time = s->time,
		.period = s->period,
		.ip = s->ip,
		.mode = s->flags & VMP_SAMPLE_KERNEL ? SAMPLE_MODE_GUEST_KERNEL
						     : SAMPLE_MODE_GUEST_USER,
		.pid = (int32_t)s->tgid,
		.tid = (int32_t)s->pid,
		.chain = r->chain,
	};
	out->chain_len = make_chain(r, s, out);
	if (ring->task.pid == s->pid)
		memcpy(out->comm, ring->task.comm, sizeof(out->comm));
	return true;
}

uint64_t direct_rings_lost(const struct direct_rings *r)
{
	uint64_t lost = 0;

	for (uint32_t i = 0; i < r->n; i++) {
		uint64_t one = r->ring[i].next ? vmp_load(&r->ring[i].reader.page->lost) : 0;

		lost += one < LOST_MAX ? one : LOST_MAX;
	}
	return lost;
}
