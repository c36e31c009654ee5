// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/unwind: the records of call frame information, common ones (CIE) and descriptions
 * (FDE). Formats: of .debug_frame DWARF 5, 6.4.1; of .eh_frame Linux Standard Base 5.0, 10.6.1.
 */
#ifndef VMPROF_UNWIND_CFI_RECORD_H
#define VMPROF_UNWIND_CFI_RECORD_H

#include "unwind/cfi.h"
#include "unwind/cfi_run.h"

/* Where records are, and what they are. */
struct cfi_from {
	enum unwind_arch arch;
	bool debug_frame; /* else .eh_frame. Addresses of its records are offsets in the section */
	cfi_read read;
	void *ctx;
};

struct cfi_record {
	struct dwarf_cursor body; /* behind length and id */
	uint64_t id, id_vaddr;
	bool is_cie;
};

/* Takes length and id off @c, which begins at a record. -EIO: there is none, or it is no longer. */
int cfi_record_start(const struct cfi_from *from, struct dwarf_cursor *c, struct cfi_record *out);

/* Where the common record of description @r is. */
uint64_t cfi_record_cie(const struct cfi_from *from, const struct cfi_record *r);

/* The common record at @vaddr, into @buf, which @cie then points to. 0, -EIO, or the error of
 * @from->read. */
enum { CFI_MAX_CIE = 1024 };
int cfi_read_cie(const struct cfi_from *from, uint64_t vaddr, uint8_t buf[CFI_MAX_CIE],
		 struct cfi_cie *cie);

/* Takes off @c, the body of a description, what code it is of. */
void cfi_take_range(const struct cfi_cie *cie, struct dwarf_cursor *c, uint64_t *start,
		    uint64_t *len);

/* The description at @vaddr evaluated for the code at @pc. 0, -ENOENT: it is of other code, -EIO,
 * or the error of @from->read. */
int cfi_evaluate(const struct cfi_from *from, uint64_t vaddr, uint64_t pc, struct cfi_place *out);

#endif
