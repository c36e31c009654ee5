// SPDX-License-Identifier: GPL-2.0-only
/*
 * Xen's libraries, loaded when a host turns out to be Xen's dom0, so that one program serves hosts
 * with and without Xen. libxenctrl belongs to one version of Xen; the others are the same for all.
 */
#ifndef VMPROF_VM_XENLIB_H
#define VMPROF_VM_XENLIB_H

#include "util/err.h"

#if HAVE_XEN
#include <xencall.h>
#include <xenctrl.h>
#include <xenforeignmemory.h>
#include <xenstore.h>

struct xen_calls {
	__typeof__(xc_interface_open) *interface_open;
	__typeof__(xc_interface_close) *interface_close;
	__typeof__(xc_domain_getinfolist) *domain_getinfolist;
	__typeof__(xc_domain_pause) *domain_pause;
	__typeof__(xc_domain_unpause) *domain_unpause;
	__typeof__(xc_domain_get_guest_width) *domain_get_guest_width;
	__typeof__(xc_domain_maximum_gpfn) *domain_maximum_gpfn;
	__typeof__(xc_maximum_ram_page) *maximum_ram_page;
	__typeof__(xc_vcpu_getinfo) *vcpu_getinfo;
	__typeof__(xc_domain_hvm_getcontext_partial) *hvm_getcontext_partial;
	__typeof__(xc_version) *version;
	__typeof__(xenforeignmemory_open) *memory_open;
	__typeof__(xenforeignmemory_close) *memory_close;
	__typeof__(xenforeignmemory_map) *memory_map;
	__typeof__(xenforeignmemory_unmap) *memory_unmap;
	__typeof__(xencall_open) *call_open;
	__typeof__(xencall_close) *call_close;
	__typeof__(xencall_alloc_buffer) *alloc_buffer;
	__typeof__(xencall_free_buffer) *free_buffer;
	__typeof__(xencall1) *call1;
	__typeof__(xencall2) *call2;
	__typeof__(xs_open) *store_open;
	__typeof__(xs_close) *store_close;
	__typeof__(xs_read) *store_read;
	__typeof__(xs_write) *store_write;
	__typeof__(xs_rm) *store_rm;
	__typeof__(xs_watch) *store_watch;
	__typeof__(xs_unwatch) *store_unwatch;
	__typeof__(xs_check_watch) *store_check_watch;
	__typeof__(xs_fileno) *store_fileno;
	__typeof__(xs_transaction_start) *transaction_start;
	__typeof__(xs_transaction_end) *transaction_end;
};

/* The hypervisor, for one user. */
struct xen {
	const struct xen_calls *call;
	xc_interface *xc;
	xenforeignmemory_handle *memory; /* NULL unless it was asked for */
};

/* 0, or -errno with a sentence: what is missing on this host, and what to do about it. */
int xen_open(struct xen *xen, bool with_memory, struct vmprof_err *err);
void xen_close(struct xen *xen); /* of one that is all zero, too */

/*
 * What the hypervisor says of one domain. 0; -ESRCH: there is no such domain, or it is being
 * destroyed; else -errno.
 */
int xen_domain_info(const struct xen *xen, uint32_t domid, xc_domaininfo_t *info);

/* The sentence for @code (errno, either sign) from a hypercall. */
int xen_call_error(int code, const char *what, struct vmprof_err *err);
#endif

#endif
