/* SPDX-License-Identifier: GPL-2.0-only */
/* The place of Linux's own FIQ handler, which panics: another one is put there, and taken away. */
#ifndef VMPROF_FIQ_ARM64_H
#define VMPROF_FIQ_ARM64_H

#include <linux/ptrace.h>

/* 0 or -errno. The handler is called with FIQs and interrupts masked. */
int vg_fiq_take(void (*handler)(struct pt_regs *regs));
/* It runs no more when this returns. */
void vg_fiq_give_back(void);
void vg_fiq_exit(void); /* it is not taken again */

#endif
