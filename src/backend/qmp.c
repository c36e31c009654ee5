// SPDX-License-Identifier: GPL-2.0-only
/*
 * VMs of QEMU, by what its monitor says of their registers: "info registers -a" over the VM's own
 * QMP socket. It needs nothing else, under KVM no module and no PMU, and is slow: QEMU reads a
 * request byte by byte and writes all registers of all vCPUs for people to read.
 *
 * vCPUs are clocked by their threads' CPU time as domains of Xen are by theirs: when a tick of one
 * is due, one request has the registers of all, and each one with a tick gets a sample.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/clockevent.h"
#include "backend/cputicks.h"
#include "backend/qmp_monitor.h"
#include "backend/qmp_regs.h"
#include "backend/ram.h"
#include "backend/tcg.h"
#include "backend/threadtime.h"
#include "util/clock.h"
#include "util/text.h"
#include "util/xalloc.h"

#define LIBVIRT_MS 5000
#define PROBE_MS   1000
#define REQUEST_MS 1000
#define SILENCE_NS 60000000000ull /* without an answer: it will give none any more */
#define CHECK_NS   100000000ull	  /* between looks at whether the VM is there */
#define REPLY_HEAD 65536u	  /* bytes of a reply, and of each vCPU's part of it */
#define REPLY_VCPU 8192u
#define MEASURED   8	/* looks, before the rate is told */
#define END_MS	   2000 /* between QEMU's connection closing and its process ending */

/*
 * To be asked for registers takes a waiting vCPU some CPU time under KVM. It is worth asking again
 * when it has used more than that.
 */
#define WOKEN_NS 500000u

struct qmp_vcpu {
	struct threadtime time;
	uint64_t cpu_time;	/* of the thread, at the last look */
	uint64_t look_at;	/* when to look at it next, ns */
	uint64_t seen_cpu_time; /* as it was planned last */
	unsigned idle;		/* looks in a row that found no CPU time used */
	bool fresh;		/* its registers have not been held against its ticks */
	uint64_t regs_cpu_time; /* that it had at least when its registers were read */
	struct cputicks *ticks; /* one an event */
};

struct qmp_session {
	struct backend_session base;
	struct qmp_monitor monitor;
	struct backend_ram ram;
	unsigned nr_events;
	uint64_t *period; /* of each event, ns */
	struct qmp_vcpu *vcpu;
	struct guest_regs *regs; /* of each vCPU, and whether they are known */
	bool *known;
	uint32_t nr_vcpus;
	uint64_t regs_at;      /* when they came */
	uint64_t cost;	       /* of a look at them, ns: lately */
	uint64_t looks, spent; /* so many were there, in so many ns */
	uint64_t next_request; /* not before */
	uint64_t answered, checked;
	bool stopped;
	uint32_t random;
	struct backend_stats stats;
	char note[256], limit[256];
};

static struct qmp_session *qmp_of(struct backend_session *s)
{
	return (struct qmp_session *)s;
}

/* ---------- what there is ---------- */

static const char *const event_names[] = {"cpu-clock", "task-clock", NULL};

static unsigned known_threads(const struct vm *vm)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < vm->nr_vcpus; i++)
		n += vm->vcpus[i].tid != 0;
	return n;
}

static int check_vm(const struct vm *vm, struct vmprof_err *err)
{
	char name[96], arch[32];

	escape_str(name, sizeof(name), vm->name);
	if (vm->hypervisor != VM_HYPERVISOR_QEMU)
		return err_set(err, ENOTSUP, "%s runs in %s: the qmp backend asks QEMU", name,
			       vm_hypervisor_title(vm->hypervisor));
	if (strcmp(vm->arch, "x86_64") != 0)
		return err_set(err, ENOTSUP,
			       "%s is a %s guest: the qmp backend knows x86_64 guests only", name,
			       escape_str(arch, sizeof(arch), vm->arch));
	if (!vm->qmp_path && !vm->libvirt)
		return err_set(err, ENOENT,
			       "%s has no QMP socket: -qmp unix:PATH,server=on,wait=off gives QEMU "
			       "one",
			       name);
	if (!known_threads(vm))
		return err_set(err, ENOENT,
			       "which threads run the vCPUs of %s is not known: QEMU tells with "
			       "-name NAME,debug-threads=on",
			       name);
	if (vm->single_thread && vm->nr_vcpus > 1)
		return err_set(err, ENOTSUP,
			       "one thread runs all vCPUs of %s: how much CPU time each has used "
			       "cannot be told",
			       name);
	/* The address that the monitor tells is the one that is kept, too. */
	return vm->accel == VM_ACCEL_TCG ? tcg_check_version(vm, err) : 0;
}

static size_t max_reply(const struct vm *vm)
{
	return REPLY_HEAD + (size_t)vm->nr_vcpus * REPLY_VCPU;
}

static void qmp_probe(const struct vm *vm, struct backend_caps *caps)
{
	struct vmprof_err err = {0};
	struct qmp_monitor monitor;
	int r;

	*caps = (struct backend_caps){.events = event_names,
				      .registers = true,
				      .peek = true,
				      .memory = vm->ram_spec != NULL,
				      .exact_ip = vm->accel == VM_ACCEL_KVM};
	r = check_vm(vm, &err);
	if (!r) {
		r = qmp_monitor_open(&monitor, vm, max_reply(vm), PROBE_MS, &err);
		qmp_monitor_close(&monitor);
	}
	caps->usable = !r;
	snprintf(caps->why_not, sizeof(caps->why_not), "%s", r ? err.msg : "");
}

static int qmp_try_event(const struct vm *vm, const struct event *e, struct vmprof_err *err)
{
	return clockevent_try("qmp", e, err);
}

/* ---------- opening ---------- */

static void qmp_close_session(struct backend_session *base)
{
	struct qmp_session *s = qmp_of(base);

	if (!s)
		return;
	for (uint32_t i = 0; i < s->nr_vcpus; i++) {
		threadtime_close(&s->vcpu[i].time);
		free(s->vcpu[i].ticks);
	}
	qmp_monitor_close(&s->monitor);
	backend_ram_close(&s->ram);
	free(s->vcpu);
	free(s->regs);
	free(s->known);
	free(s->period);
	free(s);
}

static int open_vcpus(struct qmp_session *s, struct vmprof_err *err)
{
	int r = 0;

	for (uint32_t i = 0; i < s->nr_vcpus && !r; i++) {
		s->vcpu[i].ticks = xcalloc(s->nr_events + 1, sizeof(*s->vcpu[i].ticks));
		if (s->base.vm->vcpus[i].tid)
			r = threadtime_open(&s->vcpu[i].time, s->base.vm->pid,
					    s->base.vm->vcpus[i].tid, err);
	}
	return r;
}

static int check_events(const struct backend_config *cfg, struct vmprof_err *err)
{
	int r = 0;

	for (unsigned i = 0; i < cfg->nr_events && !r; i++) {
		r = clockevent_try("qmp", &cfg->events[i], err);
		if (!r && !cfg->events[i].rate)
			r = err_set(err, EINVAL,
				    "the qmp backend samples, and does not only count");
	}
	return r;
}

static void note_memory(struct qmp_session *s, const struct backend_config *cfg)
{
	struct vmprof_err why;

	if (backend_ram_open(&s->ram, s->base.vm, &why))
		snprintf(s->note, sizeof(s->note), "addresses only, no symbols and processes: %s",
			 why.msg);
	else if (cfg->chains)
		snprintf(s->note, sizeof(s->note),
			 "stacks are read after the registers, while the VM goes on, which may cut "
			 "chains");
	s->stats.note = s->note[0] ? s->note : NULL;
}

/* An administrator will find it in libvirt's log. */
static void note_libvirt(struct qmp_session *s)
{
	size_t len = strlen(s->note);

	snprintf(s->note + len, sizeof(s->note) - len,
		 "%slibvirt is asked, which marks the VM as tainted (custom-monitor)",
		 len ? "; " : "");
	s->stats.note = s->note;
}

static int qmp_open(struct backend_session **out, const struct vm *vm,
		    const struct backend_config *cfg, struct vmprof_err *err)
{
	struct qmp_session *s;
	int r = check_vm(vm, err);

	*out = NULL;
	r = r ? r : check_events(cfg, err);
	if (r)
		return r;
	s = xcalloc(1, sizeof(*s));
	s->base.backend = &backend_qmp;
	s->base.vm = vm;
	qmp_monitor_init(&s->monitor);
	s->nr_vcpus = vm->nr_vcpus;
	s->vcpu = xcalloc(s->nr_vcpus, sizeof(*s->vcpu));
	s->regs = xcalloc(s->nr_vcpus, sizeof(*s->regs));
	s->known = xcalloc(s->nr_vcpus, sizeof(*s->known));
	s->nr_events = cfg->nr_events;
	s->period = xcalloc(cfg->nr_events + 1, sizeof(*s->period));
	for (unsigned i = 0; i < cfg->nr_events; i++)
		s->period[i] = cfg->events[i].freq ? 1000000000ull / cfg->events[i].rate
						   : cfg->events[i].rate;
	for (uint32_t i = 0; i < s->nr_vcpus; i++)
		s->vcpu[i].time.fd = -1;
	backend_ram_init(&s->ram);
	note_memory(s, cfg);
	r = open_vcpus(s, err);
	r = r ? r : qmp_monitor_open(&s->monitor, vm, max_reply(vm), LIBVIRT_MS, err);
	if (r) {
		qmp_close_session(&s->base);
		return r;
	}
	if (s->monitor.libvirt)
		note_libvirt(s);
	s->answered = clock_now_ns();
	*out = &s->base;
	return 0;
}

static struct guest_mem *qmp_memory(struct backend_session *base)
{
	return backend_ram_mem(&qmp_of(base)->ram);
}

static uint32_t qmp_nr_vcpus(struct backend_session *base)
{
	return qmp_of(base)->nr_vcpus;
}

/* ---------- registers ---------- */

/* The connection is of no use any more: because the VM ends? */
static int connection_lost(struct qmp_session *s, int code)
{
	const struct timespec wait = {.tv_nsec = 20000000};

	for (int ms = 0; code == -ECONNRESET && ms < END_MS; ms += 20) {
		if (!vm_alive(s->base.vm))
			return -ESRCH;
		nanosleep(&wait, NULL);
	}
	return vm_alive(s->base.vm) ? code : -ESRCH;
}

/* @v's registers cannot be others than those that were read. */
static bool stands_still(const struct qmp_session *s, uint32_t vcpu)
{
	const struct qmp_vcpu *v = &s->vcpu[vcpu];
	uint64_t used = v->cpu_time - v->regs_cpu_time;

	return s->known[vcpu] && used <= (s->regs[vcpu].halted ? WOKEN_NS : 0);
}

/* 0 or -errno; the time stays what it was then. */
static int look(struct qmp_vcpu *v)
{
	uint64_t ns;
	int r = v->time.fd < 0 ? -ENOENT : threadtime_read(&v->time, &ns);

	if (!r)
		v->cpu_time = ns;
	return r;
}

static void measure(struct qmp_session *s, uint64_t ns)
{
	s->cost = s->looks++ ? (s->cost * 7 + ns) / 8 : ns;
	s->spent += ns;
	/* As long as it has worked for us QEMU's main loop gets for its own work. */
	s->next_request = s->regs_at + s->cost;
}

/* Registers of all vCPUs, as new as now. 0; -EAGAIN: not now; -errno: not any more. */
static int read_regs(struct qmp_session *s)
{
	uint64_t start;
	char *text;
	int r;

	for (uint32_t i = 0; i < s->nr_vcpus; i++)
		look(&s->vcpu[i]);
	start = clock_now_ns();
	r = qmp_monitor_ask(&s->monitor, "info registers -a", REQUEST_MS, &text);
	s->regs_at = clock_now_ns();
	if (r == -ETIMEDOUT && s->regs_at - s->answered < SILENCE_NS)
		return -EAGAIN;
	if (r)
		return connection_lost(s, r);
	s->answered = s->regs_at;
	measure(s, s->regs_at - start);
	qmp_regs_parse(text, strlen(text), s->regs, s->known, s->nr_vcpus);
	free(text);
	for (uint32_t i = 0; i < s->nr_vcpus; i++) {
		s->vcpu[i].regs_cpu_time = s->vcpu[i].cpu_time;
		s->vcpu[i].fresh = true;
	}
	return 0;
}

static int qmp_peek(struct backend_session *base, uint32_t vcpu, struct guest_regs *regs)
{
	struct qmp_session *s = qmp_of(base);
	int r = 0;

	if (vcpu >= s->nr_vcpus)
		return -EAGAIN;
	if (look(&s->vcpu[vcpu]) || !stands_still(s, vcpu))
		r = read_regs(s);
	if (r)
		return r == -ESRCH ? r : -EAGAIN;
	if (!s->known[vcpu])
		return -EIO;
	*regs = s->regs[vcpu];
	return 0;
}

/* ---------- samples ---------- */

static uint32_t next_random(struct qmp_session *s)
{
	s->random = s->random * 1664525u + 1013904223u;
	return s->random >> 8;
}

/* When it is worth to look at this vCPU again. */
static void plan(struct qmp_session *s, struct qmp_vcpu *v, uint64_t now)
{
	uint64_t wait = CHECK_NS;

	v->idle = v->cpu_time == v->seen_cpu_time ? v->idle + 1 : 0;
	v->seen_cpu_time = v->cpu_time;
	for (unsigned e = 0; e < s->nr_events; e++) {
		uint64_t w = cputicks_wait(&v->ticks[e], v->cpu_time, v->idle, next_random(s));

		wait = w < wait ? w : wait;
	}
	v->look_at = now + wait;
}

static int make_sample(struct qmp_session *s, uint32_t vcpu, unsigned event, uint64_t n,
		       struct raw_sample *out)
{
	const struct guest_regs *regs = &s->regs[vcpu];

	s->stats.ticks += n;
	s->stats.samples++;
	s->stats.merged += n - 1;
	memset(out, 0, sizeof(*out));
	out->has = RAW_HAS_IP | RAW_HAS_REGS | RAW_HAS_MODE;
	out->event = event;
	out->vcpu = vcpu;
	out->time = s->regs_at;
	out->period = n * s->vcpu[vcpu].ticks[event].period;
	out->regs = *regs;
	out->ip = regs->ip;
	out->mode = regs->cpl == 3 ? SAMPLE_MODE_GUEST_USER : SAMPLE_MODE_GUEST_KERNEL;
	return 1;
}

/*
 * What is due by the registers that were read last. A vCPU that waits has no sample: what it has
 * used is kept for when it is met at work, or was the price of waiting (a timer, KVM's polling).
 */
static int hand_out(struct qmp_session *s, uint64_t now, struct raw_sample *out)
{
	for (uint32_t i = 0; i < s->nr_vcpus; i++) {
		struct qmp_vcpu *v = &s->vcpu[i];
		bool halted = s->known[i] && s->regs[i].halted;

		for (unsigned e = 0; e < s->nr_events && v->fresh && v->time.fd >= 0; e++) {
			uint64_t n = cputicks_due(&v->ticks[e], v->cpu_time, halted, now);

			if (!n)
				continue;
			cputicks_take(&v->ticks[e], n);
			if (s->known[i] && !halted)
				return make_sample(s, i, e, n, out);
			if (halted)
				continue;
			s->stats.ticks += n;
			s->stats.lost += n;
			s->stats.unreadable += n;
		}
		v->fresh = false;
	}
	return 0;
}

static bool is_due(const struct qmp_session *s, const struct qmp_vcpu *v)
{
	for (unsigned e = 0; e < s->nr_events; e++)
		if (cputicks_rest(&v->ticks[e], v->cpu_time))
			return true;
	return false;
}

/* Is there a tick that new registers would make a sample? @next: when there may be one. */
static bool look_around(struct qmp_session *s, uint64_t now, uint64_t *next)
{
	bool due = false;

	*next = s->checked + CHECK_NS;
	for (uint32_t i = 0; i < s->nr_vcpus; i++) {
		struct qmp_vcpu *v = &s->vcpu[i];

		if (v->time.fd < 0)
			continue;
		if (now >= v->look_at) {
			look(v);
			plan(s, v, now);
		}
		if (is_due(s, v)) {
			due |= !stands_still(s, i);
			v->fresh |= stands_still(s, i); /* its patience may have come to an end */
		}
		*next = v->look_at < *next ? v->look_at : *next;
	}
	return due;
}

static void sleep_until(uint64_t when)
{
	const struct timespec ts = {.tv_sec = (time_t)(when / 1000000000ull),
				    .tv_nsec = (long)(when % 1000000000ull)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static int qmp_read(struct backend_session *base, struct raw_sample *samples, unsigned n,
		    int timeout_ms)
{
	struct qmp_session *s = qmp_of(base);
	uint64_t now = clock_now_ns(),
		 end = now + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * 1000000;

	while (n) {
		uint64_t next;
		bool due;
		int r;

		if (now - s->checked >= CHECK_NS) {
			s->checked = now;
			if (!vm_alive(s->base.vm))
				return -ESRCH;
		}
		r = hand_out(s, now, samples);
		if (r || s->stopped)
			return r;
		due = look_around(s, now, &next);
		if (due && now >= s->next_request) {
			r = read_regs(s);
			if (r && r != -EAGAIN)
				return r;
			next = now;
		} else if (due && s->next_request < next) {
			next = s->next_request;
		}
		now = clock_now_ns();
		if (timeout_ms >= 0 && now >= end && next >= end)
			return hand_out(s, now, samples);
		sleep_until(timeout_ms >= 0 && next > end ? end : next);
		now = clock_now_ns();
	}
	return 0;
}

static int qmp_start(struct backend_session *base, struct vmprof_err *err)
{
	struct qmp_session *s = qmp_of(base);
	uint64_t now = clock_now_ns();

	s->random = (uint32_t)now;
	for (int i = 0; i < MEASURED; i++) {
		int r = read_regs(s);

		if (r)
			return err_sys(err, r, "QEMU's monitor does not tell registers");
	}
	for (uint32_t i = 0; i < s->nr_vcpus; i++) {
		struct qmp_vcpu *v = &s->vcpu[i];

		v->fresh = false;
		if (v->time.fd < 0)
			continue;
		look(v);
		for (unsigned e = 0; e < s->nr_events; e++)
			cputicks_start(&v->ticks[e], s->period[e], v->cpu_time);
		plan(s, v, now);
	}
	return 0;
}

static int qmp_stop(struct backend_session *base)
{
	qmp_of(base)->stopped = true;
	return 0;
}

static void qmp_stats(struct backend_session *base, struct backend_stats *st)
{
	struct qmp_session *s = qmp_of(base);
	unsigned unknown = s->nr_vcpus - known_threads(s->base.vm);

	if (unknown)
		snprintf(s->limit, sizeof(s->limit),
			 "%u of %u vCPUs are not sampled: which threads run them is not known",
			 unknown, s->nr_vcpus);
	else if (s->stats.merged && s->spent)
		snprintf(s->limit, sizeof(s->limit),
			 "QEMU's monitor takes %.1f ms to tell registers: it was asked up to %llu "
			 "times a second",
			 (double)s->spent / (double)s->looks / 1e6,
			 500000000ull * s->looks / s->spent);
	s->stats.limit = s->limit[0] ? s->limit : NULL;
	*st = s->stats;
}

const struct vmprof_backend backend_qmp = {
	.name = "qmp",
	.summary =
		"QEMU's VMs by the registers that its monitor tells, some hundred times a second",
	.clocks_only = true,
	.probe = qmp_probe,
	.try_event = qmp_try_event,
	.open = qmp_open,
	.memory = qmp_memory,
	.peek = qmp_peek,
	.nr_vcpus = qmp_nr_vcpus,
	.start = qmp_start,
	.read = qmp_read,
	.stop = qmp_stop,
	.stats = qmp_stats,
	.close = qmp_close_session,
};
