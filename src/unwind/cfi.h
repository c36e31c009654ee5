// SPDX-License-Identifier: GPL-2.0-only
/*
 * Call frame information of one ELF image (.eh_frame by the index in .eh_frame_hdr, .eh_frame or
 * .debug_frame by an index that is made of them): rows for addresses, each evaluated once. The
 * image may be hostile: everything is bounded, and costs at most some 100 us an address.
 */
#ifndef VMPROF_UNWIND_CFI_H
#define VMPROF_UNWIND_CFI_H

#include <stddef.h>

#include "unwind/unwind.h"

struct cfi;

/* Reads @len bytes of the image at @vaddr, an address as its program headers have them. 0, or
 * -errno: not there. */
typedef int (*cfi_read)(void *ctx, uint64_t vaddr, void *buf, size_t len);

/* @hdr: p_vaddr of PT_GNU_EH_FRAME; 0: it has none, and no address has a row. Never NULL. */
struct cfi *cfi_new(enum unwind_arch arch, uint64_t hdr);
/* Can .eh_frame_hdr, of which these are the first bytes, be searched? All linkers make it so. */
enum { CFI_HDR_BYTES = 12 };
bool cfi_has_table(const uint8_t *hdr, size_t len);
/* Where .eh_frame begins, by the first bytes of .eh_frame_hdr at @vaddr. 0: it does not say. */
uint64_t cfi_hdr_frames(const uint8_t *hdr, size_t len, uint64_t vaddr);

/* A section in memory. Its index takes 16 bytes a description, and ~50 ns of making. */
struct cfi_section {
	uint8_t *bytes; /* of malloc(), taken over */
	size_t size;
	uint64_t vaddr;	  /* of .eh_frame; 0 for .debug_frame */
	bool debug_frame; /* in that form */
};
struct cfi *cfi_new_section(enum unwind_arch arch, const struct cfi_section *section);
void cfi_free(struct cfi *c); /* NULL is fine */

/* What is known of an address. */
struct cfi_place {
	uint64_t function, function_end; /* that the row's description is of */
	uint64_t end;			 /* the row holds up to here */
	struct unwind_row row;		 /* no more of its rules than it has are set */
};

/**
 * cfi_find - the row for the code at @vaddr
 *
 * @read is used if it has not been asked for before; not at all for a section in memory. Returns 0;
 * -ENOENT if nothing is known of the address; -EIO if what is there cannot be used; or the error of
 * @read, which is not remembered.
 */
int cfi_find(struct cfi *c, uint64_t vaddr, cfi_read read, void *ctx, struct cfi_place *out);

#endif
