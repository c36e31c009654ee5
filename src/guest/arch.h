// SPDX-License-Identifier: GPL-2.0-only
/*
 * What an architecture has to say about page tables. x86.c and arm64.c are the two; virt.c walks
 * with either and knows neither.
 */
#ifndef VMPROF_GUEST_ARCH_H
#define VMPROF_GUEST_ARCH_H

#include "guest/kernel.h"

/* One walk of the page tables, entry by entry; the caller reads the entries, 8 bytes each. */
struct guest_walk {
	const struct guest_paging *paging;
	uint64_t va;
	uint64_t entry;	 /* gpa of the entry to read next */
	int level;	 /* of that entry; 1: its pages */
	uint64_t region; /* once level 2 is passed: that entry, as virt.c caches it */
	uint64_t gpa;	 /* out: where @va is */
};

enum guest_walk_state { GUEST_WALK_MORE, GUEST_WALK_DONE, GUEST_WALK_FAULT };

struct guest_arch_paging {
	uint64_t root_mask; /* the bits of a root that an address of a table can have */
	enum guest_walk_state (*start)(struct guest_walk *w, const struct guest_paging *p,
				       struct guest_as as, uint64_t va);
	enum guest_walk_state (*step)(struct guest_walk *w, uint64_t entry);
	/* Starts behind level 2, with what an earlier walk of the same region left in .region. */
	enum guest_walk_state (*resume)(struct guest_walk *w, const struct guest_paging *p,
					uint64_t va, uint64_t region);
};

extern const struct guest_arch_paging x86_paging, arm64_paging;

/* What kernel_find.c and kernel.c ask. */
struct guest_arch_kernel {
	uint64_t link_text;	/* _text without KASLR; 0: differs from kernel to kernel */
	uint64_t modules_min;	/* no module lies below */
	const char *text_start; /* symbol of the first address of the image that is
				   mapped for good */
	/* Symbols of the page table that has the kernel's half as long as the kernel
	 * lives; NULL: the upper half is known by guest_paging. */
	const char *top_table, *old_top_table;
	/*
	 * Where the image starts, or little above: its symbols are looked for from
	 * there on; and an address space in which it is mapped. -ENOENT with a
	 * sentence, -ESRCH.
	 */
	int (*find_text)(struct guest_virt *v, const struct guest_regs *regs, struct guest_as *as,
			 uint64_t *text, struct vmprof_err *err);
	/* Can these registers be a kernel's with this address space? */
	bool (*can_run)(const struct guest_regs *regs, struct guest_as as);
	/* Candidates for the kernel's page table; at most 2, returns how many. */
	int (*roots)(const struct guest_regs *regs, struct guest_as as[2]);
	/* The table of exception handlers; false if these registers do not tell the kernel's. */
	bool (*vectors)(const struct guest_regs *regs, uint64_t *vectors);
	/* The lowest handler that the table leads to, 0 if none; -EFAULT, -ESRCH. */
	int (*handler)(struct guest_virt *v, struct guest_as as, uint64_t vectors, uint64_t *va);
	/* Number of the CPU that these registers tell; -ENOENT. NULL: none does. */
	int (*cpu)(struct guest_virt *v, struct guest_as as, const struct guest_regs *regs);
	bool (*knows_percpu)(const struct guest_regs *regs);
	bool (*has_percpu)(const struct guest_regs *regs, uint64_t offset); /* is it theirs? */
};

extern const struct guest_arch_kernel x86_kernel, arm64_kernel;

#endif
