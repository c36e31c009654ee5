/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vmprof_guest.ko: what its files share. There are up to two logs (uapi/vmprof_log.h): that of a
 * device which the host sees as well, and that of the guest's own user. While a request in one of
 * them is served, each CPU has a struct vg_cpu, which only that CPU's handler writes.
 */
#ifndef VMPROF_GUEST_H
#define VMPROF_GUEST_H

#include <linux/percpu.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/types.h>

#ifdef CONFIG_ARM64
#include <asm/sysreg.h>
#else
#include <asm/msr.h>
#endif

#include "../core/log.h"
#include "../core/sample.h"
#include "../core/table.h"

/* Frames of the handler itself, between it and what was interrupted, at most. */
#define VG_OWN_FRAMES 24

struct vg_cpu {
	struct vmp_ring ring;
	bool busy;  /* a handler is writing: another one has interrupted it */
	u64 missed; /* samples of such; to be said when the ring is free again */
	u64 overflows, spurious;
	u64 periods[VMPROF_LOG_EVENTS_MAX]; /* of lent counters: of the samples at hand */
	u32 last_pid;			    /* whose name was written last */
	char last_comm[TASK_COMM_LEN];
	struct vmp_guest_sample sample; /* one that does not lie in the ring in one piece */
	unsigned long trace[VMPROF_LOG_CHAIN_MAX + VG_OWN_FRAMES];
	u64 chain[VMPROF_LOG_CHAIN_MAX];
};

/* What is served. Changed only while no handler runs. */
struct vg_request {
	void *log;  /* from page 0 on */
	u32 number; /* of the request */
	u32 source, chain, nr;
	struct vmprof_log_event events[VMPROF_LOG_EVENTS_MAX];
};

extern struct vg_request vg_request;
DECLARE_PER_CPU(struct vg_cpu, vg_cpus);

/* ------------------------------------------------------------------ serve.c */

struct vg_log {
	void *memory;
	u64 bytes;
	u32 answered; /* the last request that was */
	bool own;     /* of the guest's own user */
};

/* Answers what is asked for in it, if that is new. May sleep, and so may the next one. */
void vg_look(struct vg_log *log);
/* Nothing is written into it any more. */
void vg_stop(const struct vg_log *log);
/*
 * Another kernel may be next, without a handler: a second for who has asked to see that this one
 * ends, and to ask for something else. The handler stays.
 */
void vg_farewell(const struct vg_log *log);

/* ------------------------------------------------------------------ device.c */

int vg_device_init(void);
void vg_device_exit(void);

/* ------------------------------------------------------------------ sample.c */

/* The guest's clock, in ticks. */
static inline u64 vg_clock(void)
{
#ifdef CONFIG_ARM64
	return read_sysreg(cntvct_el0);
#else
	return rdtsc();
#endif
}

/*
 * Writes a sample of what regs were interrupted at into this CPU's ring. Preemption is off, the
 * context whatever it is: it neither sleeps nor allocates nor locks.
 */
void vg_sample(struct pt_regs *regs, u32 event, u64 period, u64 time);

/* ------------------------------------------------------------------ side.c */

/*
 * From here on what becomes of processes, and what they map, is written into a ring in this memory:
 * a page and size bytes. 0 or -errno.
 */
int vg_side_start(void *memory, u64 size);
/* Writes what there is already: all processes with their maps. Waits for a reader, a second at
 * most. */
void vg_side_tell(void);
void vg_side_stop(void); /* also where it has not begun */

/* The build id of the program or library in this file, as far as its first page is in memory: the
 * length of id, or 0. Does not sleep. */
u32 vg_build_id(struct address_space *file, u8 id[20]);

/* ------------------------------------------------------------------ source_*.c */

/*
 * A source: what calls vg_sample(). start makes the handlers of vg_request ready and fills in
 * row->handler if the host has a part in it; 0, or -errno with the sentence in row->why. stop
 * returns when no handler runs any more.
 */
struct vg_source {
	int (*start)(struct vmprof_log_guest *row);
	void (*stop)(void);
};

extern const struct vg_source vg_source_perf;
extern const struct vg_source vg_source_direct;
extern const struct vg_source vg_source_inject;
void vg_direct_exit(void); /* it is not started again */

#endif
