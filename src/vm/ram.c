// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "util/text.h"
#include "util/xalloc.h"
#include "vm/proc.h"
#include "vm/ram_find.h"
#include "vm/sigbus.h"
#include "vm/spec.h"

#define BATCH	     256  /* ranges in one process_vm_readv, well below IOV_MAX */
#define PAGEMAP_STEP 4096 /* entries read at once: 16 MiB of RAM */
#define PAGE	     4096ull

struct block {
	uint64_t size;
	uint64_t hva;	 /* in QEMU */
	uint8_t *here;	 /* mapped read-only in this process, or NULL */
	int fd;		 /* of the mapped file, -1 */
	uint64_t fd_off; /* where the block starts in it */
	bool can_seek;	 /* the file knows its holes */
	int guard;	 /* see sigbus.h */
};

struct vm_ram {
	struct guest_mem mem;
	pid_t pid;
	struct ram_region regions[RAM_REGIONS_MAX];
	unsigned nr_regions;
	struct block blocks[RAM_BLOCKS_MAX];
	unsigned nr_blocks;
	int pagemap;
	const char *kind;
};

static struct vm_ram *ram_of(struct guest_mem *m)
{
	return (struct vm_ram *)m;
}

/* The region that @gpa lies in, or the next above it; NULL if there is none. */
static const struct ram_region *region_at(const struct vm_ram *ram, uint64_t gpa)
{
	for (unsigned i = 0; i < ram->nr_regions; i++)
		if (gpa < ram->regions[i].gpa + ram->regions[i].len)
			return &ram->regions[i];
	return NULL;
}

/* ---------- reading ---------- */

struct piece {
	uint64_t hva;
	void *buf;
	uint32_t len;
	int io;
};

struct batch {
	struct piece pieces[BATCH];
	unsigned n;
};

/* Reads the pieces out of QEMU's memory; one that fails takes its range's .ok. */
static int flush(struct vm_ram *ram, struct batch *b, struct guest_mem_io *io)
{
	struct iovec local[BATCH], remote[BATCH];
	unsigned done = 0;

	for (unsigned i = 0; i < b->n; i++) {
		local[i] = (struct iovec){b->pieces[i].buf, b->pieces[i].len};
		remote[i] = (struct iovec){(void *)(uintptr_t)b->pieces[i].hva, b->pieces[i].len};
	}
	while (done < b->n) {
		ssize_t r = process_vm_readv(ram->pid, local + done, b->n - done, remote + done,
					     b->n - done, 0);

		if (r < 0 && (errno == ESRCH || errno == EPERM))
			return -errno;
		while (done < b->n && r >= (ssize_t)b->pieces[done].len)
			r -= b->pieces[done++].len;
		if (done < b->n) /* this one stopped it */
			io[b->pieces[done++].io].ok = false;
	}
	b->n = 0;
	return 0;
}

static int ram_readv(struct guest_mem *m, struct guest_mem_io *io, int n)
{
	struct vm_ram *ram = ram_of(m);
	struct batch b;
	int r = 0;

	b.n = 0;
	for (int i = 0; i < n; i++) {
		uint64_t gpa = io[i].gpa;
		uint8_t *buf = io[i].buf;
		uint32_t left = io[i].len;

		io[i].ok = true;
		while (left) {
			const struct ram_region *reg = region_at(ram, gpa);
			const struct block *blk = reg ? &ram->blocks[reg->block] : NULL;
			uint64_t at, len;

			if (!reg || gpa < reg->gpa) {
				io[i].ok = false;
				break;
			}
			at = gpa - reg->gpa;
			len = reg->len - at < left ? reg->len - at : left;
			if (blk->here) {
				memcpy(buf, blk->here + reg->off + at, len);
			} else {
				b.pieces[b.n++] = (struct piece){blk->hva + reg->off + at, buf,
								 (uint32_t)len, i};
				if (b.n == BATCH && (r = flush(ram, &b, io)))
					return r;
			}
			gpa += len;
			buf += len;
			left -= (uint32_t)len;
		}
	}
	return b.n ? flush(ram, &b, io) : 0;
}

static const void *ram_map(struct guest_mem *m, uint64_t gpa, size_t len)
{
	struct vm_ram *ram = ram_of(m);
	const struct ram_region *reg = region_at(ram, gpa);

	if (!reg || gpa < reg->gpa || !ram->blocks[reg->block].here ||
	    len > reg->len - (gpa - reg->gpa))
		return NULL;
	return ram->blocks[reg->block].here + reg->off + (gpa - reg->gpa);
}

/* ---------- what was ever used ---------- */

/* [*from, *to) becomes the first piece of it that the file has; false if there is none. */
static bool file_range(const struct block *b, uint64_t *from, uint64_t *to)
{
	off_t data = lseek(b->fd, (off_t)(b->fd_off + *from), SEEK_DATA);
	off_t hole;

	if (data < 0 || (uint64_t)data >= b->fd_off + *to)
		return false;
	hole = lseek(b->fd, data, SEEK_HOLE);
	*from = (uint64_t)data - b->fd_off;
	if (hole > data && (uint64_t)hole < b->fd_off + *to)
		*to = (uint64_t)hole - b->fd_off;
	return true;
}

/* The same by QEMU's page tables: pages that are there or swapped out. */
static bool pagemap_range(const struct vm_ram *ram, const struct block *b, uint64_t *from,
			  uint64_t *to)
{
	uint64_t entries[PAGEMAP_STEP];
	uint64_t first = (b->hva + *from) / PAGE, end = (b->hva + *to + PAGE - 1) / PAGE;
	uint64_t start = 0;

	if (ram->pagemap < 0)
		return true; /* may not look: all of it may have been used */
	for (uint64_t page = first; page < end;) {
		size_t want = end - page < PAGEMAP_STEP ? end - page : PAGEMAP_STEP;
		ssize_t r = pread(ram->pagemap, entries, want * 8, (off_t)(page * 8));

		if (r < 8)
			break;
		for (size_t i = 0; i < (size_t)r / 8; i++, page++) {
			bool used = entries[i] >> 62;

			if (used && !start) {
				start = page;
			} else if (!used && start) {
				end = page;
				break;
			}
		}
	}
	if (!start)
		return false;
	if (start * PAGE > b->hva + *from)
		*from = start * PAGE - b->hva;
	if (end * PAGE - b->hva < *to)
		*to = end * PAGE - b->hva;
	return true;
}

static bool ram_next_range(struct guest_mem *m, uint64_t gpa, uint64_t *start, uint64_t *len)
{
	struct vm_ram *ram = ram_of(m);

	for (unsigned i = 0; i < ram->nr_regions; i++) {
		const struct ram_region *reg = &ram->regions[i];
		const struct block *b = &ram->blocks[reg->block];
		uint64_t from = reg->off, to = reg->off + reg->len;

		if (gpa >= reg->gpa + reg->len)
			continue;
		if (gpa > reg->gpa)
			from += gpa - reg->gpa;
		if (!(b->can_seek ? file_range(b, &from, &to) : pagemap_range(ram, b, &from, &to)))
			continue;
		*start = reg->gpa + (from - reg->off);
		*len = to - from;
		return true;
	}
	return false;
}

static const struct guest_mem_ops ram_ops = {
	.readv = ram_readv,
	.map = ram_map,
	.next_range = ram_next_range,
};

/* ---------- opening ---------- */

static int yama_scope(void)
{
	FILE *f = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int v = 0;

	if (f && fscanf(f, "%d", &v) != 1)
		v = 0;
	if (f)
		fclose(f);
	return v;
}

int vm_accel_error(const struct vm *vm, struct vmprof_err *err)
{
	char name[96];

	return err_set(
		err, EACCES,
		"how %s is accelerated cannot be told without permission to look: run as root",
		escape_str(name, sizeof(name), vm->name));
}

int vm_access_error(const struct vm *vm, int code, const char *what, struct vmprof_err *err)
{
	char name[128];
	int scope;

	escape_str(name, sizeof(name), vm->name);
	code = abs(code);
	if (code == ESRCH || code == ENOENT)
		return err_set(err, ESRCH, "%s (pid %d) has ended", name, vm->pid);
	if (code != EPERM && code != EACCES)
		return err_sys(err, code, "cannot read %s of %s (pid %d)", what, name, vm->pid);
	scope = yama_scope();
	if (scope)
		return err_set(
			err, code,
			"no permission to read %s of %s (pid %d): run as root or with "
			"CAP_SYS_PTRACE (kernel.yama.ptrace_scope is %d: being the VM's user "
			"is not enough)",
			what, name, vm->pid, scope);
	return err_set(err, code,
		       "no permission to read %s of %s (pid %d): run as root, with CAP_SYS_PTRACE, "
		       "or as the user that runs the VM",
		       what, name, vm->pid);
}

/* Maps the block here if its file can be had; it is read through QEMU's memory otherwise. */
static void map_block(struct vm_ram *ram, struct block *b, const struct ram_place *p)
{
	struct statfs fs;
	struct stat st;
	size_t page = PAGE;
	void *here;
	int fd = p->shared
			 ? proc_open_mapped(ram->pid, p->map_start, p->map_end, p->inode, O_RDONLY)
			 : -1;

	if (fd < 0)
		return;
	if (fstat(fd, &st) || fstatfs(fd, &fs) || (uint64_t)st.st_size < p->file_off + b->size) {
		close(fd);
		return;
	}
	if (fs.f_type == HUGETLBFS_MAGIC)
		page = (size_t)fs.f_bsize;
	here = mmap(NULL, b->size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, (off_t)p->file_off);
	b->guard = here == MAP_FAILED ? -1 : sigbus_guard(here, b->size, page, PROT_READ);
	if (b->guard < 0) {
		if (here != MAP_FAILED)
			munmap(here, b->size);
		close(fd);
		return;
	}
	b->here = here;
	b->fd = fd;
	b->fd_off = p->file_off;
	b->can_seek = page == PAGE; /* hugetlbfs calls all of a file data, holes too */
	ram->kind = p->memfd ? "memfd" : "file";
}

static int check_access(struct vm_ram *ram, const struct vm *vm, struct vmprof_err *err)
{
	uint64_t word;
	struct guest_mem_io io = {ram->regions[0].gpa, &word, sizeof(word), false};
	int r = ram_readv(&ram->mem, &io, 1);

	if (r)
		return vm_access_error(vm, r, "the memory", err);
	return io.ok ? 0 : vm_access_error(vm, EFAULT, "the memory", err);
}

static int find_and_map(struct vm_ram *ram, const struct vm *vm, struct vmprof_err *err)
{
	struct ram_place places[RAM_BLOCKS_MAX];
	struct proc_maps maps;
	char path[32];
	int r = proc_maps_read(&maps, vm->pid);

	if (r)
		return vm_access_error(vm, r, "the memory map", err);
	r = ram_find(places, vm, &maps, err);
	proc_maps_free(&maps);
	if (r)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", vm->pid);
	ram->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	for (unsigned i = 0; i < ram->nr_blocks; i++) {
		ram->blocks[i].size = vm->ram_spec->blocks[i].size;
		ram->blocks[i].hva = places[i].hva;
		map_block(ram, &ram->blocks[i], &places[i]);
	}
	return check_access(ram, vm, err);
}

int vm_ram_open(struct vm_ram **out, const struct vm *vm, struct vmprof_err *err)
{
	const struct ram_region *last;
	struct vm_ram *ram;
	int r;

	*out = NULL;
	if (!vm->ram_spec)
		return err_set(err, ENOTSUP,
			       "where the memory of a VM of %s lies is not known: only QEMU's is",
			       vm_hypervisor_title(vm->hypervisor));
	ram = xcalloc(1, sizeof(*ram));
	ram->mem.ops = &ram_ops;
	ram->pid = vm->pid;
	ram->pagemap = -1;
	ram->kind = "process";
	ram->nr_blocks = vm->ram_spec->nr_blocks;
	for (unsigned i = 0; i < ram->nr_blocks; i++)
		ram->blocks[i].fd = ram->blocks[i].guard = -1;
	r = ram_layout(ram->regions, vm, err);
	if (r <= 0) {
		vm_ram_close(ram);
		return r ? r : err_set(err, EINVAL, "the VM has no RAM");
	}
	ram->nr_regions = (unsigned)r;
	last = &ram->regions[r - 1];
	ram->mem.top = last->gpa + last->len;
	r = vm_alive(vm) ? find_and_map(ram, vm, err) : vm_access_error(vm, ESRCH, "memory", err);
	if (r) {
		vm_ram_close(ram);
		return r;
	}
	*out = ram;
	return 0;
}

void vm_ram_close(struct vm_ram *ram)
{
	if (!ram)
		return;
	for (unsigned i = 0; i < ram->nr_blocks; i++) {
		sigbus_unguard(ram->blocks[i].guard);
		if (ram->blocks[i].here)
			munmap(ram->blocks[i].here, ram->blocks[i].size);
		if (ram->blocks[i].fd >= 0)
			close(ram->blocks[i].fd);
	}
	if (ram->pagemap >= 0)
		close(ram->pagemap);
	free(ram);
}

struct guest_mem *vm_ram_mem(struct vm_ram *ram)
{
	return &ram->mem;
}

unsigned vm_ram_regions(const struct vm_ram *ram, struct vm_ram_region *regions, unsigned max)
{
	unsigned n = ram->nr_regions < max ? ram->nr_regions : max;

	for (unsigned i = 0; i < n; i++) {
		const struct ram_region *r = &ram->regions[i];

		regions[i] =
			(struct vm_ram_region){r->gpa, r->len, ram->blocks[r->block].hva + r->off};
	}
	return n;
}

const char *vm_ram_kind(const struct vm_ram *ram)
{
	return ram->kind;
}
