// SPDX-License-Identifier: GPL-2.0-only
#include "guest/cfi.h"

#include <errno.h>
#include <stdlib.h>

#include "util/xalloc.h"

enum { MAX_LOADS = 16 };
#define RETRY_NS 1000000000ull

struct load {
	uint64_t offset, vaddr, filesz;
	bool code;
};

struct guest_cfi {
	uint64_t retry_at; /* it could not be read: not before that; what is known is known */
	bool parsed;	   /* the program headers, */
	bool parsed_all;   /* and the sections, where those are needed */
	struct cfi *cfi;   /* NULL: it has none */
	struct load load[MAX_LOADS];
	unsigned nr_loads;
};

void guest_cfi_free(struct guest_cfi *c)
{
	if (!c)
		return;
	cfi_free(c->cfi);
	free(c);
}

/* A mapping of the DSO's code, and where its bytes come from. */
struct source {
	struct guest_kmem *km;
	struct guest_process *proc;
	const struct guest_map *map;
	struct guest_cfi *c;
	uint64_t time;
	uint64_t bias; /* run-time address - address in the program headers */
};

static bool in_pagecache(struct source *s, uint64_t off, void *buf, size_t len)
{
	const struct guest_inode *file = &s->map->dso->file;

	return file->inode &&
	       guest_pagecache_read(s->km, file, off, buf, len, NULL) == (ssize_t)len;
}

/*
 * Bytes at an offset in the file, which are @at in the process if they are mapped there. 0: they
 * are not mapped at all.
 */
static int read_bytes(struct source *s, uint64_t off, uint64_t at, void *buf, size_t len)
{
	if (s->time < s->c->retry_at)
		return -EFAULT;
	if ((at && s->proc->as.root && !guest_virt_read(s->km->virt, s->proc->as, at, buf, len)) ||
	    in_pagecache(s, off, buf, len))
		return 0;
	s->c->retry_at = s->time + RETRY_NS;
	return -EFAULT;
}

static int read_image(void *ctx, uint64_t vaddr, void *buf, size_t len)
{
	struct source *s = ctx;

	for (unsigned i = 0; i < s->c->nr_loads; i++) {
		const struct load *l = &s->c->load[i];
		uint64_t in = vaddr - l->vaddr;

		if (in < l->filesz && len <= l->filesz - in)
			return read_bytes(s, l->offset + in, s->bias + vaddr, buf, len);
	}
	return -EIO; /* its headers say that there is no such thing */
}

/* A guest_image_read of the whole file, of which only parts are mapped. */
static int read_file(void *ctx, uint64_t off, void *buf, size_t len)
{
	struct source *s = ctx;

	for (unsigned i = 0; i < s->c->nr_loads; i++) {
		const struct load *l = &s->c->load[i];
		uint64_t in = off - l->offset;

		if (in < l->filesz && len <= l->filesz - in)
			return read_bytes(s, off, s->bias + l->vaddr + in, buf, len);
	}
	return read_bytes(s, off, 0, buf, len);
}

/* ---------- program headers ---------- */

static enum unwind_arch arch_of(const struct source *s)
{
	return guest_virt_arch(s->km->virt) == GUEST_ARCH_AARCH64 ? UNWIND_AARCH64 : UNWIND_X86_64;
}

static void take_phdr(struct guest_cfi *c, enum unwind_arch arch, const Elf64_Phdr *p)
{
	if (p->p_type == PT_LOAD && c->nr_loads < MAX_LOADS)
		c->load[c->nr_loads++] = (struct load){
			.offset = p->p_offset,
			.vaddr = p->p_vaddr,
			.filesz = p->p_filesz,
			.code = p->p_flags & PF_X,
		};
	if (p->p_type == PT_GNU_EH_FRAME && !c->cfi)
		c->cfi = cfi_new(arch, p->p_vaddr);
}

/* A guest_image_read of the file: its first byte should be where the mapping's would be. */
static int read_header(void *ctx, uint64_t off, void *buf, size_t len)
{
	struct source *s = ctx;

	return read_bytes(s, off, s->map->start - s->map->pgoff + off, buf, len);
}

static int need_parsed(struct guest_cfi *c, struct source *s)
{
	Elf64_Phdr phdr[GUEST_ELF_PHDRS];
	unsigned n;
	int rc;

	if (c->parsed)
		return 0;
	rc = guest_elf_phdrs(phdr, &n, read_header, s);
	c->parsed = !rc || rc == -ENOEXEC; /* that it never will be */
	for (unsigned i = 0; !rc && i < n; i++)
		take_phdr(c, arch_of(s), &phdr[i]);
	return rc == -ENOEXEC ? 0 : rc;
}

/* Where the program headers name none: its sections may. */
static int need_sections(struct guest_cfi *c, struct source *s)
{
	struct cfi_section section;
	int rc;

	if (!c->cfi && !c->parsed_all) {
		rc = guest_cfi_section(&section, read_file, s);
		if (rc == -EFAULT)
			return rc;
		c->parsed_all = true;
		if (!rc)
			c->cfi = cfi_new_section(arch_of(s), &section);
	}
	return c->cfi ? 0 : -ENOENT;
}

/* How far from its own addresses the code of this mapping is. */
static bool find_bias(const struct guest_cfi *c, const struct guest_map *map, uint64_t *bias)
{
	for (unsigned i = 0; i < c->nr_loads; i++) {
		const struct load *l = &c->load[i];

		if (!l->code || map->pgoff - (l->offset & ~4095ull) >= l->filesz + 4096)
			continue;
		*bias = map->start - map->pgoff + l->offset - l->vaddr;
		return true;
	}
	return false;
}

static struct guest_cfi *cfi_of(struct guest_dso_entry *e)
{
	if (!e->cfi)
		e->cfi = xcalloc(1, sizeof(*e->cfi));
	return e->cfi;
}

int guest_cfi_find(struct guest_kmem *km, struct guest_process *proc, uint64_t ip, uint64_t time,
		   struct cfi_place *place)
{
	const struct guest_map *map = guest_process_map(proc, ip);
	struct source s = {.km = km, .proc = proc, .map = map, .time = time};
	struct guest_cfi *c;
	int rc;

	if (!map)
		return -ENOENT;
	s.c = c = cfi_of(map->dso);
	rc = need_parsed(c, &s);
	if (!rc && !find_bias(c, map, &s.bias))
		rc = -ENOENT;
	if (!rc)
		rc = need_sections(c, &s);
	if (!rc)
		rc = cfi_find(c->cfi, ip - s.bias, read_image, &s, place);
	if (rc)
		return rc == -EFAULT ? -EFAULT : -ENOENT;
	place->function += s.bias;
	place->function_end += s.bias;
	place->end += s.bias;
	return 0;
}
