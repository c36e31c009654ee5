// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: the kernel's dentries, mounts and inodes, read one at a time and checked for
 * shape. Functions return 0, -EFAULT (unreadable, or no such thing) or -ESRCH.
 */
#ifndef VMPROF_GUEST_DENTRY_H
#define VMPROF_GUEST_DENTRY_H

#include "guest/dso.h"

#define GUEST_MAX_NAME 256 /* with the NUL */

struct guest_dentry {
	uint64_t self, parent, sb;
	uint64_t inode;	   /* 0: there is no such file, or not known */
	uint64_t children; /* address of the list's head; 0 not known */
	uint64_t first;	   /* the member of the first child that is in that list */
	uint64_t next;	   /* the same of the one behind this among its parent's children */
	bool unhashed;
	char name[GUEST_MAX_NAME];
};

struct guest_mount {
	uint64_t self, parent, mountpoint, root; /* struct mount's; dentries */
};

/* What an inode says besides struct guest_inode. */
struct guest_owner {
	uint32_t mode, uid; /* uid: as the kernel has it, outside of user namespaces */
};

/* Are the members known that all of this needs? */
bool guest_can_read_files(const struct guest_layout *l);

/* 0 only if all of it could be read. */
int guest_read_all(struct guest_kmem *km, struct guest_virt_io *io, int n);
int guest_dentry_read(struct guest_kmem *km, uint64_t at, struct guest_dentry *d);
int guest_mount_read(struct guest_kmem *km, uint64_t at, struct guest_mount *m);
int guest_inode_read(struct guest_kmem *km, uint64_t at, struct guest_inode *f);
int guest_owner_read(struct guest_kmem *km, uint64_t inode, struct guest_owner *o);
/* "ext4", "overlay" ... of a super_block; "" if it cannot be read. */
void guest_fs_name(struct guest_kmem *km, uint64_t sb, char *name, size_t size);

/* ---------- lookup.c ---------- */

/*
 * The regular file at @path (absolute), below the root directory that the task sees, as far as the
 * kernel remembers it: what nobody has opened lately is not found. Symbolic links are followed as
 * the task would, in bounded number. Of a file of an overlay it is the one below. 0, -ENOENT,
 * -EFAULT, -ESRCH
 */
int guest_lookup(struct guest_kmem *km, uint64_t task, const char *path, struct guest_inode *f);

#endif
