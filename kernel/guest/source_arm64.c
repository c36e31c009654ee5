// SPDX-License-Identifier: GPL-2.0-only
/*
 * A physical counter as the source: the host lends this VM its PMU and lets the PMU's interrupt
 * come here as a FIQ. The host has loaded the counters with the row; here they are only started
 * again after each overflow. PMU registers are touched in that interrupt and nowhere else: at any
 * other time they may be the host's, which answers with an undefined instruction.
 */
#include "../arm64/pmu.h"
#include "fiq_arm64.h"
#include "guest.h"

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

static void on_fiq(struct pt_regs *regs)
{
	u64 time = vg_clock(), overflows = read_sysreg(pmovsclr_el0);
	struct vg_cpu *cpu = this_cpu_ptr(&vg_cpus);
	u32 left, i;

	/* The line falls with the bits: there is nothing to be said to the interrupt controller.
	 * They go first, so that no exit finds a counter that was started again and yet waits. */
	write_sysreg(overflows, pmovsclr_el0);
	isb();
	if (!overflows)
		cpu->spurious++;
	for (left = overflows & (BIT(vg_request.nr) - 1); left; left &= left - 1) {
		i = __ffs(left);
		cpu->periods[i] = start_again(i, vg_request.events[i].period);
	}
	for (left = overflows & (BIT(vg_request.nr) - 1); left; left &= left - 1) {
		i = __ffs(left);
		cpu->overflows++;
		vg_sample(regs, i, cpu->periods[i], time);
	}
}

static int start(struct vmprof_log_guest *row)
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

const struct vg_source vg_source_direct = {start, vg_fiq_give_back};
