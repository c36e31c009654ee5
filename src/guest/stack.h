// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: stack memory and code bytes for call chains.
 */
#ifndef VMPROF_GUEST_STACK_H
#define VMPROF_GUEST_STACK_H

#include "guest/kernel.h"

/*
 * A stack, copied in pieces as it is walked. It belongs to one sample: what a running vCPU's stack
 * has now says nothing about the next one. Its buffers are not initialized; set it up with
 * guest_stack_init().
 */
struct guest_stack {
	struct guest_virt *virt;
	struct guest_as as;
	int n, next;
	bool gone; /* a read said that the VM is gone */
	/* Copied before this, at the moment of the registers, by this page table. */
	const struct raw_memory *given;
	uint32_t nr_given;
	uint64_t given_root;
	bool given_only;  /* what was not given is not there */
	uint64_t live_at; /* lowest address that was read later than that; UINT64_MAX: none */
	struct guest_stack_piece {
		uint64_t va;
		uint32_t len;
		uint64_t word[256];
	} piece[4];
};

void guest_stack_init(struct guest_stack *s, struct guest_virt *v, struct guest_as as);
/* What was copied before by the page table @root; it must stay. */
void guest_stack_give(struct guest_stack *s, const struct raw_memory *given, uint32_t n,
		      uint64_t root);
/* Goes on in another address space, with what was given; forgets what was read. */
void guest_stack_switch(struct guest_stack *s, struct guest_as as);
/* Copies what is at @sp now, up to 2 KiB, and the two words below it. */
void guest_stack_load(struct guest_stack *s, uint64_t sp);
/* One word; 0 or -EFAULT (unaligned, not mapped). */
int guest_stack_word(struct guest_stack *s, uint64_t va, uint64_t *word);

/*
 * Bytes of code, cached: the same few addresses come up again and again. @generation tells address
 * spaces and their states apart.
 */
struct guest_code;
struct guest_code *guest_code_new(struct guest_virt *v);
void guest_code_free(struct guest_code *c);
void guest_code_flush(struct guest_code *c);
/* @len at most 16. 0, -EFAULT, -ESRCH */
int guest_code_read(struct guest_code *c, struct guest_as as, uint32_t generation, uint64_t va,
		    uint8_t *buf, unsigned len);
/*
 * Does a call instruction of the guest's architecture end at @ra? 0 (*target: where a direct one
 * goes to, else 0), -ENOENT (no), -EFAULT, -ESRCH (cannot be read).
 */
int guest_code_call_before(struct guest_code *c, struct guest_as as, uint32_t generation,
			   uint64_t ra, uint64_t *target);

#endif
