// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside the tcg backend: the vCPU's state and the tops of the guest's stacks, copied by the host's
 * kernel at the tick itself.
 *
 * A BPF program on the thread's clock event runs in the timer interrupt that stopped the thread, so
 * what it copies is of one moment: registers fit together and to the stacks, however late the
 * reader comes, and two ticks that wait are two samples. It needs CAP_BPF and CAP_PERFMON (root has
 * both); without them, or where a copy fails since memory is not present, the reader looks for
 * itself as well as it can.
 */
#ifndef VMPROF_BACKEND_TCG_SNAPSHOT_H
#define VMPROF_BACKEND_TCG_SNAPSHOT_H

#include "backend/tcg.h"

#define TCG_SNAPSHOT_REGIONS 8 /* of RAM, at most: a program has no loops */
#define TCG_SNAPSHOT_PAGE    4096

/*
 * Pages of stacks: each the one that a stack pointer points to and the one above, where its oldest
 * frames soon are. The last five are copied in kernel mode only.
 */
enum tcg_snapshot_page {
	TCG_PAGE_SP,
	TCG_PAGE_SP_ABOVE,
	TCG_PAGE_TASK_TOP, /* of the task's kernel stack: user mode's registers */
	TCG_PAGE_USER,	   /* user mode's stack */
	TCG_PAGE_USER_ABOVE,
	TCG_PAGE_INTERRUPTED, /* the stack that was left for the interrupt stack; aarch64: the page
				 below TASK_TOP, if the stack pointer is on another stack */
	TCG_PAGE_INTERRUPTED_ABOVE,
	TCG_SNAPSHOT_PAGES
};

/* What the program writes; its code has these offsets. */
struct tcg_snapshot {
	uint64_t time; /* CLOCK_MONOTONIC, ns */
	uint32_t cpu;
	uint32_t source;			 /* as given to tcg_snapshots_attach() */
	uint64_t value, enabled, running;	 /* of the event's counter, ns */
	uint64_t host_ip, host_areg0, host_user; /* host_user: not 0 if ip is of user mode */
	int64_t env_error;			 /* 0: env was copied */
	int64_t task_error;			 /* 0: task was copied */
	uint64_t task;				 /* see struct guest_wanted */
	uint64_t kernel_gs;			 /* where the layout has them */
	uint32_t halted, reserved;
	uint64_t page_va[TCG_SNAPSHOT_PAGES]; /* 0: it was not copied */
	uint8_t env[TCG_ENV_HEAD];
	uint8_t page[TCG_SNAPSHOT_PAGES][TCG_SNAPSHOT_PAGE];
};

/* What program and reader share beside the buffer. */
#define TCG_KNOWN_TASKS 256
struct tcg_shared {
	uint64_t sleeping; /* not 0: the reader waits for the next snapshot */
	/* Tasks that snapshots were of lately, by a hash of their address. One that is not there
	 * wakes the reader: it may not live long enough to be looked at by the clock. */
	uint64_t known[TCG_KNOWN_TASKS];
};

struct tcg_snapshots; /* one buffer for all vCPUs of a session */

/* For @nr_sources events. 0, or -errno with a sentence: the kernel has no such programs, or does
 * not let us use them. */
int tcg_snapshots_open(struct tcg_snapshots **out, unsigned nr_sources, struct vmprof_err *err);
void tcg_snapshots_close(struct tcg_snapshots *s);   /* NULL is fine */
int tcg_snapshots_fd(const struct tcg_snapshots *s); /* readable: see tcg_snapshots_sleep() */

/*
 * Lets a clock event of the thread that runs the vCPU with this @env take snapshots. When the
 * buffer is full the event writes its own record as if there were no program. 0 or -errno with a
 * sentence.
 */
int tcg_snapshots_attach(struct tcg_snapshots *s, int event_fd, uint32_t source, uint64_t env,
			 const struct tcg_layout *l, const struct vm_ram_region *ram,
			 unsigned nr_regions, const struct guest_wanted *wanted,
			 struct vmprof_err *err);

/* The next one, valid until the next call; NULL if there is none. */
const struct tcg_snapshot *tcg_snapshots_next(struct tcg_snapshots *s);

/*
 * To be called before waiting for the next one: it will make the descriptor readable. Else only one
 * of a new task does, or one that fills a good part of the buffer, since waking costs the vCPU's
 * thread more than the snapshot: who comes back by a clock need not be woken. Returns false if
 * there is one already.
 */
bool tcg_snapshots_sleep(struct tcg_snapshots *s);

/* All tasks are new again: addresses are used again for others. */
void tcg_snapshots_forget_tasks(struct tcg_snapshots *s);

#endif
