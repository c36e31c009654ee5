// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's NMIs as the source: they come here through this guest's own gate, with no exit to the
 * hypervisor (direct), or are injected by it (inject). Which of them are for this CPU is in the
 * log, where the host counts what it has sent and this handler what it has taken.
 *
 * Direct: an NMI of the host that is nobody's here (its watchdog's, its backtrace's) has come here
 * because the host lets NMIs through: it is handed on. That is the one hypercall, and no sample's.
 */
#include <linux/perf_event.h>
#include <linux/smp.h>

#include <asm/cpufeature.h>
#include <asm/desc.h>
#include <asm/nmi.h>
#include <asm/processor.h>
#include <asm/trapnr.h>

#include "guest.h"

static u32 *counts(u32 page)
{
	return vg_request.log + page * VMPROF_LOG_PAGE + VMPROF_LOG_NMI;
}

static bool is_wanted(struct pt_regs *regs)
{
	return vg_request.events[0].flags & (user_mode(regs) ? VMP_COUNT_USER : VMP_COUNT_KERNEL);
}

/* Called for each NMI, also others'. */
static int on_nmi(unsigned int type, struct pt_regs *regs)
{
	u64 time = vg_clock();
	u32 place = cpu_physical_id(smp_processor_id()), sent;
	u32 *taken = counts(1) + place;

	if (place >= VMPROF_LOG_NMI_SLOTS)
		return NMI_DONE;
	sent = READ_ONCE(counts(0)[place]);
	if (sent == READ_ONCE(*taken))
		return NMI_DONE;
	this_cpu_ptr(&vg_cpus)->overflows++;
	if (is_wanted(regs))
		vg_sample(regs, 0, vg_request.events[0].period, time);
	/* The host sends the next one from now on. */
	smp_store_release(taken, sent);
	return NMI_HANDLED;
}

static int on_unknown(unsigned int type, struct pt_regs *regs)
{
	unsigned long answer;

	this_cpu_ptr(&vg_cpus)->spurious++;
	asm volatile("vmmcall" : "=a"(answer) : "0"((u64)VMPROF_LOG_NMI_FOREIGN) : "memory");
	return NMI_HANDLED;
}

static u64 gate_address(void)
{
	struct desc_ptr idt;

	store_idt(&idt);
	return gate_offset((const gate_desc *)idt.address + X86_TRAP_NMI);
}

static const char *find_refusal(void)
{
	const struct vmprof_log_event *event = &vg_request.events[0];

	if (vg_request.nr != 1 || event->type != PERF_TYPE_SOFTWARE ||
	    event->config != PERF_COUNT_SW_CPU_CLOCK)
		return "the host's NMIs are a timer's on x86: one event, cpu-clock";
	if (vg_request.source == VMPROF_SOURCE_INJECT)
		return NULL;
	if (boot_cpu_data.x86_vendor != X86_VENDOR_AMD &&
	    boot_cpu_data.x86_vendor != X86_VENDOR_HYGON)
		return "direct delivery on x86 needs a CPU with SVM";
#ifdef X86_FEATURE_FRED
	if (boot_cpu_has(X86_FEATURE_FRED))
		return "direct delivery on x86 needs a guest without FRED";
#endif
	return NULL;
}

/* Whatever was sent before is over. */
static int take(struct vmprof_log_guest *row)
{
	const char *refusal = find_refusal();
	u32 i;

	if (refusal) {
		strscpy(row->why, refusal, sizeof(row->why));
		return -EOPNOTSUPP;
	}
	for (i = 0; i < VMPROF_LOG_NMI_SLOTS; i++)
		WRITE_ONCE(counts(1)[i], READ_ONCE(counts(0)[i]));
	return register_nmi_handler(NMI_LOCAL, on_nmi, 0, "vmprof_guest");
}

static void give_back(void)
{
	unregister_nmi_handler(NMI_LOCAL, "vmprof_guest");
}

static int start_direct(struct vmprof_log_guest *row)
{
	int err = take(row);

	if (err)
		return err;
	err = register_nmi_handler(NMI_UNKNOWN, on_unknown, 0, "vmprof_guest-unknown");
	if (err)
		give_back();
	row->handler = gate_address();
	return err;
}

static void stop_direct(void)
{
	unregister_nmi_handler(NMI_UNKNOWN, "vmprof_guest-unknown");
	give_back();
}

static int start_inject(struct vmprof_log_guest *row)
{
	row->handler = X86_TRAP_NMI;
	return take(row);
}

void vg_direct_exit(void)
{
}

const struct vg_source vg_source_direct = {start_direct, stop_direct};
const struct vg_source vg_source_inject = {start_inject, give_back};
