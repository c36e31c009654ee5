// SPDX-License-Identifier: GPL-2.0-only
/*
 * Paths through dentries and mounts, cgroups, and the page cache: xarrays of several levels, folios
 * of several pages, pages that are not there, files that are others by now; and all of it hostile.
 */
#include <errno.h>
#include <sys/sysmacros.h>

#include "tests/unit/fakefiles.h"
#include "tests/unit/test.h"

static void check_path(struct setup *s, uint64_t f, const char *expected)
{
	struct guest_inode inode = {0};
	char path[4096];

	for (int map = 0; map < 2; map++) {
		s->g.fm.map = map;
		guest_virt_flush(s->km.virt, 0);
		CHECK_EQ(guest_file_path(&s->km, f, path, sizeof(path), &inode), 0);
		CHECK_STR(path, expected);
		CHECK_EQ(inode.ino, 42);
		CHECK_EQ(inode.size, 12345);
		CHECK_EQ(inode.generation, 6);
		CHECK_EQ(inode.dev, makedev(8, 3));
		CHECK(inode.cached);
	}
}

static void test_paths(void)
{
	char longer[256], path[512];
	uint64_t root, top, usr, lib, data, inner, f, d;
	struct setup s;

	setup(&s);
	root = dentry(&s, 0, "/");
	top = mount(&s, 0, 0, root);
	usr = dentry(&s, root, "usr");
	lib = dentry(&s, usr, "libfoo.so.1");
	check_path(&s, file(&s, top, lib), "/usr/libfoo.so.1");
	check_path(&s, file(&s, top, root), "/");
	memset(longer, 'x', 255);
	longer[255] = 0;
	snprintf(path, sizeof(path), "/usr/%s", longer);
	check_path(&s, file(&s, top, dentry(&s, usr, longer)), path);

	data = dentry(&s, 0, "/"); /* another file system, mounted at /usr */
	inner = mount(&s, top, usr, data);
	d = dentry(&s, data, "app");
	f = file(&s, inner, d);
	check_path(&s, f, "/usr/app");
	fg_put64(&s.g, d + 8, 0);
	check_path(&s, f, "/usr/app (deleted)");

	/* A file below an overlay: the path that the process opened. */
	f = file(&s, top, lib);
	fg_put32(&s.g, f, 1 << 24);
	fg_put64(&s.g, f + 32, inner);
	fg_put64(&s.g, f + 40, dentry(&s, data, "merged"));
	check_path(&s, f, "/usr/merged");
	fg_put64(&s.g, f + 32, 0x1234); /* the bit meant something else in this kernel */
	check_path(&s, f, "/usr/libfoo.so.1");

	/* No directory has these. */
	d = dentry(&s, 0, "memfd:jit");
	check_path(&s, file(&s, mount(&s, 0, 0, dentry(&s, 0, "/")), d), "/memfd:jit (deleted)");
	fg_puts(&s.g, s.fstype + 8, "anon_inodefs");
	check_path(&s, file(&s, mount(&s, 0, 0, dentry(&s, 0, "/")), d), "anon_inode:memfd:jit");
	teardown(&s);
}

static void test_hostile_paths(void)
{
	struct guest_inode inode;
	uint64_t root, top, a, b, f;
	char path[4096];
	struct setup s;

	setup(&s);
	root = dentry(&s, 0, "/");
	top = mount(&s, 0, 0, root);
	a = dentry(&s, root, "a");
	b = dentry(&s, a, "b");
	f = file(&s, top, b);
	fg_put64(&s.g, a + 16, b); /* each is the other's parent */
	CHECK_EQ(guest_file_path(&s.km, f, path, sizeof(path), &inode), -EFAULT);
	fg_put64(&s.g, a + 16, root);
	fg_put32(&s.g, a + 28, 4000000000u);
	CHECK_EQ(guest_file_path(&s.km, f, path, sizeof(path), &inode), -EFAULT);
	fg_put32(&s.g, a + 28, 1);
	CHECK_EQ(guest_file_path(&s.km, f, path, sizeof(path), &inode), 0);
	fg_put64(&s.g, a + 32, 0xffff8fff00000000); /* a name that is not there */
	CHECK_EQ(guest_file_path(&s.km, f, path, sizeof(path), &inode), -EFAULT);
	fg_put64(&s.g, a + 32, a + 255); /* one that begins in the dentry's last byte */
	CHECK_EQ(guest_file_path(&s.km, f, path, sizeof(path), &inode), 0);
	fg_put64(&s.g, top - 16, mount(&s, top, root, root) - 16); /* mounts in a ring */
	CHECK_EQ(guest_file_path(&s.km, f, path, sizeof(path), &inode), -EFAULT);
	CHECK_EQ(guest_file_path(&s.km, 0x1000, path, sizeof(path), &inode), -EFAULT);
	CHECK_EQ(guest_file_path(&s.km, f + 1, path, sizeof(path), &inode), -EFAULT);
	teardown(&s);
}

static uint64_t kernfs(struct setup *s, uint64_t parent, const char *name)
{
	uint64_t at = new (s, 64);

	fg_put64(&s->g, at, parent);
	fg_put64(&s->g, at + 8, at + 16);
	fg_puts(&s->g, at + 16, name);
	return at;
}

static void test_cgroups(void)
{
	uint64_t cset, cgroup, root, node;
	char path[4096];
	struct setup s;

	setup(&s);
	cset = new (&s, 8);
	cgroup = new (&s, 8);
	fg_put64(&s.g, cset, cgroup);
	root = kernfs(&s, 0, "");
	fg_put64(&s.g, cgroup, root);
	CHECK_EQ(guest_cgroup_path(&s.km, cset, path, sizeof(path)), 0);
	CHECK_STR(path, "/");
	node = kernfs(&s, kernfs(&s, root, "system.slice"), "docker-1.scope");
	fg_put64(&s.g, cgroup, node);
	CHECK_EQ(guest_cgroup_path(&s.km, cset, path, sizeof(path)), 0);
	CHECK_STR(path, "/system.slice/docker-1.scope");
	fg_put64(&s.g, node, node);
	CHECK_EQ(guest_cgroup_path(&s.km, cset, path, sizeof(path)), -EFAULT);
	teardown(&s);
}

/* ---------- page cache ---------- */

struct pages {
	struct setup s;
	struct guest_inode f;
};

/* A folio of @n pages at page index @index of the file; their bytes are @byte + the page's number.
 */
static uint64_t folio(struct pages *p, uint64_t index, unsigned n, uint8_t byte)
{
	uint64_t gpa = fg_alloc(&p->s.g, n), page = VMEMMAP + gpa / FG_PAGE * 64;

	for (unsigned i = 0; i < n; i++)
		memset(p->s.g.fm.ram + gpa + i * FG_PAGE, byte + (int)i, FG_PAGE);
	fg_put64(&p->s.g, page, 1 << 2);
	fg_put64(&p->s.g, page + 24, p->f.mapping);
	fg_put64(&p->s.g, page + 32, index);
	return page;
}

static uint64_t xa_node(struct pages *p, uint8_t shift)
{
	uint64_t at = new (&p->s, 40 + 64 * 8);

	fg_write(&p->s.g, p->s.g.root, at, &shift, 1);
	return at | 2;
}

static void xa_set(struct pages *p, uint64_t node, int slot, uint64_t entry)
{
	fg_put64(&p->s.g, node - 2 + 40 + (uint64_t)slot * 8, entry);
}

static void xa_head(struct pages *p, uint64_t entry)
{
	fg_put64(&p->s.g, p->f.mapping + 8, entry);
}

static void setup_pages(struct pages *p, uint64_t size)
{
	uint64_t inode, mapping;

	setup(&p->s);
	inode = new (&p->s, 64);
	mapping = new (&p->s, 64);
	p->f = (struct guest_inode){.inode = inode,
				    .mapping = mapping,
				    .ino = 42,
				    .generation = 6,
				    .size = size,
				    .cached = true};
	fg_put64(&p->s.g, inode + 8, mapping);
	fg_put64(&p->s.g, inode + 16, 42);
	fg_put32(&p->s.g, inode + 32, 6);
}

static int byte_at(struct pages *p, uint64_t off)
{
	uint8_t b = 0;
	ssize_t n = guest_pagecache_read(&p->s.km, &p->f, off, &b, 1, NULL);

	return n == 1 ? b : (int)n;
}

static void test_pages(void)
{
	uint8_t buf[6 * FG_PAGE], present[2];
	uint64_t top, low, mid;
	struct pages p;

	setup_pages(&p, 5000 * FG_PAGE - 100);
	CHECK_EQ(byte_at(&p, 0), -ENODATA);
	xa_head(&p, folio(&p, 0, 1, 0x10)); /* one page: no node */
	CHECK_EQ(byte_at(&p, 5), 0x10);
	CHECK_EQ(byte_at(&p, FG_PAGE), -ENODATA);

	top = xa_node(&p, 12);
	mid = xa_node(&p, 6);
	low = xa_node(&p, 0);
	xa_head(&p, top);
	xa_set(&p, top, 0, mid);
	xa_set(&p, mid, 0, low);
	xa_set(&p, low, 0, folio(&p, 0, 1, 0x20));
	xa_set(&p, low, 1, folio(&p, 1, 1, 0x21));
	xa_set(&p, low, 3, 0x123 << 1 | 1); /* swapped out */
	xa_set(&p, low, 4, folio(&p, 4, 4, 0x30));
	for (int i = 5; i < 8; i++)
		xa_set(&p, low, i, 4 << 2 | 2);	     /* the same folio, see slot 4 */
	xa_set(&p, mid, 1, folio(&p, 64, 64, 0x40)); /* an entry of 64 pages */
	xa_set(&p, top, 1, xa_node(&p, 6));
	for (int map = 0; map < 2; map++) {
		p.s.g.fm.map = map;
		CHECK_EQ(byte_at(&p, FG_PAGE + 1), 0x21);
		CHECK_EQ(byte_at(&p, 2 * FG_PAGE), -ENODATA);
		CHECK_EQ(byte_at(&p, 3 * FG_PAGE), -ENODATA);
		CHECK_EQ(byte_at(&p, 6 * FG_PAGE), 0x32);
		CHECK_EQ(byte_at(&p, 70 * FG_PAGE), 0x46);
		CHECK_EQ(byte_at(&p, 4200 * FG_PAGE), -ENODATA);
		memset(buf, 0xee, sizeof(buf));
		CHECK_EQ(guest_pagecache_read(&p.s.km, &p.f, FG_PAGE - 8, buf, 5 * FG_PAGE + 8,
					      present),
			 5 * FG_PAGE + 8);
		CHECK_EQ(present[0], 0x33); /* pages 0, 1, 4, 5 */
		CHECK_EQ(buf[7], 0x20);
		CHECK_EQ(buf[8], 0x21);
		CHECK_EQ(buf[8 + FG_PAGE], 0);
		CHECK_EQ(buf[8 + 4 * FG_PAGE], 0x31);
	}
	/* The last page ends with the file. */
	CHECK_EQ(guest_pagecache_read(&p.s.km, &p.f, p.f.size - 10, buf, 100, present), 10);
	CHECK_EQ(guest_pagecache_read(&p.s.km, &p.f, p.f.size, buf, 100, present), 0);
	CHECK_EQ(guest_pagecache_read(&p.s.km, &p.f, UINT64_MAX, buf, 100, present), 0);
	teardown(&p.s);
}

/* A PV guest of Xen counts its pages in another way than its page tables do: here they are 16
 * further on. */
static void test_pages_by_other_numbers(void)
{
	uint64_t gpa, page;
	struct pages p;

	setup_pages(&p, FG_PAGE);
	gpa = fg_alloc(&p.s.g, 1);
	memset(p.s.g.fm.ram + gpa, 0x55, FG_PAGE);
	CHECK(gpa >= 16 * FG_PAGE);
	page = VMEMMAP + (gpa / FG_PAGE - 16) * 64;
	fg_put64(&p.s.g, page, 1 << 2);
	fg_put64(&p.s.g, page + 24, p.f.mapping);
	fg_put64(&p.s.g, page + 32, 0);
	xa_head(&p, page);
	CHECK(byte_at(&p, 0) != 0x55);
	p.s.g.fm.mem.machine_frames = true;
	CHECK_EQ(byte_at(&p, 0), -ENODATA); /* it is not known where the map of memory is */
	p.s.km.lay.page_offset_at = new (&p.s, 8);
	fg_put64(&p.s.g, p.s.km.lay.page_offset_at, FG_DIRECT_MAP + 16 * FG_PAGE);
	CHECK_EQ(byte_at(&p, 9), 0x55);
	teardown(&p.s);
}

static void test_bad_pages(void)
{
	uint64_t low, page;
	struct pages p;

	setup_pages(&p, 10000 * FG_PAGE);
	low = xa_node(&p, 0);
	page = folio(&p, 1, 1, 0x20);
	xa_head(&p, low);
	xa_set(&p, low, 1, page);
	CHECK_EQ(byte_at(&p, FG_PAGE), 0x20);
	CHECK_EQ(byte_at(&p, 65 * FG_PAGE), -ENODATA); /* behind the tree, not slot 1 again */
	fg_put64(&p.s.g, page, 0);		       /* not up to date */
	CHECK_EQ(byte_at(&p, FG_PAGE), -ENODATA);
	fg_put64(&p.s.g, page, 1 << 2);
	fg_put64(&p.s.g, page + 24, p.f.mapping + 64); /* another file's by now */
	CHECK_EQ(byte_at(&p, FG_PAGE), -ENODATA);
	fg_put64(&p.s.g, page + 24, p.f.mapping);
	fg_put64(&p.s.g, page + 32, 2); /* a folio that begins behind this page */
	CHECK_EQ(byte_at(&p, FG_PAGE), -ENODATA);
	fg_put64(&p.s.g, page + 32, 1);
	xa_set(&p, low, 1, page + 8); /* no struct page starts there */
	CHECK_EQ(byte_at(&p, FG_PAGE), -ENODATA);
	xa_set(&p, low, 1, low); /* a node below itself */
	CHECK_EQ(byte_at(&p, FG_PAGE), -ENODATA);
	xa_set(&p, low, 1, 1 << 2 | 2); /* a sibling of itself */
	CHECK_EQ(byte_at(&p, FG_PAGE), -ENODATA);
	xa_set(&p, low, 1, page);
	for (int shift = 1; shift < 256; shift++) {
		fg_write(&p.s.g, p.s.g.root, low - 2, &shift, 1);
		CHECK(byte_at(&p, FG_PAGE) < 0);
	}
	fg_put64(&p.s.g, low - 2, 0);
	CHECK_EQ(byte_at(&p, FG_PAGE), 0x20);
	fg_put64(&p.s.g, p.f.inode + 16, 43); /* the inode is another file's */
	CHECK_EQ(byte_at(&p, FG_PAGE), -ESTALE);
	p.f.inode = 0;
	CHECK_EQ(byte_at(&p, FG_PAGE), -ENODATA);
	teardown(&p.s);
}

int main(void)
{
	test_paths();
	test_hostile_paths();
	test_cgroups();
	test_pages();
	test_bad_pages();
	test_pages_by_other_numbers();
	return test_done();
}
