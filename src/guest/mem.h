// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guest-physical memory, as the guest layer reads it. Who runs the VM (QEMU's RAM blocks, Xen's
 * foreign frames, a file in a test) implements the operations; nothing in src/guest knows which.
 */
#ifndef VMPROF_GUEST_MEM_H
#define VMPROF_GUEST_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct guest_mem;

struct guest_mem_io {
	uint64_t gpa; /* guest-physical address; a range may cross pages, not the end of RAM */
	void *buf;
	uint32_t len;
	bool ok; /* out: all of it was read; if not, buf is undefined */
};

struct guest_mem_ops {
	/*
	 * Reads @n ranges, in one system call where that is possible. Returns 0 (look at each .ok),
	 * -ESRCH if the VM is gone, -EPERM if this process may not look.
	 */
	int (*readv)(struct guest_mem *m, struct guest_mem_io *io, int n);
	/*
	 * A pointer to @len bytes at @gpa that stays valid until the memory is closed, or NULL if
	 * that range is not mapped here. What it points to changes under the reader: copy once,
	 * then look. May be NULL.
	 */
	const void *(*map)(struct guest_mem *m, uint64_t gpa, size_t len);
	/*
	 * The first range of RAM with content at or above @gpa: for scans that must not touch (and
	 * so allocate) memory that the guest never used. Returns false at the end.
	 */
	bool (*next_range)(struct guest_mem *m, uint64_t gpa, uint64_t *start, uint64_t *len);
};

/* Implementations embed this as their first member. */
struct guest_mem {
	const struct guest_mem_ops *ops;
	uint64_t top; /* one above the highest guest-physical address of RAM */
	/*
	 * "Guest-physical" is what page tables have, and here that is not what the guest's kernel
	 * counts its pages by (a PV guest of Xen, whose page tables have machine addresses).
	 */
	bool machine_frames;
};

#endif
