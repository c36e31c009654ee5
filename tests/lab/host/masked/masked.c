// SPDX-License-Identifier: GPL-2.0-only
/* When it is loaded: a long time with interrupts masked, of which a profile is to know. */
#include <linux/irqflags.h>
#include <linux/module.h>

#define INSTRUCTIONS 500000

static int __init init(void)
{
	unsigned long flags, n = INSTRUCTIONS / 2;

	local_irq_save(flags);
	asm volatile("1: subs %0, %0, #1\n"
		     "b.ne 1b\n"
		     : "+r"(n)
		     :
		     : "cc");
	local_irq_restore(flags);
	return 0;
}

static void __exit quit(void)
{
}

module_init(init);
module_exit(quit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Masks interrupts for a while");
