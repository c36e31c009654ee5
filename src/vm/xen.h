// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/vm: the domains of a host that is Xen's dom0.
 */
#ifndef VMPROF_VM_XEN_H
#define VMPROF_VM_XEN_H

#include "vm/vm.h"

/*
 * Adds all domains but dom0. Returns true if they are known; false if this is no dom0 (@err->code
 * is 0), or if its domains cannot be had, with a sentence; there is one also if they are known but
 * for their names.
 */
bool xen_list(void (*add)(void *ctx, struct vm *vm), void *ctx, struct vmprof_err *err);

int xen_alive(const struct vm *vm); /* as vm_alive() */

/* Does this tree of files (@root, "" for the real one) say that the host is Xen's dom0? */
bool xen_is_dom0(const char *root);

#if HAVE_XEN
#include "vm/xenlib.h"

/* A new VM from what the hypervisor says of it; @name NULL: it has none. */
struct vm *xen_vm_new(const xc_domaininfo_t *info, const char *name);
#endif

#endif
