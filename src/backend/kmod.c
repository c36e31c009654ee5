// SPDX-License-Identifier: GPL-2.0-only
/*
 * VMs that KVM runs, by the host's module vmprof.ko: each VM's own events, and with each sample the
 * registers and what the call chain is made of, as they were at the overflow.
 *
 * As with perf the rings are looked at by the clock while samples come; one that fills up wakes us
 * before.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/kmod_dev.h"
#include "backend/kmod_ring.h"
#include "backend/pace.h"
#include "backend/ram.h"
#include "util/clock.h"
#include "util/text.h"
#include "util/xalloc.h"

#define RING_MS	      250   /* what a ring has room for: the reader may be held up that long */
#define RATE_GUESS    10000 /* samples a second of an event with a fixed period */
#define STACK_DEFAULT 4096  /* bytes of each stack; what is further up is read later */

struct kmod_session {
	struct backend_session base;
	enum guest_arch arch;
	struct kmod_dev dev;
	struct backend_ram ram;
	struct event *events;
	unsigned nr_events;
	struct kmod_rings rings;
	void **maps;   /* of each place */
	uint64_t busy; /* when something was found in the rings last */
	bool gone;
	struct backend_stats stats;
	char note[256]; /* of the stats */
};

static struct kmod_session *kmod_of(struct backend_session *s)
{
	return (struct kmod_session *)s;
}

/* ---------- what there is ---------- */

static const char *const with_pmu[] = {"cycles",       "instructions", "cache-references",
				       "cache-misses", "branches",     "branch-misses",
				       "cpu-clock",    "task-clock",   NULL};
static const char *const without_pmu[] = {"cpu-clock", "task-clock", NULL};

static void kmod_probe(const struct vm *vm, struct backend_caps *caps)
{
	struct vmprof_err err = {0};
	struct kmod_dev d;
	bool threads = false;
	char name[96];

	*caps = (struct backend_caps){
		.events = without_pmu, .registers = true, .domain = true, .exact_ip = true};
	escape_str(name, sizeof(name), vm->name);
	for (uint32_t i = 0; i < vm->nr_vcpus; i++)
		threads |= vm->vcpus[i].tid != 0;
	if (vm->accel == VM_ACCEL_UNKNOWN) {
		vm_accel_error(vm, &err);
	} else if (vm->accel != VM_ACCEL_KVM) {
		err_set(&err, ENOTSUP,
			"%s runs under %s: the kmod backend samples guests that KVM runs", name,
			vm_accel_name(vm->accel));
	} else if (!kmod_open(&d, &err)) {
		if (d.info.counters)
			caps->events = with_pmu;
		if (!threads)
			err_set(&err, ENOENT, "which threads run the vCPUs of %s is not known",
				name);
		kmod_close(&d);
	}
	caps->usable = !err.code;
	caps->memory = vm->ram_spec != NULL;
	snprintf(caps->why_not, sizeof(caps->why_not), "%s", err.msg);
}

static int kmod_try_event(const struct vm *vm, const struct event *e, struct vmprof_err *err)
{
	const struct kmod_config cfg = {.events = e, .nr_events = 1, .registers = true};
	struct vmprof_event unused;
	struct kmod_dev d;
	int rc = kmod_event(e, &unused, err);

	if (rc)
		return rc;
	rc = kmod_open(&d, err);
	if (rc)
		return rc;
	rc = kmod_attach(&d, vm, &cfg, err);
	kmod_close(&d);
	return rc;
}

/* ---------- opening ---------- */

static void kmod_session_close(struct backend_session *base)
{
	struct kmod_session *s = kmod_of(base);

	if (!s)
		return;
	for (uint32_t i = 0; i < s->rings.n; i++)
		if (s->maps[i])
			munmap(s->maps[i], s->dev.attach.ring_stride);
	kmod_rings_free(&s->rings);
	free(s->maps);
	kmod_close(&s->dev);
	free(s->events);
	backend_ram_close(&s->ram);
	free(s);
}

/* Whether anything is sampled, or could be: without events a look into the guest is all. */
static bool samples(const struct backend_config *cfg)
{
	for (unsigned i = 0; i < cfg->nr_events; i++)
		if (cfg->events[i].rate)
			return true;
	return !cfg->nr_events;
}

/* Bytes, a power of two, for the samples of all events of a vCPU. */
static uint32_t ring_size(const struct backend_config *cfg, uint32_t nr_vcpus, uint32_t stack)
{
	uint64_t rate = 0, bytes, size = VMPROF_RING_MIN;

	for (unsigned i = 0; i < cfg->nr_events; i++)
		if (cfg->events[i].rate)
			rate += cfg->events[i].freq ? cfg->events[i].rate : RATE_GUESS;
	/* Most samples have one stack; those of the kernel up to three. */
	bytes = rate * RING_MS / 1000 *
		(sizeof(struct vmp_sample) + sizeof(struct vmp_regs) + 2ull * stack);
	while (size < VMPROF_RING_MAX && size < bytes)
		size *= 2;
	while (size > VMPROF_RING_MIN && size * nr_vcpus > VMPROF_MEMORY_MAX)
		size /= 2;
	return (uint32_t)size;
}

static int map_rings(struct kmod_session *s, struct vmprof_err *err)
{
	uint64_t stride = s->dev.attach.ring_stride;
	uint32_t n = s->dev.attach.nr_vcpus;

	kmod_rings_init(&s->rings, n);
	s->maps = xcalloc(n, sizeof(*s->maps));
	for (uint32_t i = 0; i < n; i++) {
		void *m = mmap(NULL, stride, PROT_READ | PROT_WRITE, MAP_SHARED, s->dev.fd,
			       (off_t)(i * stride));

		if (m == MAP_FAILED)
			return err_sys(err, errno, "cannot map a ring of vmprof.ko");
		s->maps[i] = m;
		if (kmod_rings_set(&s->rings, i, m, stride))
			return err_set(err, EPROTO,
				       "a ring of vmprof.ko is not as this vmprof knows them: load "
				       "the module that came with it");
	}
	return 0;
}

static void note_unknown_threads(struct kmod_session *s)
{
	uint32_t n = s->dev.nr_vcpus - s->dev.attach.nr_vcpus;

	if (!n)
		return;
	snprintf(s->note, sizeof(s->note),
		 "%u of %u vCPUs are not sampled: which threads run them is not known", n,
		 s->dev.nr_vcpus);
	s->stats.note = s->note;
}

static uint32_t stack_size(const struct backend_config *cfg)
{
	if (!cfg->chains || !cfg->stack_size)
		return cfg->chains ? STACK_DEFAULT : 0;
	return cfg->stack_size < VMPROF_STACK_MAX ? cfg->stack_size : VMPROF_STACK_MAX;
}

static int attach(struct kmod_session *s, const struct backend_config *cfg, struct vmprof_err *err)
{
	uint32_t stack = stack_size(cfg);
	const struct kmod_config config = {
		.events = s->events,
		.nr_events = s->nr_events,
		.multiplex = cfg->multiplex,
		.domain = cfg->domain,
		.registers = samples(cfg),
		.ring_size = ring_size(cfg, s->base.vm->nr_vcpus, stack),
		.stack_size = stack,
		.wakeup = ring_size(cfg, s->base.vm->nr_vcpus, stack) / 4,
	};
	int rc = kmod_attach(&s->dev, s->base.vm, &config, err);

	if (!rc)
		rc = map_rings(s, err);
	if (!rc)
		note_unknown_threads(s);
	return rc;
}

static int kmod_session_open(struct backend_session **out, const struct vm *vm,
			     const struct backend_config *cfg, struct vmprof_err *err)
{
	struct kmod_session *s = xcalloc(1, sizeof(*s));
	struct vmprof_err why;
	int rc;

	*out = NULL;
	s->base.backend = &backend_kmod;
	s->base.vm = vm;
	s->arch = vm_guest_arch(vm);
	s->nr_events = cfg->nr_events;
	s->events = xcalloc(cfg->nr_events + 1, sizeof(*s->events));
	memcpy(s->events, cfg->events, cfg->nr_events * sizeof(*s->events));
	backend_ram_init(&s->ram);
	if (samples(cfg) && backend_ram_open(&s->ram, vm, &why)) {
		snprintf(s->note, sizeof(s->note), "addresses only, no symbols and processes: %s",
			 why.msg);
		s->stats.note = s->note;
	}
	rc = kmod_open(&s->dev, err);
	if (!rc && s->nr_events)
		rc = attach(s, cfg, err);
	if (rc) {
		kmod_session_close(&s->base);
		return rc;
	}
	*out = &s->base;
	return 0;
}

static struct guest_mem *kmod_memory(struct backend_session *base)
{
	return backend_ram_mem(&kmod_of(base)->ram);
}

/* Not having it costs parts of chains; the module knows what it can do without. */
static void kmod_session_want(struct backend_session *base, const struct guest_wanted *wanted)
{
	kmod_want(&kmod_of(base)->dev, wanted, NULL);
}

static int kmod_session_start(struct backend_session *base, struct vmprof_err *err)
{
	return kmod_start(&kmod_of(base)->dev, err);
}

/* ---------- reading ---------- */

static bool take(struct kmod_session *s, struct raw_sample *out)
{
	const struct vmp_sample *sample;

	while ((sample = kmod_rings_take(&s->rings))) {
		if (sample->vcpu >= s->dev.attach.nr_vcpus || sample->event >= s->nr_events ||
		    !kmod_decode(sample, s->arch, out)) {
			s->rings.bad++;
			continue;
		}
		out->vcpu = s->dev.vcpu[sample->vcpu];
		s->stats.samples++;
		return true;
	}
	return false;
}

static const struct pace pace = {.look_ms = 2, .idle_ms = 20};

/* One at a time: what it points to is where it was read to. */
static int kmod_session_read(struct backend_session *base, struct raw_sample *samples, unsigned n,
			     int timeout_ms)
{
	struct kmod_session *s = kmod_of(base);
	uint64_t end = pace_end(timeout_ms);

	while (n) {
		uint64_t now;
		int wait, r;

		if (take(s, samples))
			return 1;
		now = clock_now_ns();
		if (kmod_rings_look(&s->rings, now))
			s->busy = now;
		if (take(s, samples))
			return 1;
		if (s->gone)
			return -ESRCH;
		wait = pace_wait_ms(&pace, now, s->busy, end);
		if (!wait)
			return 0;
		r = kmod_wait(&s->dev, wait, &s->gone);
		if (r)
			return r;
	}
	return 0;
}

static int kmod_session_stop(struct backend_session *base)
{
	struct kmod_session *s = kmod_of(base);

	kmod_stop(&s->dev);
	kmod_rings_look(&s->rings, UINT64_MAX); /* no more will come */
	return 0;
}

/* ---------- what was counted ---------- */

static void kmod_session_stats(struct backend_session *base, struct backend_stats *st)
{
	struct kmod_session *s = kmod_of(base);
	uint64_t outside = 0;
	struct vmprof_read r;

	for (uint32_t v = 0; v < s->dev.nr_vcpus; v++)
		for (unsigned e = 0; e < s->nr_events; e++)
			if (!kmod_read(&s->dev, v, e, &r))
				outside += r.outside;
	s->stats.unreadable = s->rings.bad;
	s->stats.lost = kmod_rings_lost(&s->rings) + s->rings.bad;
	s->stats.snapshots = s->stats.samples;
	s->stats.ticks = s->stats.samples + s->stats.lost + outside;
	*st = s->stats;
}

static void kmod_session_event_stats(struct backend_session *base, unsigned event, uint32_t vcpu,
				     struct backend_event_stats *st)
{
	struct kmod_session *s = kmod_of(base);

	*st = (struct backend_event_stats){0};
	for (uint32_t v = 0; v < s->dev.nr_vcpus; v++) {
		struct vmprof_read r;
		int rc = vcpu == BACKEND_ALL_VCPUS || vcpu == v ? kmod_read(&s->dev, v, event, &r)
								: -ENOENT;

		if (!rc) {
			st->count += r.value;
			st->enabled += r.enabled;
			st->running += r.running;
		} else if (rc == -ENODATA) {
			st->enabled++; /* wanted, and never there */
		}
	}
}

const struct vmprof_backend backend_kmod = {
	.name = "kmod",
	.summary = "KVM guests by the host's module vmprof.ko, with registers and call chains",
	.probe = kmod_probe,
	.try_event = kmod_try_event,
	.open = kmod_session_open,
	.memory = kmod_memory,
	.peek = backend_no_peek,
	.nr_vcpus = backend_vm_vcpus,
	.vcpu_tid = backend_vm_tid,
	.want = kmod_session_want,
	.start = kmod_session_start,
	.read = kmod_session_read,
	.stop = kmod_session_stop,
	.stats = kmod_session_stats,
	.event_stats = kmod_session_event_stats,
	.close = kmod_session_close,
};
