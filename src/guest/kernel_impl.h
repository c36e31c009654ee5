// SPDX-License-Identifier: GPL-2.0-only
/*
 * struct guest_kernel: filled by kernel_find.c, used by kernel.c.
 */
#ifndef VMPROF_GUEST_KERNEL_IMPL_H
#define VMPROF_GUEST_KERNEL_IMPL_H

#include "guest/arch.h"
#include "guest/btf.h"
#include "guest/hidden.h"
#include "guest/kernel.h"
#include "guest/madecode.h"
#include "guest/ksyms.h"
#include "guest/modules.h"
#include "util/hashmap.h"

/* From..to, run-time addresses. */
struct range {
	uint64_t start, end;
};

struct guest_kernel {
	const struct guest_arch_kernel *arch;
	struct guest_virt *v;
	struct guest_as as;
	struct ksyms syms;
	struct hidden hidden;	 /* what these lack */
	struct btf *btf;	 /* NULL: none */
	struct modules *modules; /* NULL: none */
	struct made_codes *made; /* NULL: none */
	char why_not[128];

	struct range image, text, init_text;
	uint64_t text_gpa; /* of the text's start: with it alive() checks page tables */
	uint64_t vectors;
	uint64_t checked_at; /* when it last did */
	int misses;	     /* page tables in a row that did not have the kernel */

	uint64_t cookie_va, cookie; /* random in each boot; see find_cookie() */
	bool cookie_random;

	uint64_t percpu_va;
	uint64_t *percpu; /* nr_percpu, 0: not read yet */
	uint32_t nr_percpu;
	uint64_t percpu_read_at;
	struct hashmap cpu_by_gdt; /* GDT base -> CPU + 1 */

	char release[65];
	uint8_t build_id[20];
	uint32_t build_id_len;
	bool pti_seen;

	struct ksyms module_syms; /* of the module that was symbolized last */
	uint32_t module_id;	  /* 0: none was */
};

static inline bool range_has(struct range r, uint64_t addr)
{
	return addr - r.start < r.end - r.start;
}

#endif
