// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "list/list.h"
#include "util/xalloc.h"

#define VCPUS_TRIED 4 /* any vCPU in a running kernel will do; firmware keeps the others asleep */

/* The sentence stays with the guest; it is closed before the row is shown. */
static void keep_info(struct list_row *row, struct guest *g, const struct vmprof_err *err)
{
	const char *why = err->msg;

	guest_kernel_info(g, &row->kernel);
	if (row->kernel.why_not)
		why = row->kernel.why_not;
	snprintf(row->why_no_kernel, sizeof(row->why_no_kernel), "%s", why);
	row->kernel.why_not = row->why_no_kernel;
}

static void identify(struct list_row *row, const struct vmprof_backend *b,
		     const struct backend_caps *caps, struct backend_session *s)
{
	struct guest_config cfg = {.arch = vm_guest_arch(row->vm)};
	struct vmprof_err err = {0};
	struct guest_regs regs;
	uint32_t n = b->nr_vcpus(s);
	struct guest *g;
	int r = -1;

	if (guest_open(&g, b->memory(s), &cfg, &err)) {
		snprintf(row->why_no_kernel, sizeof(row->why_no_kernel), "%s", err.msg);
		return;
	}
	if (!caps->peek)
		guest_identify(g, NULL, &err);
	else
		snprintf(err.msg, sizeof(err.msg), "no vCPU's registers could be read");
	for (uint32_t i = 0; caps->peek && i < n && i < VCPUS_TRIED && r; i++)
		if (!b->peek(s, i, &regs))
			r = guest_identify(g, &regs, &err);
	keep_info(row, g, &err);
	guest_close(g);
}

static void look_inside(struct list_row *row, const struct vmprof_backend *b,
			const struct backend_caps *caps)
{
	struct backend_config cfg = {0};
	struct vmprof_err err = {0};
	struct backend_session *s;

	if (b->open(&s, row->vm, &cfg, &err)) {
		snprintf(row->why_no_kernel, sizeof(row->why_no_kernel), "%s", err.msg);
		return;
	}
	for (uint32_t i = 0; i < row->vm->nr_vcpus && b->vcpu_tid; i++)
		if (!row->tids[i])
			row->tids[i] = b->vcpu_tid(s, i);
	if (b->memory && b->memory(s)) {
		struct vm_ram *ram;

		if (row->vm->hypervisor == VM_HYPERVISOR_XEN)
			row->ram_kind = "foreign mapping";
		else if (!vm_ram_open(&ram, row->vm, NULL)) {
			row->ram_kind = vm_ram_kind(ram);
			vm_ram_close(ram);
		}
		identify(row, b, caps, s);
	}
	b->close(s);
}

void list_row_fill(struct list_row *row, const struct vm *vm)
{
	int usable = -1;

	*row = (struct list_row){.vm = vm};
	if (vm->hypervisor == VM_HYPERVISOR_QEMU)
		vm_qemu_version(vm, row->version);
	else if (vm->hypervisor == VM_HYPERVISOR_XEN)
		vm_xen_version(row->version);
	row->tids = xcalloc(vm->nr_vcpus + 1, sizeof(*row->tids));
	for (uint32_t i = 0; i < vm->nr_vcpus; i++)
		row->tids[i] = vm->vcpus[i].tid;
	for (unsigned i = 0; i < LIST_BACKENDS_MAX && vmprof_backends[i]; i++) {
		vmprof_backends[i]->probe(vm, &row->caps[i]);
		row->nr_caps++;
		if (usable < 0 && row->caps[i].usable)
			usable = (int)i;
	}
	if (usable >= 0)
		look_inside(row, vmprof_backends[usable], &row->caps[usable]);
	else
		snprintf(row->why_no_kernel, sizeof(row->why_no_kernel),
			 "no backend can look into this VM");
	row->kernel.why_not = row->why_no_kernel;
}

void list_row_free(struct list_row *row)
{
	free(row->tids);
}
