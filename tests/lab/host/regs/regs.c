// SPDX-License-Identifier: GPL-2.0-only
/* Prints once what direct delivery changes in CPU 0 of QEMU's `virt` machine. */
#include <linux/io.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/smp.h>

#include <asm/sysreg.h>

#define REDISTRIBUTOR 0x080b0000 /* of CPU 0, private interrupts */
#define PMU_INTERRUPT 23

static void print(void *gicr)
{
	pr_info("regs: mdcr %llx pmcr %llx cnten %llx inten %llx ovs %llx ccfiltr %llx userenr "
		"%llx "
		"groups %x enabled %x priority %x ctlr %llx igrpen0 %llx ap0r0 %llx pmr %llx rpr "
		"%llx\n",
		read_sysreg(mdcr_el2), read_sysreg(pmcr_el0), read_sysreg(pmcntenset_el0),
		read_sysreg(pmintenset_el1), read_sysreg(pmovsset_el0), read_sysreg(pmccfiltr_el0),
		read_sysreg(pmuserenr_el0), readl(gicr + 0x80), readl(gicr + 0x100),
		readb(gicr + 0x400 + PMU_INTERRUPT), read_sysreg_s(SYS_ICC_CTLR_EL1),
		read_sysreg_s(SYS_ICC_IGRPEN0_EL1), read_sysreg_s(SYS_ICC_AP0R0_EL1),
		read_sysreg_s(SYS_ICC_PMR_EL1), read_sysreg_s(SYS_ICC_RPR_EL1));
}

static int __init init(void)
{
	void __iomem *gicr = ioremap(REDISTRIBUTOR, 0x1000);

	if (!gicr)
		return -ENOMEM;
	smp_call_function_single(0, print, (void __force *)gicr, 1);
	iounmap(gicr);
	return 0;
}

static void __exit quit(void)
{
}

module_init(init);
module_exit(quit);
MODULE_LICENSE("GPL");
