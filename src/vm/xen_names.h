/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside src/vm: what XenStore calls domains. */
#ifndef VMPROF_VM_XEN_NAMES_H
#define VMPROF_VM_XEN_NAMES_H

#include "vm/xenlib.h"

#if HAVE_XEN
#define XEN_NAMES_MS 5000 /* for XenStore to answer, which takes it some microseconds a name */

/*
 * The names of @n domains, each to free; NULL: it has none. 0; or -ETIMEDOUT with a sentence if
 * XenStore does not answer for @timeout_ms: then none is known.
 */
int xen_names_get(const struct xen_calls *call, const uint32_t *domid, size_t n, char **name,
		  int timeout_ms, struct vmprof_err *err);
#endif

#endif
