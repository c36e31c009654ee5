/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The interface of vmprof.ko: /dev/vmprof.
 *
 * Whoever opens the device needs CAP_PERFMON (or CAP_SYS_ADMIN). One file descriptor profiles one
 * VM, and a VM has one at a time. ATTACH says which VM and events; START and STOP let them count;
 * the samples of each vCPU are in a ring (kernel/core/ring.h, records in kernel/core/sample.h) that
 * is mapped from the descriptor. Closing it undoes everything, also when the process dies. poll()
 * tells POLLIN when a ring has wakeup bytes, and POLLHUP when the VM's threads are gone.
 *
 * Every structure starts with its size in bytes, which the caller sets. A newer caller's larger
 * structure is taken if what this module does not know of it is zero (E2BIG if not); a smaller one
 * has zeros for the rest. What the module writes back is cut to the caller's size. Reserved fields
 * are zero.
 */
#ifndef VMPROF_UAPI_H
#define VMPROF_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define VMPROF_DEVICE	  "/dev/vmprof"
#define VMPROF_ABI	  1 /* goes up when an old caller would be misled */

#define VMPROF_VCPUS_MAX  512
#define VMPROF_STACK_MAX  16384	      /* bytes of stack with a sample */
#define VMPROF_RING_MIN	  65536	      /* bytes of a ring's data */
#define VMPROF_RING_MAX	  (1 << 26)   /* of one ring */
#define VMPROF_MEMORY_MAX (1ll << 30) /* of all rings of a VM */
#define VMPROF_WHY	  128	      /* bytes of a sentence, with the zero at its end */

struct vmprof_info {
	__u32 size;
	__u32 abi;	    /* VMPROF_ABI of the module */
	__u64 counters;	    /* a bit for each counter of a CPU of this host; 0: it has no PMU */
	__u32 deliveries;   /* a bit for each enum vmp_delivery that works here */
	__u32 sample_flags; /* VMP_SAMPLE_... that samples may have here */
	__u32 vms;	    /* that are being profiled now */
	__u32 experimental; /* deliveries that work only with VMPROF_ATTACH_EXPERIMENTAL */
	char why_not_direct[VMPROF_WHY]; /* a sentence; empty if direct delivery works here */
	char why_not_inject[VMPROF_WHY]; /* the same of interrupts that the host raises */
};

/* vmprof_event.flags; VMP_COUNT_USER and VMP_COUNT_KERNEL are the low bits */
#define VMPROF_EVENT_FREQ 0x100 /* period is a frequency in Hz, which the kernel keeps */

struct vmprof_event {
	__u32 type;  /* as perf_event_attr.type: the PMU */
	__u32 flags; /* VMP_COUNT_..., VMPROF_EVENT_... */
	__u64 config;
	__u64 config1;
	__u64 config2;
	__u64 period; /* events from sample to sample; 0: counted only */
};

/* vmprof_attach.flags, with delivery to the guest only; VMP_ROW_... are the low bits */
#define VMPROF_ATTACH_EXPERIMENTAL 0x100 /* also where its safety has not been shown */
#define VMPROF_ATTACH_FORCE	   0x200 /* also where the host's NMI watchdog is on */

struct vmprof_attach {
	__u32 size;
	__u32 flags;	/* VMP_ROW_..., VMPROF_ATTACH_... */
	__u32 delivery; /* enum vmp_delivery */
	__u32 nr_vcpus;
	__u64 vcpus;  /* __s32[nr_vcpus]: thread id of each vCPU; threads of one process */
	__u64 events; /* struct vmprof_event[nr_events] */
	__u32 nr_events;
	__u32 ring_size;  /* bytes of data of each ring, a power of 2 */
	__u32 stack_size; /* bytes of stack to copy with each sample, at most VMPROF_STACK_MAX; 0:
			     none */
	__u32 wakeup;	  /* bytes in a ring that wake poll() */
	/* Written back, also when the VM is refused with ENOSPC: */
	__u32 wanted;	   /* counters that the VM's events need at once */
	__u32 have;	   /* counters of a CPU */
	__u32 sharing;	   /* enum vmp_sharing: of all VMs that are profiled now */
	__u32 slices;	   /* turns that the events take; 1: all count at once */
	__u64 vm;	   /* the VM's id in samples */
	__u64 ring_stride; /* vCPU n's ring is mapped at offset n * ring_stride: header page and
			      data */
	/* Not written: */
	__u32 sample_flags; /* what samples are to have besides: VMP_SAMPLE_REGS or nothing */
	__u32 reserved;
	__u64 handler; /* direct, inject: as the guest's row says (vmprof_log.h); else 0 */
	/* direct: where the caller has mapped the log that it shares with the VM (vmprof_log.h),
	 * to be written; x86 only, ignored elsewhere */
	__u64 log;
};

/*
 * What of a Linux guest's memory is worth having with each sample, besides the stack at sp: the
 * running task, and where its chain goes on. Addresses are the guest's, virtual; an area is what
 * per-CPU addresses are relative to.
 */
struct vmprof_want {
	__u32 size;
	__u32 nr_vcpus;	    /* as attached */
	__u64 areas;	    /* __u64[nr_vcpus]: the area of each vCPU; 0: not known */
	__u64 root_clear;   /* bits of the page-table base to clear (page-table isolation's) */
	__u64 current_task; /* offset in the area: the running task */
	__u64 task_stack;   /* offset in the task: its kernel stack's lowest address */
	__u64 thread_size;  /* bytes of each kernel stack */
	__u64 saved_sp;	    /* offset in that stack: user mode's sp, as saved when it was left */
	__u64 irq_stack; /* offset in the area: address of the word that has the interrupted sp; 0:
			    unknown */
};

struct vmprof_read {
	__u32 size;
	__u32 vcpu;  /* its place in vmprof_attach.vcpus */
	__u32 event; /* its place in vmprof_attach.events */
	__u32 reserved;
	/* Written back: */
	__u64 value;
	__u64 enabled; /* ns: how long the event was wanted while the vCPU's thread ran */
	__u64 running; /* ns: how long it had a counter */
	__u64 outside; /* overflows that were not in the guest: seen, not sampled */
};

/*
 * Direct delivery (docs/direct-vector.md). On arm64 the events are of the CPU's PMU
 * (PERF_TYPE_RAW), and all fit at once; on x86 it is one event, cpu-clock (PERF_TYPE_SOFTWARE),
 * whose period is in ns and at least VMPROF_CLOCK_PERIOD_MIN: a timer's. Samples are in the log
 * that the VM shares with its host (vmprof_log.h) and not in rings: ring_size, stack_size and
 * wakeup are 0. The guest's handler must be in place before START, and stay there until the
 * descriptor is closed.
 *
 * Where interrupts are injected the same is lent. The counters' interrupts stay the host's, which
 * raises the one that the guest's row names (arm64: an SGI, 8 to 15), and counts them in
 * vmprof_status. It raises no other one before the guest has dealt with the last one, nor within
 * VMPROF_INJECT_PAUSE_NS of it. On x86 nothing is lent: the event is the vCPU's thread's, as with
 * the host's delivery, and the guest's interrupt an NMI (2), of which one is under way at most.
 */
#define VMPROF_CLOCK_PERIOD_MIN 100000
#define VMPROF_INJECT_PAUSE_NS	20000

enum vmprof_direct_state {
	VMPROF_DIRECT_OFF,	  /* not started, or stopped */
	VMPROF_DIRECT_WAITING,	  /* started; the guest has not run since */
	VMPROF_DIRECT_LENT,	  /* the VM has the counters whenever it runs */
	VMPROF_DIRECT_TAKEN_BACK, /* its handler has not acknowledged an interrupt for a second */
	VMPROF_DIRECT_REFUSED,	  /* this VM cannot have them, see why */
	VMPROF_DIRECT_RESET,	  /* its kernel is not the one that has the handler, see why */
};

struct vmprof_status {
	__u32 size;
	__u32 state;	    /* enum vmprof_direct_state */
	__u64 entries;	    /* how often the VM was entered with the counters */
	__u64 deferred;	    /* overflows that waited when it was entered: made to come once more */
	__u64 clock_offset; /* the host's virtual counter minus the guest's, ticks */
	char why[VMPROF_WHY];
	/* x86, direct: every NMI that was sent for the VM is counted once in the next five, when it
	 * has been seen: */
	__u64 sent;	     /* inject: interrupts that were raised; x86: they are in guest or
				merged, but for those under way */
	__u64 guest;	     /* taken by the guest's handler: a sample each */
	__u64 host;	     /* came while the host had the CPU */
	__u64 guard;	     /* made the guest exit, since it could not have stood it */
	__u64 forwarded;     /* came to a guest that it was not for, which has handed it on */
	__u64 merged;	     /* was never seen: one with another, or kept by the guest */
	__u64 late;	     /* was seen once more than it was sent, or was sent for nobody, to
				call the host's handlers; in none of the above */
	__u64 foreign;	     /* the host's own, or for nobody, which the guest has handed on */
	__u64 kept_entry;    /* entries without the interrupt: the guest stood in its NMI's entry */
	__u64 kept_injected; /* the same: it has an NMI of its own */
	__u64 held;	     /* NMIs of its own that were held back in the first case; inject:
				interrupts that were raised later, as they came too soon */
	__u64 unsent;	     /* periods that ended while the host or the timer had its CPU; inject:
				or the last one was not taken yet */
};

/*
 * All return EFAULT for memory that cannot be read or written, E2BIG as said above, and:
 *
 * ATTACH  EBUSY: this descriptor has a VM, or another one has this VM
 *         ESRCH: no such thread, or threads of several processes
 *         ENOSPC: more events than counters, see wanted and have
 *         EOPNOTSUPP: this delivery does not work here, see vmprof_info
 *         EPERM: delivery to the guest needs CAP_SYS_ADMIN
 *         EINVAL: a field makes no sense, or samples have that not here
 *         ENOMEM; and what perf says of an event that it cannot count, ENOENT for instance
 * WANT    ENXIO: no VM
 *         EINVAL: another number of vCPUs
 *         EBUSY: it counts
 * START   ENXIO: no VM. May be repeated.
 * STOP    ENXIO: no VM. May be repeated.
 * READ    ENXIO: no VM
 *         EINVAL: no such vCPU or event
 *         ENODATA: the event could not be scheduled, since others have the counters
 *         EOPNOTSUPP: the guest has the counters
 * STATUS  ENXIO: no VM; EOPNOTSUPP: its delivery is the host's
 */
#define VMPROF_IOC_INFO	  _IOWR('V', 0x70, struct vmprof_info)
#define VMPROF_IOC_ATTACH _IOWR('V', 0x71, struct vmprof_attach)
#define VMPROF_IOC_START  _IO('V', 0x72)
#define VMPROF_IOC_STOP	  _IO('V', 0x73)
#define VMPROF_IOC_READ	  _IOWR('V', 0x74, struct vmprof_read)
#define VMPROF_IOC_WANT	  _IOW('V', 0x75, struct vmprof_want)
#define VMPROF_IOC_STATUS _IOWR('V', 0x76, struct vmprof_status)

#endif
