// SPDX-License-Identifier: GPL-2.0-only
/*
 * vmprof_guest.ko: finds the log that this VM shares with its host, answers what the host asks for
 * in it, and lets a source write samples there. There is nothing that the host could knock with:
 * the log is looked at four times a second.
 */
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/workqueue.h>

#ifdef CONFIG_X86_64
#include <asm/tsc.h>
#endif

#include "guest.h"

#define LOOK (HZ / 4)

struct vg_request vg_request;

static struct {
	void *memory; /* null: no log yet */
	u64 bytes;
	u32 answered;
	const struct vg_source *source; /* that runs, or null */
	struct delayed_work work;
} log;

static struct vmprof_log_guest *guest_page(void)
{
	return log.memory + VMPROF_LOG_PAGE;
}

static void start_rings(const struct vmprof_log_host *host)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
	{
		struct vg_cpu *c = per_cpu_ptr(&vg_cpus, cpu);
		void *ring = log.memory + host->ring_offset + cpu * host->ring_stride;

		*c = (struct vg_cpu){};
		if (cpu < host->rings)
			vmp_ring_init(&c->ring, ring, VMPROF_LOG_PAGE, host->ring_size);
	}
}

/* As long as the host may have this VM's row, its handler stays: so does the module. */
static void stop_source(void)
{
	if (!log.source)
		return;
	log.source->stop();
	vg_side_stop();
	log.source = NULL;
	module_put(THIS_MODULE);
}

static const struct vg_source *const sources[VMPROF_SOURCES] = {
	[VMPROF_SOURCE_PERF] = &vg_source_perf,
	[VMPROF_SOURCE_DIRECT] = &vg_source_direct,
	[VMPROF_SOURCE_INJECT] = &vg_source_inject,
};

/* Without it there are samples nevertheless. */
static void start_side(const struct vmprof_log_host *host, struct vmprof_log_guest *row)
{
	int err = -ENOSPC;

	if (host->side_size)
		err = vg_side_start(log.memory + host->side_offset, host->side_size);
	row->side = !err;
	if (err == -ENOSPC)
		strscpy(row->why, "the log has no room for it", sizeof(row->why));
	else if (err)
		scnprintf(row->why, sizeof(row->why),
			  "the guest's kernel does not let itself be hooked (error %d)", -err);
}

static int start_source(const struct vmprof_log_host *host, struct vmprof_log_guest *row)
{
	const struct vg_source *source = sources[host->source];
	int err;

	vg_request =
		(struct vg_request){log.memory, host->request, host->source, host->chain, host->nr};
	memcpy(vg_request.events, host->events, sizeof(vg_request.events));
	start_rings(host);
	err = source->start(row);
	if (err)
		return err;
	__module_get(THIS_MODULE);
	log.source = source;
	row->nr = host->nr;
	memcpy(row->events, host->events, sizeof(row->events));
	start_side(host, row);
	return 0;
}

static void answer(const struct vmprof_log_host *host, int err)
{
	struct vmprof_log_guest row = {
		.magic = VMPROF_LOG_MAGIC,
		.version = VMPROF_LOG_VERSION,
		.cpus = min_t(u32, num_possible_cpus(), VMPROF_LOG_RINGS_MAX),
	};

#ifdef CONFIG_ARM64
	row.clock = VMPROF_CLOCK_CNTVCT;
	row.frequency = read_sysreg(cntfrq_el0);
#else
	row.clock = VMPROF_CLOCK_TSC;
	row.frequency = tsc_khz * 1000ull;
#endif
	stop_source();
	if (err == -VMP_EINVAL)
		scnprintf(row.why, sizeof(row.why), "the log is of version %u, this module's of %u",
			  host->version, VMPROF_LOG_VERSION);
	else if (err)
		strscpy(row.why, "the host asks for what cannot be", sizeof(row.why));
	else if (host->nr)
		err = start_source(host, &row);
	row.state = err ? VMPROF_GUEST_REFUSED : host->nr ? VMPROF_GUEST_READY : VMPROF_GUEST_IDLE;
	if (err && !row.why[0])
		scnprintf(row.why, sizeof(row.why), "the guest's module fails with error %d", -err);
	*guest_page() = row;
	log.answered = host->request;
	vmp_store_release(&guest_page()->answered, host->request);
	/* Behind the answer, since it may take some time and wait for a reader. */
	if (row.side)
		vg_side_tell();
}

static void look(struct work_struct *work)
{
	struct vmprof_log_host host;
	int err = vmp_log_request(log.memory, log.bytes, &host);

	if (err != -VMP_ENOENT && host.request != log.answered)
		answer(&host, err);
	queue_delayed_work(system_freezable_wq, &log.work, LOOK);
}

static int probe(struct pci_dev *pci, const struct pci_device_id *id)
{
	resource_size_t size = pci_resource_len(pci, VMPROF_LOG_PCI_BAR);
	int err;

	if (log.memory)
		return -EBUSY;
	if (size < 2 * VMPROF_LOG_PAGE)
		return -ENODEV;
	err = pci_enable_device(pci);
	if (err)
		return err;
	err = pci_request_region(pci, VMPROF_LOG_PCI_BAR, "vmprof_guest");
	if (err)
		goto disable;
	/* It is the host's memory, cached there as well. */
	log.memory = memremap(pci_resource_start(pci, VMPROF_LOG_PCI_BAR), size, MEMREMAP_WB);
	if (!log.memory) {
		err = -ENOMEM;
		goto release;
	}
	log.bytes = size;
	log.answered = 0;
	queue_delayed_work(system_freezable_wq, &log.work, 0);
	return 0;
release:
	pci_release_region(pci, VMPROF_LOG_PCI_BAR);
disable:
	pci_disable_device(pci);
	return err;
}

static void remove(struct pci_dev *pci)
{
	cancel_delayed_work_sync(&log.work);
	stop_source();
	memunmap(log.memory);
	log.memory = NULL;
	pci_release_region(pci, VMPROF_LOG_PCI_BAR);
	pci_disable_device(pci);
}

/*
 * Another kernel may be next, without a handler: a second for the host to see that this one ends
 * and to ask for something else. The handler stays.
 */
static void shut_down(struct pci_dev *pci)
{
	const struct vmprof_log_host *host = log.memory;
	unsigned int i;

	cancel_delayed_work_sync(&log.work);
	if (!log.source)
		return;
	WRITE_ONCE(guest_page()->state, VMPROF_GUEST_IDLE);
	for (i = 0; i < 100 && READ_ONCE(host->request) == log.answered; i++)
		msleep(10);
}

static const struct pci_device_id ids[] = {
	{PCI_DEVICE(VMPROF_LOG_PCI_VENDOR, VMPROF_LOG_PCI_DEVICE)}, {}};
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver driver = {
	.name = "vmprof_guest",
	.id_table = ids,
	.probe = probe,
	.remove = remove,
	.shutdown = shut_down,
	.driver.suppress_bind_attrs = true,
};

static int __init init(void)
{
	INIT_DELAYED_WORK(&log.work, look);
	return pci_register_driver(&driver);
}

static void __exit quit(void)
{
	pci_unregister_driver(&driver);
	vg_direct_exit();
}

module_init(init);
module_exit(quit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Samples this virtual machine into memory that it shares with its host");
