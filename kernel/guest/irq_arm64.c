// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cpuhotplug.h>
#include <linux/irq.h>
#include <linux/irqdomain.h>

#include "guest.h"
#include "irq_arm64.h"

#define SGI_LAST  15
#define SGI_FIRST 8   /* below are Linux's own */
#define LOOK_MAX  256 /* of Linux's numbers, of which the first are the controller's own */

static int irq; /* Linux's number; 0: none is taken */
static int cpus_state;

/* Whatever describes the controller, device tree or ACPI: who has it has interrupts of it. */
static struct fwnode_handle *find_controller(void)
{
	int i;

	for (i = 1; i < LOOK_MAX; i++) {
		struct irq_data *data = irq_get_irq_data(i);

		while (data && data->parent_data)
			data = data->parent_data;
		if (data && data->chip && data->chip->name && !strcmp(data->chip->name, "GICv3"))
			return data->domain->fwnode;
	}
	return NULL;
}

static int on_cpu_up(unsigned int cpu)
{
	enable_percpu_irq(irq, IRQ_TYPE_NONE);
	return 0;
}

static int on_cpu_down(unsigned int cpu)
{
	disable_percpu_irq(irq);
	return 0;
}

/* Another driver may have it. */
static int request(struct fwnode_handle *controller, u32 sgi, irq_handler_t handler)
{
	struct irq_fwspec which = {.fwnode = controller, .param_count = 1, .param = {sgi}};
	int err;

	irq = irq_create_fwspec_mapping(&which);
	if (!irq)
		return -EINVAL;
	err = request_percpu_irq(irq, handler, "vmprof", &vg_cpus);
	if (err)
		irq = 0;
	return err;
}

int vg_irq_take(irq_handler_t handler)
{
	struct fwnode_handle *controller = find_controller();
	int err = -ENODEV;
	u32 sgi;

	if (!controller)
		return err;
	for (sgi = SGI_LAST; sgi >= SGI_FIRST; sgi--) {
		err = request(controller, sgi, handler);
		if (!err)
			break;
	}
	if (err)
		return err;
	cpus_state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "vmprof_guest:online", on_cpu_up,
				       on_cpu_down);
	if (cpus_state >= 0)
		return sgi;
	free_percpu_irq(irq, &vg_cpus);
	irq_dispose_mapping(irq);
	irq = 0;
	return cpus_state;
}

void vg_irq_give_back(void)
{
	cpuhp_remove_state(cpus_state);
	free_percpu_irq(irq, &vg_cpus);
	irq_dispose_mapping(irq);
	irq = 0;
}
