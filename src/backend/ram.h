// SPDX-License-Identifier: GPL-2.0-only
/*
 * A VM's memory for backends that sample without it if need be: not having it costs names, not
 * samples.
 */
#ifndef VMPROF_BACKEND_RAM_H
#define VMPROF_BACKEND_RAM_H

#include "guest/mem.h"
#include "vm/vm.h"

struct backend_ram {
	struct vm_ram *ram;    /* NULL: not known where it is */
	struct guest_mem none; /* what is handed out then */
};

void backend_ram_init(struct backend_ram *r); /* not known */
/* 0, or -errno with a sentence: it is not known then. */
int backend_ram_open(struct backend_ram *r, const struct vm *vm, struct vmprof_err *err);
struct guest_mem *backend_ram_mem(struct backend_ram *r);
void backend_ram_close(struct backend_ram *r);

#endif
