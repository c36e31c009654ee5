// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: the memory map of a process.
 */
#ifndef VMPROF_GUEST_MM_H
#define VMPROF_GUEST_MM_H

#include "guest/dso.h"

#define GUEST_MAX_VMAS 131072 /* twice the kernel's default limit (vm.max_map_count) */

/* The kernel's VM_* flags, which are the same in every version. */
enum { GUEST_VM_READ = 1, GUEST_VM_WRITE = 2, GUEST_VM_EXEC = 4, GUEST_VM_SHARED = 8 };

struct guest_vma {
	uint64_t start, end, flags;
	uint64_t pgoff; /* bytes */
	uint64_t file;	/* address of the struct file, or 0 */
	uint64_t ops, private_data;
};

struct guest_vmas {
	struct guest_vma *v; /* by address */
	size_t n, cap;
	bool whole; /* as many as the kernel counts, and nothing contradicted itself */
};

/*
 * Reads the memory map of the mm_struct at @mm: out of its maple tree, or of its rbtree where the
 * kernel has that. What is found is returned even if the map was changed meanwhile (.whole is false
 * then). @out may hold a former map: its memory is used again. 0 or -ESRCH.
 */
int guest_mm_walk(struct guest_kmem *km, uint64_t mm, struct guest_vmas *out);
void guest_vmas_free(struct guest_vmas *v);

#endif
