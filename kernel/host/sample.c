// SPDX-License-Identifier: GPL-2.0-only
/* From a counter's overflow to a record in the ring. */
#include <linux/ktime.h>

#include "host.h"

/* ------------------------------------------------------------------ completing */

static void write_sample(struct vp_event *event, struct kvm_vcpu *guest)
{
	struct vp_vcpu *vcpu = event->vcpu;
	struct vmp_sample *sample = &event->sample;
	struct vmp_part parts[3];
	u32 segments = 0, nr = 0;

	WRITE_ONCE(event->slot, VP_SLOT_WRITING);
	barrier();
	if (guest) {
		vp_arch_page_table(guest, sample);
		segments = vp_segments(vcpu, guest, sample);
	}
	parts[nr++] = (struct vmp_part){sample, sizeof(*sample)};
	if (guest && vcpu->vm->registers) {
		vp_arch_all_regs(guest, &vcpu->regs);
		sample->flags |= VMP_SAMPLE_REGS;
		sample->header.size += sizeof(vcpu->regs);
		parts[nr++] = (struct vmp_part){&vcpu->regs, sizeof(vcpu->regs)};
	}
	if (segments) {
		sample->header.size += segments;
		parts[nr++] = (struct vmp_part){vcpu->memory_copy, segments};
	}
	if (atomic64_read(&event->missed))
		vmp_ring_missed(&vcpu->ring, atomic64_xchg(&event->missed, 0));
	vmp_ring_write(&vcpu->ring, parts, nr);
	smp_store_release(&event->slot, VP_SLOT_EMPTY);
}

static bool is_full(struct vp_event *event)
{
	return smp_load_acquire(&event->slot) == VP_SLOT_FULL;
}

/* Waking is for later: overflows of software events come with the scheduler's locks held. */
static void write_all(struct vp_vcpu *vcpu, struct kvm_vcpu *guest)
{
	u64 enough = max(vcpu->vm->wakeup, 1u), head = vcpu->ring.head, used;
	u32 i;

	for (i = 0; i < vcpu->vm->nr_events; i++)
		if (is_full(&vcpu->events[i]))
			write_sample(&vcpu->events[i], guest);
	used = vmp_ring_used(&vcpu->ring);
	if (used >= enough && used - (vcpu->ring.head - head) < enough) {
		WRITE_ONCE(vcpu->wake, true);
		irq_work_queue(&vcpu->work);
	}
}

/* Called at each entry into the guest on x86, mostly for nothing: without the lock then. */
void vp_complete(struct vp_vcpu *vcpu, struct kvm_vcpu *guest)
{
	u32 i;

	for (i = 0; i < vcpu->vm->nr_events && !is_full(&vcpu->events[i]); i++)
		;
	if (i == vcpu->vm->nr_events)
		return;
	raw_spin_lock(&vcpu->lock);
	write_all(vcpu, guest);
	raw_spin_unlock(&vcpu->lock);
}

void vp_work(struct irq_work *work)
{
	struct vp_vcpu *vcpu = container_of(work, struct vp_vcpu, work);

	if (vp_arch_complete_now && current == vcpu->task)
		vp_complete(vcpu, kvm_get_running_vcpu());
	if (xchg(&vcpu->wake, false))
		wake_up_interruptible(&vcpu->vm->wait);
}

/* ------------------------------------------------------------------ overflow */

static void fill_slot(struct vp_event *event, struct kvm_vcpu *guest, u64 period)
{
	struct vmp_sample *sample = &event->sample;

	sample->header = (struct vmp_record){sizeof(*sample), VMP_REC_SAMPLE};
	sample->time = ktime_get_mono_fast_ns();
	sample->vm = event->vcpu->vm->id;
	sample->vcpu = event->vcpu->index;
	sample->cpu = raw_smp_processor_id();
	sample->event = event->index;
	sample->flags = 0;
	sample->period = period;
	sample->page_table = 0;
	sample->task = 0;
	sample->nr_segments = 0;
	vp_arch_regs(guest, sample);
	smp_store_release(&event->slot, VP_SLOT_FULL);
}

/*
 * The interrupt that vp_work() needs would cost more than all the rest. It is for overflows that
 * are NMIs, or come where interrupts are on or in the midst of a completion.
 */
static void complete_now(struct vp_vcpu *vcpu, struct kvm_vcpu *guest)
{
	if (in_nmi() || !irqs_disabled() || current != vcpu->task ||
	    !raw_spin_trylock(&vcpu->lock)) {
		irq_work_queue(&vcpu->work);
		return;
	}
	write_all(vcpu, guest);
	raw_spin_unlock(&vcpu->lock);
}

/*
 * May be an NMI: what it writes is the event's slot and counts of its own. An overflow that finds
 * the slot full comes from the same moment of the guest, which has not run since: the sample stands
 * for both periods.
 */
void vp_overflow(struct perf_event *perf, struct perf_sample_data *data, struct pt_regs *regs)
{
	struct vp_event *event = perf->overflow_handler_context;
	struct kvm_vcpu *guest = kvm_get_running_vcpu();

	if (!guest || !vp_arch_in_guest(guest, regs)) {
		WRITE_ONCE(event->outside, event->outside + 1);
		return;
	}
	switch (cmpxchg(&event->slot, VP_SLOT_EMPTY, VP_SLOT_FILLING)) {
	case VP_SLOT_EMPTY:
		fill_slot(event, guest, data->period);
		if (vp_arch_complete_now)
			complete_now(event->vcpu, guest);
		break;
	case VP_SLOT_FULL:
		event->sample.period += data->period;
		break;
	case VP_SLOT_FILLING:
	case VP_SLOT_WRITING:
		atomic64_inc(&event->missed);
		break;
	}
}
