// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/vm: the parts of QEMU's command line that say how the guest's RAM is laid out, and the
 * layout that follows from them.
 */
#ifndef VMPROF_VM_SPEC_H
#define VMPROF_VM_SPEC_H

#include "vm/vm.h"

#define RAM_BLOCKS_MAX	192 /* QEMU allows 128 NUMA nodes and 256 DIMMs: enough for what is seen */
#define RAM_REGIONS_MAX (RAM_BLOCKS_MAX + 8)

enum ram_backing {
	RAM_BACKING_ANON,   /* -m alone, memory-backend-ram, or any private mapping */
	RAM_BACKING_SHARED, /* a shared mapping of a memfd or of a file */
};

/* One piece of RAM as QEMU allocates it. */
struct ram_block {
	char id[64]; /* of the memory backend; "" for RAM that -m alone made */
	uint64_t size;
	enum ram_backing backing;
	bool dimm; /* a DIMM in a slot of its own, not part of -m */
	bool has_addr;
	uint64_t addr; /* of a DIMM */
};

struct vm_ram_spec {
	uint64_t max_below_4g; /* -machine max-ram-below-4g; 0 not given */
	/* In the order of their NUMA nodes, DIMMs behind. */
	struct ram_block blocks[RAM_BLOCKS_MAX];
	unsigned nr_blocks;
};

/* Guest-physical [gpa, gpa + len) is bytes [off, off + len) of block @block. */
struct ram_region {
	uint64_t gpa, len;
	unsigned block;
	uint64_t off;
};

/**
 * ram_layout - where the blocks lie in guest-physical memory
 *
 * By the machine's rules (QEMU's hw/i386/pc_q35.c, pc_piix.c, pc.c, microvm.c, hw/arm/virt.c).
 * Returns the number of regions, sorted by address, or -errno with a sentence.
 */
int ram_layout(struct ram_region regions[RAM_REGIONS_MAX], const struct vm *vm,
	       struct vmprof_err *err);

#endif
