// SPDX-License-Identifier: GPL-2.0-only
/* Prints once what direct delivery changes in each CPU of QEMU's `virt` machine, a line a CPU. */
#include <linux/io.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/workqueue.h>

#include <asm/sysreg.h>

#define REDISTRIBUTORS 0x080a0000
#define FRAMES	       0x20000 /* of one CPU */
#define PRIVATE	       0x10000 /* in these: of private interrupts */
#define PMU_INTERRUPT  23

static void __iomem *redistributors;

static long print(void *unused)
{
	int cpu = get_cpu();
	void __iomem *gicr = redistributors + cpu * FRAMES + PRIVATE;

	pr_info("regs: cpu %d mdcr %llx pmcr %llx cnten %llx inten %llx ovs %llx ccfiltr %llx "
		"userenr %llx groups %x enabled %x priority %x ctlr %llx igrpen0 %llx ap0r0 %llx "
		"pmr %llx rpr %llx\n",
		cpu, read_sysreg(mdcr_el2), read_sysreg(pmcr_el0), read_sysreg(pmcntenset_el0),
		read_sysreg(pmintenset_el1), read_sysreg(pmovsset_el0), read_sysreg(pmccfiltr_el0),
		read_sysreg(pmuserenr_el0), readl(gicr + 0x80), readl(gicr + 0x100),
		readb(gicr + 0x400 + PMU_INTERRUPT), read_sysreg_s(SYS_ICC_CTLR_EL1),
		read_sysreg_s(SYS_ICC_IGRPEN0_EL1), read_sysreg_s(SYS_ICC_AP0R0_EL1),
		read_sysreg_s(SYS_ICC_PMR_EL1), read_sysreg_s(SYS_ICC_RPR_EL1));
	put_cpu();
	return 0;
}

/* In a thread of each CPU: a vCPU that has that CPU has it no more. */
static int __init init(void)
{
	int cpu;

	redistributors = ioremap(REDISTRIBUTORS, num_possible_cpus() * FRAMES);
	if (!redistributors)
		return -ENOMEM;
	for_each_online_cpu(cpu) work_on_cpu(cpu, print, NULL);
	iounmap(redistributors);
	return 0;
}

static void __exit quit(void)
{
}

module_init(init);
module_exit(quit);
MODULE_LICENSE("GPL");
