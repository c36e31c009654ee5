// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kprobes.h>
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
static int on_sync(struct kprobe *probe, struct pt_regs *regs)
{
	hooks->taken_away((struct kvm_vcpu *)regs->regs[0]);
	return 0;
}
NOKPROBE_SYMBOL(on_sync);

static void on_leave(void *unused, int ret, unsigned int class, unsigned long pc)
{
	struct kvm_vcpu *guest = kvm_get_running_vcpu();

	if (guest && ARM_EXCEPTION_CODE(ret) == ARM_EXCEPTION_TRAP && class == ESR_ELx_EC_WFx)
		hooks->idle(guest);
}

static struct kprobe sync = {.symbol_name = "kvm_vgic_sync_hwstate", .pre_handler = on_sync};

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
	/* register_kprobe() leaves its marks. */
	sync.addr = NULL;
	sync.flags = 0;
	err = register_kprobe(&sync);
	if (err)
		goto out;
	err = tracepoint_probe_register(leave, on_leave, NULL);
	if (err)
		goto probe;
	err = tracepoint_probe_register(entry, on_entry, NULL);
	if (!err)
		return 0;
	tracepoint_probe_unregister(leave, on_leave, NULL);
probe:
	tracepoint_synchronize_unregister();
	unregister_kprobe(&sync);
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
	unregister_kprobe(&sync);
	hooks = NULL;
}
