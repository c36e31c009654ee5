// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file that is mapped here can be cut short by its owner; touching what is gone raises SIGBUS.
 * Within guarded ranges the handler puts zero pages over the rest of the range and whoever
 * reads goes on, and what is written there goes nowhere; anywhere else SIGBUS does what it did
 * before.
 */
#ifndef VMPROF_VM_SIGBUS_H
#define VMPROF_VM_SIGBUS_H

#include <stdbool.h>
#include <stddef.h>

/* @page: granularity of the mapping (huge pages!); @prot: as it is mapped. Returns a slot, or
 * -ENOSPC. */
int sigbus_guard(void *addr, size_t len, size_t page, int prot);
void sigbus_unguard(int slot); /* before the range is unmapped; a negative slot is fine */
/* Has a part of the range turned out to be gone? */
bool sigbus_hit(int slot);

#endif
