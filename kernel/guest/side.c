// SPDX-License-Identifier: GPL-2.0-only
/*
 * Side-band: which processes there are, and which files they run. Samples name their thread
 * themselves; what they cannot name is the file that an address is in.
 *
 * The ring of a CPU has one producer, the handler of its interrupt, and that may come at any time.
 * So this has a ring of its own, which is written in the context of processes under a lock that no
 * handler takes.
 *
 * New maps are seen by a kprobe on perf_event_mmap(), which the kernel calls for all that becomes
 * executable so that perf may say so, and which no tracepoint stands for. ftrace cannot have it:
 * all of that file is built without. Kprobes may be switched off in debugfs; then maps are missing,
 * and nothing worse.
 */
#include <linux/dcache.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/version.h>

#include "guest.h"

#define MAX_PROCESSES 65536
#define TRIES	      100 /* waits of WAIT_MS, for a reader and for locks, in all */
#define WAIT_MS	      10

struct path_buffer {
	char path[VMP_MAP_PATH_MAX];
};

static struct {
	raw_spinlock_t lock;
	struct vmp_ring ring; /* under the lock; no page: nothing is written */
	struct path_buffer __percpu *buffers;
	u32 tries; /* that are left */
} side = {.lock = __RAW_SPIN_LOCK_UNLOCKED(side.lock)};

/* ------------------------------------------------------------------ records */

/* time: in the record. It is taken under the lock, so that the ring is in its order. */
static int write(u64 *time, const struct vmp_part *parts, u32 nr)
{
	unsigned long flags;
	int err = 0;

	raw_spin_lock_irqsave(&side.lock, flags);
	*time = vg_clock();
	if (side.ring.page)
		err = vmp_ring_write(&side.ring, parts, nr);
	raw_spin_unlock_irqrestore(&side.lock, flags);
	return err;
}

/* process: its first thread, or for what has happened just now any. */
static int tell_process(const struct task_struct *process, u64 began, u32 parent, u32 what,
			const char *comm)
{
	struct vmp_guest_process record = {
		.header = {sizeof(record), VMP_REC_GUEST_PROCESS},
		.began = began,
		.tgid = process->tgid,
		.parent = parent,
		.what = what,
	};
	struct vmp_part part = {&record, sizeof(record)};

	BUILD_BUG_ON(sizeof(record.comm) != TASK_COMM_LEN);
	strscpy_pad(record.comm, comm, sizeof(record.comm));
	return write(&record.time, &part, 1);
}

/* Memory without a file, as perf and /proc/PID/maps call it. */
static const char *special_name(struct vm_area_struct *vma)
{
	const struct mm_struct *mm = vma->vm_mm;
	const char *name = NULL;

	if (vma->vm_ops && vma->vm_ops->name)
		name = vma->vm_ops->name(vma);
	if (name)
		return name;
	if (vma->vm_start <= mm->brk && vma->vm_end >= mm->start_brk && mm->start_brk < mm->brk)
		return "[heap]";
	if (vma->vm_start <= mm->start_stack && vma->vm_end >= mm->start_stack)
		return "[stack]";
	return "//anon";
}

/* Of a file of an overlay as the process has opened it. */
static const struct path *path_of(const struct file *file)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
	return file_user_path(file);
#else
	return &file->f_path;
#endif
}

static const char *name_of(struct vm_area_struct *vma, struct path_buffer *buffer)
{
	const char *path;

	if (!vma->vm_file)
		return special_name(vma);
	path = d_path(path_of(vma->vm_file), buffer->path, sizeof(buffer->path));
	return IS_ERR(path) ? "//toolong" : path;
}

static void describe_file(struct vmp_guest_map *map, const struct vm_area_struct *vma)
{
	const struct inode *inode = file_inode(vma->vm_file);

	map->offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	map->ino = inode->i_ino;
	map->size = i_size_read(inode);
	map->dev = inode->i_sb->s_dev;
	map->generation = inode->i_generation;
	map->build_id_len = vg_build_id(vma->vm_file->f_mapping, map->build_id);
}

static int tell_map(struct vm_area_struct *vma, const struct task_struct *process, u64 began,
		    struct path_buffer *buffer)
{
	static const u64 zeros;
	const char *name = name_of(vma, buffer);
	u32 len = strnlen(name, VMP_MAP_PATH_MAX - 1), pad = 8 - len % 8;
	struct vmp_guest_map map = {
		.header = {sizeof(map) + len + pad, VMP_REC_GUEST_MAP},
		.began = began,
		.start = vma->vm_start,
		.end = vma->vm_end,
		.tgid = process->tgid,
		.flags = vma->vm_flags & VMP_MAP_FLAGS,
	};
	struct vmp_part parts[] = {{&map, sizeof(map)}, {name, len}, {&zeros, pad}};

	BUILD_BUG_ON(VM_READ != VMP_MAP_READ || VM_WRITE != VMP_MAP_WRITE ||
		     VM_EXEC != VMP_MAP_EXEC || VM_SHARED != VMP_MAP_SHARED);
	if (vma->vm_file)
		describe_file(&map, vma);
	return write(&map.time, parts, ARRAY_SIZE(parts));
}

/* ------------------------------------------------------------------ what happens */

/* Preemption is off, and no interrupt's handler maps anything: the buffer is this one's. */
static int on_mmap(struct kprobe *probe, struct pt_regs *regs)
{
	struct vm_area_struct *vma = (void *)regs_get_kernel_argument(regs, 0);

	if (vma->vm_flags & VM_EXEC && vma->vm_mm == current->mm)
		tell_map(vma, current, current->group_leader->start_time,
			 this_cpu_ptr(side.buffers));
	return 0;
}

/* Threads are named by their samples. */
static void on_fork(void *unused, struct task_struct *parent, struct task_struct *child)
{
	if (child->mm && thread_group_leader(child))
		tell_process(child, child->start_time, parent->tgid, VMP_PROCESS_FORK, child->comm);
}

/* There is a tracepoint of exec itself, but that one comes when the new program has been mapped. */
static void on_rename(void *unused, struct task_struct *task, const char *comm)
{
	u32 parent;

	if (task != current || !task->in_execve)
		return;
	rcu_read_lock();
	parent = rcu_dereference(task->real_parent)->tgid;
	rcu_read_unlock();
	tell_process(task, task->group_leader->start_time, parent, VMP_PROCESS_EXEC, comm);
}

/* Not when it exits: samples come from it until it has left its CPU for good. */
static void on_free(void *unused, struct task_struct *task)
{
	if (task->pid == task->tgid && !(task->flags & PF_KTHREAD))
		tell_process(task, task->start_time, 0, VMP_PROCESS_GONE, task->comm);
}

static struct {
	const char *name;
	void *probe;
	struct tracepoint *point;
} hooks[] = {
	{"sched_process_fork", on_fork},
	{"task_rename", on_rename},
	{"sched_process_free", on_free},
};

static struct kprobe mmap_probe = {.symbol_name = "perf_event_mmap", .pre_handler = on_mmap};
static bool hooked; /* all of them */

static void find(struct tracepoint *point, void *unused)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(hooks); i++)
		if (!strcmp(point->name, hooks[i].name))
			hooks[i].point = point;
}

static void unhook(u32 nr)
{
	while (nr--)
		tracepoint_probe_unregister(hooks[nr].point, hooks[nr].probe, NULL);
	tracepoint_synchronize_unregister();
}

static int hook(void)
{
	int err;
	u32 i;

	for_each_kernel_tracepoint(find, NULL);
	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		err = hooks[i].point
			      ? tracepoint_probe_register(hooks[i].point, hooks[i].probe, NULL)
			      : -ENOENT;
		if (err)
			goto undo;
	}
	mmap_probe.addr = NULL; /* else it and the name would be two places, after the first time */
	mmap_probe.flags = 0;
	err = register_kprobe(&mmap_probe);
	if (!err)
		return 0;
undo:
	unhook(i);
	return err;
}

/* ------------------------------------------------------------------ what there is */

/* Room for a few more processes; false: nobody reads, and nobody is waited for any longer. */
static bool wait_for_room(void)
{
	while (vmp_ring_used(&side.ring) > side.ring.size / 2) {
		if (!side.tries)
			return false;
		side.tries--;
		msleep(WAIT_MS);
	}
	return true;
}

static bool lock_maps(struct mm_struct *mm)
{
	while (!mmap_read_trylock(mm)) {
		if (!side.tries)
			return false;
		side.tries--;
		msleep(WAIT_MS);
	}
	return true;
}

static int tell_maps(struct mm_struct *mm, const struct task_struct *process,
		     struct path_buffer *buffer)
{
	VMA_ITERATOR(iterator, mm, 0);
	struct vm_area_struct *vma;
	int err = 0;

	if (!lock_maps(mm))
		return -EBUSY;
	for_each_vma(iterator, vma)
	{
		if (vma->vm_flags & VM_EXEC)
			err = err ?: tell_map(vma, process, process->start_time, buffer);
	}
	mmap_read_unlock(mm);
	return err;
}

/* Not while it execs, or maps of the old program would come behind those of the new one: its own
 * records say all then. */
static void tell_existing(struct task_struct *process, struct path_buffer *buffer)
{
	struct mm_struct *mm;
	u32 parent;

	if (!down_read_trylock(&process->signal->exec_update_lock))
		return;
	mm = get_task_mm(process);
	rcu_read_lock();
	parent = rcu_dereference(process->real_parent)->tgid;
	rcu_read_unlock();
	if (mm && !tell_maps(mm, process, buffer))
		tell_process(process, process->start_time, parent, VMP_PROCESS_KNOWN,
			     process->comm);
	up_read(&process->signal->exec_update_lock);
	if (mm)
		mmput(mm);
}

/* Takes a reference of each. */
static struct task_struct **all_processes(u32 *nr)
{
	struct task_struct **list, *process;
	u32 n = 0;

	rcu_read_lock();
	for_each_process(process) n++;
	rcu_read_unlock();
	n = min_t(u32, n, MAX_PROCESSES);
	*nr = 0;
	list = kvmalloc_array(n, sizeof(*list), GFP_KERNEL);
	if (!list)
		return NULL;
	rcu_read_lock();
	for_each_process(process)
	{
		if (*nr < n && process->mm)
			list[(*nr)++] = get_task_struct(process);
	}
	rcu_read_unlock();
	return list;
}

static void missed(u32 processes)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&side.lock, flags);
	vmp_ring_missed(&side.ring, processes);
	raw_spin_unlock_irqrestore(&side.lock, flags);
}

void vg_side_tell(void)
{
	struct path_buffer *buffer = kmalloc(sizeof(*buffer), GFP_KERNEL);
	struct task_struct **list;
	bool room = buffer;
	u32 nr, i;

	list = all_processes(&nr);
	side.tries = TRIES;
	for (i = 0; i < nr; i++) {
		room = room && wait_for_room();
		if (room)
			tell_existing(list[i], buffer);
		else
			missed(1);
		put_task_struct(list[i]);
		cond_resched();
	}
	kvfree(list);
	kfree(buffer);
}

/* ------------------------------------------------------------------ */

int vg_side_start(void *memory, u64 size)
{
	int err;

	side.buffers = alloc_percpu(struct path_buffer);
	if (!side.buffers)
		return -ENOMEM;
	vmp_ring_init(&side.ring, memory, VMPROF_LOG_PAGE, size);
	err = hook();
	hooked = !err;
	if (err)
		vg_side_stop();
	return err;
}

void vg_side_stop(void)
{
	if (hooked) {
		unregister_kprobe(&mmap_probe);
		unhook(ARRAY_SIZE(hooks));
	}
	hooked = false;
	side.ring = (struct vmp_ring){};
	free_percpu(side.buffers);
	side.buffers = NULL;
}
