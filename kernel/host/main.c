// SPDX-License-Identifier: GPL-2.0-only
/* vmprof.ko: the device /dev/vmprof. The interface is described in uapi/vmprof.h. */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "direct.h"
#include "host.h"

static int open_device(struct inode *inode, struct file *file)
{
	struct vp_vm *vm;

	if (!perfmon_capable())
		return -EPERM;
	vm = vp_vm_new();
	if (!vm)
		return -ENOMEM;
	file->private_data = vm;
	return 0;
}

static int release(struct inode *inode, struct file *file)
{
	vp_vm_free(file->private_data);
	return 0;
}

/* Copies in a structure that starts with its size; see uapi/vmprof.h. */
static int copy_in(void *to, size_t known, const void __user *from, u32 *size)
{
	if (get_user(*size, (const u32 __user *)from))
		return -EFAULT;
	if (*size < sizeof(u32) || *size > PAGE_SIZE)
		return -EINVAL;
	return copy_struct_from_user(to, known, from, *size);
}

static int copy_out(void __user *to, const void *from, size_t known, u32 size)
{
	return copy_to_user(to, from, min_t(size_t, known, size)) ? -EFAULT : 0;
}

/* Also why not, if so. */
static void add_delivery(struct vmprof_info *info, u32 delivery, char why_not[VMPROF_WHY])
{
	const char *refusal = vp_direct_refusal(delivery, 0);

	if (!refusal)
		info->deliveries |= 1u << delivery;
	else if (!vp_direct_refusal(delivery, VMPROF_ATTACH_EXPERIMENTAL))
		info->experimental |= 1u << delivery;
	strscpy(why_not, refusal ?: "", VMPROF_WHY);
}

static long ioctl_info(void __user *arg)
{
	struct vmprof_info info;
	u32 size;
	int err = copy_in(&info, sizeof(info), arg, &size);

	if (err)
		return err;
	info = (struct vmprof_info){
		.size = size,
		.abi = VMPROF_ABI,
		.counters = vp_row_counters(),
		.deliveries = 1u << VMP_DELIVER_HOST,
		.sample_flags = vp_arch_sample_flags,
		.vms = vp_rows(),
	};
	add_delivery(&info, VMP_DELIVER_DIRECT, info.why_not_direct);
	add_delivery(&info, VMP_DELIVER_INJECT, info.why_not_inject);
	return copy_out(arg, &info, sizeof(info), size);
}

/* What user space hands in is copied before the VM's lock is taken: mmap() takes the two the other
 * way round. */
static long ioctl_attach(struct vp_vm *vm, void __user *arg)
{
	struct vmprof_attach attach;
	struct vmprof_event *events;
	struct vp_log *log;
	s32 *threads;
	u32 size;
	int err = copy_in(&attach, sizeof(attach), arg, &size);

	if (err)
		return err;
	if (!attach.nr_vcpus || attach.nr_vcpus > VMPROF_VCPUS_MAX || !attach.nr_events ||
	    attach.nr_events > VMP_EVENTS_MAX)
		return -EINVAL;
	threads = memdup_user(u64_to_user_ptr(attach.vcpus), attach.nr_vcpus * sizeof(*threads));
	if (IS_ERR(threads))
		return PTR_ERR(threads);
	events = memdup_user(u64_to_user_ptr(attach.events), attach.nr_events * sizeof(*events));
	if (IS_ERR(events)) {
		kfree(threads);
		return PTR_ERR(events);
	}
	log = vp_direct_pin(&attach);
	err = PTR_ERR_OR_ZERO(log);
	if (!err) {
		mutex_lock(&vm->lock);
		err = vp_vm_attach(vm, &attach, threads, events, log);
		mutex_unlock(&vm->lock);
		if (err)
			vp_direct_unpin(log);
	}
	kfree(events);
	kfree(threads);
	if (err && err != -ENOSPC)
		return err;
	return copy_out(arg, &attach, sizeof(attach), size) ?: err;
}

static long ioctl_want(struct vp_vm *vm, void __user *arg)
{
	struct vmprof_want want;
	u64 *areas;
	u32 size;
	int err = copy_in(&want, sizeof(want), arg, &size);

	if (err)
		return err;
	if (!want.nr_vcpus || want.nr_vcpus > VMPROF_VCPUS_MAX)
		return -EINVAL;
	areas = memdup_user(u64_to_user_ptr(want.areas), want.nr_vcpus * sizeof(*areas));
	if (IS_ERR(areas))
		return PTR_ERR(areas);
	mutex_lock(&vm->lock);
	err = vp_vm_want(vm, &want, areas);
	mutex_unlock(&vm->lock);
	kfree(areas);
	return err;
}

static long ioctl_read(struct vp_vm *vm, void __user *arg)
{
	struct vmprof_read read;
	u32 size;
	int err = copy_in(&read, sizeof(read), arg, &size);

	if (err)
		return err;
	mutex_lock(&vm->lock);
	err = vp_vm_read(vm, &read);
	mutex_unlock(&vm->lock);
	return err ?: copy_out(arg, &read, sizeof(read), size);
}

static long ioctl_status(struct vp_vm *vm, void __user *arg)
{
	struct vmprof_status status;
	u32 size;
	int err = copy_in(&status, sizeof(status), arg, &size);

	if (err)
		return err;
	status = (struct vmprof_status){.size = size};
	mutex_lock(&vm->lock);
	err = vp_vm_status(vm, &status);
	mutex_unlock(&vm->lock);
	return err ?: copy_out(arg, &status, sizeof(status), size);
}

static long ioctl_start(struct vp_vm *vm, bool start)
{
	int err;

	mutex_lock(&vm->lock);
	err = start ? vp_vm_start(vm) : vp_vm_stop(vm);
	mutex_unlock(&vm->lock);
	return err;
}

static long ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct vp_vm *vm = file->private_data;
	void __user *user = (void __user *)arg;

	switch (cmd) {
	case VMPROF_IOC_INFO:
		return ioctl_info(user);
	case VMPROF_IOC_ATTACH:
		return ioctl_attach(vm, user);
	case VMPROF_IOC_WANT:
		return ioctl_want(vm, user);
	case VMPROF_IOC_START:
		return ioctl_start(vm, true);
	case VMPROF_IOC_STOP:
		return ioctl_start(vm, false);
	case VMPROF_IOC_READ:
		return ioctl_read(vm, user);
	case VMPROF_IOC_STATUS:
		return ioctl_status(vm, user);
	}
	return -ENOTTY;
}

/* One ring at a time, whole. */
static int map_ring(struct file *file, struct vm_area_struct *vma)
{
	struct vp_vm *vm = file->private_data;
	unsigned long size = (vma->vm_end - vma->vm_start) >> PAGE_SHIFT;
	unsigned long stride;
	int ret = -EINVAL;

	mutex_lock(&vm->lock);
	stride = (PAGE_SIZE + vm->ring_size) >> PAGE_SHIFT;
	if (!vm->id || !vm->ring_size)
		ret = -ENXIO;
	else if (size == stride && vma->vm_pgoff % stride == 0 &&
		 vma->vm_pgoff / stride < vm->nr_vcpus)
		ret = remap_vmalloc_range(vma, vm->vcpus[vma->vm_pgoff / stride].memory, 0);
	mutex_unlock(&vm->lock);
	return ret;
}

static __poll_t poll(struct file *file, poll_table *table)
{
	struct vp_vm *vm = file->private_data;
	__poll_t ready = 0;
	u32 i;

	poll_wait(file, &vm->wait, table);
	mutex_lock(&vm->lock);
	for (i = 0; vm->id && vm->ring_size && i < vm->nr_vcpus && !ready; i++)
		if (vmp_ring_used(&vm->vcpus[i].ring) >= max(vm->wakeup, 1u))
			ready = EPOLLIN | EPOLLRDNORM;
	if (vm->id && vp_vm_dead(vm))
		ready |= EPOLLHUP;
	mutex_unlock(&vm->lock);
	return ready;
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.open = open_device,
	.release = release,
	.unlocked_ioctl = ioctl,
	.mmap = map_ring,
	.poll = poll,
	.llseek = noop_llseek,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "vmprof",
	.fops = &fops,
	.mode = 0600,
};

static int __init init(void)
{
	int err = vp_rows_init();

	if (err)
		return err;
	err = vp_arch_init();
	if (err)
		goto rows;
	err = misc_register(&device);
	if (!err)
		return 0;
	vp_arch_exit();
rows:
	vp_rows_exit();
	return err;
}

static void __exit quit(void)
{
	misc_deregister(&device);
	vp_arch_exit();
	vp_rows_exit();
}

module_init(init);
module_exit(quit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Profiles virtual machines: each one's own events, samples into memory");
