// SPDX-License-Identifier: GPL-2.0-only
/*
 * A physical counter as the source: the host lends this VM its PMU, and the PMU's interrupt comes
 * here as a FIQ (direct), or goes to the host, which raises another one here (inject). The host has
 * loaded the counters with the row; here they are only started again after each overflow. PMU
 * registers are touched in that interrupt and nowhere else: at any other time they may be the
 * host's, which answers with an undefined instruction.
 */
#include <asm/irq_regs.h>

#include "../arm64/pmu.h"
#include "fiq_arm64.h"
#include "guest.h"
#include "irq_arm64.h"

/*
 * The counter goes on from where it is: what was counted since the overflow is part of the next
 * period. Returns the events that the sample stands for. The host may have interrupted this handler
 * and set the counter to just before an overflow, since it found one waiting: that is the overflow
 * at hand, and nothing was counted behind it.
 */
static u64 start_again(u32 counter, u64 period)
{
	u64 since = (u32)vmp_pmu_read(counter), more = 0;

	if (since > VMPROF_LOG_PERIOD_MAX)
		since = 0;
	if (since >= period) {
		more = since / period * period;
		since -= more;
	}
	vmp_pmu_write(counter, (u32)(since - period));
	return period + more;
}

static u32 all_counters(void)
{
	return BIT(vg_request.nr) - 1;
}

/* Inline: a direct sample is some hundred instructions in all. */
static __always_inline void take_overflows(struct pt_regs *regs)
{
	u64 time = vg_clock(), overflows = read_sysreg(pmovsclr_el0);
	struct vg_cpu *cpu = this_cpu_ptr(&vg_cpus);
	u32 left, i;

	/* They go first, so that no exit finds a counter that was started again and yet waits. */
	write_sysreg(overflows, pmovsclr_el0);
	isb();
	if (!overflows)
		cpu->spurious++;
	for (left = overflows & all_counters(); left; left &= left - 1) {
		i = __ffs(left);
		cpu->periods[i] = start_again(i, vg_request.events[i].period);
	}
	for (left = overflows & all_counters(); left; left &= left - 1) {
		i = __ffs(left);
		cpu->overflows++;
		vg_sample(regs, i, cpu->periods[i], time);
	}
}

/* ------------------------------------------------------------------ direct */

/* The line falls with the overflows: there is nothing to be said to the interrupt controller. */
static void on_fiq(struct pt_regs *regs)
{
	take_overflows(regs);
}

static int start_direct(struct vmprof_log_guest *row)
{
	int err = vg_fiq_take(on_fiq);

	if (err) {
		scnprintf(row->why, sizeof(row->why),
			  "the guest's kernel does not let its FIQ handler be replaced (error %d)",
			  -err);
		return err;
	}
	row->handler = (unsigned long)on_fiq;
	return 0;
}

void vg_direct_exit(void)
{
	vg_fiq_exit();
}

const struct vg_source vg_source_direct = {start_direct, vg_fiq_give_back};

/* ------------------------------------------------------------------ inject */

/* A VM that stood still may find that the host's program has gone meanwhile, and the PMU with it.
 */
static bool is_withdrawn(void)
{
	const struct vmprof_log_host *host = vg_request.log;

	return vmp_load_acquire(&host->request) != vg_request.number;
}

/*
 * The host has switched the counters' interrupts off, since an overflow waited. That they are on
 * again tells it that this one is dealt with: from then on it may take the PMU away, so that
 * nothing of it is touched behind that.
 */
static irqreturn_t on_irq(int irq, void *unused)
{
	if (is_withdrawn())
		return IRQ_HANDLED;
	take_overflows(get_irq_regs());
	write_sysreg(all_counters(), pmintenset_el1);
	isb();
	return IRQ_HANDLED;
}

static int start_inject(struct vmprof_log_guest *row)
{
	int number = vg_irq_take(on_irq);

	if (number < 0) {
		scnprintf(row->why, sizeof(row->why),
			  "the guest's kernel has no interrupt of a GICv3 to spare (error %d)",
			  -number);
		return number;
	}
	row->handler = number;
	return 0;
}

const struct vg_source vg_source_inject = {start_inject, vg_irq_give_back};
