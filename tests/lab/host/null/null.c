// SPDX-License-Identifier: GPL-2.0-only
/*
 * While it is loaded, the thread tid has an interrupt each period cycles of its guest, with next to
 * nothing to do in it: what any profiler that has its counter from perf pays, and how much of that
 * is before its handler is called. Its other parameters say, for a guest with the kernel of this
 * host, what struct vmprof_want asks.
 */
#include <linux/kvm_host.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/sched.h>

#include <asm/kvm_emulate.h>

#define MOMENT 10000 /* ticks; a program that does not look has something else in x20 */

static int tid;
module_param(tid, int, 0444);
static ulong period = 100000;
module_param(period, ulong, 0444);
static ulong task_stack = offsetof(struct task_struct, stack);
module_param(task_stack, ulong, 0444);
static ulong thread_size = THREAD_SIZE;
module_param(thread_size, ulong, 0444);
static ulong saved_sp = THREAD_SIZE - sizeof(struct pt_regs) + offsetof(struct pt_regs, sp);
module_param(saved_sp, ulong, 0444);
static ulong interrupts;
module_param(interrupts, ulong, 0444);
/* Ticks from what the guest's clock was in its x20 to here, where there is such in it. */
static ulong looks, before;
module_param(looks, ulong, 0444);
module_param(before, ulong, 0444);

static struct perf_event *event;

static void count(struct perf_event *perf, struct perf_sample_data *data, struct pt_regs *regs)
{
	const struct kvm_vcpu *guest = kvm_get_running_vcpu();
	u64 ticks;

	interrupts++;
	if (!guest)
		return;
	isb();
	ticks = read_sysreg(cntpct_el0) - read_sysreg(cntvoff_el2) - vcpu_get_reg(guest, 20);
	if (ticks > MOMENT)
		return;
	looks++;
	before += ticks;
}

static int __init init(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_RAW,
		.config = 0x11,
		.size = sizeof(attr),
		.sample_period = period,
		.pinned = 1,
		.exclude_host = 1,
		.exclude_hv = 1,
	};
	struct pid *pid = find_get_pid(tid);
	struct task_struct *task = get_pid_task(pid, PIDTYPE_PID);

	put_pid(pid);
	if (!task)
		return -ESRCH;
	event = perf_event_create_kernel_counter(&attr, -1, task, count, NULL);
	put_task_struct(task);
	return PTR_ERR_OR_ZERO(event);
}

static void __exit quit(void)
{
	perf_event_release_kernel(event);
}

module_init(init);
module_exit(quit);
MODULE_LICENSE("GPL");
