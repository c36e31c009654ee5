// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's records made into samples, in the order of time over all vCPUs: what a sample of one
 * vCPU brings up (a process, a map) must not come behind an older sample of another one.
 */
#include <stdlib.h>
#include <string.h>

#include "backend/perf_session.h"
#include "util/clock.h"
#include "util/xalloc.h"

/* PERF_RECORD_SAMPLE with the sample_type of perf_attr(). */
struct sample_record {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t period;
};

struct lost_record { /* PERF_RECORD_LOST */
	struct perf_event_header header;
	uint64_t id, lost;
};

struct lost_samples_record { /* PERF_RECORD_LOST_SAMPLES */
	struct perf_event_header header;
	uint64_t lost;
};

/*
 * User or kernel is told by the half of the address space: the kernel's own guest bit says what the
 * vCPU was doing when it was last preempted (x86, seen on 6.1), guest or host it tells well.
 */
static enum sample_mode mode_of(const struct sample_record *r)
{
	switch (r->header.misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_GUEST_KERNEL:
	case PERF_RECORD_MISC_GUEST_USER:
		return r->ip >> 63 ? SAMPLE_MODE_GUEST_KERNEL : SAMPLE_MODE_GUEST_USER;
	case PERF_RECORD_MISC_KERNEL:
		return SAMPLE_MODE_HOST_KERNEL;
	case PERF_RECORD_MISC_USER:
		return SAMPLE_MODE_HOST_USER;
	default:
		return SAMPLE_MODE_HYPERVISOR;
	}
}

static bool is_wanted(const struct event *e, enum sample_mode mode)
{
	return mode == SAMPLE_MODE_GUEST_KERNEL || mode == SAMPLE_MODE_GUEST_USER ? e->guest
										  : e->host;
}

static void take_record(struct perf_session *s, const struct sample_record *r)
{
	uintptr_t source = (uintptr_t)hashmap_get(&s->by_id, r->id);
	enum sample_mode mode = mode_of(r);

	if (!source--)
		return;
	s->stats.ticks++;
	if (!is_wanted(&s->events[s->sources[source].event], mode))
		return;
	s->waiting = xgrow(s->waiting, &s->cap_waiting, s->nr_waiting + 1, sizeof(*s->waiting));
	s->waiting[s->nr_waiting++] = (struct perf_waiting){
		.time = r->time,
		.ip = r->ip,
		.period = r->period,
		.source = (uint32_t)source,
		.cpu = r->cpu,
		.pid = r->pid,
		.tid = r->tid,
		.mode = mode,
	};
}

/*
 * What is in it now and not all that comes meanwhile: so a drain has an end, and is bounded by the
 * size of the rings, and no ring waits for another one's flood.
 */
static void drain_ring(struct perf_session *s, struct perf_ring *ring)
{
	const struct perf_event_header *h;

	for (size_t n = 0; n < ring->data_size && (h = perf_ring_next(ring)); n += h->size) {
		if (h->type == PERF_RECORD_SAMPLE && h->size >= sizeof(struct sample_record))
			take_record(s, (const struct sample_record *)h);
		else if (h->type == PERF_RECORD_LOST && h->size >= sizeof(struct lost_record))
			s->lost_records += ((const struct lost_record *)h)->lost;
		else if (h->type == PERF_RECORD_LOST_SAMPLES &&
			 h->size >= sizeof(struct lost_samples_record))
			s->lost_precise += ((const struct lost_samples_record *)h)->lost;
		else if (h->type == PERF_RECORD_THROTTLE)
			s->stats.throttled++;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct perf_waiting *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

void perf_drain(struct perf_session *s)
{
	uint64_t start = clock_now_ns();
	size_t left = s->nr_waiting - s->next_waiting;

	if (left)
		memmove(s->waiting, s->waiting + s->next_waiting, left * sizeof(*s->waiting));
	s->nr_waiting = left;
	s->next_waiting = 0;
	for (unsigned i = 0; i < s->nr_sources; i++)
		drain_ring(s, &s->sources[i].ring);
	if (s->nr_waiting)
		qsort(s->waiting, s->nr_waiting, sizeof(*s->waiting), by_time);
	/* What came while we looked may have an older one in a ring that was looked at before. */
	for (s->nr_ready = s->nr_waiting; s->nr_ready && s->waiting[s->nr_ready - 1].time > start;)
		s->nr_ready--;
	s->drained = start;
	if (s->nr_waiting)
		s->busy = start;
}

bool perf_take(struct perf_session *s, struct raw_sample *out)
{
	const struct perf_waiting *w;
	const struct perf_source *src;

	if (s->next_waiting >= s->nr_ready)
		return false;
	w = &s->waiting[s->next_waiting++];
	src = &s->sources[w->source];
	s->stats.samples++;
	out->has = RAW_HAS_IP | RAW_HAS_MODE | RAW_HAS_HOST_CPU;
	out->event = src->event;
	out->vcpu = src->vcpu;
	out->host_cpu = w->cpu;
	out->time = w->time;
	out->period = w->period;
	out->ip = w->ip;
	out->mode = w->mode;
	out->pid = (int32_t)w->pid;
	out->tid = (int32_t)w->tid;
	out->nr_memory = out->chain_len = 0;
	return true;
}
