// SPDX-License-Identifier: GPL-2.0-only
/*
 * One step up a stack: from the registers in a function to those in its caller, by a row of call
 * frame information. The row says where the canonical frame address (CFA: the stack pointer before
 * the call) is, and where the caller's registers are found from there.
 */
#ifndef VMPROF_UNWIND_UNWIND_H
#define VMPROF_UNWIND_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

enum unwind_arch { UNWIND_X86_64, UNWIND_AARCH64 };

enum { UNWIND_REGS = 32 };

/* Registers by the numbers that the ABIs' DWARF mappings give them. */
struct unwind_abi {
	uint8_t sp, fp;
	uint8_t ip; /* UNWIND_REGS: it has no number */
	uint8_t ra; /* where a call leaves the return address: x30; UNWIND_REGS: in memory */
};
extern const struct unwind_abi unwind_abis[];

struct unwind_regs {
	uint64_t ip;
	uint64_t r[UNWIND_REGS];
	uint32_t known; /* a bit for each of @r */
	/*
	 * aarch64: the bits that addresses of code have; above are authentication codes. 0: 48, as
	 * larger ones are given out to programs that ask for them only.
	 */
	uint64_t code_bits;
};

static inline void unwind_set(struct unwind_regs *regs, unsigned reg, uint64_t value)
{
	regs->r[reg] = value;
	regs->known |= 1u << reg;
}

/* What a register of the caller's is. */
enum unwind_place {
	UNWIND_NOWHERE,	  /* not known, or by a rule that is not supported */
	UNWIND_SAME,	  /* unchanged */
	UNWIND_UNDEFINED, /* it has no value: of the return address, this is the outermost frame */
	UNWIND_AT,	  /* in memory at base + offset */
	UNWIND_IS,	  /* base + offset itself */
};

enum { UNWIND_CFA = UNWIND_REGS, UNWIND_NO_BASE };

struct unwind_rule {
	uint8_t reg;   /* whose rule it is */
	uint8_t place; /* enum unwind_place */
	uint8_t base;  /* a register, or UNWIND_CFA */
	int32_t offset;
};

struct unwind_row {
	uint8_t cfa_base; /* a register, or UNWIND_NO_BASE: no rule */
	bool cfa_deref;	  /* the CFA is the word at base + offset, and @cfa_add */
	bool signal;	  /* what is called here is a signal handler: the caller was interrupted */
	uint8_t ra;	  /* number of the return address's rule */
	int32_t cfa_offset, cfa_add;
	uint8_t nr_rules;		      /* registers that have none are unchanged */
	struct unwind_rule rule[UNWIND_REGS]; /* by their numbers, rising */
};

/* @reg's rule, UNWIND_SAME where it has none. */
struct unwind_rule unwind_rule_of(const struct unwind_row *row, unsigned reg);

enum unwind_result {
	UNWIND_STEPPED,
	UNWIND_OUTERMOST,  /* there is no caller */
	UNWIND_NO_RULE,	   /* the row does not say where something is */
	UNWIND_UNREADABLE, /* stack memory cannot be read */
	UNWIND_BAD,	   /* the caller's frame would not be above this one */
};

/* Reads a word of the stack; 0 or -errno. */
typedef int (*unwind_read_word)(void *ctx, uint64_t addr, uint64_t *word);

/*
 * Makes @regs the caller's. *slot: where the return address was, 0 if in a register. On another
 * result than UNWIND_STEPPED @regs is as it was. Registers that cannot be had are not known
 * afterwards; only the return address and the stack pointer must be. The return address is not
 * checked, except that aarch64's authentication bits are taken off. The stack grows, but where a
 * signal came: its handler may have a stack of its own.
 */
enum unwind_result unwind_step(enum unwind_arch arch, const struct unwind_row *row,
			       struct unwind_regs *regs, uint64_t *slot, unwind_read_word read,
			       void *ctx);

/*
 * The same by the frame pointer, for code that nothing is known of: the caller's frame pointer is
 * where it points to, the return address behind it. UNWIND_OUTERMOST: it is 0, which the ABIs want
 * at the start of a stack.
 */
enum unwind_result unwind_step_fp(enum unwind_arch arch, struct unwind_regs *regs, uint64_t *slot,
				  unwind_read_word read, void *ctx);

#endif
