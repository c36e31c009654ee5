// SPDX-License-Identifier: GPL-2.0-only
/* The table of all VMs that are profiled on this host, and which thread runs which vCPU. */
#include <linux/hashtable.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../core/sched.h"
#include "host.h"

#define ROWS_MAX 256

static DEFINE_MUTEX(lock);
static struct vmp_table table;
static struct pid *vmms[ROWS_MAX]; /* of table.rows[i] */
static u64 last_id;

static DEFINE_HASHTABLE(vcpus, 7); /* changed under the lock, read under RCU */

/* A cycles event that never runs tells what this CPU's PMU is; without a PMU there is none. */
static u64 find_counters(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.size = sizeof(attr),
		.disabled = 1,
	};
	struct perf_event *cycles =
		perf_event_create_kernel_counter(&attr, -1, current, NULL, NULL);
	u64 counters;

	if (IS_ERR(cycles))
		return 0;
	counters = vp_arch_counters(cycles);
	perf_event_release_kernel(cycles);
	return counters;
}

int vp_rows_init(void)
{
	struct vmp_row *rows = vzalloc(ROWS_MAX * sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	vmp_table_init(&table, find_counters(), rows, ROWS_MAX);
	return 0;
}

void vp_rows_exit(void)
{
	vfree(table.rows);
}

u32 vp_rows(void)
{
	return READ_ONCE(table.nr);
}

u64 vp_row_counters(void)
{
	return table.counters;
}

struct vp_vcpu *vp_vcpu_of(const struct task_struct *task)
{
	struct vp_vcpu *vcpu;

	hash_for_each_possible_rcu(vcpus, vcpu, node,
				   (unsigned long)task) if (vcpu->task == task) return vcpu;
	return NULL;
}

static void fill(struct vmp_row *row, const struct vmprof_attach *attach,
		 const struct vmprof_event *events)
{
	u32 i;

	row->vm = last_id + 1;
	row->delivery = attach->delivery;
	row->handler = attach->handler;
	row->flags = attach->flags & ~(VMPROF_ATTACH_EXPERIMENTAL | VMPROF_ATTACH_FORCE);
	row->nr = attach->nr_events;
	for (i = 0; i < row->nr; i++)
		row->controls[i] = (struct vmp_control){
			.type = events[i].type,
			.flags = events[i].flags & ~VMPROF_EVENT_FREQ,
			.config = events[i].config,
			.config1 = events[i].config1,
			.period = events[i].period,
			.counters = vp_arch_counters_for(&events[i], table.counters),
		};
}

static int to_errno(int err)
{
	switch (err) {
	case 0:
		return 0;
	case -VMP_EBUSY:
		return -EBUSY;
	case -VMP_EFULL:
		return -ENOMEM;
	case -VMP_ECOUNTERS:
		return -ENOSPC;
	}
	return -EINVAL;
}

static u32 counters_wanted(const struct vmp_row *row)
{
	u32 i, wanted = 0;

	for (i = 0; i < row->nr; i++)
		wanted += !!row->controls[i].counters;
	return wanted;
}

static void taken(struct vp_vm *vm, const struct vmp_row *row, struct vmprof_attach *attach)
{
	vm->id = row->vm;
	vm->turns = row->slices;
	memcpy(vm->turn_of, row->slice, sizeof(vm->turn_of));
	attach->sharing = table.sharing;
	attach->slices = row->slices;
}

int vp_row_put(struct vp_vm *vm, struct vmprof_attach *attach, const struct vmprof_event *events)
{
	struct vmp_row *row = kzalloc(sizeof(*row), GFP_KERNEL);
	u32 i;
	int err = 0;

	if (!row)
		return -ENOMEM;
	mutex_lock(&lock);
	for (i = 0; i < table.nr; i++)
		if (vmms[i] == vm->vmm)
			err = -EBUSY;
	if (err)
		goto out;
	fill(row, attach, events);
	attach->wanted = counters_wanted(row);
	attach->have = hweight64(table.counters);
	err = to_errno(vmp_table_put(&table, row));
	if (err)
		goto out;
	last_id++;
	vmms[table.nr - 1] = vm->vmm;
	taken(vm, &table.rows[table.nr - 1], attach);
out:
	mutex_unlock(&lock);
	kfree(row);
	return err;
}

void vp_row_publish(struct vp_vm *vm)
{
	u32 i;

	mutex_lock(&lock);
	for (i = 0; i < vm->nr_vcpus; i++)
		hash_add_rcu(vcpus, &vm->vcpus[i].node, (unsigned long)vm->vcpus[i].task);
	mutex_unlock(&lock);
}

void vp_row_remove(struct vp_vm *vm)
{
	u32 i, place;

	if (!vm->id)
		return;
	mutex_lock(&lock);
	for (i = 0; i < vm->nr_vcpus; i++)
		if (!hlist_unhashed(&vm->vcpus[i].node))
			hash_del_rcu(&vm->vcpus[i].node);
	place = vmp_table_find(&table, vm->id) - table.rows;
	vmp_table_remove(&table, vm->id);
	memmove(&vmms[place], &vmms[place + 1], (table.nr - place) * sizeof(*vmms));
	mutex_unlock(&lock);
	vm->id = 0;
	synchronize_rcu();
}
