// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: the files (and memory without a file) that processes have mapped, kept as long
 * as the guest is open, and their bytes out of the guest's page cache.
 */
#ifndef VMPROF_GUEST_DSO_H
#define VMPROF_GUEST_DSO_H

#include <elf.h>

#include "guest/layout.h"
#include "util/hashmap.h"

/* How to read the running kernel's structures; one a guest, filled when a kernel is found. */
struct guest_kmem {
	struct guest_mem *mem;
	struct guest_virt *virt;
	struct guest_as as; /* the kernel's */
	struct guest_layout lay;
};

/* A file as the kernel's memory describes it. */
struct guest_inode {
	uint64_t inode, mapping; /* addresses of struct inode and its struct address_space */
	uint64_t dev, ino, generation, size;
	bool cached; /* pages are in the page cache under their 4 KiB index (not hugetlbfs) */
};

struct guest_dso_entry {
	struct guest_dso dso;
	struct guest_dso_entry *same_hash;
	struct guest_inode file; /* .inode 0: memory without a file, or of a kernel that is gone */
	bool looked_at;		 /* for its build id */
	bool sought;		 /* by its path, as no process was seen to have it */
	/* Where it was seen mapped last, for guest_dso_read_image(). */
	int32_t tgid;
	uint64_t base;		     /* address of its byte 0; 0 if that is not mapped */
	struct guest_cfi *cfi;	     /* NULL: not asked for yet; see cfi.h */
	struct guest_inode perf_map; /* of the owner; .inode 0: not found yet */
};

struct guest_dsos {
	struct guest_dso_entry **entry; /* by id */
	size_t n, cap, next_hit, nr_hit;
	uint32_t *hit; /* ids that were hit and not returned yet: next_hit .. nr_hit */
	size_t cap_hit;
	struct hashmap by_key;
};

/* @f: NULL for memory without a file. Never NULL; beyond a bound all new ones are one entry. */
struct guest_dso_entry *guest_dsos_get(struct guest_dsos *t, const char *path,
				       const struct guest_inode *f);
/* The same for memory that one process has made code in: the file says nothing of it. */
struct guest_dso_entry *guest_dsos_get_owned(struct guest_dsos *t, const char *path,
					     const struct guest_inode *f, int32_t owner,
					     uint64_t owner_start);
struct guest_dso_entry *guest_dsos_by_id(struct guest_dsos *t, uint32_t id);
void guest_dsos_hit(struct guest_dsos *t, struct guest_dso_entry *e);
/* The kernel is gone: no entry can be read any more. */
void guest_dsos_forget_kernel(struct guest_dsos *t);
void guest_dsos_free(struct guest_dsos *t);

/* ---------- path.c ---------- */

/*
 * Path of a struct file as /proc/PID/maps has it, " (deleted)" included, and its inode. Returns 0,
 * -EFAULT (unreadable, or no path in bounded steps), -ESRCH. @size is at least 256.
 */
int guest_file_path(struct guest_kmem *km, uint64_t file, char *path, size_t size,
		    struct guest_inode *inode);
/* cgroup v2 path of a task's css_set, "/" for the root. 0, -ENOENT, -EFAULT, -ESRCH */
int guest_cgroup_path(struct guest_kmem *km, uint64_t css_set, char *path, size_t size);

/* ---------- pagecache.c ---------- */

/*
 * Bytes of a file at @off, as guest_dso_read(): @present has a bit a page and may be NULL, then a
 * page that is not there is -ENODATA. -ESTALE if the inode is another file's by now.
 */
ssize_t guest_pagecache_read(struct guest_kmem *km, const struct guest_inode *f, uint64_t off,
			     void *buf, size_t len, uint8_t *present);

/* ---------- elfnote.c ---------- */

/* Reads @len bytes at @off of an ELF image (from its start). 0 or -errno. */
typedef int (*guest_image_read)(void *ctx, uint64_t off, void *buf, size_t len);

#define GUEST_ELF_PHDRS 64
/*
 * The first program headers of an ELF-64 image; *n of them. 0, -ENOEXEC (not ELF-64), or the error
 * of @read.
 */
int guest_elf_phdrs(Elf64_Phdr phdr[GUEST_ELF_PHDRS], unsigned *n, guest_image_read read,
		    void *ctx);

/*
 * What the program headers of an ELF-64 image say, bounded. @memory: offsets are addresses relative
 * to its first byte in memory (a loaded image), else offsets in the file.
 */
struct guest_elf {
	uint64_t bias_vaddr; /* p_vaddr of what file offset 0 is loaded to */
	uint8_t build_id[20];
	uint32_t build_id_len;
};
/* 0, -ENOEXEC (not ELF-64), or the error of @read. A missing build id is no error. */
int guest_elf_read(struct guest_elf *elf, bool memory, guest_image_read read, void *ctx);

/* ---------- small things for all of them ---------- */

static inline uint64_t guest_u64(const void *p, int32_t off)
{
	uint64_t v;

	__builtin_memcpy(&v, (const uint8_t *)p + off, sizeof(v));
	return v;
}

static inline uint32_t guest_u32(const void *p, int32_t off)
{
	uint32_t v;

	__builtin_memcpy(&v, (const uint8_t *)p + off, sizeof(v));
	return v;
}

/* The upper half of the address space, aligned as pointers to structures are. */
static inline bool guest_is_kptr(uint64_t p)
{
	return p >> 63 && !(p & 7);
}

/* The bytes of a structure from its first to behind its last of some members. */
struct guest_span {
	int32_t lo, len;
};
/* @n offsets, each of 8 bytes; len is 0 if one of them is missing (-1). */
struct guest_span guest_span_of(const int32_t *offsets, int n);

#endif
