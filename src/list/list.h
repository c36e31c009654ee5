// SPDX-License-Identifier: GPL-2.0-only
/* What vmprof list knows of one VM, and the two ways of showing it. */
#ifndef VMPROF_LIST_LIST_H
#define VMPROF_LIST_LIST_H

#include <stdio.h>

#include "backend/backend.h"
#include "guest/guest.h"
#include "vm/vm.h"

#define LIST_BACKENDS_MAX 16

struct list_row {
	const struct vm *vm;
	struct backend_caps caps[LIST_BACKENDS_MAX]; /* in the order of vmprof_backends */
	unsigned nr_caps;
	char version[VM_VERSION_SIZE]; /* of QEMU, or Xen; "" unknown */
	const char *ram_kind;	       /* how its memory is read; NULL unknown */
	/* What the guest runs; .known is false with a sentence in .why_not. */
	struct guest_kernel_info kernel;
	char why_no_kernel[256];
	pid_t *tids; /* of vm->nr_vcpus vCPUs; 0 not known */
};

/* Asks the backends, and looks into the guest with the first that can. */
void list_row_fill(struct list_row *row, const struct vm *vm);
void list_row_free(struct list_row *row);

void list_print_table(const struct list_row *rows, size_t n, FILE *f);
void list_print_details(const struct list_row *rows, size_t n, FILE *f);
void list_print_json(const struct list_row *rows, size_t n, FILE *f);

#endif
