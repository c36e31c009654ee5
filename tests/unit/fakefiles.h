// SPDX-License-Identifier: GPL-2.0-only
/*
 * Directories, mounts and files in a made-up guest (fakeguest.h), of which it has nothing but
 * memory and page tables.
 */
#ifndef VMPROF_TESTS_UNIT_FAKEFILES_H
#define VMPROF_TESTS_UNIT_FAKEFILES_H

#include "guest/dentry.h"
#include "tests/unit/fakeguest.h"

#define VMEMMAP 0xffffea0000000000ull

struct setup {
	struct fakeguest g; /* only its memory and its mapping functions */
	struct guest_kmem km;
	uint64_t top; /* next free byte of the direct map */
	uint64_t sb, fstype;
};

FG_FUNC uint64_t new (struct setup *s, uint64_t size)
{
	uint64_t at = s->top;

	s->top += (size + 63) & ~63ull;
	return at;
}

FG_FUNC void layout(struct guest_layout *l)
{
	memset(l, 0xff, sizeof(*l));
	l->file_mode = 0;
	l->file_inode = 8;
	l->file_mnt = 16;
	l->file_dentry = 24;
	l->backing_mnt = 32;
	l->backing_dentry = 40;
	l->dentry_hash_pprev = 8;
	l->dentry_parent = 16;
	l->dentry_name = 24;
	l->dentry_sb = 40;
	l->dentry_inode = 80;
	l->dentry_children = 88;
	l->dentry_sibling = 104;
	l->mount_parent = 0;
	l->mount_mountpoint = 8;
	l->mount_mnt = 16;
	l->mount_mounts = 32;
	l->mount_child = 48;
	l->vfsmount_root = 0;
	l->inode_sb = 0;
	l->inode_mapping = 8;
	l->inode_ino = 16;
	l->inode_size = 24;
	l->inode_generation = 32;
	l->inode_mode = 36;
	l->inode_uid = 40;
	l->inode_link = 48;
	l->inode_bytes = 64;
	l->sb_dev = 0;
	l->sb_type = 8;
	l->sb_magic = 16;
	l->fstype_name = 0;
	l->mapping_head = 8;
	l->xa_shift = 0;
	l->xa_slots = 40;
	l->page_flags = 0;
	l->page_mapping = 24;
	l->page_index = 32;
	l->page_size = 64;
	l->pg_uptodate = 2;
	l->cset_dfl_cgrp = l->cgroup_kn = l->kn_parent = 0;
	l->kn_name = 8;
}

FG_FUNC void setup(struct setup *s)
{
	memset(s, 0, sizeof(*s));
	fakeguest_init_bare(&s->g);
	fg_map(&s->g, s->g.root, VMEMMAP, fg_alloc(&s->g, 32), 32);
	s->km.mem = &s->g.fm.mem;
	s->km.virt = guest_virt_new(s->km.mem, GUEST_ARCH_X86_64);
	s->km.as = (struct guest_as){.root = s->g.root};
	s->top = FG_DIRECT_MAP + (1 << 20);
	layout(&s->km.lay);
	s->km.lay.vmemmap_at = new (s, 8);
	fg_put64(&s->g, s->km.lay.vmemmap_at, VMEMMAP);
	s->fstype = new (s, 64);
	s->sb = new (s, 64);
	fg_put32(&s->g, s->sb, 8 << 20 | 3);
	fg_put64(&s->g, s->sb + 8, s->fstype);
	fg_put64(&s->g, s->sb + 16, 0xef53);
	fg_put64(&s->g, s->fstype, s->fstype + 8);
	fg_puts(&s->g, s->fstype + 8, "ext4");
}

FG_FUNC void teardown(struct setup *s)
{
	guest_virt_free(s->km.virt);
	fakemem_free(&s->g.fm);
}

FG_FUNC uint64_t get64(struct setup *s, uint64_t va)
{
	uint64_t v;

	memcpy(&v, fg_host(&s->g, s->g.root, va), sizeof(v));
	return v;
}

/* @parent 0: a root. Long names are not in the dentry. */
FG_FUNC uint64_t dentry(struct setup *s, uint64_t parent, const char *name)
{
	uint64_t at = new (s, 256), text = strlen(name) < 32 ? at + 48 : new (s, 512);

	fg_put64(&s->g, at + 8, at); /* hashed */
	fg_put64(&s->g, at + 16, parent ? parent : at);
	fg_put32(&s->g, at + 28, (uint32_t)strlen(name));
	fg_put64(&s->g, at + 32, text);
	fg_put64(&s->g, at + 40, s->sb);
	fg_puts(&s->g, text, name);
	if (parent) { /* the newest child is the first; the last one leads back to the head */
		fg_put64(&s->g, at + 104, get64(s, parent + 88));
		fg_put64(&s->g, parent + 88, at + 104);
	}
	fg_put64(&s->g, at + 88, at + 88);
	return at;
}

/* Returns the address of its struct vfsmount. @parent 0: the topmost one. */
FG_FUNC uint64_t mount(struct setup *s, uint64_t parent, uint64_t point, uint64_t root)
{
	uint64_t at = new (s, 64);

	fg_put64(&s->g, at, parent ? parent - 16 : at);
	fg_put64(&s->g, at + 8, point ? point : root);
	fg_put64(&s->g, at + 16, root);
	fg_put64(&s->g, at + 32, at + 32);
	if (parent) {
		fg_put64(&s->g, at + 48, get64(s, parent + 16));
		fg_put64(&s->g, parent + 16, at + 48);
	}
	return at + 16;
}

FG_FUNC uint64_t file(struct setup *s, uint64_t mnt, uint64_t dentry)
{
	uint64_t at = new (s, 64), inode = new (s, 64);

	fg_put64(&s->g, at + 8, inode);
	fg_put64(&s->g, at + 16, mnt);
	fg_put64(&s->g, at + 24, dentry);
	fg_put64(&s->g, inode, s->sb);
	fg_put64(&s->g, inode + 8, new (s, 64));
	fg_put64(&s->g, inode + 16, 42);
	fg_put64(&s->g, inode + 24, 12345);
	fg_put32(&s->g, inode + 32, 6);
	return at;
}

#endif
