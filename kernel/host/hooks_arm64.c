// SPDX-License-Identifier: GPL-2.0-only
#include <linux/ftrace.h>
#include <linux/tracepoint.h>

#include <asm/esr.h>
#include <asm/kvm_asm.h>

#include "hooks_arm64.h"

static const struct vp_hooks *hooks;
static struct tracepoint *entry, *leave;

/* All of KVM's registers are loaded by now but HCR_EL2, which the entry writes from its field. */
static void on_entry(void *unused, unsigned long pc)
{
	struct kvm_vcpu *guest = kvm_get_running_vcpu();

	if (guest)
		hooks->assign(guest);
}

/* Tracepoint kvm_exit is too late for that: interrupts have been on. */
static void notrace on_sync(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
			    struct ftrace_regs *fregs)
{
	struct kvm_vcpu *guest = kvm_get_running_vcpu();

	if (guest)
		hooks->taken_away(guest);
}

static void on_leave(void *unused, int ret, unsigned int class, unsigned long pc)
{
	struct kvm_vcpu *guest = kvm_get_running_vcpu();

	if (guest && ARM_EXCEPTION_CODE(ret) == ARM_EXCEPTION_TRAP && class == ESR_ELx_EC_WFx)
		hooks->idle(guest);
}

/* Permanent: nobody switches it off while a VM may have what is to be taken away, as kprobes can
 * be. */
static struct ftrace_ops sync = {.func = on_sync, .flags = FTRACE_OPS_FL_PERMANENT};
static char sync_name[] = "kvm_vgic_sync_hwstate";
static bool chosen; /* the function, once: freed, a filter is of no further use before 6.13 */

/* KVM/arm64 exports none of its tracepoints. */
static void find(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "kvm_entry"))
		entry = tp;
	if (!strcmp(tp->name, "kvm_exit"))
		leave = tp;
}

int vp_hooks_set(const struct vp_hooks *wanted)
{
	int err;

	for_each_kernel_tracepoint(find, NULL);
	if (!entry || !leave)
		return -ENOENT;
	hooks = wanted;
	err = chosen ? 0 : ftrace_set_filter(&sync, sync_name, strlen(sync_name), 1);
	chosen = !err;
	if (!err)
		err = register_ftrace_function(&sync);
	if (err)
		goto out;
	err = tracepoint_probe_register(leave, on_leave, NULL);
	if (err)
		goto traced;
	err = tracepoint_probe_register(entry, on_entry, NULL);
	if (!err)
		return 0;
	tracepoint_probe_unregister(leave, on_leave, NULL);
traced:
	tracepoint_synchronize_unregister();
	unregister_ftrace_function(&sync);
out:
	hooks = NULL;
	return err;
}

void vp_hooks_clear(void)
{
	if (!hooks)
		return;
	tracepoint_probe_unregister(entry, on_entry, NULL);
	tracepoint_probe_unregister(leave, on_leave, NULL);
	tracepoint_synchronize_unregister();
	unregister_ftrace_function(&sync);
	hooks = NULL;
}

void vp_hooks_exit(void)
{
	if (chosen)
		ftrace_free_filter(&sync);
}
