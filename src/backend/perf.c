// SPDX-License-Identifier: GPL-2.0-only
/*
 * VMs that KVM runs, by perf events of their vCPUs' threads, that count in guest mode: no module,
 * no help from guest or monitor. What a sample has is its address; whose it is, the guest layer
 * finds out of the VM's memory, where that is known.
 *
 * The rings are looked at by the clock while samples come: waking the reader for each would cost
 * the vCPU more than the sample does.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/pace.h"
#include "backend/perf_session.h"
#include "util/clock.h"
#include "util/text.h"
#include "util/xalloc.h"

#define RING_NS	       500000000ull /* what a ring has room for: the reader may be held up that long */
#define RING_ORDER_MAX 8	    /* pages, as a power of two: 1 MiB */
#define RATE_GUESS     10000 /* samples a second of an event with a fixed period, to size its ring */
#define EPOLL_DEAD     UINT32_MAX

static struct perf_session *perf_of(struct backend_session *s)
{
	return (struct perf_session *)s;
}

static struct guest_mem *perf_memory(struct backend_session *base)
{
	return backend_ram_mem(&perf_of(base)->ram);
}

/* ---------- opening ---------- */

static void perf_close(struct backend_session *base)
{
	struct perf_session *s = perf_of(base);

	if (!s)
		return;
	for (unsigned i = 0; i < s->nr_sources; i++)
		perf_ring_close(&s->sources[i].ring);
	free(s->sources);
	free(s->waiting);
	free(s->events);
	hashmap_free(&s->by_id);
	backend_ram_close(&s->ram);
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->pidfd >= 0)
		close(s->pidfd);
	free(s);
}

/* Whether anything is sampled, or could be: without events a look into the guest is all. */
static bool samples(const struct perf_session *s)
{
	for (unsigned i = 0; i < s->nr_events; i++)
		if (s->events[i].rate)
			return true;
	return !s->nr_events;
}

/* Not having the memory costs names of processes, not samples. */
static void open_memory(struct perf_session *s)
{
	struct vmprof_err why;

	backend_ram_init(&s->ram);
	if (!samples(s))
		return;
	if (backend_ram_open(&s->ram, s->base.vm, &why)) {
		snprintf(s->note, sizeof(s->note), "addresses only, no symbols and processes: %s",
			 why.msg);
		s->stats.note = s->note;
	}
}

static int perf_open_vm(struct backend_session **out, const struct vm *vm,
			const struct backend_config *cfg, struct vmprof_err *err)
{
	struct perf_session *s = xcalloc(1, sizeof(*s));

	*out = NULL;
	s->base.backend = &backend_perf;
	s->base.vm = vm;
	s->epoll = -1;
	s->counts_lost = true;
	s->nr_events = cfg->nr_events;
	s->events = xcalloc(cfg->nr_events + 1, sizeof(*s->events));
	memcpy(s->events, cfg->events, cfg->nr_events * sizeof(*s->events));
	s->pidfd = (int)syscall(SYS_pidfd_open, vm->pid, 0);
	if (s->pidfd < 0 || !vm_alive(vm)) {
		int r = vm_access_error(vm, s->pidfd < 0 ? errno : ESRCH, "the process", err);

		perf_close(&s->base);
		return r;
	}
	open_memory(s);
	*out = &s->base;
	return 0;
}

unsigned perf_ring_order(const struct perf_session *s)
{
	uint64_t rate = 0, bytes, page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned order = 2;

	for (unsigned i = 0; i < s->nr_events; i++)
		if (s->events[i].rate)
			rate += s->events[i].freq ? s->events[i].rate : RATE_GUESS;
	bytes = rate * PERF_SAMPLE_BYTES * (RING_NS / 1000000) / 1000;
	while (order < RING_ORDER_MAX && page << order < bytes)
		order++;
	return order;
}

/*
 * None for what is only counted. A ring of its own, as large as may be: users have a limit of
 * locked memory. Other events of the thread write to the same, where the kernel allows that.
 */
static int open_ring(struct perf_session *s, struct perf_source *src, struct vmprof_err *err)
{
	int r;

	if (!s->events[src->event].rate)
		return 0;
	for (struct perf_source *o = s->sources; o < src; o++)
		if (o->vcpu == src->vcpu && o->ring.base &&
		    !ioctl(src->ring.fd, PERF_EVENT_IOC_SET_OUTPUT, o->ring.fd))
			return 0;
	for (unsigned order = perf_ring_order(s);; order--) {
		r = perf_ring_map(&src->ring, order, err);
		if (r != -EPERM || !order)
			return r;
	}
}

static int add_source(struct perf_session *s, uint32_t vcpu, unsigned event, int *fds,
		      struct vmprof_err *err)
{
	struct perf_source *src = &s->sources[s->nr_sources];
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = s->nr_sources};
	const struct event *e = &s->events[event];
	int group_fd = e->leader == event ? -1 : fds[e->leader], r;
	uint64_t id;

	src->event = event;
	src->vcpu = vcpu;
	src->ring.base = NULL;
	src->ring.fd = perf_open(e, s->base.vm->vcpus[vcpu].tid, group_fd, &s->counts_lost);
	if (src->ring.fd < 0)
		return perf_open_error(s->base.vm, e, src->ring.fd, err);
	fds[event] = src->ring.fd;
	s->nr_sources++;
	r = open_ring(s, src, err);
	if (r)
		return r;
	if (ioctl(src->ring.fd, PERF_EVENT_IOC_ID, &id))
		return err_sys(err, errno, "the id of a perf event");
	hashmap_set(&s->by_id, id, (void *)(uintptr_t)s->nr_sources);
	if (src->ring.base && epoll_ctl(s->epoll, EPOLL_CTL_ADD, src->ring.fd, &ev))
		return err_sys(err, errno, "epoll_ctl");
	return 0;
}

static int add_vcpu(struct perf_session *s, uint32_t vcpu, struct vmprof_err *err)
{
	int fds[EVENTS_MAX];

	for (unsigned e = 0; e < s->nr_events; e++) {
		int r = add_source(s, vcpu, e, fds, err);

		if (r)
			return r;
	}
	return 0;
}

/* All vCPUs of TCG can be one thread, which is counted for the first of them. */
static bool shares_thread(const struct vm *vm, uint32_t vcpu)
{
	for (uint32_t v = 0; v < vcpu; v++)
		if (vm->vcpus[v].tid == vm->vcpus[vcpu].tid)
			return true;
	return false;
}

static void note_unknown_threads(struct perf_session *s, unsigned n)
{
	if (!n)
		return;
	snprintf(s->note, sizeof(s->note),
		 "%u of %u vCPUs are not sampled: which threads run them is not known", n,
		 s->base.vm->nr_vcpus);
	s->stats.note = s->note;
}

static int perf_start(struct backend_session *base, struct vmprof_err *err)
{
	struct perf_session *s = perf_of(base);
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = EPOLL_DEAD};
	unsigned unknown = 0;
	int r = 0;

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->pidfd, &ev))
		return err_sys(err, errno, "epoll_create");
	s->sources = xcalloc((size_t)s->base.vm->nr_vcpus * s->nr_events + 1, sizeof(*s->sources));
	for (uint32_t v = 0; v < s->base.vm->nr_vcpus && !r; v++)
		if (!s->base.vm->vcpus[v].tid)
			unknown++;
		else if (!shares_thread(s->base.vm, v))
			r = add_vcpu(s, v, err);
	if (r)
		return r;
	note_unknown_threads(s, unknown);
	for (unsigned i = 0; i < s->nr_sources; i++)
		if (s->events[s->sources[i].event].leader == s->sources[i].event &&
		    ioctl(s->sources[i].ring.fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP))
			return err_sys(err, errno, "a perf event cannot be enabled");
	return 0;
}

/* ---------- reading ---------- */

static const struct pace pace = {.look_ms = 2, .idle_ms = 20};

/* Waits; 0, or -errno. */
static int wait_for_samples(struct perf_session *s, int timeout_ms)
{
	struct epoll_event ev[16];
	int n = epoll_wait(s->epoll, ev, sizeof(ev) / sizeof(*ev), timeout_ms);

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		if (ev[i].data.u32 == EPOLL_DEAD)
			s->gone = true;
		else if (ev[i].events & (EPOLLHUP | EPOLLERR)) /* the thread has ended */
			epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->sources[ev[i].data.u32].ring.fd,
				  NULL);
	}
	return 0;
}

static int perf_read(struct backend_session *base, struct raw_sample *samples, unsigned n,
		     int timeout_ms)
{
	struct perf_session *s = perf_of(base);
	uint64_t end = pace_end(timeout_ms);

	for (;;) {
		unsigned got = 0;
		int wait, r;

		while (got < n && perf_take(s, &samples[got]))
			got++;
		if (got)
			return (int)got;
		perf_drain(s);
		if (s->nr_ready)
			continue;
		if (s->gone)
			return -ESRCH;
		wait = pace_wait_ms(&pace, clock_now_ns(), s->busy, end);
		if (!wait)
			return 0;
		r = wait_for_samples(s, wait);
		if (r)
			return r;
	}
}

static int perf_stop(struct backend_session *base)
{
	struct perf_session *s = perf_of(base);

	for (unsigned i = 0; i < s->nr_sources; i++)
		ioctl(s->sources[i].ring.fd, PERF_EVENT_IOC_DISABLE, 0);
	perf_drain(s);
	s->nr_ready = s->nr_waiting; /* no more will come */
	return 0;
}

/* ---------- what was counted ---------- */

struct counted { /* read() with the read_format of perf_attr() */
	uint64_t value, enabled, running, lost;
};

static bool read_counter(const struct perf_session *s, const struct perf_source *src,
			 struct counted *c)
{
	size_t want = s->counts_lost ? sizeof(*c) : sizeof(*c) - 8;

	*c = (struct counted){0};
	return read(src->ring.fd, c, sizeof(*c)) >= (ssize_t)want;
}

static void perf_stats(struct backend_session *base, struct backend_stats *st)
{
	struct perf_session *s = perf_of(base);
	struct counted c;

	s->stats.lost = s->lost_precise + (s->counts_lost ? 0 : s->lost_records);
	for (unsigned i = 0; s->counts_lost && i < s->nr_sources; i++)
		if (read_counter(s, &s->sources[i], &c))
			s->stats.lost += c.lost;
	*st = s->stats;
}

static void perf_event_stats(struct backend_session *base, unsigned event, uint32_t vcpu,
			     struct backend_event_stats *st)
{
	struct perf_session *s = perf_of(base);
	struct counted c;

	*st = (struct backend_event_stats){0};
	for (unsigned i = 0; i < s->nr_sources; i++) {
		const struct perf_source *src = &s->sources[i];

		if (src->event != event || (vcpu != BACKEND_ALL_VCPUS && src->vcpu != vcpu) ||
		    !read_counter(s, src, &c))
			continue;
		st->count += c.value;
		st->enabled += c.enabled;
		st->running += c.running;
	}
}

const struct vmprof_backend backend_perf = {
	.name = "perf",
	.summary = "KVM guests by perf events of their vCPUs' threads, without a module",
	.probe = perf_probe,
	.try_event = perf_try_event,
	.open = perf_open_vm,
	.memory = perf_memory,
	.peek = backend_no_peek,
	.nr_vcpus = backend_vm_vcpus,
	.vcpu_tid = backend_vm_tid,
	.start = perf_start,
	.read = perf_read,
	.stop = perf_stop,
	.stats = perf_stats,
	.event_stats = perf_event_stats,
	.close = perf_close,
};
