// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guest-virtual memory. Two caches, both direct-mapped: pages of 4 KiB (of any real size), and the
 * level 2 entries above them, so that a miss in the first costs one more read and not five. A batch
 * of ranges is translated level by level, all ranges at once, so that a batch costs at most as many
 * readv calls as there are levels, and one for the contents.
 */
#include "guest/kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guest/arch.h"
#include "util/xalloc.h"

enum { PAGE = 4096, TLB_PAGES = 2048, TLB_REGIONS = 512, SPACES = 512, BATCH = 64 };

/*
 * One half of an address space. The tag is the root with bit 0 for LA57 and bit 1 for "in use": a
 * root's low bits are 0. What is cached of it has its number, which is never given again: to forget
 * all of that, which may be done with each sample, is to forget the number.
 */
struct space {
	uint64_t tag, number;
};

struct page_entry {
	uint64_t space, vpn, gpa;
	const uint8_t *host; /* where the page is mapped here, or NULL */
};

/* A region is what one level 2 entry leads to: 2 MiB with pages of 4 KiB. */
struct region_entry {
	uint64_t space, number;
	uint64_t entry;
};

struct guest_virt {
	struct guest_mem *mem;
	const struct guest_arch_paging *arch;
	struct guest_paging paging;
	uint64_t reads, bytes;
	uint64_t numbers;		/* given to spaces so far */
	struct space spaces[2][SPACES]; /* a user's never take the kernel's place */
	struct page_entry pages[TLB_PAGES];
	struct region_entry regions[TLB_REGIONS];
};

/* A piece of a range that lies in one page. */
struct chunk {
	uint64_t va;
	uint8_t *buf;
	uint32_t len;
	int io; /* index of the range it is part of */
	enum guest_walk_state state;
	struct guest_walk walk;
	const uint8_t *host;
};

struct guest_virt *guest_virt_new(struct guest_mem *mem, enum guest_arch arch)
{
	struct guest_virt *v = xcalloc(1, sizeof(*v));

	v->mem = mem;
	v->arch = &arm64_paging;
	if (arch == GUEST_ARCH_X86_64) {
		v->arch = &x86_paging;
		v->paging.half[0].page_shift = v->paging.half[1].page_shift = 12;
	}
	return v;
}

enum guest_arch guest_virt_arch(const struct guest_virt *v)
{
	return v->arch == &x86_paging ? GUEST_ARCH_X86_64 : GUEST_ARCH_AARCH64;
}

void guest_virt_set_paging(struct guest_virt *v, const struct guest_paging *p)
{
	v->paging = *p;
	guest_virt_flush(v, 0);
}

void guest_virt_free(struct guest_virt *v)
{
	free(v);
}

const struct guest_paging *guest_virt_paging(const struct guest_virt *v)
{
	return &v->paging;
}

uint64_t guest_virt_page_size(const struct guest_virt *v)
{
	return 1ull << v->paging.half[1].page_shift;
}

static uint64_t region_of(const struct guest_virt *v, uint64_t va)
{
	unsigned page_shift = v->paging.half[va >> 55 & 1].page_shift;

	return page_shift ? va >> (2 * page_shift - 3) : 0;
}

static size_t slot_of(uint64_t tag, uint64_t number, size_t slots)
{
	uint64_t h = (number ^ tag >> 12) * 0x9e3779b97f4a7c15ull;

	return h >> 32 & (slots - 1);
}

static const struct space *space_of(struct guest_virt *v, struct guest_as as, uint64_t va)
{
	unsigned half = va >> 55 & 1;
	uint64_t root = half && v->paging.kernel_root ? v->paging.kernel_root : as.root;
	uint64_t tag = (root & v->arch->root_mask) | 2 | as.la57;
	struct space *s = &v->spaces[half][slot_of(tag, 0, SPACES)];

	if (s->tag != tag)
		*s = (struct space){tag, ++v->numbers};
	return s;
}

static struct page_entry *page_slot(struct guest_virt *v, const struct space *s, uint64_t va)
{
	return &v->pages[slot_of(s->tag, va / PAGE, TLB_PAGES)];
}

static struct region_entry *region_slot(struct guest_virt *v, const struct space *s, uint64_t va)
{
	return &v->regions[slot_of(s->tag, region_of(v, va), TLB_REGIONS)];
}

void guest_virt_flush(struct guest_virt *v, uint64_t root)
{
	if (!root) {
		memset(v->spaces, 0, sizeof(v->spaces));
		return;
	}
	root &= v->arch->root_mask;
	for (int half = 0; half < 2; half++) {
		struct space *s = &v->spaces[half][slot_of(root, 0, SPACES)];

		if ((s->tag & v->arch->root_mask) == root)
			s->tag = 0;
	}
}

void guest_virt_forget(struct guest_virt *v, struct guest_as as, uint64_t va, uint64_t len)
{
	const struct space *s = space_of(v, as, va);
	uint64_t end = va + len;

	for (va &= ~(uint64_t)(PAGE - 1); va < end; va += PAGE) {
		struct page_entry *e = page_slot(v, s, va);
		struct region_entry *r = region_slot(v, s, va);

		if (e->space == s->number && e->vpn == va / PAGE)
			e->space = 0;
		if (r->space == s->number && r->number == region_of(v, va))
			r->space = 0;
	}
}

static const struct page_entry *find_page(struct guest_virt *v, const struct space *s, uint64_t va)
{
	const struct page_entry *e = page_slot(v, s, va);

	return e->space == s->number && e->vpn == va / PAGE ? e : NULL;
}

static const void *map_page(struct guest_virt *v, uint64_t gpa, size_t len)
{
	return v->mem->ops->map ? v->mem->ops->map(v->mem, gpa, len) : NULL;
}

/* Guest-physical ranges: from the mapping where there is one, the others with one readv. */
static int fetch(struct guest_virt *v, struct guest_mem_io *io, int n)
{
	struct guest_mem_io rest[BATCH];
	int index[BATCH], nrest = 0, rc;

	for (int i = 0; i < n; i++) {
		const void *p = map_page(v, io[i].gpa, io[i].len);

		io[i].ok = p;
		if (p) {
			memcpy(io[i].buf, p, io[i].len);
		} else if (io[i].gpa < v->mem->top && io[i].len <= v->mem->top - io[i].gpa) {
			rest[nrest] = io[i];
			index[nrest++] = i;
		}
	}
	if (!nrest)
		return 0;
	rc = v->mem->ops->readv(v->mem, rest, nrest);
	v->reads++;
	for (int i = 0; !rc && i < nrest; i++) {
		io[index[i]].ok = rest[i].ok;
		v->bytes += rest[i].ok ? rest[i].len : 0;
	}
	return rc;
}

static void remember(struct guest_virt *v, const struct space *s, struct chunk *c)
{
	uint64_t page = c->walk.gpa & ~(uint64_t)(PAGE - 1);

	c->host = map_page(v, page, PAGE);
	*page_slot(v, s, c->va) = (struct page_entry){s->number, c->va / PAGE, page, c->host};
	if (c->walk.region) /* else a larger block that no level 2 entry can say */
		*region_slot(v, s, c->va) =
			(struct region_entry){s->number, region_of(v, c->va), c->walk.region};
}

/* What the caches know of this page; the rest is walked. */
static void start(struct guest_virt *v, struct guest_as as, bool cached, struct chunk *c)
{
	const struct space *s = space_of(v, as, c->va);
	const struct region_entry *r = region_slot(v, s, c->va);
	const struct page_entry *e = find_page(v, s, c->va);

	c->host = NULL;
	if (cached && e) {
		c->host = e->host;
		c->walk.gpa = e->gpa | (c->va & (PAGE - 1));
		c->state = GUEST_WALK_DONE;
	} else if (cached && r->space == s->number && r->number == region_of(v, c->va)) {
		c->state = v->arch->resume(&c->walk, &v->paging, c->va, r->entry);
		if (c->state == GUEST_WALK_DONE)
			remember(v, s, c);
	} else {
		c->state = v->arch->start(&c->walk, &v->paging, as, c->va);
	}
}

/* Translates all chunks, each level with one fetch. 0, or the error of readv. */
static int resolve(struct guest_virt *v, struct guest_as as, bool cached, struct chunk *chunks,
		   int n)
{
	struct guest_mem_io io[BATCH];
	uint64_t entries[BATCH];
	int index[BATCH], todo, rc;

	for (int i = 0; i < n; i++)
		start(v, as, cached, &chunks[i]);
	for (;;) {
		todo = 0;
		for (int i = 0; i < n; i++) {
			if (chunks[i].state != GUEST_WALK_MORE)
				continue;
			io[todo] = (struct guest_mem_io){.gpa = chunks[i].walk.entry,
							 .buf = &entries[todo],
							 .len = sizeof(entries[todo])};
			index[todo++] = i;
		}
		if (!todo)
			return 0;
		rc = fetch(v, io, todo);
		if (rc)
			return rc;
		for (int i = 0; i < todo; i++) {
			struct chunk *c = &chunks[index[i]];

			c->state =
				io[i].ok ? v->arch->step(&c->walk, entries[i]) : GUEST_WALK_FAULT;
			if (c->state == GUEST_WALK_DONE)
				remember(v, space_of(v, as, c->va), c);
		}
	}
}

static int read_chunks(struct guest_virt *v, struct guest_as as, struct chunk *chunks, int n,
		       struct guest_virt_io *ios)
{
	struct guest_mem_io io[BATCH];
	int index[BATCH], todo = 0;
	int rc = resolve(v, as, true, chunks, n);

	if (rc)
		return rc;
	for (int i = 0; i < n; i++) {
		struct chunk *c = &chunks[i];

		if (c->state != GUEST_WALK_DONE) {
			ios[c->io].ok = false;
		} else if (c->host) {
			memcpy(c->buf, c->host + (c->va & (PAGE - 1)), c->len);
		} else {
			io[todo] = (struct guest_mem_io){
				.gpa = c->walk.gpa, .buf = c->buf, .len = c->len};
			index[todo++] = i;
		}
	}
	rc = todo ? fetch(v, io, todo) : 0;
	for (int i = 0; !rc && i < todo; i++)
		if (!io[i].ok)
			ios[chunks[index[i]].io].ok = false;
	return rc;
}

int guest_virt_readv(struct guest_virt *v, struct guest_as as, struct guest_virt_io *io, int n)
{
	struct chunk chunks[BATCH];
	int used = 0, rc = 0;

	for (int i = 0; i < n; i++)
		io[i].ok = false;
	for (int i = 0; i < n; i++) {
		uint64_t va = io[i].va;
		uint8_t *buf = io[i].buf;
		uint32_t left = io[i].len;

		io[i].ok = true;
		while (left && io[i].ok) {
			uint32_t len = PAGE - (va & (PAGE - 1));

			len = len < left ? len : left;
			chunks[used++] = (struct chunk){.va = va, .buf = buf, .len = len, .io = i};
			va += len;
			buf += len;
			left -= len;
			if (used < BATCH)
				continue;
			rc = read_chunks(v, as, chunks, used, io);
			used = 0;
			if (rc)
				goto gone;
		}
	}
	rc = used ? read_chunks(v, as, chunks, used, io) : 0;
gone:
	for (int i = 0; rc && i < n; i++)
		io[i].ok = false;
	return rc;
}

int guest_virt_read(struct guest_virt *v, struct guest_as as, uint64_t va, void *buf, size_t len)
{
	uint8_t *out = buf;

	while (len) { /* the short way: in the cache, and mapped here */
		size_t n = PAGE - (va & (PAGE - 1));
		const struct page_entry *e = find_page(v, space_of(v, as, va), va);

		if (!e || !e->host)
			break;
		n = n < len ? n : len;
		memcpy(out, e->host + (va & (PAGE - 1)), n);
		va += n;
		out += n;
		len -= n;
	}
	while (len) {
		uint32_t n = len < (1u << 30) ? len : 1u << 30;
		struct guest_virt_io io = {.va = va, .buf = out, .len = n};
		int rc = guest_virt_readv(v, as, &io, 1);

		if (rc)
			return rc;
		if (!io.ok)
			return -EFAULT;
		va += n;
		out += n;
		len -= n;
	}
	return 0;
}

static int translate(struct guest_virt *v, struct guest_as as, bool cached, uint64_t va,
		     uint64_t *gpa)
{
	struct chunk c = {.va = va};
	int rc = resolve(v, as, cached, &c, 1);

	if (rc)
		return rc;
	if (c.state != GUEST_WALK_DONE || c.walk.gpa >= v->mem->top)
		return -EFAULT;
	*gpa = c.walk.gpa;
	return 0;
}

int guest_virt_translate(struct guest_virt *v, struct guest_as as, uint64_t va, uint64_t *gpa)
{
	return translate(v, as, true, va, gpa);
}

int guest_virt_walk(struct guest_virt *v, struct guest_as as, uint64_t va, uint64_t *gpa)
{
	return translate(v, as, false, va, gpa);
}

int guest_virt_read_str(struct guest_virt *v, struct guest_as as, uint64_t va, char *buf,
			size_t size)
{
	size_t got = 0;

	if (!size)
		return -EFAULT;
	while (got < size - 1) {
		size_t n = PAGE - (va & (PAGE - 1));
		int rc;

		n = n < size - 1 - got ? n : size - 1 - got;
		rc = guest_virt_read(v, as, va, buf + got, n);
		if (rc == -EFAULT && got)
			break;
		if (rc) {
			buf[0] = 0;
			return rc;
		}
		if (memchr(buf + got, 0, n))
			return 0;
		got += n;
		va += n;
	}
	buf[got] = 0;
	return 0;
}

int64_t guest_virt_read_sparse(struct guest_virt *v, struct guest_as as, uint64_t va, void *buf,
			       size_t len)
{
	struct guest_virt_io io[BATCH];
	int64_t got = 0;

	while (len) {
		int n = 0, rc;

		for (; n < BATCH && len; n++) {
			size_t part = PAGE - (va & (PAGE - 1));

			part = part < len ? part : len;
			io[n] = (struct guest_virt_io){.va = va, .buf = buf, .len = part};
			va += part;
			buf = (uint8_t *)buf + part;
			len -= part;
		}
		rc = guest_virt_readv(v, as, io, n);
		if (rc)
			return rc;
		for (int i = 0; i < n; i++) {
			if (io[i].ok)
				got += io[i].len;
			else
				memset(io[i].buf, 0, io[i].len);
		}
	}
	return got;
}

void guest_virt_stats(struct guest_virt *v, uint64_t *reads, uint64_t *bytes)
{
	*reads = v->reads;
	*bytes = v->bytes;
}
