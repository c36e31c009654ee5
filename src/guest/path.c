// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of files and cgroups, up through the kernel's trees of dentries, mounts and kernfs nodes.
 * See prepend_path() in fs/d_path.c and kernfs_path_from_node() for the rules.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "guest/dentry.h"

#define MAX_STEPS 256 /* components and mounts of one path */
/*
 * A file below an overlay. The bit has moved between versions and was another one's before: what is
 * then read as user_path are no pointers, and the file's own path is taken.
 */
#define FMODE_BACKING (1u << 24 | 1u << 25)

/* A path is made from its end: components are put before what is there. */
struct backwards {
	char *buf;
	size_t start; /* of the text; it ends with the NUL at the buffer's end */
};

static int put_before(struct backwards *b, const char *s)
{
	size_t n = strlen(s);

	if (n > b->start)
		return -EFAULT;
	b->start -= n;
	memcpy(b->buf + b->start, s, n);
	return 0;
}

/* Files that no directory has: their file system makes the name (d_dname). */
static int pseudo_path(struct guest_kmem *km, const struct guest_dentry *d, char *path, size_t size)
{
	char fs[32];

	guest_fs_name(km, d->sb, fs, sizeof(fs));
	if (!strcmp(fs, "anon_inodefs"))
		snprintf(path, size, "anon_inode:%s", d->name);
	else
		snprintf(path, size, "/%s (deleted)", d->name);
	return 0;
}

static int walk_up(struct guest_kmem *km, struct guest_mount *m, struct guest_dentry *d,
		   struct backwards *b)
{
	int rc;

	for (int steps = 0; steps < MAX_STEPS; steps++) {
		if (d->self == m->root) {
			uint64_t at = m->mountpoint;

			if (m->parent == m->self)
				return 0;
			rc = guest_mount_read(km, m->parent, m);
			rc = rc ? rc : guest_dentry_read(km, at, d);
		} else if (d->parent == d->self) {
			return 0; /* not below its mount any more */
		} else {
			rc = put_before(b, d->name);
			rc = rc ? rc : put_before(b, "/");
			rc = rc ? rc : guest_dentry_read(km, d->parent, d);
		}
		if (rc)
			return rc;
	}
	return -EFAULT;
}

static int dentry_path(struct guest_kmem *km, uint64_t mnt, uint64_t dentry, char *path,
		       size_t size)
{
	struct backwards b = {.buf = path, .start = size - 1};
	struct guest_mount m;
	struct guest_dentry d;
	int rc = guest_dentry_read(km, dentry, &d);

	rc = rc ? rc : guest_mount_read(km, mnt - (uint64_t)km->lay.mount_mnt, &m);
	if (rc)
		return rc;
	if (d.parent == d.self && d.self != m.root)
		return pseudo_path(km, &d, path, size);
	path[size - 1] = 0;
	if (d.parent != d.self && d.unhashed)
		put_before(&b, " (deleted)");
	rc = walk_up(km, &m, &d, &b);
	if (rc)
		return rc;
	if (path[b.start] != '/')
		put_before(&b, "/");
	memmove(path, path + b.start, size - b.start);
	return 0;
}

int guest_file_path(struct guest_kmem *km, uint64_t file, char *path, size_t size,
		    struct guest_inode *inode)
{
	const struct guest_layout *l = &km->lay;
	uint64_t ino = 0, path_of[2] = {0}, user[2] = {0};
	uint32_t mode = 0;
	struct guest_virt_io io[] = {
		{.va = file + l->file_mode, .buf = &mode, .len = 4},
		{.va = file + l->file_inode, .buf = &ino, .len = 8},
		{.va = file + l->file_mnt, .buf = &path_of[0], .len = 8},
		{.va = file + l->file_dentry, .buf = &path_of[1], .len = 8},
		{.va = file + l->backing_mnt, .buf = &user[0], .len = 8},
		{.va = file + l->backing_dentry, .buf = &user[1], .len = 8},
	};
	bool backing = l->backing_mnt >= 0 && l->backing_dentry >= 0;
	int rc;

	if (!guest_can_read_files(l) || !guest_is_kptr(file))
		return -EFAULT;
	rc = guest_virt_readv(km->virt, km->as, io, backing ? 6 : 4);
	for (int i = 0; !rc && i < 4; i++)
		rc = io[i].ok ? 0 : -EFAULT;
	rc = rc ? rc : guest_inode_read(km, ino, inode);
	if (rc)
		return rc;
	/* An overlay's file: the path of the layer below is of no use to the process. */
	if (backing && mode & FMODE_BACKING && io[4].ok && io[5].ok &&
	    !dentry_path(km, user[0], user[1], path, size))
		return 0;
	return dentry_path(km, path_of[0], path_of[1], path, size);
}

int guest_cgroup_path(struct guest_kmem *km, uint64_t css_set, char *path, size_t size)
{
	const struct guest_layout *l = &km->lay;
	struct backwards b = {.buf = path, .start = size - 1};
	uint64_t cgroup = 0, kn = 0, up, name;
	char component[GUEST_MAX_NAME];
	int rc;

	if (l->cset_dfl_cgrp < 0 || l->cgroup_kn < 0 || l->kn_parent < 0 || l->kn_name < 0)
		return -ENOENT;
	rc = guest_virt_read(km->virt, km->as, css_set + l->cset_dfl_cgrp, &cgroup, 8);
	rc = rc ? rc : guest_virt_read(km->virt, km->as, cgroup + l->cgroup_kn, &kn, 8);
	path[size - 1] = 0;
	for (int steps = 0; !rc; steps++) {
		struct guest_virt_io io[] = {
			{.va = kn + l->kn_parent, .buf = &up, .len = 8},
			{.va = kn + l->kn_name, .buf = &name, .len = 8},
		};

		if (steps == MAX_STEPS || !guest_is_kptr(kn))
			return -EFAULT;
		rc = guest_read_all(km, io, 2);
		if (rc)
			return rc;
		if (!up)
			break; /* the root; its name is empty */
		rc = guest_virt_read_str(km->virt, km->as, name, component, sizeof(component));
		rc = rc ? rc : put_before(&b, component);
		rc = rc ? rc : put_before(&b, "/");
		kn = up;
	}
	if (rc)
		return rc;
	if (path[b.start] != '/')
		put_before(&b, "/");
	memmove(path, path + b.start, size - b.start);
	return 0;
}
