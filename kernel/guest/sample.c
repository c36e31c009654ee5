// SPDX-License-Identifier: GPL-2.0-only
/* From an interrupt to a record in the log. */
#include <linux/sched/task_stack.h>
#include <linux/stacktrace.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#ifdef CONFIG_ARM64
#include <asm/compat.h>
#endif

#include "guest.h"

DEFINE_PER_CPU(struct vg_cpu, vg_cpus);

/* A program's stack, by frame pointer: where they point to, the caller's one lies and, above it,
 * the return address. This holds on x86-64 and arm64. */
struct frame {
	u64 caller, address;
};

static u64 frame_pointer_of(const struct pt_regs *regs)
{
#ifdef CONFIG_ARM64
	return regs->regs[29];
#else
	return regs->bp;
#endif
}

/* The code of 32-bit programs is left alone. */
static bool is_64bit(const struct pt_regs *regs)
{
#ifdef CONFIG_ARM64
	return !compat_user_mode(regs);
#else
	return regs->cs == __USER_CS;
#endif
}

/* On arm64 a return address may be signed, above the address. */
static u64 code_address(u64 address)
{
#ifdef CONFIG_ARM64
	return address & (TASK_SIZE_64 - 1);
#else
	return address;
#endif
}

/* Whether it is an address of the chain is not seen from here; see core/sample.h. */
static u32 link_register(const struct pt_regs *regs, u64 *chain, u32 room)
{
#ifdef CONFIG_ARM64
	if (room < 2)
		return 0;
	chain[0] = VMP_CHAIN_LINK;
	chain[1] = code_address(regs->regs[30]);
	return 2;
#else
	return 0;
#endif
}

static u32 user_chain(const struct pt_regs *regs, u64 *chain, u32 room)
{
	u64 fp = frame_pointer_of(regs);
	struct frame frame;
	u32 nr;

	if (!is_64bit(regs))
		return 0;
	for (nr = link_register(regs, chain, room); nr < room && fp && fp % 8 == 0; nr++) {
		if (copy_from_user_nofault(&frame, (const void __user *)fp, sizeof(frame)) ||
		    !frame.address)
			break;
		chain[nr] = code_address(frame.address);
		if (frame.caller <= fp) {
			nr++;
			break;
		}
		fp = frame.caller;
	}
	return nr;
}

/* The kernel's own unwinder starts here, in the handler: what it finds behind the interrupted
 * address are the callers. */
static u32 kernel_chain(struct vg_cpu *cpu, u64 ip, u32 room)
{
	u32 own, i, nr = stack_trace_save(cpu->trace, room + VG_OWN_FRAMES, 1);

	for (own = 0; own < nr && own < VG_OWN_FRAMES && cpu->trace[own] != ip; own++)
		;
	if (own == nr || own == VG_OWN_FRAMES)
		return 0;
	nr = min(nr - own - 1, room);
	for (i = 0; i < nr; i++)
		cpu->chain[i] = cpu->trace[own + 1 + i];
	return nr;
}

static u32 chain_of(struct vg_cpu *cpu, struct pt_regs *regs)
{
	u32 room = vg_request.chain, nr;

	if (!room)
		return 0;
	if (user_mode(regs))
		return user_chain(regs, cpu->chain, room);
	nr = kernel_chain(cpu, instruction_pointer(regs), room);
	if (!current->mm || (current->flags & PF_KTHREAD) || nr + 2 > room)
		return nr;
	regs = task_pt_regs(current);
	cpu->chain[nr++] = VMP_CHAIN_USER;
	cpu->chain[nr++] = instruction_pointer(regs);
	return nr + user_chain(regs, cpu->chain + nr, room - nr);
}

static void write_task(struct vg_cpu *cpu, u64 time)
{
	struct vmp_guest_task task = {
		.header = {sizeof(task), VMP_REC_GUEST_TASK},
		.time = time,
		.pid = current->pid,
		.tgid = current->tgid,
	};
	struct vmp_part part = {&task, sizeof(task)};

	BUILD_BUG_ON(sizeof(task.comm) != TASK_COMM_LEN);
	memcpy(task.comm, current->comm, sizeof(task.comm));
	task.comm[sizeof(task.comm) - 1] = 0;
	if (vmp_ring_write(&cpu->ring, &part, 1))
		return;
	cpu->last_pid = task.pid;
	memcpy(cpu->last_comm, current->comm, sizeof(cpu->last_comm));
}

/* Most threads are those of the sample before, with the same name. */
static bool is_last_task(const struct vg_cpu *cpu)
{
	return cpu->last_pid == current->pid &&
	       !memcmp(cpu->last_comm, current->comm, TASK_COMM_LEN);
}

static void write_sample(struct vg_cpu *cpu, struct pt_regs *regs, u32 event, u64 period, u64 time)
{
	u32 nr = chain_of(cpu, regs), size = sizeof(struct vmp_guest_sample) + nr * sizeof(u64);
	struct vmp_guest_sample *sample;

	if (!is_last_task(cpu))
		write_task(cpu, time);
	sample = vmp_ring_place(&cpu->ring, size) ?: &cpu->sample;
	sample->header = (struct vmp_record){size, VMP_REC_GUEST_SAMPLE};
	sample->time = time;
	sample->ip = instruction_pointer(regs);
	sample->period = period;
	sample->cpu = smp_processor_id();
	sample->event = event;
	sample->pid = current->pid;
	sample->tgid = current->tgid;
	sample->flags = user_mode(regs) ? 0 : VMP_SAMPLE_KERNEL;
	sample->nr_chain = nr;
	if (sample == &cpu->sample) {
		struct vmp_part parts[2] = {{sample, sizeof(*sample)},
					    {cpu->chain, nr * sizeof(u64)}};

		vmp_ring_write(&cpu->ring, parts, 2);
		return;
	}
	if (nr)
		memcpy(sample + 1, cpu->chain, nr * sizeof(u64));
	vmp_ring_commit(&cpu->ring, size);
}

void vg_sample(struct pt_regs *regs, u32 event, u64 period, u64 time)
{
	struct vg_cpu *cpu = this_cpu_ptr(&vg_cpus);

	if (!cpu->ring.page)
		return;
	if (cpu->busy) {
		cpu->missed++;
		return;
	}
	cpu->busy = true;
	barrier();
	write_sample(cpu, regs, event, period, time);
	if (cpu->missed)
		vmp_ring_missed(&cpu->ring, xchg(&cpu->missed, 0));
	barrier();
	cpu->busy = false;
}
