// SPDX-License-Identifier: GPL-2.0-only
/*
 * The VM that we run in, guest-wide, by its own module vmprof_guest.ko: it samples by events of the
 * machine's own perf, and no host is asked. The log (kernel/uapi/vmprof_log.h) is memory that the
 * module gives to who opens its device.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/direct_clock.h"
#include "backend/direct_ring.h"
#include "backend/pace.h"
#include "backend/perf_ring.h"
#include "kernel/core/log.h"
#include "kernel/core/table.h"
#include "util/text.h"
#include "util/xalloc.h"

#define RING_SIZE (1u << 20)   /* bytes of a CPU: 10,000 samples of usual chains */
#define RINGS_MAX (128u << 20) /* bytes of all; on a machine with many CPUs each has less */

struct self_session {
	struct backend_session base;
	int fd;
	uint8_t *log;
	size_t bytes;
	uint32_t ring_size, cpus;
	uint32_t chain, nr_events;
	struct vmprof_log_event events[VMPROF_LOG_EVENTS_MAX];
	struct direct_rings rings;
	struct direct_clock clock;
	uint64_t busy; /* when something was found in the rings last */
	struct backend_stats stats;
};

static struct self_session *self_of(struct backend_session *s)
{
	return (struct self_session *)s;
}

/* ---------- what there is ---------- */

static const char *const event_names[] = {"cpu-clock", "cycles", "instructions", NULL};

static void self_probe(const struct vm *vm, struct backend_caps *caps)
{
	*caps = (struct backend_caps){
		.usable = !access(VMPROF_GUEST_DEVICE, F_OK),
		.events = event_names,
		.registers = true,
		.exact_ip = true,
	};
	if (!caps->usable)
		snprintf(caps->why_not, sizeof(caps->why_not),
			 "there is no " VMPROF_GUEST_DEVICE ": 'modprobe vmprof_guest'");
}

static int make_event(const struct event *e, struct vmprof_log_event *out, struct vmprof_err *err)
{
	char name[128];

	escape_str(name, sizeof(name), e->name);
	if (e->type == PERF_TYPE_TRACEPOINT || e->config1 || e->config2 || e->precise ||
	    e->precise_max || e->exclusive)
		return err_set(err, EOPNOTSUPP,
			       "event '%s' cannot be sampled by vmprof_guest.ko: it has events of "
			       "one number, neither tracepoints nor precise ones",
			       name);
	if (e->exclude_user && e->exclude_kernel)
		return err_set(err, EINVAL, "event '%s': user and kernel mode are both excluded",
			       name);
	*out = (struct vmprof_log_event){
		.type = e->type,
		.flags = (e->exclude_user ? 0u : VMP_COUNT_USER) |
			 (e->exclude_kernel ? 0u : VMP_COUNT_KERNEL) |
			 (e->freq ? VMPROF_LOG_FREQ : 0u),
		.config = e->config,
		.period = e->rate,
	};
	return 0;
}

/* Whether this machine's perf has it: the same event is opened for us, on the CPU that we are on.
 */
static int self_try_event(const struct vm *vm, const struct event *e, struct vmprof_err *err)
{
	struct vmprof_log_event unused;
	struct perf_event_attr attr = {
		.type = e->type,
		.size = sizeof(attr),
		.config = e->config,
		.freq = e->freq,
		.sample_period = e->rate,
		.disabled = 1,
		.exclude_user = e->exclude_user,
		.exclude_kernel = e->exclude_kernel,
		.exclude_hv = 1,
	};
	char name[128];
	int rc = make_event(e, &unused, err);

	if (rc)
		return rc;
	rc = perf_event_open_fd(&attr, 0, -1, -1, 0);
	if (rc >= 0) {
		close(rc);
		return 0;
	}
	escape_str(name, sizeof(name), e->name);
	if (rc == -EACCES || rc == -EPERM)
		return perf_permission_error("sample this machine", rc, err);
	if (rc == -EINVAL)
		return err_set(err, EINVAL,
			       "event '%s': the kernel does not take it as it was asked for", name);
	return err_set(err, -rc, "event '%s' is not there on this machine (%s)", name,
		       strerror(-rc));
}

/* ---------- opening ---------- */

static int open_error(int code, struct vmprof_err *err)
{
	switch (code) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		return err_set(err, ENOENT,
			       "vmprof_guest.ko is not loaded (there is no " VMPROF_GUEST_DEVICE
			       "): 'modprobe vmprof_guest', see vmprof_guest(4)");
	case EACCES:
	case EPERM:
		return err_set(err, code,
			       "this user may not sample this machine: run as root or with "
			       "CAP_PERFMON");
	case EBUSY:
		return err_set(err, code,
			       "another program records this machine: " VMPROF_GUEST_DEVICE
			       " has one owner at a time");
	default:
		return err_sys(err, code, "cannot open " VMPROF_GUEST_DEVICE);
	}
}

static uint32_t ring_size(uint32_t cpus)
{
	uint32_t size = RING_SIZE;

	while (size > VMP_RECORD_MAX && (uint64_t)size * cpus > RINGS_MAX)
		size /= 2;
	return size;
}

static int map_log(struct self_session *s, struct vmprof_err *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	s->ring_size = ring_size(s->cpus);
	s->bytes = 2 * VMPROF_LOG_PAGE + ((size_t)s->ring_size + VMPROF_LOG_PAGE) * s->cpus;
	s->bytes = (s->bytes + page - 1) / page * page;
	s->log = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (s->log == MAP_FAILED) {
		int code = errno;

		s->log = NULL;
		return err_sys(err, code, "no memory for samples of %u CPUs from vmprof_guest.ko",
			       s->cpus);
	}
	if (vmp_log_init(s->log, s->bytes, s->ring_size, s->cpus))
		return err_set(err, EINVAL, "vmprof_guest.ko cannot sample %u CPUs", s->cpus);
	return 0;
}

static void self_close(struct backend_session *base)
{
	struct self_session *s = self_of(base);

	if (!s)
		return;
	if (s->log)
		munmap(s->log, s->bytes);
	if (s->fd >= 0)
		close(s->fd);
	direct_rings_free(&s->rings);
	free(s);
}

static int take_events(struct self_session *s, const struct backend_config *cfg,
		       struct vmprof_err *err)
{
	int rc = 0;

	if (cfg->nr_events > VMPROF_LOG_EVENTS_MAX)
		return err_set(err, ENOSPC, "more than %d events by vmprof_guest.ko",
			       VMPROF_LOG_EVENTS_MAX);
	for (unsigned i = 0; i < cfg->nr_events && !rc; i++)
		rc = make_event(&cfg->events[i], &s->events[i], err);
	s->nr_events = cfg->nr_events;
	s->chain = cfg->chains ? VMPROF_LOG_CHAIN_MAX : 0;
	return rc;
}

/* Asks for these events, or with none for an end of them. */
static int ask(struct self_session *s, uint32_t nr, struct vmprof_log_guest *row,
	       struct vmprof_err *err)
{
	struct vmprof_log_host *page = (void *)s->log;
	uint32_t request = page->request + 1;

	page->source = VMPROF_SOURCE_PERF;
	page->chain = s->chain;
	page->nr = nr;
	memcpy(page->events, s->events, sizeof(page->events));
	vmp_store_release(&page->request, request);
	if (ioctl(s->fd, VMPROF_GUEST_IOC_LOOK))
		return err_sys(err, errno, "vmprof_guest.ko does not answer");
	if (vmp_log_row(s->log, s->bytes, request, row))
		return err_set(err, EPROTO,
			       "vmprof_guest.ko and this vmprof do not understand each other: load "
			       "the module that came with it");
	if (row->state == VMPROF_GUEST_REFUSED)
		return err_set(err, EBUSY, "vmprof_guest.ko refuses: %s", row->why);
	return 0;
}

static int self_open(struct backend_session **out, const struct vm *vm,
		     const struct backend_config *cfg, struct vmprof_err *err)
{
	struct self_session *s = xcalloc(1, sizeof(*s));
	int rc;

	*out = NULL;
	s->base.backend = &backend_self;
	s->cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	s->fd = open(VMPROF_GUEST_DEVICE, O_RDWR | O_CLOEXEC);
	rc = s->fd < 0 ? open_error(errno, err) : take_events(s, cfg, err);
	if (!rc)
		rc = map_log(s, err);
	if (rc) {
		self_close(&s->base);
		return rc;
	}
	*out = &s->base;
	return 0;
}

static uint32_t self_nr_cpus(struct backend_session *base)
{
	return self_of(base)->cpus;
}

/* The module makes the rings when it is asked. */
static int open_rings(struct self_session *s, struct vmprof_err *err)
{
	size_t stride = (size_t)s->ring_size + VMPROF_LOG_PAGE;

	direct_rings_init(&s->rings, s->cpus, s->nr_events);
	for (uint32_t i = 0; i < s->cpus; i++)
		if (direct_rings_set(&s->rings, i, s->log + 2 * VMPROF_LOG_PAGE + i * stride,
				     stride))
			return err_set(err, EPROTO, "vmprof_guest.ko has made no ring of CPU %u",
				       i);
	return 0;
}

static int self_start(struct backend_session *base, struct vmprof_err *err)
{
	struct self_session *s = self_of(base);
	struct direct_pair now = direct_pair_read();
	struct vmprof_log_guest row;
	int rc;

	rc = ask(s, s->nr_events, &row, err);
	if (!rc)
		rc = open_rings(s, err);
	if (rc)
		return rc;
	s->rings.first = now.ticks;
	direct_clock_start(&s->clock, &now, row.frequency);
	s->busy = now.ns;
	return 0;
}

/* ---------- reading ---------- */

static void look(struct self_session *s)
{
	struct direct_pair now;

	direct_rings_allow(&s->rings, UINT32_MAX); /* it is our own kernel that writes them */
	direct_rings_fill(&s->rings);
	now = direct_pair_read();
	direct_clock_step(&s->clock, &now);
	if (direct_rings_look(&s->rings, now.ticks))
		s->busy = now.ns;
}

static bool take(struct self_session *s, struct raw_sample *out)
{
	if (!direct_rings_take(&s->rings, out))
		return false;
	out->time = direct_clock_sample(&s->clock, out->time);
	s->stats.samples++;
	return true;
}

static const struct pace pace = {.look_ms = 10, .idle_ms = 50};

/* One at a time: the chain is where the ring's reader has put it. */
static int self_read(struct backend_session *base, struct raw_sample *samples, unsigned n,
		     int timeout_ms)
{
	struct self_session *s = self_of(base);
	uint64_t end = pace_end(timeout_ms);

	while (n) {
		struct timespec pause = {0};
		int wait;

		if (take(s, samples))
			return 1;
		look(s);
		if (take(s, samples))
			return 1;
		wait = pace_wait_ms(&pace, clock_now_ns(), s->busy, end);
		if (!wait)
			return 0;
		pause.tv_nsec = wait * 1000000L;
		if (clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL))
			return -EINTR;
	}
	return 0;
}

static int self_stop(struct backend_session *base)
{
	struct self_session *s = self_of(base);
	struct vmprof_log_guest row;
	struct vmprof_err err;
	int rc = ask(s, 0, &row, &err);

	direct_rings_stop(&s->rings);
	return rc;
}

static void self_stats(struct backend_session *base, struct backend_stats *st)
{
	struct self_session *s = self_of(base);

	s->stats.unreadable = s->rings.bad;
	s->stats.lost = direct_rings_lost(&s->rings) + s->rings.bad;
	s->stats.snapshots = s->stats.samples;
	s->stats.ticks = s->stats.samples + s->stats.lost;
	s->stats.clock_error = s->clock.error;
	*st = s->stats;
}

const struct vmprof_backend backend_self = {
	.name = "self",
	.summary = "the machine that vmprof runs on, by vmprof_guest.ko",
	.probe = self_probe,
	.try_event = self_try_event,
	.open = self_open,
	.nr_vcpus = self_nr_cpus,
	.start = self_start,
	.read = self_read,
	.stop = self_stop,
	.stats = self_stats,
	.close = self_close,
};
