// SPDX-License-Identifier: GPL-2.0-only
#include <linux/mm.h>
#include <linux/slab.h>

#include "delivery_x86.h"

/* ------------------------------------------------------------------ the log */

struct vp_log *vp_direct_pin(const struct vmprof_attach *attach)
{
	struct vp_log *log;
	int got;

	if (!vp_to_guest(attach->delivery) || !attach->log || attach->log % PAGE_SIZE)
		return NULL;
	log = kzalloc(sizeof(*log), GFP_KERNEL);
	if (!log)
		return ERR_PTR(-ENOMEM);
	got = pin_user_pages_fast(attach->log, VP_LOG_PAGES, FOLL_WRITE | FOLL_LONGTERM,
				  log->pages);
	if (got == VP_LOG_PAGES)
		return log;
	if (got > 0)
		unpin_user_pages(log->pages, got);
	kfree(log);
	return ERR_PTR(got < 0 ? got : -EFAULT);
}

void vp_direct_unpin(struct vp_log *log)
{
	if (!log)
		return;
	unpin_user_pages_dirty_lock(log->pages, VP_LOG_PAGES, true);
	kfree(log);
}

u32 *vp_log_sent(const struct vp_log *log)
{
	return page_address(log->pages[0]) + VMPROF_LOG_NMI;
}

const u32 *vp_log_taken(const struct vp_log *log)
{
	return page_address(log->pages[1]) + VMPROF_LOG_NMI;
}

/* KVM's ratio for a guest whose TSC has the host's rate has this many bits behind the point. */
#define RATIO_BITS (boot_cpu_has(X86_FEATURE_SVM) ? 32 : 48)

/* One offset then does not lead from the host's time to the guest's. */
static bool tsc_is_scaled(const struct kvm_vcpu *guest)
{
	return guest->arch.tsc_always_catchup ||
	       guest->arch.l1_tsc_scaling_ratio != 1ull << RATIO_BITS;
}

const char *vp_log_misfit(const struct kvm_vcpu *guest)
{
	if (guest->vcpu_id >= VMPROF_LOG_NMI_SLOTS)
		return "a vCPU's APIC id is above 511";
	if (tsc_is_scaled(guest))
		return "the VM's TSC has another rate than the host's";
	return NULL;
}

/* ------------------------------------------------------------------ which delivery */

const struct vp_delivery *vp_delivery_of(u32 delivery)
{
	return delivery == VMP_DELIVER_INJECT ? &vp_inject_delivery : &vp_direct_delivery;
}

static bool is_clock(const struct vmprof_event *event)
{
	return event->type == PERF_TYPE_SOFTWARE && event->config == PERF_COUNT_SW_CPU_CLOCK &&
	       !event->config1 && !event->config2 && event->period >= VMPROF_CLOCK_PERIOD_MIN &&
	       event->period <= VMPROF_LOG_PERIOD_MAX && !(event->flags & ~VMP_COUNT_FLAGS);
}

int vp_direct_new(struct vp_vcpu *vcpu, const struct vmprof_event *events, u32 nr)
{
	if (nr != 1 || !is_clock(events))
		return -EINVAL;
	vcpu->direct = vp_delivery_of(vcpu->vm->delivery)->create(events);
	return vcpu->direct ? 0 : -ENOMEM;
}
