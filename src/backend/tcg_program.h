// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside the tcg backend: the program that takes snapshots, see tcg_snapshot.h. It is made for each
 * vCPU out of its addresses; it loads no file and needs no compiler.
 */
#ifndef VMPROF_BACKEND_TCG_PROGRAM_H
#define VMPROF_BACKEND_TCG_PROGRAM_H

#include "backend/tcg_snapshot.h"

struct tcg_program {
	int ring_fd;	    /* BPF_MAP_TYPE_RINGBUF: gets the snapshots */
	uint32_t ring_size; /* bytes */
	int shared_fd;	    /* array of one struct tcg_shared */
	uint32_t source;    /* put into each */
	uint64_t env;
	const struct tcg_layout *layout;
	const struct vm_ram_region *ram;
	unsigned nr_ram;		   /* at most TCG_SNAPSHOT_REGIONS are used */
	const struct guest_wanted *wanted; /* NULL: only what sp points to */
};

/* The loaded program's descriptor, or -errno with a sentence. */
int tcg_program_load(const struct tcg_program *p, struct vmprof_err *err);

#endif
