// SPDX-License-Identifier: GPL-2.0-only
/*
 * vmprof_guest.ko: finds the log that this VM shares with its host. There is nothing that the host
 * could knock with: the log is looked at four times a second.
 */
#include <linux/io.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/workqueue.h>

#include "guest.h"

#define LOOK (HZ / 4)

static struct vg_log log; /* its memory is null: there is none yet */
static struct delayed_work work;

static void look(struct work_struct *unused)
{
	vg_look(&log);
	queue_delayed_work(system_freezable_wq, &work, LOOK);
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
	queue_delayed_work(system_freezable_wq, &work, 0);
	return 0;
release:
	pci_release_region(pci, VMPROF_LOG_PCI_BAR);
disable:
	pci_disable_device(pci);
	return err;
}

static void remove(struct pci_dev *pci)
{
	cancel_delayed_work_sync(&work);
	vg_stop(&log);
	memunmap(log.memory);
	log.memory = NULL;
	pci_release_region(pci, VMPROF_LOG_PCI_BAR);
	pci_disable_device(pci);
}

static void shut_down(struct pci_dev *pci)
{
	cancel_delayed_work_sync(&work);
	vg_farewell(&log);
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
	int err = vg_device_init();

	if (err)
		return err;
	INIT_DELAYED_WORK(&work, look);
	err = pci_register_driver(&driver);
	if (err)
		vg_device_exit();
	return err;
}

static void __exit quit(void)
{
	pci_unregister_driver(&driver);
	vg_device_exit();
	vg_direct_exit();
}

module_init(init);
module_exit(quit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Samples this virtual machine for its host, or for its own user");
