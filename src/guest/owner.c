// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose a sample is.
 */
#include <errno.h>

#include "guest/work.h"

uint64_t guest_root_of(const struct guest *g, const struct guest_regs *regs)
{
	if (guest_is_arm64(g))
		return arm64_root(guest_virt_paging(g->virt), false, regs->pgtable);
	return regs->pgtable & X86_ADDR_MASK & (g->info.pti ? ~X86_PTI_USER_BIT : ~0ull);
}

/* Where the vCPU's per-CPU data are. 0 or -EFAULT, -ESRCH */
static int find_cpu(struct guest_work *w)
{
	struct guest *g = w->g;
	struct guest_vcpu *vc = w->vc;
	uint64_t top;
	int cpu, rc;

	if (vc->percpu && vc->gdt == w->regs.gdt_base)
		return 0;
	/* As every monitor starts them; the task must fit the page table or the stack anyway. */
	cpu = w->general ? (int)w->vcpu : guest_kernel_cpu(g->kernel, &w->regs);
	vc->percpu = cpu < 0 ? 0 : guest_kernel_percpu(g->kernel, (uint32_t)cpu);
	if (!vc->percpu)
		return -EFAULT;
	vc->gdt = w->regs.gdt_base;
	vc->irq_stack = 0;
	if (!g->km.lay.irq_stack)
		return 0;
	/* It points to the stack's last word; before the CPU has one it is 0. */
	rc = guest_virt_read(g->virt, g->km.as, vc->percpu + g->km.lay.irq_stack, &top, 8);
	if (!rc && top)
		vc->irq_stack = top + 8 - g->km.lay.thread_size;
	return rc == -ESRCH ? rc : 0;
}

/*
 * The task of a while ago may have ended since. Its memory says so until it is another task's, and
 * what it was is known if it had a sample before.
 */
static bool has_ended(struct guest_work *w)
{
	struct guest_thread *th = guest_procs_by_task(&w->g->procs, w->raw->task);

	if (!th || th->start_time != w->task.start_time || th->pid != w->task.pid ||
	    !(w->task.exit_state || (!w->task.mm && th->process->mm)))
		return false;
	w->task.mm = th->process->mm;
	w->thread = th;
	w->ended = true;
	return true;
}

/*
 * aarch64: in the kernel the running task is in SP_EL0, but for the first and the last
 * instructions, where that still, or again, is user mode's stack pointer. Then, and in user mode,
 * it is the one that the CPU's run queue names; the CPU is known by TPIDR_EL1. 0: not in the
 * registers.
 */
static uint64_t task_in_registers(const struct guest_work *w)
{
	bool kernel = guest_is_arm64(w->g) && !w->regs.cpl;

	return kernel && guest_is_kptr(w->regs.sp_el0) ? w->regs.sp_el0 : 0;
}

/* The task that the kernel says is running there. 0, -EFAULT, -ESRCH */
int guest_find_current(struct guest_work *w)
{
	struct guest *g = w->g;
	struct guest_vcpu *vc = w->vc;
	uint64_t task = task_in_registers(w);
	int rc = task ? 0 : find_cpu(w);

	if (!rc && w->raw && w->raw->has & RAW_HAS_TASK && g->task_wanted) {
		rc = guest_task_read(&g->km, w->raw->task, vc->mm, &w->task);
		if (!rc && has_ended(w))
			return 0;
	} else if (task) {
		rc = guest_task_read(&g->km, task, vc->mm, &w->task);
	} else if (!rc) {
		rc = guest_task_current(&g->km, vc->percpu + g->km.lay.current_task, vc->task,
					vc->mm, &w->task);
	}
	if (rc)
		return rc;
	vc->task = w->task.task;
	vc->mm = w->task.mm;
	w->thread = guest_procs_see(&g->procs, &w->task, w->time, &rc);
	return rc ? rc : w->thread ? 0 : -EFAULT;
}

bool guest_wanted(struct guest *g, struct guest_wanted *wanted)
{
	const struct guest_layout *l = &g->km.lay;

	g->task_wanted = g->kernel && !g->no_types;
	for (uint32_t i = 0; g->task_wanted && i < g->cfg.nr_vcpus; i++)
		g->areas[i] = guest_kernel_percpu(g->kernel, i);
	*wanted = (struct guest_wanted){
		.root_clear = g->info.pti ? X86_PTI_USER_BIT : 0,
		.current = l->current_task,
		.task_stack = (uint64_t)l->task_stack,
		.thread_size = l->thread_size,
		.saved_sp = l->saved_regs + guest_saved_sp(g),
		.irq_stack = l->irq_stack,
		.areas = g->areas,
		.nr_areas = g->cfg.nr_vcpus,
	};
	return g->task_wanted;
}

/* Looks at a thread that was known whether it is still what it was; makes the sample its own. */
static bool reclaim(struct guest_work *w, struct guest_thread *th, int *rc)
{
	struct guest_task t;

	if (!th)
		return false;
	*rc = guest_task_read(&w->g->km, th->task, th->process->mm, &t);
	if (*rc || t.pid != th->pid || t.start_time != th->start_time || t.exit_state)
		return false;
	th = guest_procs_see(&w->g->procs, &t, w->time, rc);
	if (!th)
		return false;
	w->thread = th;
	w->task = t;
	return true;
}

static bool owns_root(const struct guest_work *w)
{
	return w->thread && w->task.mm && w->thread->process->as.root == w->as.root;
}

/*
 * The page table is the last resort where it is not known on which CPU of the guest the vCPU runs:
 * then no task is known to begin with, and the process may never have been seen.
 */
bool guest_settle_user(struct guest_work *w, int *rc)
{
	struct guest_procs *procs = &w->g->procs;

	if (owns_root(w))
		return true;
	if (!w->thread && !guest_procs_by_root(procs, w->as.root))
		*rc = guest_procs_snapshot(procs, true, w->time);
	return *rc != -ESRCH && reclaim(w, guest_procs_by_root(procs, w->as.root), rc) &&
	       owns_root(w);
}

bool guest_task_is_certain(const struct guest_work *w)
{
	uint64_t task = task_in_registers(w);

	return task && w->thread && w->thread->task == task;
}

bool guest_owns_stack(const struct guest_work *w, uint64_t sp)
{
	return w->thread && sp - 1 - w->thread->stack < w->g->km.lay.thread_size;
}

bool guest_settle_kernel(struct guest_work *w, int *rc)
{
	const struct guest_kernel_walk *k = &w->kwalk;
	uint64_t sp = w->regs.sp;

	if (guest_owns_stack(w, sp))
		return true;
	/* An interrupt's stack, as it is by now, may lead to the task that was met next. */
	if (!w->g->cfg.chains && guest_task_is_certain(w))
		return true;
	if (!(sp >> 63)) /* the first and the last instructions in the kernel have the user's */
		return guest_settle_user(w, rc);
	/* On the entry stack: from or to user mode. A kernel thread's own mm is none, whatever it
	 * uses. */
	if (!k->task_stack)
		return owns_root(w) ||
		       (w->out->kernel_end == CHAIN_OUTERMOST && guest_settle_user(w, rc));
	return guest_owns_stack(w, k->task_stack + 1) ||
	       (reclaim(w, guest_procs_by_stack(&w->g->procs, k->task_stack), rc) &&
		guest_owns_stack(w, k->task_stack + 1));
}
