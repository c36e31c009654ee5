// SPDX-License-Identifier: GPL-2.0-only
#include "vm/xenlib.h"

#if HAVE_XEN
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <xentoollog.h>

#define LIBXENCTRL "libxenctrl.so." XEN_TOOLS_VERSION

static struct xen_calls calls;
static struct vmprof_err load_error;
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

#define CALL(member, name)                                                                         \
	{                                                                                          \
		offsetof(struct xen_calls, member), #name                                          \
	}

static const struct library {
	const char *soname;
	struct {
		size_t offset;
		const char *name;
	} call[14];
} libraries[] = {
	{LIBXENCTRL,
	 {CALL(interface_open, xc_interface_open), CALL(interface_close, xc_interface_close),
	  CALL(domain_getinfolist, xc_domain_getinfolist), CALL(domain_pause, xc_domain_pause),
	  CALL(domain_unpause, xc_domain_unpause),
	  CALL(domain_get_guest_width, xc_domain_get_guest_width),
	  CALL(domain_maximum_gpfn, xc_domain_maximum_gpfn),
	  CALL(maximum_ram_page, xc_maximum_ram_page), CALL(vcpu_getinfo, xc_vcpu_getinfo),
	  CALL(hvm_getcontext_partial, xc_domain_hvm_getcontext_partial),
	  CALL(version, xc_version)}},
	{"libxenforeignmemory.so.1",
	 {CALL(memory_open, xenforeignmemory_open), CALL(memory_close, xenforeignmemory_close),
	  CALL(memory_map, xenforeignmemory_map), CALL(memory_unmap, xenforeignmemory_unmap)}},
	{"libxencall.so.1",
	 {CALL(call_open, xencall_open), CALL(call_close, xencall_close),
	  CALL(alloc_buffer, xencall_alloc_buffer), CALL(free_buffer, xencall_free_buffer),
	  CALL(call1, xencall1), CALL(call2, xencall2)}},
	{"libxenstore.so.4",
	 {CALL(store_open, xs_open), CALL(store_close, xs_close), CALL(store_read, xs_read),
	  CALL(store_write, xs_write), CALL(store_rm, xs_rm), CALL(store_watch, xs_watch),
	  CALL(store_unwatch, xs_unwatch), CALL(store_check_watch, xs_check_watch),
	  CALL(store_fileno, xs_fileno), CALL(transaction_start, xs_transaction_start),
	  CALL(transaction_end, xs_transaction_end)}},
};

static int load_library(const struct library *l)
{
	void *handle = dlopen(l->soname, RTLD_NOW | RTLD_LOCAL);

	if (!handle)
		return err_set(&load_error, ENOENT,
			       "Xen's library %s cannot be loaded: this vmprof was built for Xen "
			       "%s and needs "
			       "that version's tools (Debian: libxenmisc%s, libxenstore4)",
			       l->soname, XEN_TOOLS_VERSION, XEN_TOOLS_VERSION);
	for (size_t i = 0; l->call[i].name; i++) {
		void *symbol = dlsym(handle, l->call[i].name);

		if (!symbol)
			return err_set(&load_error, ENOENT, "Xen's library %s has no %s", l->soname,
				       l->call[i].name);
		memcpy((char *)&calls + l->call[i].offset, &symbol, sizeof(symbol));
	}
	return 0;
}

/* They stay loaded as long as the program runs. */
static void load(void)
{
	for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries); i++)
		if (load_library(&libraries[i]))
			return;
}

/* What the libraries would write to stderr is said by us, once and with what to do. */
static void no_message(struct xentoollog_logger *logger, xentoollog_level level, int code,
		       const char *context, const char *format, va_list ap)
{
}

static void no_progress(struct xentoollog_logger *logger, const char *context, const char *what,
			int percent, unsigned long done, unsigned long total)
{
}

static void no_destroy(struct xentoollog_logger *logger)
{
}

static xentoollog_logger quiet = {no_message, no_progress, no_destroy};

int xen_open(struct xen *xen, bool with_memory, struct vmprof_err *err)
{
	int r;

	*xen = (struct xen){.call = &calls};
	pthread_once(&loaded, load);
	if (load_error.code) {
		*xen = (struct xen){0};
		if (err)
			*err = load_error;
		return -load_error.code;
	}
	xen->xc = calls.interface_open(&quiet, &quiet, 0);
	if (!xen->xc) {
		/* No interface was spoken yet that could be the wrong one. */
		r = xen_call_error(errno == EACCES ? EPERM : errno, "open /dev/xen/privcmd", err);
		xen_close(xen);
		return r;
	}
	if (with_memory)
		xen->memory = calls.memory_open(&quiet, 0);
	if (with_memory && !xen->memory) {
		r = xen_call_error(errno, "map memory of domains", err);
		xen_close(xen);
		return r;
	}
	return 0;
}

void xen_close(struct xen *xen)
{
	if (xen->memory)
		xen->call->memory_close(xen->memory);
	if (xen->xc)
		xen->call->interface_close(xen->xc);
	*xen = (struct xen){0};
}

int xen_domain_info(const struct xen *xen, uint32_t domid, xc_domaininfo_t *info)
{
	int n = xen->call->domain_getinfolist(xen->xc, domid, 1, info);

	if (n < 0)
		return -errno;
	/* It begins with the first domain that is not below. */
	return n == 1 && info->domain == domid && !(info->flags & XEN_DOMINF_dying) ? 0 : -ESRCH;
}

int xen_call_error(int code, const char *what, struct vmprof_err *err)
{
	code = code < 0 ? -code : code;
	switch (code) {
	case EACCES: /* also what Xen says to an interface that it does not know */
		return err_set(err, code,
			       "cannot %s: permission denied. Only root in dom0 may, and only with "
			       "the tools of "
			       "the Xen that runs (this vmprof was built for Xen %s)",
			       what, XEN_TOOLS_VERSION);
	case EPERM:
		return err_set(err, code, "cannot %s: only root in dom0 may do that", what);
	default:
		return err_sys(err, code, "cannot %s", what);
	}
}
#endif
