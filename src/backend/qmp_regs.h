// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers out of what QEMU's monitor prints for people: "info registers -a" of x86-64 CPUs. The
 * text is hostile: what is not there, is no number or cannot be makes a CPU's registers unknown.
 */
#ifndef VMPROF_BACKEND_QMP_REGS_H
#define VMPROF_BACKEND_QMP_REGS_H

#include "guest/sample.h"

/*
 * Registers of CPUs 0 to @n - 1; @known says which are in the text, the others' stay as they are.
 * Not in the text is the other one of the two GS bases, so that has_gs is never set.
 * Returns how many are known.
 */
uint32_t qmp_regs_parse(const char *text, size_t len, struct guest_regs *regs, bool *known,
			uint32_t n);

#endif
