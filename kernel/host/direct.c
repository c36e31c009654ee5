// SPDX-License-Identifier: GPL-2.0-only
/*
 * The direct delivery, as far as it is the same on all architectures: which VMs have it, when their
 * vCPUs get it and when it is taken back.
 */
#include <linux/slab.h>

#include "direct.h"

#define SECOND 1000000000ull
#define WATCH  (HZ / 4)

static DEFINE_MUTEX(lock); /* the list, the hooks */
static LIST_HEAD(vms);
static void watch(struct work_struct *work);
static DECLARE_DELAYED_WORK(watchdog, watch);

/* ------------------------------------------------------------------ rows */

/* The architecture's begins with it. */
void vp_direct_free(struct vp_vcpu *vcpu)
{
	kfree(vcpu->direct);
}

static const struct vp_delivery *of(const struct vp_vm *vm)
{
	return vp_delivery_of(vm->delivery);
}

/* Whether a VM of the list has hooked the same. */
static bool is_hooked(const struct vp_delivery *delivery)
{
	const struct vp_vm *vm;

	list_for_each_entry(vm, &vms, direct) if (of(vm) == delivery) return true;
	return !delivery->hook;
}

int vp_direct_attach(struct vp_vm *vm, const struct vmprof_attach *attach, struct vp_log *log)
{
	const struct vp_delivery *delivery = of(vm);
	int err = delivery->attach ? delivery->attach(vm, attach, log) : 0;

	if (err)
		return err;
	mutex_lock(&lock);
	err = is_hooked(delivery) ? 0 : delivery->hook();
	if (!err) {
		if (list_empty(&vms))
			schedule_delayed_work(&watchdog, WATCH);
		list_add_tail(&vm->direct, &vms);
		vm->log = log;
	}
	mutex_unlock(&lock);
	if (err && delivery->detach)
		delivery->detach(vm);
	return err;
}

void vp_direct_detach(struct vp_vm *vm)
{
	const struct vp_delivery *delivery = of(vm);

	if (list_empty(&vm->direct))
		return;
	vp_direct_stop(vm);
	if (delivery->part)
		delivery->part(vm);
	mutex_lock(&lock);
	list_del_init(&vm->direct);
	if (list_empty(&vms))
		cancel_delayed_work(&watchdog);
	if (!is_hooked(delivery))
		delivery->unhook();
	mutex_unlock(&lock);
	if (delivery->detach)
		delivery->detach(vm);
	vp_direct_unpin(vm->log);
	vm->log = NULL;
}

void vp_direct_exit(void)
{
	cancel_delayed_work_sync(&watchdog);
	vp_arch_direct_exit();
}

/* ------------------------------------------------------------------ start, stop */

void vp_direct_start(struct vp_vm *vm)
{
	const struct vp_delivery *delivery = of(vm);
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++) {
		struct vp_direct *direct = vm->vcpus[i].direct;

		direct->why = NULL;
		direct->entries = 0;
		delivery->begin(direct);
		smp_store_release(&direct->wanted, true);
	}
	if (delivery->start)
		delivery->start(vm);
}

void vp_direct_stop(struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		WRITE_ONCE(vm->vcpus[i].direct->wanted, false);
	vp_leave_guests();
	if (of(vm)->stop)
		of(vm)->stop(vm);
}

static bool any_silent(const struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		if (READ_ONCE(vm->vcpus[i].direct->silent) >= SECOND)
			return true;
	return false;
}

const char vp_direct_reset[] = "the VM was reset, or runs another kernel";

void vp_direct_take_back(struct vp_vm *vm, const char *why)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		if (xchg(&vm->vcpus[i].direct->wanted, false))
			WRITE_ONCE(vm->vcpus[i].direct->why, why);
	if (of(vm)->taken_back)
		of(vm)->taken_back(vm);
}

/* A vCPU that does not acknowledge is only known to be silent if it exits. */
static void watch(struct work_struct *work)
{
	struct vp_vm *vm;

	vp_leave_guests();
	mutex_lock(&lock);
	list_for_each_entry(vm, &vms, direct) if (any_silent(vm))
		vp_direct_take_back(vm, of(vm)->silent);
	if (!list_empty(&vms))
		schedule_delayed_work(&watchdog, WATCH);
	mutex_unlock(&lock);
}

void vp_direct_status(struct vp_vm *vm, struct vmprof_status *status)
{
	const char *why = NULL;
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++) {
		struct vp_direct *direct = vm->vcpus[i].direct;
		u64 entries = READ_ONCE(direct->entries);

		of(vm)->status(direct, status);
		status->entries += entries;
		if (entries)
			status->clock_offset = READ_ONCE(direct->clock_offset);
		why = READ_ONCE(direct->why) ?: why;
	}
	strscpy(status->why, why ?: "", sizeof(status->why));
	if (why == vp_direct_reset)
		status->state = VMPROF_DIRECT_RESET;
	else if (why)
		status->state =
			why == of(vm)->silent ? VMPROF_DIRECT_TAKEN_BACK : VMPROF_DIRECT_REFUSED;
	else if (vm->started)
		status->state = status->entries ? VMPROF_DIRECT_LENT : VMPROF_DIRECT_WAITING;
}
