// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cpu.h>
#include <linux/io.h>
#include <linux/irqchip/arm-gic-v3.h>
#include <linux/of.h>
#include <linux/of_address.h>
#include <linux/percpu.h>
#include <linux/smp.h>

#include <asm/cputype.h>
#include <asm/sysreg.h>

#include "gic_arm64.h"

#define REGIONS_MAX 16
#define FRAME	    0x10000 /* a redistributor has two, or four with GICv4 */
#define SGI_FRAME   FRAME   /* the second: private interrupts */

/* Below what Linux gives its interrupts (0xa0): one of the host's that waits is signalled first,
 * and ends the VM's time, whatever the guest does with its own. */
#define PRIORITY 0xe0

static void __iomem *distributor, *regions[REGIONS_MAX];
static u64 sizes[REGIONS_MAX], stride;
static u32 nr_regions;
static DEFINE_PER_CPU(void __iomem *, redistributor);

static void __iomem *find_in(void __iomem *region, u64 size, u64 affinity)
{
	u64 at = 0, type;

	do {
		if (at + 2 * FRAME > size)
			return NULL;
		type = readq_relaxed(region + at + GICR_TYPER);
		if (FIELD_GET(GICR_TYPER_AFFINITY, type) == affinity)
			return region + at;
		at += stride ?: type & GICR_TYPER_VLPIS ? 4 * FRAME : 2 * FRAME;
	} while (!(type & GICR_TYPER_LAST));
	return NULL;
}

static void find_mine(void *unused)
{
	u64 mpidr = read_cpuid_mpidr(), affinity;
	void __iomem *found = NULL;
	u32 i;

	affinity = MPIDR_AFFINITY_LEVEL(mpidr, 3) << 24 | MPIDR_AFFINITY_LEVEL(mpidr, 2) << 16 |
		   MPIDR_AFFINITY_LEVEL(mpidr, 1) << 8 | MPIDR_AFFINITY_LEVEL(mpidr, 0);
	for (i = 0; i < nr_regions && !found; i++)
		found = find_in(regions[i], sizes[i], affinity);
	this_cpu_write(redistributor, found);
}

static const char *map(struct device_node *node)
{
	struct resource resource;
	u32 wanted = 1, i;

	of_property_read_u32(node, "#redistributor-regions", &wanted);
	of_property_read_u64(node, "redistributor-stride", &stride);
	distributor = of_iomap(node, 0);
	if (!distributor || !wanted || wanted > REGIONS_MAX)
		return "the interrupt controller's registers cannot be reached";
	for (i = 0; i < wanted; i++) {
		if (of_address_to_resource(node, 1 + i, &resource))
			return "the interrupt controller's registers cannot be reached";
		regions[i] = ioremap(resource.start, resource_size(&resource));
		sizes[i] = resource_size(&resource);
		if (!regions[i])
			return "the interrupt controller's registers cannot be reached";
		nr_regions++;
	}
	return NULL;
}

static const char *cpus_usable(void)
{
	int cpu;

	on_each_cpu(find_mine, NULL, 1);
	for_each_online_cpu(cpu)
	{
		void __iomem *base = per_cpu(redistributor, cpu);

		if (!base)
			return "a CPU's part of the interrupt controller is not found";
		if (readl_relaxed(base + SGI_FRAME + GICR_IGROUPR0) != ~0u)
			return "the host uses FIQs itself";
	}
	return NULL;
}

/* Without security states of its own Group 0 reads as zero here: it belongs to the firmware. */
static const char *usable(void)
{
	const char *why;

	if (!(readl_relaxed(distributor + GICD_CTLR) & GICD_CTLR_DS))
		return "the interrupt controller has two security states, so that FIQs are the "
		       "firmware's";
	cpus_read_lock();
	why = cpus_usable();
	cpus_read_unlock();
	return why;
}

const char *vp_gic_init(void)
{
	struct device_node *node = of_find_compatible_node(NULL, NULL, "arm,gic-v3");
	const char *why;

	if (!node)
		return "there is no GICv3 in the host's device tree";
	why = map(node);
	of_node_put(node);
	return why ?: usable();
}

void vp_gic_exit(void)
{
	if (distributor)
		iounmap(distributor);
	distributor = NULL;
	while (nr_regions)
		iounmap(regions[--nr_regions]);
}

static void __iomem *mine(void)
{
	return this_cpu_read(redistributor) + SGI_FRAME;
}

/* A CPU that came later is looked for when it is needed. */
bool vp_gic_here(void)
{
	if (!this_cpu_read(redistributor))
		find_mine(NULL);
	return this_cpu_read(redistributor);
}

static void barrier_to_device(void)
{
	dsb(sy);
	isb();
}

void vp_gic_set_fiq(u32 intid, struct vp_gic_saved *saved)
{
	void __iomem *base = mine();

	saved->groups = readl_relaxed(base + GICR_IGROUPR0);
	saved->priority = readb_relaxed(base + GICR_IPRIORITYR0 + intid);
	writel_relaxed(saved->groups & ~BIT(intid), base + GICR_IGROUPR0);
	writeb_relaxed(PRIORITY, base + GICR_IPRIORITYR0 + intid);
	barrier_to_device();
}

void vp_gic_restore(u32 intid, const struct vp_gic_saved *saved)
{
	void __iomem *base = mine();

	writel_relaxed(saved->groups, base + GICR_IGROUPR0);
	writeb_relaxed(saved->priority, base + GICR_IPRIORITYR0 + intid);
	barrier_to_device();
}
