// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: call frame information of what processes have mapped.
 */
#ifndef VMPROF_GUEST_CFI_H
#define VMPROF_GUEST_CFI_H

#include "guest/process.h"
#include "unwind/cfi.h"

/* Of one DSO; made when it is first asked for. */
struct guest_cfi;
void guest_cfi_free(struct guest_cfi *c); /* NULL is fine */

/*
 * The row for the code at @ip in a process; @place is in the process's addresses. What the process
 * has not touched of the file comes from the page cache. 0; -ENOENT if there is none; -EFAULT if it
 * cannot be read. Then nothing new of the DSO is read for a second; what was read stays known.
 */
int guest_cfi_find(struct guest_kmem *km, struct guest_process *proc, uint64_t ip, uint64_t time,
		   struct cfi_place *place);

/*
 * For an ELF image whose program headers name no frame information: a section of it. @read takes
 * offsets in the file. 0; -ENOENT, -ENOEXEC: there is none; or the error of @read. @out->bytes are
 * the caller's.
 */
int guest_cfi_section(struct cfi_section *out, guest_image_read read, void *ctx);

#endif
