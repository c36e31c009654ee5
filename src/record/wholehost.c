// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel is asked for records in the very form that the file has (perfdata/encode.h). So they
 * go there as they are, but for the event's id, which is the file's and not the kernel's.
 */
#include "record/wholehost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "backend/perf_session.h"
#include "perfdata/encode.h"
#include "record/hostside.h"
#include "util/clock.h"
#include "util/text.h"
#include "util/xalloc.h"

#define RING_ORDER	  8  /* 1 MiB: half a second of samples at some 20,000 a second */
#define RING_ORDER_CHAINS 10 /* the same with call chains of some 25 frames */

/* One event on one CPU. */
struct source {
	struct perf_ring ring;
	uint64_t id; /* in the file */
};

struct wholehost {
	struct source *source; /* event by event, CPU by CPU */
	unsigned nr_sources, nr_events;
	uint32_t *cpu;
	unsigned nr_cpus;
	struct wholehost_stats stats;
};

/* @first: of the CPU. It is the one to tell of processes and maps. */
static struct perf_event_attr attr_of(const struct event *e, bool first, bool chains)
{
	struct perf_event_attr attr;

	perf_attr(&attr, e);
	attr.sample_type = PERFDATA_SAMPLE_TYPE;
	attr.read_format = 0;
	attr.exclude_idle = 1; /* a CPU that waits is not used */
	attr.exclude_user = e->exclude_user;
	attr.exclude_kernel = e->exclude_kernel;
	attr.exclude_callchain_kernel = attr.exclude_callchain_user = !chains;
	attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = first;
	attr.watermark = 1;
	attr.wakeup_watermark = 1u << 30; /* nobody waits: the recorder comes by itself */
	return attr;
}

static int open_source(struct wholehost *h, const struct event *e, uint32_t cpu, bool first,
		       bool chains, struct vmprof_err *err)
{
	struct perf_event_attr attr = attr_of(e, first, chains);
	struct source *s = &h->source[h->nr_sources];
	char name[128];
	int r;

	s->ring = (struct perf_ring){.fd = -1};
	r = perf_event_open_fd(&attr, -1, (int)cpu, -1, 0);
	if (r == -EACCES || r == -EPERM)
		return perf_permission_error("sample the whole host", r, err);
	if (r < 0)
		return err_sys(err, r, "event '%s' on the host's CPU %u",
			       escape_str(name, sizeof(name), e->name), cpu);
	s->ring.fd = r;
	h->nr_sources++;
	return perf_ring_map(&s->ring, chains ? RING_ORDER_CHAINS : RING_ORDER, err);
}

static bool is_online(uint32_t cpu)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_DUMMY,
				       .disabled = 1};
	int fd = perf_event_open_fd(&attr, -1, (int)cpu, -1, 0);

	if (fd >= 0)
		close(fd);
	return fd != -ENODEV;
}

int wholehost_open(struct wholehost **out, const struct event *events, unsigned nr_events,
		   bool chains, struct vmprof_err *err)
{
	long configured = sysconf(_SC_NPROCESSORS_CONF);
	struct wholehost *h = xcalloc(1, sizeof(*h));
	int r = 0;

	*out = NULL;
	h->cpu = xcalloc((size_t)configured, sizeof(*h->cpu));
	for (uint32_t cpu = 0; cpu < configured; cpu++)
		if (is_online(cpu))
			h->cpu[h->nr_cpus++] = cpu;
	h->nr_events = nr_events;
	h->source = xcalloc((size_t)nr_events * h->nr_cpus + 1, sizeof(*h->source));
	for (unsigned e = 0; e < nr_events && !r; e++)
		for (unsigned i = 0; i < h->nr_cpus && !r; i++)
			r = open_source(h, &events[e], h->cpu[i], !e, chains, err);
	if (r) {
		wholehost_free(h);
		return r;
	}
	*out = h;
	return 0;
}

void wholehost_free(struct wholehost *h)
{
	if (!h)
		return;
	for (unsigned i = 0; i < h->nr_sources; i++)
		perf_ring_close(&h->source[i].ring);
	free(h->source);
	free(h->cpu);
	free(h);
}

const uint32_t *wholehost_cpus(const struct wholehost *h, unsigned *n)
{
	*n = h->nr_cpus;
	return h->cpu;
}

/* ---------- the start ---------- */

int wholehost_start(struct wholehost *h, const uint64_t *ids, struct buf *out,
		    struct vmprof_err *err)
{
	uint64_t time = clock_now_ns();

	for (unsigned i = 0; i < h->nr_sources; i++) {
		h->source[i].id = ids[i];
		if (ioctl(h->source[i].ring.fd, PERF_EVENT_IOC_ENABLE, 0))
			return err_sys(err, errno, "cannot start sampling the host");
	}
	/* Behind the start: one that comes meanwhile is in here or in a ring, or both. */
	hostside_start_all(ids[0], out, time);
	return 0;
}

/* ---------- records ---------- */

/* perf prints names as they are: whoever may run a program here chooses them. */
static void make_plain(uint8_t *name, size_t n)
{
	for (size_t i = 0; i < n && name[i]; i++)
		if (name[i] < ' ' || name[i] == 0x7f)
			name[i] = '?';
}

/* PERF_RECORD_LOST up to its trailer. */
struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
};

/*
 * Linux as Xen's dom0 with a virtual PMU (Xen's vpmu=on) believes that each sample is another
 * domain's until its PMU has had an interrupt, whatever clock it is of (seen on 6.1).
 */
static bool is_hosts(const struct perf_event_header *header)
{
	unsigned mode = header->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	return mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_USER;
}

static void take_record(struct wholehost *h, const struct source *s,
			const struct perf_event_header *header, struct buf *out)
{
	const size_t trailer = 32, comm = 16, filename = 72;
	size_t at = out->len, size = header->size;
	uint8_t *record;

	if (size < sizeof(*header) + trailer)
		return;
	if (header->type == PERF_RECORD_SAMPLE && !is_hosts(header)) {
		h->stats.misled++;
		return;
	}
	buf_add(out, header, size);
	record = out->data + at;
	memcpy(record + (header->type == PERF_RECORD_SAMPLE ? 8 : size - 8), &s->id, sizeof(s->id));
	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		h->stats.samples++;
		break;
	case PERF_RECORD_COMM:
		if (size > comm + trailer)
			make_plain(record + comm, size - comm - trailer);
		break;
	case PERF_RECORD_MMAP2:
		if (size > filename + trailer)
			make_plain(record + filename, size - filename - trailer);
		break;
	case PERF_RECORD_LOST:
		h->stats.lost += ((const struct lost_record *)header)->lost;
		memcpy(record + 8, &s->id, sizeof(s->id));
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		break;
	default:
		out->len = at;
	}
}

void wholehost_take(struct wholehost *h, struct buf *out)
{
	for (unsigned i = 0; i < h->nr_sources; i++) {
		struct source *s = &h->source[i];
		const struct perf_event_header *header;

		/* What is in it now, and not all that comes meanwhile. */
		for (size_t n = 0; n < s->ring.data_size && (header = perf_ring_next(&s->ring));
		     n += header->size)
			take_record(h, s, header, out);
	}
}

void wholehost_stop(struct wholehost *h)
{
	for (unsigned i = 0; i < h->nr_sources; i++)
		ioctl(h->source[i].ring.fd, PERF_EVENT_IOC_DISABLE, 0);
}

void wholehost_get_stats(const struct wholehost *h, struct wholehost_stats *st)
{
	*st = h->stats;
}
