// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: variables of an aarch64 kernel whose symbols are functions only (no
 * CONFIG_KALLSYMS_ALL). Small functions that are known by name and use a variable have its address
 * in their code; what is there is believed only if what lies at it is what the kernel's types say
 * it must be, and only if just one address is. Else the variable stays unknown.
 */
#ifndef VMPROF_GUEST_HIDDEN_H
#define VMPROF_GUEST_HIDDEN_H

#include "guest/btf.h"
#include "guest/kernel.h"
#include "guest/ksyms.h"

/* Addresses; 0 unknown (of runqueues: with per_cpu_offset). */
struct hidden {
	uint64_t per_cpu_offset; /* __per_cpu_offset[] */
	uint64_t runqueues; /* as symbols of per-CPU variables have it: to be added to an offset */
	uint64_t init_task;
	uint64_t modules;
};

void hidden_find(struct hidden *h, struct guest_virt *v, struct guest_as as, const struct btf *b,
		 const struct ksyms *syms);

/*
 * The addresses that the code at @va makes, by pairs of ADRP and an instruction that adds to it or
 * loads or stores with it: at most @max, each once. Returns how many. @len: bytes of code.
 */
unsigned hidden_addresses(const uint8_t *code, size_t len, uint64_t va, uint64_t *out,
			  unsigned max);

#endif
