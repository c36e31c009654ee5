// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/kvm_host.h>
#include <linux/percpu.h>
#include <linux/sched/isolation.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include <asm/apic.h>
#include <asm/nmi.h>
#include <asm/sync_core.h>

#include "nmi_x86.h"

#define SECOND	     1000000000ull
#define LATE_AT_MOST (SECOND / 10)
#define ASK	     (SECOND / 4)
#define PATIENCE     100 /* ms for one that is under way when no more are sent */
#define HANDLING_NMI 2	 /* enum kvm_intr_type in arch/x86/kvm/x86.h */

/* What a CPU knows of NMIs that may come. */
struct expected {
	struct vp_nmi *nmi;  /* of the vCPU that one was last sent to this CPU for */
	bool forwarded;	     /* a guest has handed one on, and it has been sent again */
	bool this_forwarded; /* the one at hand is that */
	bool asked;	     /* one was sent for nobody, see ask() */
};
static DEFINE_PER_CPU(struct expected, expected);

/* Each that was sent is settled by one only. Returns whether it was the caller. What the guest has
 * not taken is first no more under way for it: it would take an NMI of its own for it. */
static bool settle(struct vp_nmi *nmi, enum vp_nmi_end end)
{
	u32 sent = READ_ONCE(nmi->sent), settled = READ_ONCE(nmi->settled);

	if (settled == sent)
		return false;
	if (end != VP_NMI_GUEST)
		WRITE_ONCE(*nmi->post, READ_ONCE(*nmi->taken));
	if (cmpxchg(&nmi->settled, settled, sent) != settled)
		return false;
	atomic64_inc(&nmi->ends[end]);
	return true;
}

static bool guest_has_taken(const struct vp_nmi *nmi)
{
	return READ_ONCE(*nmi->taken) == READ_ONCE(nmi->sent);
}

bool vp_nmi_waits(struct vp_nmi *nmi)
{
	if (READ_ONCE(nmi->settled) == READ_ONCE(nmi->sent))
		return false;
	if (!guest_has_taken(nmi))
		return true;
	settle(nmi, VP_NMI_GUEST);
	return false;
}

/* ------------------------------------------------------------------ the host's handlers */

static enum vp_nmi_end how_it_came(bool forwarded)
{
	struct kvm_vcpu *guest = kvm_get_running_vcpu();

	if (forwarded)
		return VP_NMI_FORWARDED;
	return guest && READ_ONCE(guest->arch.handling_intr_from_guest) == HANDLING_NMI
		       ? VP_NMI_GUARD
		       : VP_NMI_HOST;
}

/* Called for each NMI, also others', as all handlers of that type are whatever this one says. */
static int on_nmi(unsigned int type, struct pt_regs *regs)
{
	struct expected *here = this_cpu_ptr(&expected);
	struct vp_nmi *nmi = READ_ONCE(here->nmi);

	here->this_forwarded = here->forwarded;
	here->forwarded = false;
	if (!nmi || READ_ONCE(nmi->sent_to) != smp_processor_id() || !vp_nmi_waits(nmi) ||
	    !settle(nmi, how_it_came(here->this_forwarded)))
		return NMI_DONE;
	return NMI_HANDLED;
}

/*
 * Nobody has claimed it. It is one that a guest has handed on for nothing, one that was sent for
 * nobody, or the second of two that the CPU has told apart where the first was taken for both.
 */
static int on_unknown(unsigned int type, struct pt_regs *regs)
{
	struct expected *here = this_cpu_ptr(&expected);
	struct vp_nmi *nmi = READ_ONCE(here->nmi);
	bool asked;

	if (here->this_forwarded)
		return NMI_HANDLED;
	asked = xchg(&here->asked, false);
	if (!asked && (!nmi || ktime_get_mono_fast_ns() - READ_ONCE(nmi->sent_at) > LATE_AT_MOST))
		return NMI_DONE;
	if (nmi)
		atomic64_inc(&nmi->late);
	return NMI_HANDLED;
}

void vp_nmi_take_back(void)
{
	this_cpu_ptr(&expected)->forwarded = true;
	/* The guest has not executed its IRET: NMIs are blocked on this CPU until there is one. */
	iret_to_self();
	apic->send_IPI(smp_processor_id(), NMI_VECTOR);
}

int vp_nmi_hook(void)
{
	int err = register_nmi_handler(NMI_LOCAL, on_nmi, 0, "vmprof");

	if (err)
		return err;
	err = register_nmi_handler(NMI_UNKNOWN, on_unknown, 0, "vmprof-unknown");
	if (err)
		unregister_nmi_handler(NMI_LOCAL, "vmprof");
	return err;
}

void vp_nmi_unhook(void)
{
	unregister_nmi_handler(NMI_UNKNOWN, "vmprof-unknown");
	unregister_nmi_handler(NMI_LOCAL, "vmprof");
}

/* ------------------------------------------------------------------ the timer */

/* The CPU expects one vCPU's at a time. */
static bool claim(int cpu, struct vp_nmi *nmi)
{
	struct expected *there = per_cpu_ptr(&expected, cpu);
	struct vp_nmi *other = READ_ONCE(there->nmi);

	if (other == nmi)
		return true;
	if (other && READ_ONCE(other->sent_to) == cpu && vp_nmi_waits(other))
		return false;
	return cmpxchg(&there->nmi, other, nmi) == other;
}

/* One that has been overtaken by its vCPU, and is not seen where it was sent to, will not be. */
static bool is_lost(const struct vp_nmi *nmi, int cpu)
{
	return cpu != nmi->sent_to && ktime_get_mono_fast_ns() - nmi->sent_at > SECOND;
}

/*
 * Of an NMI of the host's own that the CPU has merged with one of the guest's, the guest knows
 * nothing, and whoever has sent it waits: a backtrace for ten seconds, in which no other thread has
 * that CPU. So the host's handlers are asked now and then, by an NMI that is nobody's. A guest that
 * gets it hands it on.
 */
static bool ask(struct vp_nmi *nmi)
{
	u64 now = ktime_get_mono_fast_ns(), taken = atomic64_read(&nmi->ends[VP_NMI_GUEST]);
	int cpu = READ_ONCE(nmi->sent_to);

	if (taken == nmi->asked_of || now - nmi->asked_at < ASK || cpu == smp_processor_id())
		return false;
	nmi->asked_of = taken;
	nmi->asked_at = now;
	WRITE_ONCE(per_cpu_ptr(&expected, cpu)->asked, true);
	apic->send_IPI(cpu, NMI_VECTOR);
	return true;
}

static void send(struct vp_nmi *nmi)
{
	int cpu = READ_ONCE(nmi->cpu);

	if (vp_nmi_waits(nmi)) {
		if (cpu >= 0 && is_lost(nmi, cpu))
			settle(nmi, VP_NMI_MERGED);
		return;
	}
	if (ask(nmi))
		return;
	if (cpu < 0 || cpu == smp_processor_id() || !claim(cpu, nmi)) {
		atomic64_inc(&nmi->unsent);
		return;
	}
	WRITE_ONCE(nmi->sent_at, ktime_get_mono_fast_ns());
	WRITE_ONCE(nmi->sent_to, cpu);
	atomic64_inc(&nmi->count);
	WRITE_ONCE(nmi->sent, nmi->sent + 1);
	smp_store_release(nmi->post, nmi->sent);
	apic->send_IPI(cpu, NMI_VECTOR);
}

static enum hrtimer_restart tick(struct hrtimer *timer)
{
	struct vp_nmis *nmis = container_of(timer, struct vp_nmis, timer);
	u32 i;

	if (READ_ONCE(nmis->over))
		return HRTIMER_NORESTART;
	for (i = 0; i < nmis->nr; i++)
		if (smp_load_acquire(&nmis->of[i]->taken))
			send(nmis->of[i]);
	hrtimer_forward_now(timer, ns_to_ktime(nmis->period));
	return HRTIMER_RESTART;
}

void vp_nmi_begin(struct vp_nmi *nmi)
{
	u32 i;

	nmi->taken = NULL;
	nmi->cpu = -1;
	nmi->sent_to = -1;
	nmi->asked_of = 0;
	nmi->asked_at = ktime_get_mono_fast_ns();
	atomic64_set(&nmi->count, 0);
	for (i = 0; i < VP_NMI_ENDS; i++)
		atomic64_set(&nmi->ends[i], 0);
	atomic64_set(&nmi->late, 0);
	atomic64_set(&nmi->foreign, 0);
	atomic64_set(&nmi->unsent, 0);
}

void vp_nmi_meet(struct vp_nmi *nmi, u32 *post, const u32 *taken)
{
	nmi->post = post;
	nmi->sent = READ_ONCE(*taken);
	nmi->settled = nmi->sent;
	WRITE_ONCE(*post, nmi->sent);
	smp_store_release(&nmi->taken, taken);
}

struct vp_nmis *vp_nmis_new(u32 nr, u64 period)
{
	struct vp_nmis *nmis = kzalloc(struct_size(nmis, of, nr), GFP_KERNEL);

	if (!nmis)
		return NULL;
	nmis->nr = nr;
	nmis->period = period;
	hrtimer_init(&nmis->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	nmis->timer.function = tick;
	return nmis;
}

static void start_timer(void *data)
{
	struct vp_nmis *nmis = data;

	hrtimer_start(&nmis->timer, ns_to_ktime(nmis->period), HRTIMER_MODE_REL_PINNED_HARD);
}

void vp_nmis_start(struct vp_nmis *nmis)
{
	unsigned int cpu;

	nmis->over = false;
	cpus_read_lock();
	cpu = cpumask_first_and(housekeeping_cpumask(HK_TYPE_MISC), cpu_online_mask);
	if (cpu >= nr_cpu_ids)
		cpu = cpumask_first(cpu_online_mask);
	smp_call_function_single(cpu, start_timer, nmis, 1);
	cpus_read_unlock();
}

static bool any_waits(const struct vp_nmis *nmis)
{
	u32 i;

	for (i = 0; i < nmis->nr; i++)
		if (nmis->of[i]->taken && vp_nmi_waits(nmis->of[i]))
			return true;
	return false;
}

void vp_nmis_stop(struct vp_nmis *nmis)
{
	u32 i;

	hrtimer_cancel(&nmis->timer);
	for (i = 0; i < PATIENCE && any_waits(nmis); i++)
		msleep(1);
	for (i = 0; i < nmis->nr; i++)
		if (nmis->of[i]->taken && vp_nmi_waits(nmis->of[i]))
			settle(nmis->of[i], VP_NMI_MERGED);
}

void vp_nmis_forget(const struct vp_nmis *nmis)
{
	u32 i;
	int cpu;

	for_each_possible_cpu(cpu) for (i = 0; i < nmis->nr; i++)
		cmpxchg(&per_cpu_ptr(&expected, cpu)->nmi, nmis->of[i], NULL);
	/* Handlers of NMIs are read sections as well. */
	synchronize_rcu();
}
