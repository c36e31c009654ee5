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

static int hook_and_watch(void)
{
	int err = vp_direct_arch.hook();

	if (!err)
		schedule_delayed_work(&watchdog, WATCH);
	return err;
}

int vp_direct_attach(struct vp_vm *vm, const struct vmprof_attach *attach, struct vp_log *log)
{
	int err = vp_direct_arch.attach ? vp_direct_arch.attach(vm, attach, log) : 0;

	if (err)
		return err;
	mutex_lock(&lock);
	err = list_empty(&vms) ? hook_and_watch() : 0;
	if (!err) {
		list_add_tail(&vm->direct, &vms);
		vm->log = log;
	}
	mutex_unlock(&lock);
	if (err && vp_direct_arch.detach)
		vp_direct_arch.detach(vm);
	return err;
}

void vp_direct_detach(struct vp_vm *vm)
{
	if (list_empty(&vm->direct))
		return;
	vp_direct_stop(vm);
	vp_direct_arch.part(vm);
	mutex_lock(&lock);
	list_del_init(&vm->direct);
	if (list_empty(&vms)) {
		cancel_delayed_work(&watchdog);
		vp_direct_arch.unhook();
	}
	mutex_unlock(&lock);
	if (vp_direct_arch.detach)
		vp_direct_arch.detach(vm);
	vp_direct_unpin(vm->log);
	vm->log = NULL;
}

void vp_direct_exit(void)
{
	cancel_delayed_work_sync(&watchdog);
	if (vp_direct_arch.exit)
		vp_direct_arch.exit();
}

/* ------------------------------------------------------------------ start, stop */

void vp_direct_start(struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++) {
		struct vp_direct *direct = vm->vcpus[i].direct;

		direct->why = NULL;
		direct->entries = 0;
		vp_direct_arch.begin(direct);
		smp_store_release(&direct->wanted, true);
	}
	if (vp_direct_arch.start)
		vp_direct_arch.start(vm);
}

void vp_direct_stop(struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		WRITE_ONCE(vm->vcpus[i].direct->wanted, false);
	vp_leave_guests();
	if (vp_direct_arch.stop)
		vp_direct_arch.stop(vm);
}

static bool any_silent(const struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		if (READ_ONCE(vm->vcpus[i].direct->silent) >= SECOND)
			return true;
	return false;
}

static void take_back(struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		if (xchg(&vm->vcpus[i].direct->wanted, false))
			WRITE_ONCE(vm->vcpus[i].direct->why, vp_direct_arch.silent);
	if (vp_direct_arch.taken_back)
		vp_direct_arch.taken_back(vm);
}

/* A vCPU that does not acknowledge is only known to be silent if it exits. */
static void watch(struct work_struct *work)
{
	struct vp_vm *vm;

	vp_leave_guests();
	mutex_lock(&lock);
	list_for_each_entry(vm, &vms, direct) if (any_silent(vm)) take_back(vm);
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

		vp_direct_arch.status(direct, status);
		status->entries += entries;
		if (entries)
			status->clock_offset = READ_ONCE(direct->clock_offset);
		why = READ_ONCE(direct->why) ?: why;
	}
	strscpy(status->why, why ?: "", sizeof(status->why));
	if (why)
		status->state = why == vp_direct_arch.silent ? VMPROF_DIRECT_TAKEN_BACK
							     : VMPROF_DIRECT_REFUSED;
	else if (vm->started)
		status->state = status->entries ? VMPROF_DIRECT_LENT : VMPROF_DIRECT_WAITING;
}
