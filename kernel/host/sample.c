// SPDX-License-Identifier: GPL-2.0-only
/* From a counter's overflow to a record in the ring. */
#include <linux/ktime.h>

#include "host.h"

static void fill_slot(struct vp_event *event, const struct vmp_sample *sample)
{
	event->sample = *sample;
	smp_store_release(&event->slot, VP_SLOT_FULL);
	if (vp_arch_complete_in_work)
		irq_work_queue(&event->vcpu->work);
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
	struct vmp_sample sample = {
		.header = {sizeof(sample), VMP_REC_SAMPLE},
		.time = ktime_get_mono_fast_ns(),
		.vcpu = event->vcpu->index,
		.cpu = raw_smp_processor_id(),
		.event = event->index,
		.period = data->period,
	};

	if (!guest || !vp_arch_regs(guest, regs, &sample)) {
		WRITE_ONCE(event->outside, event->outside + 1);
		return;
	}
	switch (smp_load_acquire(&event->slot)) {
	case VP_SLOT_EMPTY:
		fill_slot(event, &sample);
		break;
	case VP_SLOT_FULL:
		event->sample.period += data->period;
		break;
	case VP_SLOT_WRITING:
		atomic64_inc(&event->missed);
		break;
	}
}

static void write_sample(struct vp_event *event, struct kvm_vcpu *guest)
{
	struct vp_vcpu *vcpu = event->vcpu;
	struct vmp_sample *sample = &event->sample;
	struct vmp_regs regs;
	struct vmp_part parts[3];
	u32 segments = 0, nr = 0;
	s64 missed;

	WRITE_ONCE(event->slot, VP_SLOT_WRITING);
	barrier();
	if (guest) {
		vp_arch_page_table(guest, sample);
		segments = vp_segments(vcpu, guest, sample);
	}
	sample->vm = vcpu->vm->id;
	parts[nr++] = (struct vmp_part){sample, sizeof(*sample)};
	if (guest && vcpu->vm->registers) {
		vp_arch_all_regs(guest, &regs);
		sample->flags |= VMP_SAMPLE_REGS;
		sample->header.size += sizeof(regs);
		parts[nr++] = (struct vmp_part){&regs, sizeof(regs)};
	}
	sample->header.size += segments;
	parts[nr++] = (struct vmp_part){vcpu->memory_copy, segments};
	missed = atomic64_xchg(&event->missed, 0);
	if (missed)
		vmp_ring_missed(&vcpu->ring, missed);
	vmp_ring_write(&vcpu->ring, parts, nr);
	smp_store_release(&event->slot, VP_SLOT_EMPTY);
}

static bool is_full(struct vp_event *event)
{
	return smp_load_acquire(&event->slot) == VP_SLOT_FULL;
}

/* Called at each entry into the guest on x86, mostly for nothing: without the lock then. */
bool vp_complete(struct vp_vcpu *vcpu, struct kvm_vcpu *guest)
{
	u64 enough = max(vcpu->vm->wakeup, 1u), before;
	bool wake;
	u32 i;

	for (i = 0; i < vcpu->vm->nr_events && !is_full(&vcpu->events[i]); i++)
		;
	if (i == vcpu->vm->nr_events)
		return false;
	raw_spin_lock(&vcpu->lock);
	before = vmp_ring_used(&vcpu->ring);
	for (; i < vcpu->vm->nr_events; i++)
		if (is_full(&vcpu->events[i]))
			write_sample(&vcpu->events[i], guest);
	wake = before < enough && vmp_ring_used(&vcpu->ring) >= enough;
	raw_spin_unlock(&vcpu->lock);
	return wake;
}

void vp_work(struct irq_work *work)
{
	struct vp_vcpu *vcpu = container_of(work, struct vp_vcpu, work);

	if (vp_arch_complete_in_work) {
		if (current != vcpu->task || !vp_complete(vcpu, kvm_get_running_vcpu()))
			return;
	}
	wake_up_interruptible(&vcpu->vm->wait);
}
