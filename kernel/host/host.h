/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vmprof.ko: what its files share. A file descriptor of /dev/vmprof has one struct vp_vm; that has
 * a struct vp_vcpu for each vCPU's thread, with a ring, and that a struct vp_event for each event.
 *
 * A sample is made in two steps. At overflow, which may be an NMI, the registers go into the
 * event's slot. When it is safe to read the guest's memory, the sample is completed and written
 * into the ring. The second step runs on the vCPU's own CPU with interrupts off and not in an NMI,
 * right behind the first where that can be, or where the profile is stopped; a lock tells the two
 * apart.
 */
#ifndef VMPROF_HOST_H
#define VMPROF_HOST_H

#include <linux/irq_work.h>
#include <linux/kvm_host.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "../core/sample.h"
#include "../core/table.h"
#include "../core/walk.h"
#include "../uapi/vmprof.h"

/* What is in an event's slot. Only the handler of the event fills it, and only the producer of the
 * vCPU empties it. */
enum vp_slot {
	VP_SLOT_EMPTY,
	VP_SLOT_FILLING,
	VP_SLOT_FULL,
	VP_SLOT_WRITING, /* being written into the ring */
};

struct vp_event {
	struct vp_vcpu *vcpu;
	struct perf_event *perf;
	u32 index;
	enum vp_slot slot;
	struct vmp_sample sample; /* the slot */
	atomic64_t missed;	  /* overflows while the slot was being filled or written */
	u64 outside;		  /* overflows that were not in the guest */
};

struct vp_vcpu {
	struct vp_vm *vm;
	u32 index;
	struct task_struct *task;
	struct hlist_node node; /* by task, for vp_vcpu_of() */
	void *memory;		/* the ring's, vmalloc_user */
	raw_spinlock_t lock; /* of the ring's producers: the vCPU's own CPU, and whoever stops it */
	struct vmp_ring ring;
	struct irq_work work;
	bool wake; /* work is to wake whoever polls: there is enough to read */
	struct vmp_regs
		regs;	 /* room for a sample's: to clear it on the stack would cost each sample */
	u8 *memory_copy; /* and for its segments, VP_SEGMENTS_SIZE(vm) bytes */
	u64 area;	 /* see struct vmprof_want */
	struct vp_event *events;
	struct vp_direct *direct; /* direct.h; null if the host delivers, and all of the above but
				     task and node is unused with this one */
};

/* A sample's segments: up to three stacks, and the registers of user mode at the top of a task's.
 */
#define VP_TASK_TOP 512
#define VP_SEGMENTS_SIZE(stack_size)                                                               \
	(3 * (stack_size) + VP_TASK_TOP + 4 * sizeof(struct vmp_segment))

struct vp_log;

struct vp_vm {
	struct mutex lock;
	u64 id;		 /* 0: nothing is attached */
	struct pid *vmm; /* the process */
	u32 nr_vcpus, nr_events;
	struct vp_vcpu *vcpus;
	u32 ring_size, stack_size, wakeup;
	struct vmprof_want want;
	u32 flags, delivery;
	bool registers; /* are wanted with each sample */
	bool started;
	struct list_head direct; /* direct.h */
	struct vp_log *log;	 /* the same; or null */
	struct vp_nmis *nmis;	 /* nmi_x86.h */
	u32 turn, turns;	 /* of events that take turns, see core/sched.h */
	u8 turn_of[VMP_EVENTS_MAX];
	struct delayed_work rotate;
	wait_queue_head_t wait;
};

/* ------------------------------------------------------------------ vm.c */

struct vp_vm *vp_vm_new(void);
void vp_vm_free(struct vp_vm *vm);
/* Of these and the following, the caller holds vm->lock. */
/* threads[attach->nr_vcpus] and events[attach->nr_events] stay the caller's, and the log of
 * direct.h if it fails. */
int vp_vm_attach(struct vp_vm *vm, struct vmprof_attach *attach, const s32 *threads,
		 const struct vmprof_event *events, struct vp_log *log);
/* areas[want->nr_vcpus] stays the caller's. */
int vp_vm_want(struct vp_vm *vm, const struct vmprof_want *want, const u64 *areas);
int vp_vm_start(struct vp_vm *vm);
int vp_vm_stop(struct vp_vm *vm);
int vp_vm_read(struct vp_vm *vm, struct vmprof_read *read);
int vp_vm_status(struct vp_vm *vm, struct vmprof_status *status);
/* Whether all threads of its vCPUs have ended. */
bool vp_vm_dead(const struct vp_vm *vm);

/* ------------------------------------------------------------------ rows.c */

/* Puts the VM into the table of all VMs. 0 or -errno; fills in what attach says about counters. */
int vp_row_put(struct vp_vm *vm, struct vmprof_attach *attach, const struct vmprof_event *events);
/* From now on vp_vcpu_of() finds its vCPUs: all they have is there. */
void vp_row_publish(struct vp_vm *vm);
/* Takes the VM out; nobody uses what vp_vcpu_of() has found of it when this returns. Nothing if it
 * is not in. */
void vp_row_remove(struct vp_vm *vm);
/* VMs in it, and the counters of a CPU, a bit each. */
u32 vp_rows(void);
u64 vp_row_counters(void);
/* The vCPU that the current thread runs, or null. Within an RCU read section, or with interrupts
 * off. */
struct vp_vcpu *vp_vcpu_of(const struct task_struct *task);
int vp_rows_init(void);
void vp_rows_exit(void);

/* ------------------------------------------------------------------ sample.c */

/* perf's callback at overflow. */
void vp_overflow(struct perf_event *perf, struct perf_sample_data *data, struct pt_regs *regs);
/*
 * Completes and writes what is pending of a vCPU; guest is null if its memory cannot be read now.
 * Interrupts are off.
 */
void vp_complete(struct vp_vcpu *vcpu, struct kvm_vcpu *guest);
/* irq_work: completes what the overflow itself could not, where the architecture can do it here;
 * wakes whoever polls. */
void vp_work(struct irq_work *work);

/* ------------------------------------------------------------------ memory.c */

/* What vp_arch_walk() reads entries by; phys is in a struct vp_phys. */
struct vp_phys {
	struct vmp_phys phys;
	struct kvm_vcpu *guest;
};
void vp_phys_init(struct vp_phys *phys, struct kvm_vcpu *guest);
/*
 * Puts what is wanted of the guest's memory into vcpu->memory_copy and its task into the sample;
 * returns the bytes used.
 */
u32 vp_segments(struct vp_vcpu *vcpu, struct kvm_vcpu *guest, struct vmp_sample *sample);

/* ------------------------------------------------------------------ arch_*.c */

/* Whether the interrupt came while the guest ran. This and the next may be called in an NMI. */
bool vp_arch_in_guest(struct kvm_vcpu *guest, struct pt_regs *regs);
/* Puts ip, sp, fp, mode and their flags into the sample. */
void vp_arch_regs(struct kvm_vcpu *guest, struct vmp_sample *sample);
/* The page-table base as it was at the sample, with its flag. When vp_complete() has a guest. */
void vp_arch_page_table(struct kvm_vcpu *guest, struct vmp_sample *sample);
/* All other registers; as vp_arch_page_table(). */
void vp_arch_all_regs(struct kvm_vcpu *guest, struct vmp_regs *regs);
/* The running task, if a register has it; else 0. As vp_arch_page_table(). */
u64 vp_arch_task(struct kvm_vcpu *guest, const struct vmp_sample *sample);
/*
 * From the guest's virtual address to its physical one, with these bits of the page-table base
 * cleared. 0 or less than 0. Never faults or sleeps; the caller holds kvm->srcu.
 */
int vp_arch_walk(struct kvm_vcpu *guest, u64 root_clear, u64 vaddr, u64 *gpa);
/* Whether all of the guest can be read behind the exit, by the overflow itself or by vp_work();
 * else something else calls vp_complete(). */
extern const bool vp_arch_complete_now;
/* VMP_SAMPLE_... that samples of this architecture may have. */
extern const u32 vp_arch_sample_flags;
/* The counters of a CPU, a bit each, and which of them can count what the event asks of its PMU.
 * cycles is an event of the CPU's PMU, made to find these out. */
u64 vp_arch_counters(const struct perf_event *cycles);
u64 vp_arch_counters_for(const struct vmprof_event *event, u64 counters);
int vp_arch_init(void);
void vp_arch_exit(void);

#endif
