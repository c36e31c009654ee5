// SPDX-License-Identifier: GPL-2.0-only
#include "backend/ram.h"

static int none_readv(struct guest_mem *m, struct guest_mem_io *io, int n)
{
	for (int i = 0; i < n; i++)
		io[i].ok = false;
	return 0;
}

static bool none_next_range(struct guest_mem *m, uint64_t gpa, uint64_t *start, uint64_t *len)
{
	return false;
}

static const struct guest_mem_ops none_ops = {.readv = none_readv, .next_range = none_next_range};

void backend_ram_init(struct backend_ram *r)
{
	*r = (struct backend_ram){.none.ops = &none_ops};
}

int backend_ram_open(struct backend_ram *r, const struct vm *vm, struct vmprof_err *err)
{
	int rc = vm_ram_open(&r->ram, vm, err);

	if (rc)
		r->ram = NULL;
	return rc;
}

struct guest_mem *backend_ram_mem(struct backend_ram *r)
{
	return r->ram ? vm_ram_mem(r->ram) : &r->none;
}

void backend_ram_close(struct backend_ram *r)
{
	vm_ram_close(r->ram);
}
