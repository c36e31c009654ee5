// SPDX-License-Identifier: GPL-2.0-only
#include "record/selfside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/perf_ring.h"
#include "perfdata/encode.h"
#include "record/hostside.h"
#include "util/clock.h"
#include "util/xalloc.h"

#define RING_ORDER 5 /* pages: some hundred programs that start between two looks */

/* The end of each record, as PERFDATA_SAMPLE_TYPE and sample_id_all have it. */
struct trailer {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, res;
	uint64_t id;
};

struct told {
	uint64_t time;
	size_t at; /* in the bytes, which is also the order of those of one time */
};

struct selfside {
	struct perf_ring *rings; /* of each CPU that was there */
	long nr_rings;
	uint64_t id;
	struct buf bytes; /* of one look */
	struct told *told;
	size_t nr_told, cap_told;
};

/* ---------- the kernel's records ---------- */

static const struct perf_event_attr tells = {
	.type = PERF_TYPE_SOFTWARE,
	.size = sizeof(tells),
	.config = PERF_COUNT_SW_DUMMY,
	.sample_type = PERFDATA_SAMPLE_TYPE,
	.sample_id_all = 1,
	.mmap = 1,
	.mmap2 = 1,
	.comm = 1,
	.comm_exec = 1,
	.task = 1,
	.ksymbol = 1,
	.use_clockid = 1,
	.clockid = CLOCK_MONOTONIC,
};

static int open_ring(struct perf_ring *r, int cpu, struct vmprof_err *err)
{
	struct perf_event_attr attr = tells;
	int rc;

	r->fd = perf_event_open_fd(&attr, -1, cpu, -1, 0);
	if (r->fd >= 0) {
		rc = perf_ring_map(r, RING_ORDER, err);
		if (rc)
			perf_ring_close(r);
		return rc;
	}
	rc = r->fd;
	r->fd = -1;
	if (rc == -EACCES || rc == -EPERM)
		return perf_permission_error("see the processes of this machine", rc, err);
	return err_sys(err, rc, "perf_event_open of CPU %d, for processes and maps", cpu);
}

/* CPUs that are off have no event, and none that comes later gets one. */
int selfside_open(struct selfside **out, struct vmprof_err *err)
{
	struct selfside *s = xcalloc(1, sizeof(*s));
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	*out = NULL;
	s->rings = xcalloc((size_t)cpus, sizeof(*s->rings));
	for (int cpu = 0; cpu < cpus; cpu++) {
		struct perf_ring *r = &s->rings[s->nr_rings];

		*r = (struct perf_ring){.fd = -1};
		if (!open_ring(r, cpu, err)) {
			s->nr_rings++;
		} else if (err->code != ENODEV) {
			selfside_free(s);
			return -err->code;
		}
	}
	*out = s;
	return 0;
}

void selfside_free(struct selfside *s)
{
	if (!s)
		return;
	for (long i = 0; i < s->nr_rings; i++)
		perf_ring_close(&s->rings[i]);
	free(s->rings);
	buf_free(&s->bytes);
	free(s->told);
	free(s);
}

static struct perf_event_header *record_at(struct selfside *s, size_t at)
{
	return (struct perf_event_header *)(s->bytes.data + at);
}

/* Keeps it, with an id that the file knows. */
static void keep(struct selfside *s, const struct perf_event_header *record)
{
	struct trailer t;
	size_t at = s->bytes.len, end = record->size - sizeof(t);

	if (record->size < sizeof(*record) + sizeof(t))
		return;
	memcpy(&t, (const uint8_t *)record + end, sizeof(t));
	t.id = s->id;
	buf_add(&s->bytes, record, end);
	buf_add(&s->bytes, &t, sizeof(t));
	s->told = xgrow(s->told, &s->cap_told, s->nr_told + 1, sizeof(*s->told));
	s->told[s->nr_told++] = (struct told){t.time, at};
}

static int by_time(const void *a, const void *b)
{
	const struct told *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

void selfside_drain(struct selfside *s, struct buf *out, selfside_fn *see, void *ctx)
{
	const struct perf_event_header *record;

	buf_reset(&s->bytes);
	s->nr_told = 0;
	for (long i = 0; i < s->nr_rings; i++)
		while ((record = perf_ring_next(&s->rings[i])))
			keep(s, record);
	/* A program is forked on one CPU and may go on on another one. */
	if (s->nr_told)
		qsort(s->told, s->nr_told, sizeof(*s->told), by_time);
	for (size_t i = 0; i < s->nr_told; i++) {
		record = record_at(s, s->told[i].at);
		buf_add(out, record, record->size);
		see(ctx, record);
	}
}

/* ---------- what is there already ---------- */

void selfside_start(struct selfside *s, uint64_t id, struct buf *out, selfside_fn *see, void *ctx)
{
	size_t at = out->len;

	s->id = id;
	hostside_start_all(id, out, clock_now_ns());
	while (at < out->len) {
		const struct perf_event_header *record = (const void *)(out->data + at);

		see(ctx, record);
		at += record->size;
	}
}
