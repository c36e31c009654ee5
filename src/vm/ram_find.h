// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/vm: where in QEMU's address space the blocks of guest RAM are.
 */
#ifndef VMPROF_VM_RAM_FIND_H
#define VMPROF_VM_RAM_FIND_H

#include "vm/proc.h"
#include "vm/spec.h"

struct ram_place {
	uint64_t hva;		     /* host-virtual address in QEMU */
	bool shared;		     /* a shared mapping of a file: */
	uint64_t map_start, map_end; /* one of its lines in maps, for /proc/PID/map_files */
	uint64_t inode, file_off;    /* file_off: where in the file the block starts */
	bool memfd;
};

/*
 * Fills places[i] for block i of vm->ram_spec. QEMU's own list of RAM blocks is looked for first;
 * without it the mappings' sizes decide. 0, or -errno with a sentence.
 */
int ram_find(struct ram_place places[RAM_BLOCKS_MAX], const struct vm *vm,
	     const struct proc_maps *maps, struct vmprof_err *err);

#endif
