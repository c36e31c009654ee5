// SPDX-License-Identifier: GPL-2.0-only
/*
 * VMs that KVM runs, by delivery to the guest (docs/direct-vector.md): its own module takes the
 * counters' interrupts, the CPU's (direct) or those that the host raises (inject), and writes
 * samples into the log that it shares with us; vmprof.ko lends it the counters. What a sample says
 * of process and call chain is the guest's word.
 *
 * Opening goes all the way to counters that are lent, once: only then is it known whether this VM
 * can have them, and a record that cannot may still take another backend.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/backend.h"
#include "backend/direct_clock.h"
#include "backend/direct_log.h"
#include "backend/direct_ring.h"
#include "backend/direct_side.h"
#include "backend/kmod_dev.h"
#include "backend/pace.h"
#include "backend/ram.h"
#include "kernel/core/table.h"
#include "util/clock.h"
#include "util/text.h"
#include "util/xalloc.h"

#define LENT_NS	   5000000000ull /* for the guest to run at all */
#define LENT_PAUSE 5000000

/* Of the two deliveries. */
struct direct_way {
	const struct vmprof_backend *backend;
	u32 delivery, source;
};

static const struct direct_way direct_way = {&backend_direct, VMP_DELIVER_DIRECT,
					     VMPROF_SOURCE_DIRECT};
static const struct direct_way inject_way = {&backend_inject, VMP_DELIVER_INJECT,
					     VMPROF_SOURCE_INJECT};

struct direct_session {
	struct backend_session base;
	const struct direct_way *way;
	struct kmod_dev dev;
	struct direct_log log;
	struct backend_ram ram;
	struct direct_rings rings;
	struct direct_side side;
	struct direct_clock clock;
	struct vmprof_status status;
	uint64_t first; /* ticks of the host at the start */
	uint64_t busy;	/* when something was found in the rings last */
	uint64_t since; /* time of the start */
	uint64_t until; /* ticks of the guest: what came before that may be told */
	unsigned nr_events;
	double fastest;	  /* samples a ns of one vCPU, at most */
	uint64_t allowed; /* until when they have been allowed for */
	bool away;	  /* its handler has gone: nothing is lent any more */
	bool gone;
	struct backend_stats stats;
	char note[256], limit[256]; /* of the stats */
};

static struct direct_session *direct_of(struct backend_session *s)
{
	return (struct direct_session *)s;
}

/* ---------- what there is ---------- */

static const char *const event_names[] = {"cycles",	  "instructions",  "cache-references",
					  "cache-misses", "branch-misses", NULL};
static const char *const timer_names[] = {"cpu-clock", NULL};

static bool is_x86(const struct vm *vm)
{
	return vm_guest_arch(vm) == GUEST_ARCH_X86_64;
}

static bool works(u32 deliveries, const struct direct_way *way)
{
	return deliveries & 1u << way->delivery;
}

static int no_delivery(const struct vmprof_info *info, const struct direct_way *way,
		       struct vmprof_err *err)
{
	const char *why = way == &direct_way ? info->why_not_direct : info->why_not_inject;

	return err_set(err, EOPNOTSUPP, "no %s delivery on this host: %s%s", way->backend->name,
		       *why ? why : "vmprof.ko has it not",
		       works(info->experimental, way) ? " (--experimental)" : "");
}

/* On x86 all of it is experimental, whatever else there may be against it. */
static int probe_device(const struct vm *vm, const struct direct_way *way, bool *experimental,
			struct vmprof_err *err)
{
	struct kmod_dev d;
	int rc = kmod_open(&d, err);

	if (rc)
		return rc;
	if (!works(d.info.deliveries, way)) {
		*experimental = is_x86(vm);
		rc = no_delivery(&d.info, way, err);
	}
	kmod_close(&d);
	return rc;
}

static void probe(const struct vm *vm, const struct direct_way *way, struct backend_caps *caps)
{
	struct vmprof_err err = {0};
	char name[96];

	*caps = (struct backend_caps){.events = is_x86(vm) ? timer_names : event_names,
				      .registers = true,
				      .exact_ip = true,
				      .memory = vm->ram_spec != NULL};
	escape_str(name, sizeof(name), vm->name);
	if (vm->accel == VM_ACCEL_UNKNOWN)
		vm_accel_error(vm, &err);
	else if (vm->accel != VM_ACCEL_KVM)
		err_set(&err, ENOTSUP,
			"%s runs under %s: counters are lent to guests that KVM runs", name,
			vm_accel_name(vm->accel));
	else if (!vm->shared_size)
		err_set(&err, ENODEV,
			"%s has no ivshmem-plain device with shared memory for its log, see "
			"vmprof_guest(4)",
			name);
	else
		probe_device(vm, way, &caps->experimental, &err);
	caps->usable = !err.code;
	snprintf(caps->why_not, sizeof(caps->why_not), "%s", err.msg);
}

static void direct_probe(const struct vm *vm, struct backend_caps *caps)
{
	probe(vm, &direct_way, caps);
}

static void inject_probe(const struct vm *vm, struct backend_caps *caps)
{
	probe(vm, &inject_way, caps);
}

static int direct_try_event(const struct vm *vm, const struct event *e, struct vmprof_err *err)
{
	struct vmprof_log_event unused;

	return direct_log_event(e, vm_guest_arch(vm), &unused, err);
}

/* ---------- opening ---------- */

static void direct_close(struct backend_session *base)
{
	struct direct_session *s = direct_of(base);

	if (!s)
		return;
	kmod_close(&s->dev); /* the guest's handler is to be there until then */
	if (s->nr_events)
		direct_log_withdraw(&s->log);
	direct_rings_free(&s->rings);
	direct_side_free(&s->side);
	direct_log_close(&s->log);
	backend_ram_close(&s->ram);
	free(s);
}

static int make_events(const struct backend_config *cfg, const struct vm *vm,
		       struct vmprof_log_event *asked, struct vmprof_event *lent,
		       struct vmprof_err *err)
{
	unsigned max = is_x86(vm) ? 1 : VMPROF_LOG_EVENTS_MAX;

	if (cfg->nr_events > max)
		return err_set(err, ENOSPC,
			       "more than %u event%s of one VM by delivery to the guest", max,
			       max == 1 ? "" : "s");
	for (unsigned i = 0; i < cfg->nr_events; i++) {
		int rc = direct_log_event(&cfg->events[i], vm_guest_arch(vm), &asked[i], err);

		if (rc)
			return rc;
		lent[i] = (struct vmprof_event){
			.type = asked[i].type,
			.flags = asked[i].flags,
			.config = asked[i].config,
			.period = asked[i].period,
		};
	}
	return 0;
}

static int open_rings(struct direct_session *s, struct vmprof_err *err)
{
	uint32_t cpus = s->log.row.cpus, n = cpus < s->log.rings ? cpus : s->log.rings;
	char name[96];

	direct_rings_init(&s->rings, n, s->nr_events);
	for (uint32_t i = 0; i < n; i++)
		if (direct_rings_set(&s->rings, i, direct_log_ring(&s->log, i), s->log.ring_stride))
			return err_set(err, EPROTO, "the log of %s has no ring of CPU %u",
				       escape_str(name, sizeof(name), s->base.vm->name), i);
	if (cpus > n)
		snprintf(s->note, sizeof(s->note),
			 "the guest may have %u CPUs, and the log has room for %u: others are not "
			 "sampled",
			 cpus, n);
	return 0;
}

/* Without it samples have names of processes, and no files. */
static int open_side(struct direct_session *s, struct vmprof_err *err)
{
	void *ring = direct_log_side(&s->log);
	char name[96];

	if (!ring)
		snprintf(s->note, sizeof(s->note),
			 "the guest does not tell its processes' maps: %s",
			 s->log.row.why[0] ? s->log.row.why : "it does not say why");
	else if (direct_side_open(&s->side, ring, (size_t)s->log.side_size + VMPROF_LOG_PAGE))
		return err_set(err, EPROTO, "the log of %s has no ring for side-band",
			       escape_str(name, sizeof(name), s->base.vm->name));
	return 0;
}

static const char *what_is_lent(const struct vm *vm)
{
	return is_x86(vm) ? "NMIs" : "counters";
}

/* They are lent when the VM runs next; whether it can have them is known then. */
static int try_to_lend(struct direct_session *s, struct vmprof_err *err)
{
	const struct timespec pause = {.tv_nsec = LENT_PAUSE};
	uint64_t end = clock_now_ns() + LENT_NS;
	char name[96];
	int rc = kmod_start(&s->dev, err);

	if (rc)
		return rc;
	do {
		rc = kmod_status(&s->dev, &s->status);
		if (rc)
			return err_sys(err, -rc, "vmprof.ko does not say whether it lends %s",
				       what_is_lent(s->base.vm));
		if (s->status.state != VMPROF_DIRECT_WAITING)
			break;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	} while (clock_now_ns() < end && vm_alive(s->base.vm));
	kmod_stop(&s->dev);
	s->status.why[sizeof(s->status.why) - 1] = 0;
	if (s->status.state == VMPROF_DIRECT_REFUSED || s->status.state == VMPROF_DIRECT_TAKEN_BACK)
		return err_set(err, EOPNOTSUPP, "%s cannot be lent %s: %s",
			       escape_str(name, sizeof(name), s->base.vm->name),
			       what_is_lent(s->base.vm), s->status.why);
	return 0;
}

/* No CPU counts more a ns: clocks of a GHz each, and what several instructions of one make. */
#define CYCLES_A_NS  8.0
#define EVENTS_A_NS  64.0
#define ARM64_CYCLES 0x11

static double fastest(const struct vmprof_log_event *events, unsigned n)
{
	double sum = 0;

	for (unsigned i = 0; i < n; i++) {
		double a_ns = events[i].config == ARM64_CYCLES ? CYCLES_A_NS : EVENTS_A_NS;

		sum += (events[i].type == PERF_TYPE_SOFTWARE ? 1 : a_ns) / (double)events[i].period;
	}
	return sum;
}

static int attach(struct direct_session *s, const struct backend_config *cfg,
		  struct vmprof_err *err)
{
	struct vmprof_log_event asked[VMPROF_LOG_EVENTS_MAX];
	struct vmprof_event lent[VMPROF_LOG_EVENTS_MAX];
	struct kmod_direct direct = {
		.delivery = s->way->delivery,
		.name = s->way->backend->name,
		.events = lent,
		.nr_events = cfg->nr_events,
		.flags = (cfg->experimental ? VMPROF_ATTACH_EXPERIMENTAL : 0u) |
			 (cfg->force ? VMPROF_ATTACH_FORCE : 0u),
	};
	int rc = make_events(cfg, s->base.vm, asked, lent, err);

	if (!rc)
		rc = direct_log_open(&s->log, s->base.vm, err);
	if (rc)
		return rc;
	s->nr_events = cfg->nr_events;
	s->fastest = fastest(asked, s->nr_events);
	rc = direct_log_ask(&s->log, s->way->source, cfg->chains ? VMPROF_LOG_CHAIN_MAX : 0, asked,
			    s->nr_events, err);
	if (!rc)
		rc = open_rings(s, err);
	if (!rc)
		rc = open_side(s, err);
	if (rc)
		return rc;
	direct.handler = s->log.row.handler;
	direct.log = s->log.shared.memory;
	rc = kmod_attach_direct(&s->dev, s->base.vm, &direct, err);
	return rc ? rc : try_to_lend(s, err);
}

/* Before the guest is asked for anything. What @cfg forces is known by trying only. */
static int check_host(const struct direct_session *s, const struct backend_config *cfg,
		      struct vmprof_err *err)
{
	uint32_t has = s->dev.info.deliveries;

	if (cfg->experimental)
		has |= s->dev.info.experimental;
	return works(has, s->way) || cfg->force ? 0 : no_delivery(&s->dev.info, s->way, err);
}

static int open_way(const struct direct_way *way, struct backend_session **out, const struct vm *vm,
		    const struct backend_config *cfg, struct vmprof_err *err)
{
	struct direct_session *s = xcalloc(1, sizeof(*s));
	struct direct_pair now = direct_pair_read();
	struct vmprof_err why;
	int rc;

	*out = NULL;
	s->way = way;
	s->base.backend = way->backend;
	s->base.vm = vm;
	s->log.shared.guard = s->log.shared.fd = -1;
	/* Of a counter whose frequency is not known the first samples shall have a rate. */
	direct_clock_start(&s->clock, &now, direct_counter_frequency());
	backend_ram_init(&s->ram);
	if (backend_ram_open(&s->ram, vm, &why))
		snprintf(s->note, sizeof(s->note), "no symbols: %s", why.msg);
	rc = kmod_open(&s->dev, err);
	if (!rc && cfg->nr_events)
		rc = check_host(s, cfg, err);
	if (!rc && cfg->nr_events)
		rc = attach(s, cfg, err);
	if (rc) {
		direct_close(&s->base);
		return rc;
	}
	*out = &s->base;
	return 0;
}

static int direct_open(struct backend_session **out, const struct vm *vm,
		       const struct backend_config *cfg, struct vmprof_err *err)
{
	return open_way(&direct_way, out, vm, cfg, err);
}

static int inject_open(struct backend_session **out, const struct vm *vm,
		       const struct backend_config *cfg, struct vmprof_err *err)
{
	return open_way(&inject_way, out, vm, cfg, err);
}

static struct guest_mem *direct_memory(struct backend_session *base)
{
	return backend_ram_mem(&direct_of(base)->ram);
}

static int direct_start(struct backend_session *base, struct vmprof_err *err)
{
	struct direct_session *s = direct_of(base);
	struct direct_pair now = direct_pair_read();

	direct_clock_step(&s->clock, &now);
	direct_rings_start(&s->rings);
	s->first = now.ticks;
	s->busy = s->since = s->allowed = now.ns;
	return kmod_start(&s->dev, err);
}

/* ---------- reading ---------- */

/* The handler has gone, and the guest is told so. */
static void leave(struct direct_session *s, const char *why)
{
	kmod_stop(&s->dev);
	s->away = true;
	snprintf(s->limit, sizeof(s->limit), "the %s were taken back: %s", what_is_lent(s->base.vm),
		 why);
	direct_log_post(&s->log, s->way->source, 0, NULL, 0);
}

/* Whether the guest has the counters still, and how far its counter is from ours. */
static void look_at_status(struct direct_session *s)
{
	struct vmprof_status st;

	s->gone |= kmod_ended(&s->dev);
	if (kmod_status(&s->dev, &st))
		return;
	st.why[sizeof(st.why) - 1] = 0;
	if (st.entries)
		s->status = st;
	if (s->away)
		return;
	if (st.state == VMPROF_DIRECT_RESET)
		leave(s, st.why);
	else if (st.state == VMPROF_DIRECT_TAKEN_BACK || st.state == VMPROF_DIRECT_REFUSED)
		snprintf(s->limit, sizeof(s->limit), "the %s were taken back: %s",
			 what_is_lent(s->base.vm), st.why);
	else if (vm_shared_is_cut(&s->log.shared))
		snprintf(s->limit, sizeof(s->limit), "the file of the log was cut short");
	else if (!direct_log_stands(&s->log))
		leave(s, "the guest has withdrawn its handler");
}

/* A guest that writes what its counters cannot have counted has it read no faster. */
static void allow(struct direct_session *s)
{
	uint64_t samples = (uint64_t)((double)(clock_now_ns() - s->allowed) * s->fastest);

	direct_rings_allow(&s->rings, samples);
	s->allowed += (uint64_t)((double)samples / s->fastest);
}

/* What has come until now. The guest's counter may be set anew, as after a pause of the VM. */
static void look(struct direct_session *s)
{
	struct direct_pair now;

	look_at_status(s);
	if (!s->status.entries)
		return;
	s->rings.first = s->first - s->status.clock_offset;
	allow(s);
	direct_rings_fill(&s->rings);
	now = direct_pair_read();
	direct_clock_step(&s->clock, &now);
	direct_side_look(&s->side, now.ticks - s->status.clock_offset);
	if (direct_rings_look(&s->rings, now.ticks - s->status.clock_offset))
		s->busy = now.ns;
}

/* The host's, of what the guest says. */
static uint64_t time_of(const struct direct_session *s, uint64_t ticks)
{
	return direct_clock_in_order(&s->clock, ticks + s->status.clock_offset);
}

static bool take(struct direct_session *s, struct raw_sample *out)
{
	if (!direct_rings_take(&s->rings, out))
		return false;
	s->until = out->time;
	out->time = direct_clock_sample(&s->clock, out->time + s->status.clock_offset);
	s->stats.samples++;
	return true;
}

static bool direct_told(struct backend_session *base, struct raw_told *out)
{
	struct direct_session *s = direct_of(base);

	if (!direct_side_take(&s->side, s->until, out))
		return false;
	out->time = time_of(s, out->time);
	out->time = out->time > s->since ? out->time : s->since;
	return true;
}

static const struct pace pace = {.look_ms = 10, .idle_ms = 50};

/* One at a time: the chain is where the ring's reader has put it. */
static int direct_read(struct backend_session *base, struct raw_sample *samples, unsigned n,
		       int timeout_ms)
{
	struct direct_session *s = direct_of(base);
	uint64_t end = pace_end(timeout_ms);

	while (n) {
		int wait, r;

		if (take(s, samples))
			return 1;
		look(s);
		if (take(s, samples))
			return 1;
		if (s->gone)
			return -ESRCH;
		wait = pace_wait_ms(&pace, clock_now_ns(), s->busy, end);
		if (!wait) {
			s->until = s->side.now;
			return 0;
		}
		r = kmod_wait(&s->dev, wait, &s->gone);
		if (r)
			return r;
	}
	return 0;
}

/* On x86 an NMI asks for a sample, and not each comes to the guest. */
static void note_nmis(struct direct_session *s, const struct vmprof_status *st)
{
	if (st->guest == st->sent)
		return;
	snprintf(s->limit, sizeof(s->limit),
		 "of %llu NMIs the guest has taken %llu; %llu came when it had just left its CPU, "
		 "%llu made it exit, %llu were handed on, %llu were not seen",
		 (unsigned long long)st->sent, (unsigned long long)st->guest,
		 (unsigned long long)st->host, (unsigned long long)st->guard,
		 (unsigned long long)st->forwarded, (unsigned long long)st->merged);
}

/* Those that are held are raised when the vCPU exits next: the period grows meanwhile. */
static void note_raised(struct direct_session *s, const struct vmprof_status *st)
{
	if (st->merged)
		snprintf(s->limit, sizeof(s->limit),
			 "%llu of %llu interrupts the guest has not taken",
			 (unsigned long long)st->merged, (unsigned long long)st->sent);
	if (!st->held)
		return;
	snprintf(s->limit, sizeof(s->limit),
		 "%llu of %llu interrupts came later, since the one before them had come less than "
		 "%u us ago: their samples stand for more periods",
		 (unsigned long long)st->held, (unsigned long long)st->sent,
		 VMPROF_INJECT_PAUSE_NS / 1000);
}

static void note_interrupts(struct direct_session *s)
{
	struct vmprof_status st;

	if (s->limit[0] || kmod_status(&s->dev, &st))
		return;
	if (s->way == &direct_way)
		note_nmis(s, &st);
	else
		note_raised(s, &st);
}

static int direct_stop(struct backend_session *base)
{
	struct direct_session *s = direct_of(base);

	look_at_status(s); /* stopped, it says nothing any more but of NMIs */
	kmod_stop(&s->dev);
	note_interrupts(s);
	direct_rings_stop(&s->rings);
	return 0;
}

/* ---------- what was counted ---------- */

static void direct_stats(struct backend_session *base, struct backend_stats *st)
{
	struct direct_session *s = direct_of(base);

	if (!s->limit[0] && s->rings.flooded)
		snprintf(s->limit, sizeof(s->limit),
			 "the guest writes more than its counters can count: not all of that was "
			 "read");
	else if (!s->limit[0] && s->rings.bad)
		snprintf(s->limit, sizeof(s->limit),
			 "what the guest's handler has written makes no sense in %llu places",
			 (unsigned long long)s->rings.bad);
	s->stats.unreadable = s->rings.bad;
	s->stats.lost = direct_rings_lost(&s->rings) + s->rings.bad;
	s->stats.snapshots = s->stats.samples;
	s->stats.ticks = s->stats.samples + s->stats.lost;
	s->stats.clock_error = s->clock.error;
	if (s->side.lost && !s->note[0])
		snprintf(s->note, sizeof(s->note),
			 "%llu records of processes and their maps did not fit into the log",
			 (unsigned long long)s->side.lost);
	s->stats.note = s->note[0] ? s->note : NULL;
	s->stats.limit = s->limit[0] ? s->limit : NULL;
	*st = s->stats;
}

const struct vmprof_backend backend_direct = {
	.name = "direct",
	.summary = "KVM guests by direct delivery: their own module takes the counters' interrupts",
	.only_asked = true,
	.delivery = "direct",
	.probe = direct_probe,
	.try_event = direct_try_event,
	.open = direct_open,
	.memory = direct_memory,
	.peek = backend_no_peek,
	.nr_vcpus = backend_vm_vcpus,
	.vcpu_tid = backend_vm_tid,
	.start = direct_start,
	.read = direct_read,
	.told = direct_told,
	.stop = direct_stop,
	.stats = direct_stats,
	.close = direct_close,
};

const struct vmprof_backend backend_inject = {
	.name = "inject",
	.summary = "KVM guests by interrupts that the host raises: their own module takes them",
	.only_asked = true,
	.delivery = "inject",
	.probe = inject_probe,
	.try_event = direct_try_event,
	.open = inject_open,
	.memory = direct_memory,
	.peek = backend_no_peek,
	.nr_vcpus = backend_vm_vcpus,
	.vcpu_tid = backend_vm_tid,
	.start = direct_start,
	.read = direct_read,
	.told = direct_told,
	.stop = direct_stop,
	.stats = direct_stats,
	.close = direct_close,
};
