/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inside the xen backend: the hypercall for a vCPU's registers, with buffers that are kept.
 * libxenctrl makes new ones for each call, which takes longer than the call: a context is larger
 * than a page, and such buffers are mapped and unmapped each time.
 */
#ifndef VMPROF_BACKEND_XEN_CONTEXT_H
#define VMPROF_BACKEND_XEN_CONTEXT_H

#include "vm/xenlib.h"

#if HAVE_XEN
struct xen_context {
	const struct xen *xen;
	xencall_handle *handle;
	struct xen_domctl *op;
	vcpu_guest_context_any_t *regs; /* of the last vCPU that was asked for */
	uint32_t domid;
};

/* 0 or -errno with a sentence; xen_context_close() is fine in any case. */
int xen_context_open(struct xen_context *c, const struct xen *xen, uint32_t domid,
		     struct vmprof_err *err);
int xen_context_get(struct xen_context *c, uint32_t vcpu); /* 0 or -errno */
void xen_context_close(struct xen_context *c);		   /* of one that is all zero, too */
#endif

#endif
