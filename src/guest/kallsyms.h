// SPDX-License-Identifier: GPL-2.0-only
#ifndef VMPROF_GUEST_KALLSYMS_H
#define VMPROF_GUEST_KALLSYMS_H

#include "guest/kernel.h"
#include "guest/ksyms.h"

/**
 * kallsyms_load - the kernel's symbol table out of the kernel's image in guest memory
 * @text: where the image starts, or is thought to
 * @out:  an empty table; finished on success
 *
 * Per-CPU and absolute symbols have their value as address. Returns 0; -ENOENT with a sentence if
 * there is no table that fits (@out stays empty); -ESRCH.
 */
int kallsyms_load(struct guest_virt *v, struct guest_as as, uint64_t text, struct ksyms *out,
		  struct vmprof_err *err);

#endif
