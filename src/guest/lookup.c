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
	MAX_LINKS = 40,	      /* symbolic ones on one way, as the kernel has it */
	MAX_PATH = 4096,
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

/* To the directory that @p is in; the root that the process sees has none above it. */
static int go_up(struct guest_kmem *km, const struct place *root, struct place *p)
{
	for (unsigned n = 0; n < MAX_STACKED; n++) {
		int rc;

		if (p->mount.self == root->mount.self && p->dentry.self == root->dentry.self)
			return 0;
		if (p->dentry.self != p->mount.root) {
			rc = guest_dentry_read(km, p->dentry.parent, &p->dentry);
			return rc ? rc : cross_mounts(km, p);
		}
		if (p->mount.parent == p->mount.self)
			return 0;
		rc = guest_dentry_read(km, p->mount.mountpoint, &p->dentry);
		rc = rc ? rc : guest_mount_read(km, p->mount.parent, &p->mount);
		if (rc)
			return rc;
	}
	return -ENOENT;
}

/* Where a symbolic link leads: short ones are at hand, long ones are the file's first page. */
static int read_link(struct guest_kmem *km, const struct guest_inode *f, char text[MAX_PATH])
{
	uint64_t at = 0;
	ssize_t n;
	int rc = 0;

	if (!f->size || f->size >= MAX_PATH)
		return -ENOENT;
	if (km->lay.inode_link >= 0)
		rc = guest_virt_read(km->virt, km->as, f->inode + (uint64_t)km->lay.inode_link, &at,
				     8);
	if (rc)
		return rc;
	if (guest_is_kptr(at)) {
		rc = guest_virt_read(km->virt, km->as, at, text, f->size);
	} else {
		n = guest_pagecache_read(km, f, 0, text, f->size, NULL);
		rc = n < 0 ? (int)n : n == (ssize_t)f->size ? 0 : -ENOENT;
	}
	text[f->size] = 0;
	return rc ? rc : strlen(text) == f->size ? 0 : -ENOENT;
}

/* A way down the tree: what is left of the path, and what links it went over. */
struct way {
	struct place root, at;
	char rest[MAX_PATH];
	unsigned links;
};

/*
 * Is @w->at, found in @dir, a link: goes on from there as it says. It is followed in what the
 * process sees, as all else.
 */
static int follow(struct guest_kmem *km, struct way *w, const struct place *dir)
{
	struct guest_dentry d = w->at.dentry;
	struct guest_owner owner;
	struct guest_inode f = {0};
	char text[MAX_PATH];
	size_t len, left;
	int rc = guest_owner_read(km, d.inode, &owner);

	if (rc || !S_ISLNK(owner.mode))
		return rc;
	rc = ++w->links > MAX_LINKS ? -ENOENT : below_overlay(km, &d);
	rc = rc ? rc : guest_inode_read(km, d.inode, &f);
	rc = rc ? rc : read_link(km, &f, text);
	if (rc)
		return rc;
	len = strlen(text);
	left = strlen(w->rest);
	if (len + 1 + left >= MAX_PATH)
		return -ENOENT;
	memmove(w->rest + len + 1, w->rest, left + 1);
	memcpy(w->rest, text, len);
	w->rest[len] = '/';
	w->at = *text == '/' ? w->root : *dir;
	return 0;
}

/* One name of the path. */
static int step(struct guest_kmem *km, struct way *w)
{
	size_t skip = strspn(w->rest, "/"), len = strcspn(w->rest + skip, "/");
	struct place dir = w->at;
	char name[GUEST_MAX_NAME];
	int rc;

	if (len >= sizeof(name))
		return -ENOENT;
	memcpy(name, w->rest + skip, len);
	name[len] = 0;
	memmove(w->rest, w->rest + skip + len, strlen(w->rest + skip + len) + 1);
	if (!len || !strcmp(name, "."))
		return 0;
	if (!strcmp(name, ".."))
		return go_up(km, &w->root, &w->at);
	rc = find_child(km, &w->at.dentry, name, len);
	rc = rc ? rc : cross_mounts(km, &w->at);
	return rc ? rc : follow(km, w, &dir);
}

int guest_lookup(struct guest_kmem *km, uint64_t task, const char *path, struct guest_inode *f)
{
	struct guest_owner owner;
	struct way w = {0};
	int rc;

	if (!can_look_up(&km->lay) || strlen(path) >= MAX_PATH)
		return -ENOENT;
	strcpy(w.rest, path);
	rc = find_root(km, task, &w.root);
	w.at = w.root;
	while (!rc && *w.rest)
		rc = step(km, &w);
	rc = rc ? rc : below_overlay(km, &w.at.dentry);
	rc = rc ? rc : guest_inode_read(km, w.at.dentry.inode, f);
	rc = rc ? rc : guest_owner_read(km, f->inode, &owner);
	return rc ? rc : S_ISREG(owner.mode) ? 0 : -ENOENT;
}
