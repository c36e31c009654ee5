// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/vmprof_guest: the log of the guest's own user, who records this machine with no host.
 * Whether there is a device with a log of the host's makes no difference to it.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/vmalloc.h>

#include "guest.h"

static DEFINE_MUTEX(lock); /* of what follows */
static bool has_owner;
static struct vg_log log = {.own = true}; /* its memory is null: it was not mapped yet */

static int open_device(struct inode *inode, struct file *file)
{
	int err;

	if (!perfmon_capable())
		return -EPERM;
	mutex_lock(&lock);
	err = has_owner ? -EBUSY : 0;
	has_owner = true;
	mutex_unlock(&lock);
	return err;
}

/* There is no mapping any more: each one holds the file. */
static int release(struct inode *inode, struct file *file)
{
	mutex_lock(&lock);
	if (log.memory) {
		vg_stop(&log);
		vfree(log.memory);
		log.memory = NULL;
	}
	has_owner = false;
	mutex_unlock(&lock);
	return 0;
}

static long ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	long err = 0;

	if (cmd != VMPROF_GUEST_IOC_LOOK)
		return -ENOTTY;
	mutex_lock(&lock);
	if (log.memory)
		vg_look(&log);
	else
		err = -ENXIO;
	mutex_unlock(&lock);
	return err;
}

static int make_log(struct vm_area_struct *vma)
{
	unsigned long bytes = vma->vm_end - vma->vm_start;
	int err;

	if (vma->vm_pgoff || !(vma->vm_flags & VM_SHARED) || bytes > VMPROF_GUEST_LOG_MAX)
		return -EINVAL;
	if (log.memory)
		return -EBUSY;
	log.memory = vmalloc_user(bytes);
	if (!log.memory)
		return -ENOMEM;
	log.bytes = bytes;
	log.answered = 0;
	err = remap_vmalloc_range(vma, log.memory, 0);
	if (err) {
		vfree(log.memory);
		log.memory = NULL;
	}
	return err;
}

static int map_log(struct file *file, struct vm_area_struct *vma)
{
	int err;

	mutex_lock(&lock);
	err = make_log(vma);
	mutex_unlock(&lock);
	return err;
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.open = open_device,
	.release = release,
	.unlocked_ioctl = ioctl,
	.mmap = map_log,
	.llseek = noop_llseek,
};

/* Who may open it the capability says, as of perf_event_open(). */
static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "vmprof_guest",
	.fops = &fops,
	.mode = 0666,
};

int vg_device_init(void)
{
	return misc_register(&device);
}

void vg_device_exit(void)
{
	misc_deregister(&device);
}
