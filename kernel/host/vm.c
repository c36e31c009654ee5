// SPDX-License-Identifier: GPL-2.0-only
/*
 * One VM that is profiled: its threads, their events and rings.
 *
 * Counters are had through the kernel's perf, as events of the vCPU's thread: it loads and saves
 * them when a CPU is given to the thread, and host users of the PMU are not disturbed. Events that
 * must not wait are pinned: perf gives them counters first, or says that it cannot.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "direct.h"
#include "host.h"

#define TURN                                                                                       \
	(HZ / 100 ?: 1) /* 10 ms: many turns a second, few changes beside what happens in one */

static void rotate(struct work_struct *work);

struct vp_vm *vp_vm_new(void)
{
	struct vp_vm *vm = kzalloc(sizeof(*vm), GFP_KERNEL);

	if (!vm)
		return NULL;
	mutex_init(&vm->lock);
	init_waitqueue_head(&vm->wait);
	INIT_DELAYED_WORK(&vm->rotate, rotate);
	INIT_LIST_HEAD(&vm->direct);
	return vm;
}

/* ------------------------------------------------------------------ attach */

static int event_new(struct vp_event *event, const struct vmprof_event *wanted,
		     const struct vp_vm *vm)
{
	struct perf_event_attr attr = {
		.type = wanted->type,
		.size = sizeof(attr),
		.config = wanted->config,
		.config1 = wanted->config1,
		.config2 = wanted->config2,
		.sample_period = wanted->period,
		.freq = !!(wanted->flags & VMPROF_EVENT_FREQ),
		.disabled = 1,
		.pinned = 1,
		.exclude_user = !(wanted->flags & VMP_COUNT_USER),
		.exclude_kernel = !(wanted->flags & VMP_COUNT_KERNEL),
		.exclude_host = !(vm->flags & VMP_ROW_DOMAIN),
		.exclude_hv = !(vm->flags & VMP_ROW_DOMAIN),
	};
	struct perf_event *perf;

	perf = perf_event_create_kernel_counter(&attr, -1, event->vcpu->task,
						wanted->period ? vp_overflow : NULL, event);
	if (IS_ERR(perf))
		return PTR_ERR(perf);
	event->perf = perf;
	return 0;
}

static int vcpu_new(struct vp_vcpu *vcpu, const struct vmprof_attach *attach,
		    const struct vmprof_event *events)
{
	struct vp_vm *vm = vcpu->vm;
	u32 i;
	int err;

	if (vp_to_guest(vm->delivery))
		return vp_direct_new(vcpu, events, attach->nr_events);
	vcpu->memory = vmalloc_user(PAGE_SIZE + attach->ring_size);
	vcpu->events = kcalloc(attach->nr_events, sizeof(*vcpu->events), GFP_KERNEL);
	vcpu->memory_copy = kvmalloc(VP_SEGMENTS_SIZE(attach->stack_size), GFP_KERNEL);
	if (!vcpu->memory || !vcpu->events || !vcpu->memory_copy)
		return -ENOMEM;
	if (vmp_ring_init(&vcpu->ring, vcpu->memory, PAGE_SIZE, attach->ring_size))
		return -EINVAL;
	for (i = 0; i < attach->nr_events; i++) {
		vcpu->events[i].vcpu = vcpu;
		vcpu->events[i].index = i;
		err = event_new(&vcpu->events[i], &events[i], vm);
		if (err)
			return err;
	}
	return 0;
}

static void vcpu_free(struct vp_vcpu *vcpu, u32 nr_events)
{
	u32 i;

	for (i = 0; vcpu->events && i < nr_events; i++)
		if (vcpu->events[i].perf)
			perf_event_release_kernel(vcpu->events[i].perf);
	irq_work_sync(&vcpu->work);
	if (vcpu->task)
		put_task_struct(vcpu->task);
	vp_direct_free(vcpu);
	vfree(vcpu->memory);
	kvfree(vcpu->memory_copy);
	kfree(vcpu->events);
}

/* Undoes all of attach, however far it came. Nobody but the caller sees the VM any more. */
static void detach(struct vp_vm *vm)
{
	u32 i;

	cancel_delayed_work_sync(&vm->rotate);
	if (vp_to_guest(vm->delivery))
		vp_direct_detach(vm);
	vp_row_remove(vm);
	for (i = 0; i < vm->nr_vcpus; i++)
		vcpu_free(&vm->vcpus[i], vm->nr_events);
	kfree(vm->vcpus);
	put_pid(vm->vmm);
	vm->vcpus = NULL;
	vm->vmm = NULL;
	vm->nr_vcpus = 0;
	vm->nr_events = 0;
}

void vp_vm_free(struct vp_vm *vm)
{
	detach(vm);
	kfree(vm);
}

#define ATTACH_FLAGS (VMPROF_ATTACH_EXPERIMENTAL | VMPROF_ATTACH_FORCE)

static bool attach_ok(const struct vmprof_attach *attach)
{
	if (vp_to_guest(attach->delivery))
		return !attach->ring_size && !attach->stack_size && !attach->wakeup &&
		       !(attach->flags & ~ATTACH_FLAGS) && !attach->sample_flags &&
		       !attach->reserved && attach->handler;
	if (attach->handler || attach->log || (attach->flags & ATTACH_FLAGS))
		return false;
	if (attach->ring_size < VMPROF_RING_MIN || attach->ring_size > VMPROF_RING_MAX ||
	    !is_power_of_2(attach->ring_size) || attach->ring_size % PAGE_SIZE)
		return false;
	if ((u64)attach->nr_vcpus * attach->ring_size > VMPROF_MEMORY_MAX)
		return false;
	if (attach->sample_flags & ~(vp_arch_sample_flags & VMP_SAMPLE_REGS) || attach->reserved)
		return false;
	return attach->stack_size <= VMPROF_STACK_MAX && attach->stack_size % 8 == 0;
}

/* The threads, of which each must be another one of the same process. */
static int find_threads(struct vp_vm *vm, const s32 *threads)
{
	u32 i, k;

	for (i = 0; i < vm->nr_vcpus; i++) {
		struct vp_vcpu *vcpu = &vm->vcpus[i];
		struct pid *pid = find_get_pid(threads[i]);

		vcpu->vm = vm;
		vcpu->index = i;
		raw_spin_lock_init(&vcpu->lock);
		init_irq_work(&vcpu->work, vp_work);
		vcpu->task = get_pid_task(pid, PIDTYPE_PID);
		put_pid(pid);
		if (!vcpu->task || !same_thread_group(vcpu->task, vm->vcpus[0].task))
			return -ESRCH;
		for (k = 0; k < i; k++)
			if (vm->vcpus[k].task == vcpu->task)
				return -EINVAL;
	}
	vm->vmm = get_task_pid(vm->vcpus[0].task, PIDTYPE_TGID);
	return vm->vmm ? 0 : -ESRCH;
}

static int delivery_ok(const struct vmprof_attach *attach)
{
	if (attach->delivery == VMP_DELIVER_HOST)
		return 0;
	if (!vp_to_guest(attach->delivery))
		return -EINVAL;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	return vp_direct_refusal(attach->delivery, attach->flags) ? -EOPNOTSUPP : 0;
}

int vp_vm_attach(struct vp_vm *vm, struct vmprof_attach *attach, const s32 *threads,
		 const struct vmprof_event *events, struct vp_log *log)
{
	u32 i;
	int err;

	if (vm->vcpus)
		return -EBUSY;
	err = delivery_ok(attach);
	if (err)
		return err;
	if (!attach_ok(attach))
		return -EINVAL;
	vm->vcpus = kcalloc(attach->nr_vcpus, sizeof(*vm->vcpus), GFP_KERNEL);
	if (!vm->vcpus)
		return -ENOMEM;
	vm->nr_vcpus = attach->nr_vcpus;
	vm->flags = attach->flags;
	vm->delivery = attach->delivery;
	vm->ring_size = attach->ring_size;
	vm->stack_size = attach->stack_size;
	vm->wakeup = attach->wakeup;
	vm->registers = attach->sample_flags & VMP_SAMPLE_REGS;
	err = find_threads(vm, threads);
	if (!err)
		err = vp_row_put(vm, attach, events);
	if (err)
		goto out;
	vm->nr_events = attach->nr_events;
	for (i = 0; i < vm->nr_vcpus && !err; i++)
		err = vcpu_new(&vm->vcpus[i], attach, events);
	if (!err && vp_to_guest(vm->delivery))
		err = vp_direct_attach(vm, attach, log);
	if (!err)
		vp_row_publish(vm);
	attach->vm = vm->id;
	attach->ring_stride = attach->ring_size ? PAGE_SIZE + attach->ring_size : 0;
out:
	if (err)
		detach(vm);
	return err;
}

/* ------------------------------------------------------------------ counting */

static void switch_turn(struct vp_vm *vm, u32 turn, bool on)
{
	u32 i, k;

	for (i = 0; i < vm->nr_vcpus; i++)
		for (k = 0; k < vm->nr_events; k++) {
			struct perf_event *perf = vm->vcpus[i].events[k].perf;

			if (vm->turn_of[k] != turn)
				continue;
			if (on)
				perf_event_enable(perf);
			else
				perf_event_disable(perf);
		}
}

static void rotate(struct work_struct *work)
{
	struct vp_vm *vm = container_of(to_delayed_work(work), struct vp_vm, rotate);

	mutex_lock(&vm->lock);
	if (vm->started) {
		switch_turn(vm, vm->turn, false);
		vm->turn = (vm->turn + 1) % vm->turns;
		switch_turn(vm, vm->turn, true);
		schedule_delayed_work(&vm->rotate, TURN);
	}
	mutex_unlock(&vm->lock);
}

int vp_vm_want(struct vp_vm *vm, const struct vmprof_want *want, const u64 *areas)
{
	u32 i;

	if (!vm->vcpus)
		return -ENXIO;
	if (want->nr_vcpus != vm->nr_vcpus)
		return -EINVAL;
	if (vm->started)
		return -EBUSY;
	vm->want = *want;
	for (i = 0; i < vm->nr_vcpus; i++)
		vm->vcpus[i].area = areas[i];
	return 0;
}

int vp_vm_start(struct vp_vm *vm)
{
	if (!vm->vcpus)
		return -ENXIO;
	if (vm->started)
		return 0;
	vm->started = true;
	if (vp_to_guest(vm->delivery)) {
		vp_direct_start(vm);
		return 0;
	}
	switch_turn(vm, vm->turn, true);
	if (vm->turns > 1)
		schedule_delayed_work(&vm->rotate, TURN);
	return 0;
}

/* Samples whose guest does not run again are written without what its memory would tell. */
static void flush(struct vp_vm *vm)
{
	unsigned long flags;
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++) {
		irq_work_sync(&vm->vcpus[i].work);
		local_irq_save(flags);
		vp_complete(&vm->vcpus[i], NULL);
		local_irq_restore(flags);
	}
}

int vp_vm_stop(struct vp_vm *vm)
{
	if (!vm->vcpus)
		return -ENXIO;
	if (!vm->started)
		return 0;
	vm->started = false;
	if (vp_to_guest(vm->delivery)) {
		vp_direct_stop(vm);
		return 0;
	}
	switch_turn(vm, vm->turn, false);
	flush(vm);
	wake_up_interruptible(&vm->wait);
	return 0;
}

/* How long the VM's events were wanted: the sum over all turns, each of which one event stands for.
 */
static u64 wanted_time(const struct vp_vm *vm, const struct vp_vcpu *vcpu)
{
	u64 sum = 0, enabled, running;
	u32 turn, k;

	for (turn = 0; turn < vm->turns; turn++)
		for (k = 0; k < vm->nr_events; k++)
			if (vm->turn_of[k] == turn) {
				perf_event_read_value(vcpu->events[k].perf, &enabled, &running);
				sum += enabled;
				break;
			}
	return sum;
}

int vp_vm_read(struct vp_vm *vm, struct vmprof_read *read)
{
	struct vp_event *event;
	u64 enabled;

	if (!vm->vcpus)
		return -ENXIO;
	if (read->vcpu >= vm->nr_vcpus || read->event >= vm->nr_events)
		return -EINVAL;
	if (vp_to_guest(vm->delivery))
		return -EOPNOTSUPP;
	event = &vm->vcpus[read->vcpu].events[read->event];
	if (event->perf->state == PERF_EVENT_STATE_ERROR)
		return -ENODATA;
	read->value = perf_event_read_value(event->perf, &enabled, &read->running);
	read->enabled = vm->turns > 1 ? wanted_time(vm, event->vcpu) : enabled;
	read->outside = READ_ONCE(event->outside);
	return 0;
}

int vp_vm_status(struct vp_vm *vm, struct vmprof_status *status)
{
	if (!vm->vcpus)
		return -ENXIO;
	if (!vp_to_guest(vm->delivery))
		return -EOPNOTSUPP;
	vp_direct_status(vm, status);
	return 0;
}

bool vp_vm_dead(const struct vp_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->nr_vcpus; i++)
		if (!READ_ONCE(vm->vcpus[i].task->exit_state))
			return false;
	return true;
}
