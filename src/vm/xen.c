// SPDX-License-Identifier: GPL-2.0-only
#include "vm/xen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/xalloc.h"
#include "vm/qemu.h"
#include "vm/xen_names.h"

#define TEXT_SIZE 64

/* A file's first line, or "". */
static bool read_text(const char *root, const char *path, char text[TEXT_SIZE])
{
	char name[PATH_MAX];
	ssize_t n = -1;
	int fd;

	snprintf(name, sizeof(name), "%s%s", root, path);
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		n = read(fd, text, TEXT_SIZE - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = 0;
	text[strcspn(text, "\n")] = 0;
	return n > 0;
}

static bool file_begins(const char *root, const char *path, const char *with)
{
	char text[TEXT_SIZE];

	return read_text(root, path, text) && !strncmp(text, with, strlen(with));
}

bool xen_is_dom0(const char *root)
{
	return file_begins(root, "/proc/xen/capabilities", "control_d") ||
	       (file_begins(root, "/sys/hypervisor/type", "xen") &&
		file_begins(root, "/sys/hypervisor/uuid", "00000000-0000-0000-0000-000000000000"));
}

bool vm_xen_version(char version[VM_VERSION_SIZE])
{
	static const char *const parts[] = {"major", "minor", "extra"};
	size_t at = 0;

	for (size_t i = 0; i < 3; i++) {
		char path[64], text[TEXT_SIZE];

		snprintf(path, sizeof(path), "/sys/hypervisor/version/%s", parts[i]);
		if (!read_text("", path, text)) {
			version[0] = 0;
			return false;
		}
		snprintf(version + at, VM_VERSION_SIZE - at, "%s%s", i == 1 ? "." : "", text);
		at = strlen(version);
	}
	return true;
}

#if HAVE_XEN
#define DOMAINS_AT_ONCE 64
#define NAME_SIZE_MAX	4096 /* what XenStore has room for in a value */

static const char *type_of(const xc_domaininfo_t *info)
{
	if (!(info->flags & XEN_DOMINF_hvm_guest))
		return "pv";
	return info->arch_config.emulation_flags & XEN_X86_EMU_PIC ? "hvm" : "pvh";
}

struct vm *xen_vm_new(const xc_domaininfo_t *info, const char *name)
{
	struct vm *vm = xcalloc(1, sizeof(*vm));
	const uint8_t *h = info->handle;
	char uuid[37];

	vm->hypervisor = VM_HYPERVISOR_XEN;
	vm->accel = VM_ACCEL_XEN;
	vm->domid = info->domain;
	vm->named = name && *name;
	vm->name = vm->named ? xstrndup(name, NAME_SIZE_MAX) : xasprintf("domain-%u", info->domain);
	vm->arch = xstrdup("x86_64");
	vm->machine = xstrdup(type_of(info));
	vm->binary = xstrdup("");
	vm->memory = info->tot_pages * XC_PAGE_SIZE;
	vm_set_nr_vcpus(vm, info->max_vcpu_id + 1);
	snprintf(uuid, sizeof(uuid),
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", h[0], h[1],
		 h[2], h[3], h[4], h[5], h[6], h[7], h[8], h[9], h[10], h[11], h[12], h[13], h[14],
		 h[15]);
	vm_set_uuid(vm, uuid);
	return vm;
}

/* All but dom0, which cannot look at itself, and those that end. To free; -errno: NULL. */
static xc_domaininfo_t *get_domains(const struct xen *xen, size_t *count, struct vmprof_err *err)
{
	xc_domaininfo_t *all = NULL;
	size_t kept = 0, cap = 0;
	uint32_t next = 1;
	int n;

	for (;;) {
		all = xgrow(all, &cap, kept + DOMAINS_AT_ONCE, sizeof(*all));
		n = xen->call->domain_getinfolist(xen->xc, next, DOMAINS_AT_ONCE, all + kept);
		if (n <= 0)
			break;
		next = all[kept + (size_t)n - 1].domain + 1u;
		for (size_t i = kept, end = kept + (size_t)n; i < end; i++)
			if (!(all[i].flags & XEN_DOMINF_dying))
				all[kept++] = all[i];
	}
	if (n < 0) {
		xen_call_error(errno, "ask Xen for its domains", err);
		free(all);
		return NULL;
	}
	*count = kept;
	return all;
}

/* Domains whose names XenStore does not tell are there without one, and @err says why. */
static int each_domain(const struct xen *xen, void (*add)(void *ctx, struct vm *vm), void *ctx,
		       struct vmprof_err *err)
{
	size_t n;
	xc_domaininfo_t *info = get_domains(xen, &n, err);
	uint32_t *domid;
	char **name;

	if (!info)
		return -err->code;
	domid = xcalloc(n + 1, sizeof(*domid));
	name = xcalloc(n + 1, sizeof(*name));
	for (size_t i = 0; i < n; i++)
		domid[i] = info[i].domain;
	if (n)
		xen_names_get(xen->call, domid, n, name, XEN_NAMES_MS, err);
	for (size_t i = 0; i < n; i++) {
		add(ctx, xen_vm_new(&info[i], name[i]));
		free(name[i]);
	}
	free(name);
	free(domid);
	free(info);
	return 0;
}

bool xen_list(void (*add)(void *ctx, struct vm *vm), void *ctx, struct vmprof_err *err)
{
	struct xen xen;
	bool known;

	*err = (struct vmprof_err){0};
	if (!xen_is_dom0(""))
		return false;
	if (access("/dev/xen/privcmd", F_OK) && access("/proc/xen/privcmd", F_OK)) {
		err_set(err, ENOENT,
			"this host is Xen's dom0, but there is no /dev/xen/privcmd to ask for its "
			"domains: "
			"load its module (modprobe xen-privcmd)");
		return false;
	}
	if (xen_open(&xen, false, err))
		return false;
	known = !each_domain(&xen, add, ctx, err);
	xen_close(&xen);
	return known;
}

int xen_alive(const struct vm *vm)
{
	xc_domaininfo_t info;
	struct xen xen;
	int r = xen_open(&xen, false, NULL);

	if (r)
		return 1; /* not known */
	r = xen_domain_info(&xen, vm->domid, &info);
	xen_close(&xen);
	return r != -ESRCH;
}
#else
bool xen_list(void (*add)(void *ctx, struct vm *vm), void *ctx, struct vmprof_err *err)
{
	*err = (struct vmprof_err){0};
	if (xen_is_dom0(""))
		err_set(err, ENOSYS,
			"this host is Xen's dom0, but this vmprof was built without Xen's headers "
			"(Debian: "
			"libxen-dev) and cannot see its domains");
	return false;
}

int xen_alive(const struct vm *vm)
{
	return 0;
}
#endif
