// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: call chains. Both walks put the addresses into @out, leaf first, at most @max,
 * count them in *n and say how they ended.
 */
#ifndef VMPROF_GUEST_CHAIN_H
#define VMPROF_GUEST_CHAIN_H

#include "guest/orc.h"
#include "guest/process.h"
#include "guest/stack.h"
#include "unwind/unwind.h"

/*
 * Where the return addresses of the first two steps were read, 0: there was no such step. They tell
 * whether the vCPU has popped those frames meanwhile; see guest.c.
 */
struct guest_slots {
	uint64_t at[2];
	unsigned n;
};

struct user_abi;

struct guest_user_walk {
	struct guest_code *code;
	struct guest_stack *stack;
	struct guest_process *proc; /* whose maps tell code from data */
	struct guest_dsos *dsos;    /* that are hit are marked */
	struct guest_kmem *km;
	uint64_t time;		  /* of the sample */
	uint64_t fsbase;	  /* of the thread, as far as is known */
	struct guest_frame f;	  /* in: registers */
	struct unwind_regs regs;  /* in: the other general registers, as far as known */
	struct guest_slots slots; /* out */
	const struct user_abi *abi;
};
enum chain_end guest_chain_user(struct guest_user_walk *w, uint64_t *out, unsigned max,
				unsigned *n);

struct guest_kernel_walk {
	struct guest_orc *orc;
	struct guest_kernel *kernel;
	struct guest_code *code;
	struct guest_as as; /* of the kernel */
	struct guest_stack *stack;
	uint64_t thread_size;
	uint64_t irq_stack; /* lowest address of the CPU's interrupt stack; 0 unknown */
	/* aarch64: x30; and from the layout */
	uint64_t lr, saved_regs;
	int32_t regs_record, record_type;
	struct guest_frame f;	  /* in: registers; out: the user's, if entered_from_user */
	struct guest_slots slots; /* out */
	bool entered_from_user;	  /* out: user mode's registers were reached */
	bool at_border;		  /* out, aarch64: in exception entry or exit */
	uint64_t task_stack; /* out: lowest address of the task's stack that was reached; 0 none */
};
/*
 * Each CPU's entry and exception stacks are in the cpu_entry_area, whose place in the address space
 * is fixed (CPU_ENTRY_AREA_BASE, Documentation/arch/x86/x86_64/mm.rst); with 4 and 5 levels alike.
 */
static inline bool guest_in_entry_area(uint64_t va)
{
	return va - 0xfffffe0000000000ull < 1ull << 39;
}

/* Is there a call before @ra, and does it go to the function that @ip is in? */
enum guest_call {
	CALL_NONE,
	CALL_OTHER,    /* a direct call to another function */
	CALL_INDIRECT, /* cannot be told */
	CALL_DIRECT,   /* yes */
};
enum guest_call guest_kernel_call(struct guest_kernel_walk *w, uint64_t ra, uint64_t ip);

/* By the kernel's ORC tables; and by frame pointers, where it is one for aarch64. */
enum chain_end guest_chain_kernel(struct guest_kernel_walk *w, uint64_t *out, unsigned max,
				  unsigned *n);
enum chain_end guest_chain_kernel_arm64(struct guest_kernel_walk *w, uint64_t *out, unsigned max,
					unsigned *n);

#endif
