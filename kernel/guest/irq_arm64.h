/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An interrupt that the host raises on each CPU of this VM by itself: one of GICv3's SGIs that
 * Linux leaves alone. Linux has 0 to 7 for itself. An SGI is an edge, with nothing to be lowered:
 * a PPI of KVM's is always a level, whose end is an exit of its own.
 */
#ifndef VMPROF_IRQ_ARM64_H
#define VMPROF_IRQ_ARM64_H

#include <linux/interrupt.h>

/* On all CPUs, also those that come later: the interrupt's number as the host knows it, or
 * -errno. */
int vg_irq_take(irq_handler_t handler);
/* It runs no more when this returns. */
void vg_irq_give_back(void);

#endif
