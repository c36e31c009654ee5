// SPDX-License-Identifier: GPL-2.0-only
/*
 * VMs that KVM runs, by delivery to the guest (docs/direct-vector.md): its own module takes the
 * counters' interrupts, the CPU's (direct) or those that the host raises (inject), and writes
 * samples into the log that it shares with us; vmprof.ko lends it the counters. What a sample says
 * of process and call chain is the guest's word.
 */
#include <errno.h>
#include <stdio.h>

#include "backend/direct_session.h"
#include "backend/pace.h"
#include "kernel/core/table.h"
#include "util/clock.h"

static const struct direct_way direct_way = {&backend_direct, VMP_DELIVER_DIRECT,
					     VMPROF_SOURCE_DIRECT};
static const struct direct_way inject_way = {&backend_inject, VMP_DELIVER_INJECT,
					     VMPROF_SOURCE_INJECT};

static void probe_direct(const struct vm *vm, struct backend_caps *caps)
{
	direct_probe(vm, &direct_way, caps);
}

static void probe_inject(const struct vm *vm, struct backend_caps *caps)
{
	direct_probe(vm, &inject_way, caps);
}

static int direct_try_event(const struct vm *vm, const struct event *e, struct vmprof_err *err)
{
	struct vmprof_log_event unused;

	return direct_log_event(e, vm_guest_arch(vm), &unused, err);
}

static int open_direct(struct backend_session **out, const struct vm *vm,
		       const struct backend_config *cfg, struct vmprof_err *err)
{
	return direct_open(&direct_way, out, vm, cfg, err);
}

static int open_inject(struct backend_session **out, const struct vm *vm,
		       const struct backend_config *cfg, struct vmprof_err *err)
{
	return direct_open(&inject_way, out, vm, cfg, err);
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

static void say_taken_back(struct direct_session *s, const char *why)
{
	snprintf(s->limit, sizeof(s->limit), "the %s were taken back: %s", direct_lent(s->base.vm),
		 why);
}

/* The handler has gone, and the guest is told so. */
static void leave(struct direct_session *s, const char *why)
{
	kmod_stop(&s->dev);
	s->away = true;
	say_taken_back(s, why);
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
		say_taken_back(s, st.why);
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
	if (s->way->delivery == VMP_DELIVER_DIRECT)
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

/* Both deliveries are alike but for how a VM is opened. */
#define CALLS                                                                                      \
	.only_asked = true, .try_event = direct_try_event, .memory = direct_memory,                \
	.peek = backend_no_peek, .nr_vcpus = backend_vm_vcpus, .vcpu_tid = backend_vm_tid,         \
	.start = direct_start, .read = direct_read, .told = direct_told, .stop = direct_stop,      \
	.stats = direct_stats, .close = direct_close

const struct vmprof_backend backend_direct = {
	.name = "direct",
	.summary = "KVM guests by direct delivery: their own module takes the counters' interrupts",
	.delivery = "direct",
	.probe = probe_direct,
	.open = open_direct,
	CALLS,
};

const struct vmprof_backend backend_inject = {
	.name = "inject",
	.summary = "KVM guests by interrupts that the host raises: their own module takes them",
	.delivery = "inject",
	.probe = probe_inject,
	.open = open_inject,
	CALLS,
};
