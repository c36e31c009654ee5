// SPDX-License-Identifier: GPL-2.0-only
#include "guest/dentry.h"

#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#define DENTRY_BYTES	256 /* more than any dentry up to the end of its short name */
#define HUGETLBFS_MAGIC 0x958458f6u

int guest_read_all(struct guest_kmem *km, struct guest_virt_io *io, int n)
{
	int rc = guest_virt_readv(km->virt, km->as, io, n);

	for (int i = 0; !rc && i < n; i++)
		rc = io[i].ok ? 0 : -EFAULT;
	return rc;
}

static bool in_dentry(int32_t member)
{
	return member >= 0 && member + 8 <= DENTRY_BYTES;
}

int guest_dentry_read(struct guest_kmem *km, uint64_t at, struct guest_dentry *d)
{
	const struct guest_layout *l = &km->lay;
	uint8_t raw[DENTRY_BYTES];
	uint64_t name;
	uint32_t len;
	int rc;

	if (!guest_is_kptr(at))
		return -EFAULT;
	rc = guest_virt_read(km->virt, km->as, at, raw, sizeof(raw));
	if (rc)
		return rc;
	d->self = at;
	d->parent = guest_u64(raw, l->dentry_parent);
	d->sb = guest_u64(raw, l->dentry_sb);
	d->unhashed = !guest_u64(raw, l->dentry_hash_pprev);
	d->inode = in_dentry(l->dentry_inode) ? guest_u64(raw, l->dentry_inode) : 0;
	d->children = d->first = d->next = 0;
	if (in_dentry(l->dentry_children) && in_dentry(l->dentry_sibling)) {
		d->children = at + (uint64_t)l->dentry_children;
		d->first = guest_u64(raw, l->dentry_children);
		d->next = guest_u64(raw, l->dentry_sibling);
	}
	len = guest_u32(raw, l->dentry_name + 4); /* struct qstr: hash, len, name */
	name = guest_u64(raw, l->dentry_name + 8);
	if (len >= GUEST_MAX_NAME)
		return -EFAULT;
	if (name >= at && name < at + sizeof(raw) - len) {
		memcpy(d->name, raw + (name - at), len);
	} else {
		rc = guest_virt_read(km->virt, km->as, name, d->name, len);
		if (rc)
			return rc;
	}
	d->name[len] = 0;
	return 0;
}

int guest_mount_read(struct guest_kmem *km, uint64_t at, struct guest_mount *m)
{
	const struct guest_layout *l = &km->lay;
	struct guest_virt_io io[] = {
		{.va = at + l->mount_parent, .buf = &m->parent, .len = 8},
		{.va = at + l->mount_mountpoint, .buf = &m->mountpoint, .len = 8},
		{.va = at + l->mount_mnt + l->vfsmount_root, .buf = &m->root, .len = 8},
	};

	m->self = at;
	return guest_is_kptr(at) ? guest_read_all(km, io, 3) : -EFAULT;
}

int guest_inode_read(struct guest_kmem *km, uint64_t inode, struct guest_inode *f)
{
	const struct guest_layout *l = &km->lay;
	uint32_t generation = 0, dev = 0;
	uint64_t sb = 0, magic = 0;
	struct guest_virt_io io[] = {
		{.va = inode + l->inode_sb, .buf = &sb, .len = 8},
		{.va = inode + l->inode_mapping, .buf = &f->mapping, .len = 8},
		{.va = inode + l->inode_ino, .buf = &f->ino, .len = 8},
		{.va = inode + l->inode_size, .buf = &f->size, .len = 8},
		{.va = inode + l->inode_generation, .buf = &generation, .len = 4},
	};
	struct guest_virt_io sbio[2];
	int rc;

	if (!guest_is_kptr(inode))
		return -EFAULT;
	rc = guest_read_all(km, io, 5);
	if (rc)
		return rc;
	sbio[0] = (struct guest_virt_io){.va = sb + l->sb_dev, .buf = &dev, .len = 4};
	sbio[1] = (struct guest_virt_io){.va = sb + l->sb_magic, .buf = &magic, .len = 8};
	rc = guest_read_all(km, sbio, 2);
	if (rc)
		return rc;
	f->inode = inode;
	f->generation = generation;
	f->dev = makedev(dev >> 20, dev & 0xfffff); /* the kernel's dev_t */
	f->cached = magic != HUGETLBFS_MAGIC;
	return 0;
}

int guest_owner_read(struct guest_kmem *km, uint64_t inode, struct guest_owner *o)
{
	const struct guest_layout *l = &km->lay;
	uint16_t mode = 0;
	struct guest_virt_io io[] = {
		{.va = inode + l->inode_mode, .buf = &mode, .len = 2},
		{.va = inode + l->inode_uid, .buf = &o->uid, .len = 4},
	};
	int rc;

	if (l->inode_mode < 0 || l->inode_uid < 0)
		return -EFAULT;
	rc = guest_read_all(km, io, 2);
	o->mode = mode;
	return rc;
}

void guest_fs_name(struct guest_kmem *km, uint64_t sb, char *name, size_t size)
{
	const struct guest_layout *l = &km->lay;
	uint64_t type = 0, at = 0;

	*name = 0;
	if (l->sb_type >= 0 && l->fstype_name >= 0 &&
	    !guest_virt_read(km->virt, km->as, sb + l->sb_type, &type, 8) &&
	    !guest_virt_read(km->virt, km->as, type + l->fstype_name, &at, 8) &&
	    guest_virt_read_str(km->virt, km->as, at, name, size))
		*name = 0;
}

bool guest_can_read_files(const struct guest_layout *l)
{
	const int32_t needed[] = {
		l->file_inode,	      l->file_mnt,     l->file_dentry,
		l->dentry_parent,     l->dentry_name,  l->dentry_sb,
		l->mount_mnt,	      l->mount_parent, l->mount_mountpoint,
		l->vfsmount_root,     l->inode_sb,     l->inode_mapping,
		l->inode_ino,	      l->inode_size,   l->sb_dev,
		l->sb_magic,	      l->file_mode,    l->inode_generation,
		l->dentry_hash_pprev,
	};

	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		if (needed[i] < 0)
			return false;
	return l->dentry_name + 16 <= DENTRY_BYTES && in_dentry(l->dentry_parent) &&
	       in_dentry(l->dentry_sb) && in_dentry(l->dentry_hash_pprev);
}
