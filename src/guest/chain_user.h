// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: what the rules of user call chains have in common; those of one architecture
 * are in chain_user_x86.c and chain_user_arm64.c.
 */
#ifndef VMPROF_GUEST_CHAIN_USER_H
#define VMPROF_GUEST_CHAIN_USER_H

#include "guest/cfi.h"
#include "guest/chain.h"

enum {
	USER_MAX_BLOCK = 128,	  /* bytes of straight code up to a call */
	USER_MAX_RULES = 32,	  /* rows of call frame information in such a block */
	USER_MAX_FRAME = 1 << 20, /* bytes of one stack frame */
};

enum user_step { NEXT_RULE, STEPPED, FAILED, OUTERMOST };

typedef enum user_step (*user_rule)(struct guest_user_walk *w);

/* What differs. */
struct user_abi {
	enum unwind_arch arch;
	/* In the order in which they are asked, behind that of call frame information, up to NULL.
	 */
	const user_rule *rules;
	/* Is this the code where the kernel sends a signal handler back to? */
	bool (*is_sigreturn)(struct guest_user_walk *w, uint64_t ip);
	unsigned
		tls; /* bytes at most from a thread's first frames to its control block's pointer */
};
extern const struct user_abi user_x86, user_arm64;

int user_code(struct guest_user_walk *w, uint64_t va, uint8_t *buf, unsigned len);
/* The executable mapping that has @addr, or NULL. */
struct guest_map *user_executable(struct guest_user_walk *w, uint64_t addr);
/* Is it behind a call? Code that cannot be read (paged out) is given the benefit of the doubt. */
bool user_is_return(struct guest_user_walk *w, uint64_t ra, uint64_t *target);
/* The same, or the code that a signal handler returns to, in executable memory. */
bool user_may_return(struct guest_user_walk *w, uint64_t ra);

/* Nothing else is known than the frame pointer. */
void user_forget_regs(struct guest_user_walk *w);

/* The registers, as if the function at hand were at @ip with this stack pointer. */
struct unwind_regs user_regs_at(const struct guest_user_walk *w, uint64_t ip, uint64_t sp);
void user_set_frame(struct guest_user_walk *w, const struct unwind_regs *r, uint64_t slot,
		    bool exact);
/*
 * The caller's frame by a row, as if the function at hand were at @r. *target: where the call that
 * led here goes to, 0 if that is not in the code. NEXT_RULE: there is no such caller.
 */
enum user_step user_step_row(struct guest_user_walk *w, const struct cfi_place *p,
			     struct unwind_regs *r, uint64_t *slot, uint64_t *target);
/* A call pushes the address behind it, which may be another function's: the call is what counts. */
int user_find_row(struct guest_user_walk *w, uint64_t ip, bool exact, struct cfi_place *p);
/* The ABIs want a frame pointer of 0 at the start of a stack. */
enum user_step user_step_end(struct guest_user_walk *w);

#endif
