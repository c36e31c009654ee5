// SPDX-License-Identifier: GPL-2.0-only
/* Inside src/stat: what KVM calls the reasons of exits, and perf kvm stat with it. */
#ifndef VMPROF_STAT_REASONS_H
#define VMPROF_STAT_REASONS_H

#include <stddef.h>
#include <stdint.h>

/* Whose numbers a reason is of. */
enum exit_kind {
	EXIT_UNKNOWN,
	EXIT_VMX, /* 1 and 2 as field isa of x86's kvm:kvm_exit has it */
	EXIT_SVM,
	EXIT_ARM_TYPE,	/* field ret of arm64's */
	EXIT_ARM_CLASS, /* field esr_ec of it: a trap's exception class */
};

#define EXIT_ARM_TRAP 2 /* the type whose class says more */

/* Its name into @out; one without a name is "0x1f". Returns @out. */
char *exit_reason_name(char *out, size_t size, enum exit_kind kind, uint32_t reason);

#endif
