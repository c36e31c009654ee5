// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: one step up a kernel stack by the kernel's ORC tables. The rules are those of
 * arch/x86/kernel/unwind_orc.c, the encoding of entries that of asm/orc_types.h.
 */
#ifndef VMPROF_GUEST_ORC_H
#define VMPROF_GUEST_ORC_H

#include "guest/kernel.h"
#include "guest/stack.h"
#include "util/hashmap.h"

enum guest_orc_type { ORC_UNDEFINED, ORC_END_OF_STACK, ORC_CALL, ORC_REGS, ORC_REGS_PARTIAL };

/* ORC_REG_*, the same numbers in all versions. */
enum guest_orc_reg {
	ORC_REG_UNDEFINED,
	ORC_REG_PREV_SP,
	ORC_REG_DX,
	ORC_REG_DI,
	ORC_REG_BP,
	ORC_REG_SP,
	ORC_REG_R10,
	ORC_REG_R13,
	ORC_REG_BP_INDIRECT,
	ORC_REG_SP_INDIRECT,
};

struct guest_orc_rule {
	int16_t sp_offset, bp_offset;
	uint8_t sp_reg, bp_reg, type;
	bool signal; /* the frame above was interrupted: its ip is no return address */
};

/* One table, sorted by address; entry i is for code from base + 4 * i + ip[i] on. */
struct guest_orc_table {
	uint64_t base;
	uint32_t n;
	int32_t *ip;
	uint8_t (*entry)[6];
};

enum guest_orc_format {
	ORC_TYPES_OLD, /* up to 6.2: CALL 0, REGS 1, REGS_PARTIAL 2, an `end` bit */
	ORC_TYPES_63,  /* 6.3: the same and a `signal` bit before `end` */
	ORC_TYPES_NEW, /* since 6.4: UNDEFINED 0, END_OF_STACK 1, CALL 2 ..., `signal` */
};

struct guest_orc {
	struct guest_kernel *kernel; /* for module tables; may be NULL */
	struct guest_virt *virt;
	struct guest_as as;
	enum guest_orc_format format;
	struct guest_orc_table main;
	struct hashmap modules; /* module id + 1 -> table */
	size_t module_entries;
};

/* Reads the kernel's own table; without one every step says ORC_STEP_NO_RULE. 0 or -ESRCH */
int guest_orc_init(struct guest_orc *o, struct guest_kernel *k, struct guest_virt *v);
void guest_orc_free(struct guest_orc *o);
/*
 * The rule for the instruction at @ip; false: there is none. *next: from where on another one
 * holds; may be NULL.
 */
bool guest_orc_find(struct guest_orc *o, uint64_t ip, struct guest_orc_rule *rule, uint64_t *next);

/* A frame: before a step of the callee, then of the caller. */
struct guest_frame {
	uint64_t ip, sp, bp;
	bool exact;    /* ip is the instruction that ran or will run, not a return address */
	bool has_regs; /* the following are known */
	uint64_t r10, r13, di, dx;
	uint64_t slot;	/* where ip was read; 0 for registers */
	bool sp_is_low; /* the stack pointer is at or above ->sp, no more is known of it */
};

enum guest_orc_step {
	ORC_STEP_OK,
	ORC_STEP_USER, /* the frame is now user mode's, as it was when the kernel was entered */
	ORC_STEP_END,
	ORC_STEP_NO_RULE,
	ORC_STEP_UNREADABLE,
	ORC_STEP_BAD,
};
enum guest_orc_step guest_orc_apply(const struct guest_orc_rule *rule, struct guest_frame *f,
				    struct guest_stack *s);
/* The same with the rule for the frame's ip. */
enum guest_orc_step guest_orc_step(struct guest_orc *o, struct guest_frame *f,
				   struct guest_stack *s);

#endif
