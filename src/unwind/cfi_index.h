// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/unwind: which description an address has, of a section that has no index of its own.
 */
#ifndef VMPROF_UNWIND_CFI_INDEX_H
#define VMPROF_UNWIND_CFI_INDEX_H

#include "unwind/cfi_record.h"

struct cfi_index {
	struct cfi_index_entry {
		uint64_t start; /* of the code */
		uint64_t fde;
	} * entries; /* by start */
	size_t n, cap;
};

/* Reads all of @s, once. What cannot be understood is left out. */
void cfi_index_build(struct cfi_index *x, const struct cfi_from *from, const struct cfi_section *s);
void cfi_index_free(struct cfi_index *x);
/* 0 or -ENOENT */
int cfi_index_find(const struct cfi_index *x, uint64_t vaddr, uint64_t *fde);

#endif
