// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/unwind: call frame instructions (DWARF 5, 6.4) executed up to an address.
 */
#ifndef VMPROF_UNWIND_CFI_RUN_H
#define VMPROF_UNWIND_CFI_RUN_H

#include "unwind/dwarf_cursor.h"
#include "unwind/unwind.h"

/* A common information entry. */
struct cfi_cie {
	enum unwind_arch arch;
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra_register;
	uint8_t pointer_encoding;
	bool has_augmentation_data, signal;
	struct dwarf_cursor initial; /* instructions */
};

/*
 * The row at @pc, by a description's @instructions which begin at @begin. *end: the address at
 * which another row begins, UINT64_MAX none. 0 or -EIO.
 */
int cfi_run(const struct cfi_cie *cie, struct dwarf_cursor instructions, uint64_t begin,
	    uint64_t pc, struct unwind_row *row, uint64_t *end);

#endif
