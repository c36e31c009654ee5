// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guest's memory at a sample. All is read through the guest's own page tables and KVM's slots,
 * so that what a guest's pointers say can lead to nothing but its own memory; what is not present
 * is left out.
 */
#include "host.h"

#define PIECE 4096u /* no page of any guest or host is smaller */

static int read_entry(const struct vmp_phys *phys, u64 gpa, u64 *entry)
{
	struct kvm_vcpu *guest = container_of(phys, struct vp_phys, phys)->guest;

	return kvm_vcpu_read_guest_atomic(guest, gpa, entry, sizeof(*entry));
}

void vp_phys_init(struct vp_phys *phys, struct kvm_vcpu *guest)
{
	phys->phys.read = read_entry;
	phys->guest = guest;
}

u32 vp_read(struct kvm_vcpu *guest, u64 root_clear, u64 vaddr, void *buf, u32 size)
{
	u32 done = 0, piece;
	u64 gpa;

	for (; done < size; done += piece) {
		piece = min_t(u32, size - done, PIECE - ((vaddr + done) & (PIECE - 1)));
		if (vp_arch_walk(guest, root_clear, vaddr + done, &gpa) ||
		    kvm_vcpu_read_guest_atomic(guest, gpa, buf + done, piece))
			break;
	}
	return done;
}

/* What is being put together of one sample. */
struct segments {
	struct kvm_vcpu *guest;
	u64 root_clear;
	u8 *room;
	u32 used, nr;
};

static void add(struct segments *s, u64 addr, u32 size)
{
	struct vmp_segment *segment = (struct vmp_segment *)(s->room + s->used);
	u32 got;

	addr &= ~7ull;
	got = vp_read(s->guest, s->root_clear, addr, segment + 1, size) & ~7u;
	if (!got)
		return;
	*segment = (struct vmp_segment){.addr = addr, .size = got};
	s->used += sizeof(*segment) + got;
	s->nr++;
}

/* 0 if it cannot be read: no pointer that is of use. */
static u64 word(const struct segments *s, u64 addr)
{
	u64 value;

	return vp_read(s->guest, s->root_clear, addr, &value, sizeof(value)) == sizeof(value)
		       ? value
		       : 0;
}

/* Where the kernel's chain goes on when its interrupt stack ends, and where user mode's starts. */
static void add_kernel(struct segments *s, const struct vp_vcpu *vcpu,
		       const struct vmp_sample *sample)
{
	const struct vmprof_want *want = &vcpu->vm->want;
	u64 stack = word(s, sample->task + want->task_stack), top, sp;

	if (want->irq_stack) {
		top = word(s, vcpu->area + want->irq_stack);
		if (top && top + 8 - sample->sp <= want->thread_size)
			add(s, word(s, top), vcpu->vm->stack_size);
	}
	if (!stack || want->thread_size < VP_TASK_TOP)
		return;
	add(s, stack + want->thread_size - VP_TASK_TOP, VP_TASK_TOP);
	sp = word(s, stack + want->saved_sp);
	if (sp)
		add(s, sp, vcpu->vm->stack_size);
}

u32 vp_segments(struct vp_vcpu *vcpu, struct kvm_vcpu *guest, struct vmp_sample *sample)
{
	struct segments s = {.guest = guest, .room = vcpu->memory_copy};
	const struct vmprof_want *want = &vcpu->vm->want;
	int idx;

	idx = srcu_read_lock(&guest->kvm->srcu);
	if (vcpu->vm->stack_size)
		add(&s, sample->sp, vcpu->vm->stack_size);
	s.root_clear = want->root_clear;
	sample->task = vp_arch_task(guest, sample);
	if (!sample->task && vcpu->area && want->current_task)
		sample->task = word(&s, vcpu->area + want->current_task);
	if (sample->task)
		sample->flags |= VMP_SAMPLE_TASK;
	if (s.nr && sample->task && (sample->flags & VMP_SAMPLE_KERNEL))
		add_kernel(&s, vcpu, sample);
	srcu_read_unlock(&guest->kvm->srcu, idx);
	sample->nr_segments = s.nr;
	if (s.nr)
		sample->flags |= VMP_SAMPLE_MEMORY;
	return s.used;
}
