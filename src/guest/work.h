// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: one sample being completed; see complete.c for the whole of it.
 */
#ifndef VMPROF_GUEST_WORK_H
#define VMPROF_GUEST_WORK_H

#include "guest/arm64.h"
#include "guest/internal.h"
#include "guest/x86.h"

/* One sample on its way. */
struct guest_work {
	struct guest *g;
	struct guest_vcpu *vc;
	uint32_t vcpu;
	uint64_t time;
	struct guest_regs regs;
	const struct raw_sample *raw; /* NULL once the registers have been read anew */
	bool general; /* the registers do not tell the kernel and the CPU, see RAW_HAS_GENERAL */
	bool user;
	uint64_t flushes;   /* of the caches of translations, before anything was read */
	struct guest_as as; /* of the registers, kernel half included */
	struct guest_task task;
	struct guest_thread *thread; /* NULL: not known */
	bool ended;		     /* it has ended since: what is known of it is what there is */
	struct guest_stack stack;
	bool have_now; /* the registers just after the stack was read: */
	struct guest_regs now;
	struct sample *out;
	uint64_t frames[SAMPLE_MAX_CHAIN];
	unsigned nr_kernel, nr_user;
	struct guest_kernel_walk kwalk;
	struct unwind_regs saved; /* aarch64: user mode's, as the kernel has saved them */
};

/* ---------- owner.c: whose it is ---------- */

static inline bool guest_is_arm64(const struct guest *g)
{
	return g->cfg.arch == GUEST_ARCH_AARCH64;
}

/* Offset of user mode's stack pointer in what the kernel has saved of its registers. */
static inline uint64_t guest_saved_sp(const struct guest *g)
{
	return (guest_is_arm64(g) ? (unsigned)ARM64_PT_SP : (unsigned)PT_SP) * 8;
}

/* The page table of these registers, without PCID or ASID, and PTI's bit. */
uint64_t guest_root_of(const struct guest *g, const struct guest_regs *regs);
/* The task that the kernel says is running there. 0, -EFAULT, -ESRCH */
int guest_find_current(struct guest_work *w);
/*
 * Do the registers belong to that task, or to another one that is known? Then ->thread and ->task
 * are it. *rc: -ESRCH if the VM is gone.
 */
bool guest_settle_user(struct guest_work *w, int *rc);
bool guest_settle_kernel(struct guest_work *w, int *rc); /* after guest_walk_kernel() if need be */
bool guest_owns_stack(const struct guest_work *w, uint64_t sp);
/* The sample's own registers say which task ran. */
bool guest_task_is_certain(const struct guest_work *w);

/* ---------- frames.c: its call chain ---------- */

/* The registers as they are now; false: they cannot be had. */
bool guest_peek(struct guest_work *w, struct guest_regs *now);
void guest_walk_kernel(struct guest_work *w);
/*
 * Cuts the kernel part if it was overwritten while it was read. Returns whether a user part
 * follows, and from which frame on.
 */
bool guest_cut_kernel(struct guest_work *w, struct guest_frame *f);
/* The user part from @f on, behind the kernel's frames. @now: the registers after the stack was
 * read, NULL to have them read. */
void guest_walk_user(struct guest_work *w, struct guest_frame f, const struct guest_regs *now);
struct guest_frame guest_frame_of(const struct guest_regs *regs);
void guest_put_chain(struct guest_work *w);

#endif
