// SPDX-License-Identifier: GPL-2.0-only
/*
 * From a path to a file: down the lists of a directory's children, and over to what is mounted
 * there. The kernel itself goes by hash tables, whose functions differ by configuration.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "guest/dentry.h"

enum {
	MAX_CHILDREN = 20000, /* looked at in one directory */
	MAX_MOUNTS = 4096,    /* looked at below one mount */
	MAX_STACKED = 32,     /* mounted on one place, one over the other */
};

/* A place in the tree that a process sees. */
struct place {
	struct guest_mount mount;
	struct guest_dentry dentry;
};

static bool can_look_up(const struct guest_layout *l)
{
	return guest_can_read_files(l) && l->task_fs >= 0 && l->fs_root_mnt >= 0 &&
	       l->fs_root_dentry >= 0 && l->dentry_inode >= 0 && l->dentry_children >= 0 &&
	       l->dentry_sibling >= 0 && l->mount_mounts >= 0 && l->mount_child >= 0;
}

static int find_root(struct guest_kmem *km, uint64_t task, struct place *p)
{
	const struct guest_layout *l = &km->lay;
	uint64_t fs = 0, mnt = 0, dentry = 0;
	struct guest_virt_io io[2];
	int rc = guest_virt_read(km->virt, km->as, task + (uint64_t)l->task_fs, &fs, 8);

	if (rc || !guest_is_kptr(fs)) /* none: the task is ending */
		return rc ? rc : -ENOENT;
	io[0] = (struct guest_virt_io){.va = fs + l->fs_root_mnt, .buf = &mnt, .len = 8};
	io[1] = (struct guest_virt_io){.va = fs + l->fs_root_dentry, .buf = &dentry, .len = 8};
	rc = guest_read_all(km, io, 2);
	rc = rc ? rc : guest_mount_read(km, mnt - (uint64_t)l->mount_mnt, &p->mount);
	return rc ? rc : guest_dentry_read(km, dentry, &p->dentry);
}

/* The child of this name that is a file. The list may change meanwhile: then it breaks off. */
static int find_child(struct guest_kmem *km, struct guest_dentry *d, const char *name, size_t len)
{
	uint64_t dir = d->self, head = d->children, at = d->first;
	struct guest_dentry child;

	for (unsigned n = 0; at && at != head && n < MAX_CHILDREN; n++) {
		int rc = guest_dentry_read(km, at - (uint64_t)km->lay.dentry_sibling, &child);

		if (rc)
			return rc;
		if (child.parent != dir)
			return -EFAULT;
		if (!strncmp(child.name, name, len) && !child.name[len] && !child.unhashed &&
		    guest_is_kptr(child.inode)) {
			*d = child;
			return 0;
		}
		at = child.next;
	}
	return -ENOENT;
}

/* What is mounted on @p, if something is. */
static int mounted_on(struct guest_kmem *km, const struct place *p, struct guest_mount *found)
{
	const struct guest_layout *l = &km->lay;
	uint64_t head = p->mount.self + (uint64_t)l->mount_mounts, at = 0;
	int rc = guest_virt_read(km->virt, km->as, head, &at, 8);

	for (unsigned n = 0; !rc && at != head && n < MAX_MOUNTS; n++) {
		rc = guest_mount_read(km, at - (uint64_t)l->mount_child, found);
		if (!rc && found->parent == p->mount.self && found->mountpoint == p->dentry.self)
			return 0;
		rc = rc ? rc : guest_virt_read(km->virt, km->as, at, &at, 8);
	}
	return rc ? rc : -ENOENT;
}

static int cross_mounts(struct guest_kmem *km, struct place *p)
{
	struct guest_mount over;
	int rc = 0;

	for (unsigned n = 0; n < MAX_STACKED; n++) {
		rc = mounted_on(km, p, &over);
		if (rc)
			break;
		p->mount = over;
		rc = guest_dentry_read(km, over.root, &p->dentry);
		if (rc)
			break;
	}
	return rc == -ENOENT ? 0 : rc;
}

/*
 * A file that was written through an overlay lies in its upper file system. The dentry there stands
 * behind the overlay's struct inode (struct ovl_inode, fs/overlayfs/ovl_entry.h), in all versions;
 * its name must be the same.
 */
static int below_overlay(struct guest_kmem *km, struct guest_dentry *d)
{
	struct guest_dentry upper;
	uint64_t at = 0;
	char fs[16];
	int rc;

	guest_fs_name(km, d->sb, fs, sizeof(fs));
	if (strcmp(fs, "overlay") != 0)
		return 0;
	if (km->lay.inode_bytes <= 0)
		return -ENOENT;
	rc = guest_virt_read(km->virt, km->as, d->inode + (uint64_t)km->lay.inode_bytes, &at, 8);
	rc = rc ? rc : guest_dentry_read(km, at, &upper);
	if (rc || strcmp(upper.name, d->name) != 0 || !guest_is_kptr(upper.inode))
		return rc == -ESRCH ? rc : -ENOENT;
	*d = upper;
	return 0;
}

int guest_lookup(struct guest_kmem *km, uint64_t task, const char *path, struct guest_inode *f)
{
	struct guest_owner owner;
	struct place p;
	int rc;

	if (!can_look_up(&km->lay))
		return -ENOENT;
	rc = find_root(km, task, &p);
	while (!rc && *path) {
		size_t len;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		rc = len ? find_child(km, &p.dentry, path, len) : 0;
		rc = rc ? rc : cross_mounts(km, &p);
		path += len;
	}
	rc = rc ? rc : below_overlay(km, &p.dentry);
	rc = rc ? rc : guest_inode_read(km, p.dentry.inode, f);
	rc = rc ? rc : guest_owner_read(km, f->inode, &owner);
	return rc ? rc : S_ISREG(owner.mode) ? 0 : -ENOENT;
}
