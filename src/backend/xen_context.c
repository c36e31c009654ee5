// SPDX-License-Identifier: GPL-2.0-only
#include "backend/xen_context.h"

#if HAVE_XEN
#include <errno.h>
#include <string.h>

int xen_context_open(struct xen_context *c, const struct xen *xen, uint32_t domid,
		     struct vmprof_err *err)
{
	*c = (struct xen_context){.xen = xen, .domid = domid};
	c->handle = xen->call->call_open(NULL, 0);
	if (!c->handle)
		return xen_call_error(errno, "open /dev/xen/privcmd", err);
	c->op = xen->call->alloc_buffer(c->handle, sizeof(*c->op));
	c->regs = xen->call->alloc_buffer(c->handle, sizeof(*c->regs));
	if (!c->op || !c->regs)
		return xen_call_error(ENOMEM, "have memory for Xen to write to", err);
	memset(c->regs, 0, sizeof(*c->regs));
	return 0;
}

int xen_context_get(struct xen_context *c, uint32_t vcpu)
{
	memset(c->op, 0, sizeof(*c->op));
	c->op->cmd = XEN_DOMCTL_getvcpucontext;
	c->op->interface_version = XEN_DOMCTL_INTERFACE_VERSION;
	c->op->domain = (domid_t)c->domid;
	c->op->u.vcpucontext.vcpu = vcpu;
	set_xen_guest_handle_raw(c->op->u.vcpucontext.ctxt, &c->regs->c);
	return c->xen->call->call1(c->handle, __HYPERVISOR_domctl, (uintptr_t)c->op) < 0 ? -errno
											 : 0;
}

void xen_context_close(struct xen_context *c)
{
	if (c->regs)
		c->xen->call->free_buffer(c->handle, c->regs);
	if (c->op)
		c->xen->call->free_buffer(c->handle, c->op);
	if (c->handle)
		c->xen->call->call_close(c->handle);
	*c = (struct xen_context){0};
}
#endif
