// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guest's memory at a sample. All is read through the guest's own page tables and KVM's slots,
 * so that what a guest's pointers say can lead to nothing but its own memory; what is not present
 * is left out.
 */
#include "host.h"

#define PIECE	4096u /* no page of any guest or host is smaller */
#define NO_PAGE 1     /* no piece's address */

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

/* What is being put together of one sample. */
struct segments {
	struct kvm_vcpu *guest;
	u64 root_clear;
	u64 page, gpa; /* the last piece of memory that was found, and where it is */
	u8 *room;
	u32 used, nr;
};

/* Most of what is read of one sample is near to what was read before. */
static int find_page(struct segments *s, u64 page)
{
	if (s->page == page)
		return 0;
	s->page = NO_PAGE;
	if (vp_arch_walk(s->guest, s->root_clear, page, &s->gpa))
		return -EFAULT;
	s->page = page;
	return 0;
}

/* How many bytes could be read, from the start. */
static u32 read_memory(struct segments *s, u64 vaddr, void *buf, u32 size)
{
	u32 done = 0, offset, piece;

	for (; done < size; done += piece) {
		offset = (vaddr + done) & (PIECE - 1);
		piece = min_t(u32, size - done, PIECE - offset);
		if (find_page(s, vaddr + done - offset) ||
		    kvm_vcpu_read_guest_atomic(s->guest, s->gpa + offset, buf + done, piece))
			break;
	}
	return done;
}

static void add(struct segments *s, u64 addr, u32 size)
{
	struct vmp_segment *segment = (struct vmp_segment *)(s->room + s->used);
	u32 got;

	addr &= ~7ull;
	got = read_memory(s, addr, segment + 1, size) & ~7u;
	if (!got)
		return;
	*segment = (struct vmp_segment){.addr = addr, .size = got};
	s->used += sizeof(*segment) + got;
	s->nr++;
}

/* 0 if it cannot be read: no pointer that is of use. */
static u64 word(struct segments *s, u64 addr)
{
	u64 value;

	return read_memory(s, addr, &value, sizeof(value)) == sizeof(value) ? value : 0;
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

static u32 read_segments(struct vp_vcpu *vcpu, struct kvm_vcpu *guest, struct vmp_sample *sample)
{
	struct segments s = {.guest = guest, .page = NO_PAGE, .room = vcpu->memory_copy};
	const struct vmprof_want *want = &vcpu->vm->want;
	int idx;

	idx = srcu_read_lock(&guest->kvm->srcu);
	if (vcpu->vm->stack_size)
		add(&s, sample->sp, vcpu->vm->stack_size);
	s.root_clear = want->root_clear;
	s.page = NO_PAGE;
	if (!sample->task && vcpu->area && want->current_task)
		sample->task = word(&s, vcpu->area + want->current_task);
	if (s.nr && sample->task && (sample->flags & VMP_SAMPLE_KERNEL))
		add_kernel(&s, vcpu, sample);
	srcu_read_unlock(&guest->kvm->srcu, idx);
	sample->nr_segments = s.nr;
	if (s.nr)
		sample->flags |= VMP_SAMPLE_MEMORY;
	return s.used;
}

u32 vp_segments(struct vp_vcpu *vcpu, struct kvm_vcpu *guest, struct vmp_sample *sample)
{
	u32 used = 0;

	sample->task = vp_arch_task(guest, sample);
	if (vcpu->vm->stack_size || (!sample->task && vcpu->area))
		used = read_segments(vcpu, guest, sample);
	if (sample->task)
		sample->flags |= VMP_SAMPLE_TASK;
	return used;
}
