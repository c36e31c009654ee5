// SPDX-License-Identifier: GPL-2.0-only
#include "vm/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "util/text.h"
#include "vm/proc.h"
#include "vm/sigbus.h"

#define PAGE 4096

/* Is it mapped from the file that QEMU was told of? maps has no more than the start of a path. */
static bool is_path(const struct proc_map *m, const char *path)
{
	size_t n = sizeof(m->path) - 1;

	return path && !strncmp(m->path, path, n);
}

/*
 * Where QEMU has it: the shared mapping of that size, of several the one of that file. The file
 * itself may be anything by now, and in a mount namespace of QEMU's: its path is not opened.
 */
static const struct proc_map *find(const struct proc_maps *maps, const struct vm *vm)
{
	const struct proc_map *found = NULL;
	unsigned n = 0;

	for (size_t i = 0; i < maps->n; i++) {
		const struct proc_map *m = &maps->map[i];

		if (!m->shared || !m->read || !m->write || !m->inode || m->offset ||
		    m->end - m->start != vm->shared_size)
			continue;
		if (is_path(m, vm->shared_path))
			return m;
		found = m;
		n++;
	}
	return n == 1 ? found : NULL;
}

static int map_file(struct vm_shared *s, const struct vm *vm, struct vmprof_err *err)
{
	struct statfs fs;
	struct stat st;
	size_t page = PAGE;
	char name[96];
	void *memory;

	escape_str(name, sizeof(name), vm->name);
	if (fstat(s->fd, &st) || fstatfs(s->fd, &fs))
		return err_sys(err, errno, "cannot look at the shared memory of %s", name);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < vm->shared_size)
		return err_set(err, EINVAL,
			       "the file of the shared memory of %s is shorter than its "
			       "ivshmem-plain device",
			       name);
	if (fs.f_type == HUGETLBFS_MAGIC)
		page = (size_t)fs.f_bsize;
	memory = mmap(NULL, vm->shared_size, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (memory == MAP_FAILED)
		return err_sys(err, errno, "cannot map the shared memory of %s", name);
	s->memory = memory;
	s->bytes = vm->shared_size;
	s->guard = sigbus_guard(memory, s->bytes, page, PROT_READ | PROT_WRITE);
	if (s->guard < 0)
		return err_set(err, ENOSPC, "the memory of too many VMs is mapped");
	return 0;
}

/* Whoever else of us has it open has the lock: it is of the open file and ends with it. */
static int take_lock(const struct vm_shared *s, const struct vm *vm, struct vmprof_err *err)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char name[96];

	if (!fcntl(s->fd, F_OFD_SETLK, &lock))
		return 0;
	escape_str(name, sizeof(name), vm->name);
	if (errno == EAGAIN || errno == EACCES)
		return err_set(err, EBUSY,
			       "the log of %s is used by another program, or is another VM's as "
			       "well: it has one owner at a time",
			       name);
	return err_sys(err, errno, "cannot lock the shared memory of %s", name);
}

int vm_shared_open(struct vm_shared *s, const struct vm *vm, struct vmprof_err *err)
{
	const struct proc_map *m;
	struct proc_maps maps;
	char name[96];
	int r;

	*s = (struct vm_shared){.fd = -1, .guard = -1};
	escape_str(name, sizeof(name), vm->name);
	if (!vm->shared_size)
		return err_set(err, ENODEV,
			       "%s has no ivshmem-plain device with shared memory for its log, see "
			       "vmprof_guest(4)",
			       name);
	r = vm_alive(vm) ? proc_maps_read(&maps, vm->pid) : -ESRCH;
	if (r)
		return vm_access_error(vm, r, "the memory map", err);
	m = find(&maps, vm);
	if (!m)
		r = err_set(err, ENODEV,
			    "where QEMU has the memory of the ivshmem-plain device of %s is not to "
			    "be found",
			    name);
	else
		s->fd = proc_open_mapped(vm->pid, m->start, m->end, m->inode, O_RDWR);
	proc_maps_free(&maps);
	if (!r && s->fd < 0)
		r = vm_access_error(vm, EACCES, "the shared memory", err);
	if (!r)
		r = take_lock(s, vm, err);
	if (!r)
		r = map_file(s, vm, err);
	if (r)
		vm_shared_close(s);
	return r;
}

bool vm_shared_is_cut(const struct vm_shared *s)
{
	return sigbus_hit(s->guard);
}

void vm_shared_close(struct vm_shared *s)
{
	sigbus_unguard(s->guard);
	if (s->memory)
		munmap(s->memory, s->bytes);
	if (s->fd >= 0)
		close(s->fd);
	*s = (struct vm_shared){.fd = -1, .guard = -1};
}
