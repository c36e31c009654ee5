// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that a VM shares with its host: that of its ivshmem-plain device, mapped here to be read
 * and written. The guest and QEMU's owner may write to it and cut it short at any time; where it is
 * gone zeros are read, and what is written is lost.
 */
#ifndef VMPROF_VM_SHARED_H
#define VMPROF_VM_SHARED_H

#include "vm/vm.h"

struct vm_shared {
	void *memory;
	uint64_t bytes;
	int fd;
	int guard; /* see sigbus.h */
};

/*
 * 0, or -errno with a sentence: -ENODEV there is no such device, -ESRCH the VM is gone, -EACCES,
 * -EPERM, -EBUSY another program has opened it in this way.
 */
int vm_shared_open(struct vm_shared *s, const struct vm *vm, struct vmprof_err *err);
bool vm_shared_is_cut(const struct vm_shared *s); /* a part of it is gone */
void vm_shared_close(struct vm_shared *s);	  /* also if it was not opened */

#endif
