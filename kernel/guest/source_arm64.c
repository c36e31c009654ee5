// SPDX-License-Identifier: GPL-2.0-only
/*
 * A physical counter as the source: the host lends this VM its PMU and lets the PMU's interrupt
 * come here as a FIQ. The host has loaded the counters with the row; here they are only started
 * again after each overflow. PMU registers are touched in that interrupt and nowhere else: at any
 * other time they may be the host's, which answers with an undefined instruction.
 *
 * Linux has no place for a module's FIQ handler. Its own one, default_handle_fiq(), panics; it is
 * replaced as a live patch replaces a function, by ftrace.
 */
#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/version.h>

#include "../arm64/pmu.h"
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
	u64 periods[VMPROF_LOG_EVENTS_MAX];
	u32 i;

	/* The line falls with the bits: there is nothing to be said to the interrupt controller.
	 * They go first, so that no exit finds a counter that was started again and yet waits. */
	write_sysreg(overflows, pmovsclr_el0);
	isb();
	if (!overflows)
		cpu->spurious++;
	for (i = 0; i < vg_request.nr; i++)
		if (overflows & BIT(i))
			periods[i] = start_again(i, vg_request.events[i].period);
	for (i = 0; i < vg_request.nr; i++)
		if (overflows & BIT(i)) {
			cpu->overflows++;
			vg_sample(regs, i, periods[i], time);
		}
}

/* In place of default_handle_fiq(), with its argument. */
static void notrace redirect(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
			     struct ftrace_regs *fregs)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
	ftrace_regs_set_instruction_pointer(fregs, (unsigned long)on_fiq);
#else
	instruction_pointer_set(ftrace_get_regs(fregs), (unsigned long)on_fiq);
#endif
}

static struct ftrace_ops ops = {
	.func = redirect,
	.flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT
#ifndef CONFIG_HAVE_DYNAMIC_FTRACE_WITH_ARGS
		 | FTRACE_OPS_FL_SAVE_REGS
#endif
	,
};

static char replaced[] = "default_handle_fiq";
static bool chosen; /* the function, once: freed, a filter is of no further use before 6.13 */

static int start(struct vmprof_log_guest *row)
{
	int err = chosen ? 0 : ftrace_set_filter(&ops, replaced, strlen(replaced), 1);

	chosen = !err;
	if (!err)
		err = register_ftrace_function(&ops);
	if (err) {
		scnprintf(row->why, sizeof(row->why),
			  "the guest's kernel does not let its FIQ handler be replaced (error %d)",
			  -err);
		return err;
	}
	row->handler = (unsigned long)on_fiq;
	return 0;
}

static void stop(void)
{
	unregister_ftrace_function(&ops);
	/* What was redirected before runs with interrupts off. */
	synchronize_rcu();
}

void vg_direct_exit(void)
{
	if (chosen)
		ftrace_free_filter(&ops);
}

const struct vg_source vg_source_direct = {start, stop};
