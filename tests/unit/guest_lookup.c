// SPDX-License-Identifier: GPL-2.0-only
/*
 * From a path to a file of a made-up guest: directories, what is mounted on them, a root directory
 * of one's own, overlays; and all of it hostile.
 */
#include <errno.h>
#include <sys/stat.h>

#include "tests/unit/fakefiles.h"
#include "tests/unit/test.h"

struct tree {
	struct setup s;
	uint64_t root, top;    /* dentry; vfsmount */
	uint64_t etc, tmp, fs; /* dentries below it; the root of what is mounted on tmp */
	uint64_t inner;	       /* its vfsmount */
	uint64_t map;	       /* dentry of perf-7.map in it */
	uint64_t task, task_fs;
};

static void set_root(struct tree *t, uint64_t mnt, uint64_t dentry)
{
	fg_put64(&t->s.g, t->task_fs, mnt);
	fg_put64(&t->s.g, t->task_fs + 8, dentry);
}

/* Returns the address of its inode. */
static uint64_t make_file(struct tree *t, uint64_t dentry, uint64_t ino, uint16_t mode)
{
	uint64_t inode = new (&t->s, 128);

	fg_put64(&t->s.g, dentry + 80, inode);
	fg_put64(&t->s.g, inode, t->s.sb);
	fg_put64(&t->s.g, inode + 8, new (&t->s, 64));
	fg_put64(&t->s.g, inode + 16, ino);
	fg_put64(&t->s.g, inode + 24, 1000 + ino);
	fg_write(&t->s.g, t->s.g.root, inode + 36, &mode, 2);
	return inode;
}

static uint64_t make_dir(struct tree *t, uint64_t parent, const char *name)
{
	uint64_t d = dentry(&t->s, parent, name);

	make_file(t, d, 1, S_IFDIR | 0755);
	return d;
}

static void setup_tree(struct tree *t)
{
	struct guest_layout *l = &t->s.km.lay;
	uint64_t at;

	memset(t, 0, sizeof(*t));
	setup(&t->s);
	l->task_fs = 8;
	l->fs_root_mnt = 0;
	l->fs_root_dentry = 8;
	t->root = make_dir(t, 0, "/");
	t->top = mount(&t->s, 0, 0, t->root);
	t->etc = make_dir(t, t->root, "etc");
	t->tmp = make_dir(t, t->root, "tmp");
	make_file(t, dentry(&t->s, t->tmp, "perf-7.map"), 11, S_IFREG); /* under the mount */
	t->fs = make_dir(t, 0, "/");
	mount(&t->s, t->top, t->etc, make_dir(t, 0, "/"));
	t->inner = mount(&t->s, t->top, t->tmp, t->fs);
	t->map = dentry(&t->s, t->fs, "perf-7.map");
	make_file(t, t->map, 22, S_IFREG | 0644);
	dentry(&t->s, t->fs, "perf-8.map"); /* a name that is known not to be there */
	t->task = new (&t->s, 64);
	t->task_fs = at = new (&t->s, 64);
	fg_put64(&t->s.g, t->task + 8, at);
	set_root(t, t->top, t->root);
}

/* The number of the file that is found, or -errno. */
static int64_t look_up(struct tree *t, const char *path)
{
	struct guest_inode f = {0};
	int rc;

	guest_virt_flush(t->s.km.virt, 0);
	rc = guest_lookup(&t->s.km, t->task, path, &f);
	if (!rc)
		CHECK_EQ(f.size, 1000 + f.ino);
	return rc ? rc : (int64_t)f.ino;
}

static void test_lookup(void)
{
	struct tree t;
	uint64_t d;

	setup_tree(&t);
	for (int map = 0; map < 2; map++) {
		t.s.g.fm.map = map;
		CHECK_EQ(look_up(&t, "/tmp/perf-7.map"), 22);
		CHECK_EQ(look_up(&t, "//tmp//perf-7.map"), 22);
		CHECK_EQ(look_up(&t, "/tmp/perf-7.ma"), -ENOENT);
		CHECK_EQ(look_up(&t, "/tmp/perf-7.map2"), -ENOENT);
		CHECK_EQ(look_up(&t, "/tmp/perf-8.map"), -ENOENT);
		CHECK_EQ(look_up(&t, "/tmp"), -ENOENT); /* not a file */
		CHECK_EQ(look_up(&t, "/usr/x"), -ENOENT);
		CHECK_EQ(look_up(&t, "/etc/perf-7.map"), -ENOENT);
	}
	set_root(&t, t.inner, t.fs); /* chroot into what is mounted */
	CHECK_EQ(look_up(&t, "/perf-7.map"), 22);
	CHECK_EQ(look_up(&t, "/tmp/perf-7.map"), -ENOENT);
	set_root(&t, t.top, t.root);

	/* Something else is mounted over it. */
	d = make_dir(&t, 0, "/");
	make_file(&t, dentry(&t.s, d, "perf-7.map"), 33, S_IFREG);
	mount(&t.s, t.inner, t.fs, d);
	CHECK_EQ(look_up(&t, "/tmp/perf-7.map"), 33);

	/* Deleted, and made anew. */
	d = dentry(&t.s, t.etc, "a");
	make_file(&t, d, 44, S_IFREG);
	set_root(&t, t.top, t.etc);
	CHECK_EQ(look_up(&t, "/a"), 44);
	fg_put64(&t.s.g, d + 8, 0);
	CHECK_EQ(look_up(&t, "/a"), -ENOENT);
	make_file(&t, dentry(&t.s, t.etc, "a"), 45, S_IFREG);
	CHECK_EQ(look_up(&t, "/a"), 45);
	fg_put64(&t.s.g, t.task + 8, 0); /* the task is ending */
	CHECK_EQ(look_up(&t, "/a"), -ENOENT);
	teardown(&t.s);
}

static void test_overlay(void)
{
	uint64_t inode, upper, sb;
	struct tree t;

	setup_tree(&t);
	inode = make_file(&t, t.map, 22, S_IFREG);
	sb = new (&t.s, 64);
	fg_put64(&t.s.g, sb + 8, sb + 32);
	fg_put64(&t.s.g, sb + 32, sb + 40);
	fg_puts(&t.s.g, sb + 40, "overlay");
	fg_put64(&t.s.g, t.map + 40, sb);
	CHECK_EQ(look_up(&t, "/tmp/perf-7.map"), -ENOENT); /* not written to: nothing is above */
	upper = dentry(&t.s, make_dir(&t, 0, "/"), "perf-7.map");
	make_file(&t, upper, 55, S_IFREG);
	fg_put64(&t.s.g, inode + 64, upper);
	CHECK_EQ(look_up(&t, "/tmp/perf-7.map"), 55);
	fg_puts(&t.s.g, upper + 48, "perf-8.map"); /* no dentry of this file */
	CHECK_EQ(look_up(&t, "/tmp/perf-7.map"), -ENOENT);
	teardown(&t.s);
}

/* @text NULL: it is in the page cache, of which there is none here. */
static uint64_t make_link(struct tree *t, uint64_t parent, const char *name, const char *text)
{
	uint64_t inode = make_file(t, dentry(&t->s, parent, name), 5, S_IFLNK | 0777);
	uint64_t at = text ? new (&t->s, strlen(text) + 1) : 0;

	fg_put64(&t->s.g, inode + 24, text ? strlen(text) : 10);
	fg_put64(&t->s.g, inode + 48, at);
	if (text)
		fg_puts(&t->s.g, at, text);
	return inode;
}

static void test_links(void)
{
	struct tree t;
	uint64_t var, deep, inode;

	setup_tree(&t);
	var = make_dir(&t, t.root, "var");
	deep = make_dir(&t, var, "deep");
	make_file(&t, dentry(&t.s, var, "map"), 66, S_IFREG);
	make_link(&t, t.root, "tmp2", "tmp");
	make_link(&t, t.root, "tmp3", "/var/../tmp/./");
	make_link(&t, var, "up", "../tmp/perf-7.map");
	make_link(&t, t.fs, "perf-9.map", "/var/map");
	make_link(&t, t.fs, "perf-10.map", "../var/map");
	make_link(&t, deep, "above", "../../../../../../var/map");
	make_link(&t, deep, "around", "../deep/above");
	make_link(&t, deep, "self", "self");
	make_link(&t, deep, "ping", "pong");
	make_link(&t, deep, "pong", "/var/deep/ping");
	make_link(&t, deep, "nowhere", "nothing");
	make_link(&t, deep, "dir", "/var");
	make_link(&t, deep, "gone", NULL);
	CHECK_EQ(look_up(&t, "/tmp2/perf-7.map"), 22);
	CHECK_EQ(look_up(&t, "/tmp3/perf-7.map"), 22);
	CHECK_EQ(look_up(&t, "/var/up"), 22);
	CHECK_EQ(look_up(&t, "/tmp/perf-9.map"), 66);
	CHECK_EQ(look_up(&t, "/tmp/perf-10.map"), 66); /* up from what is mounted */
	CHECK_EQ(look_up(&t, "/tmp3/perf-10.map"), 66);
	CHECK_EQ(look_up(&t, "/var/deep/above"), 66); /* nothing is above the root */
	CHECK_EQ(look_up(&t, "/var/deep/around"), 66);
	CHECK_EQ(look_up(&t, "/var/deep/dir/map"), 66);
	CHECK_EQ(look_up(&t, "/var/deep/dir"), -ENOENT); /* not a file */
	CHECK_EQ(look_up(&t, "/var/deep/self"), -ENOENT);
	CHECK_EQ(look_up(&t, "/var/deep/ping"), -ENOENT);
	CHECK_EQ(look_up(&t, "/var/deep/nowhere"), -ENOENT);
	CHECK(look_up(&t, "/var/deep/gone") < 0);

	/* In a root directory of its own a link does not lead out of it. */
	set_root(&t, t.top, deep);
	CHECK_EQ(look_up(&t, "/above"), -ENOENT);
	make_file(&t, dentry(&t.s, make_dir(&t, deep, "var"), "map"), 77, S_IFREG);
	CHECK_EQ(look_up(&t, "/above"), 77);
	CHECK_EQ(look_up(&t, "/dir/map"), 77);
	set_root(&t, t.top, t.root);

	/* Of a length that is none, or into nothing. */
	inode = make_link(&t, deep, "bad", "../map");
	CHECK_EQ(look_up(&t, "/var/deep/bad"), 66);
	fg_put64(&t.s.g, inode + 24, 4096);
	CHECK_EQ(look_up(&t, "/var/deep/bad"), -ENOENT);
	fg_put64(&t.s.g, inode + 24, 9); /* there is a NUL in it */
	CHECK_EQ(look_up(&t, "/var/deep/bad"), -ENOENT);
	fg_put64(&t.s.g, inode + 24, 0);
	CHECK_EQ(look_up(&t, "/var/deep/bad"), -ENOENT);
	fg_put64(&t.s.g, inode + 24, 6);
	fg_put64(&t.s.g, inode + 48, 0xffff900000000000);
	CHECK_EQ(look_up(&t, "/var/deep/bad"), -EFAULT);
	teardown(&t.s);
}

/* Each link makes the path longer, up to what one may be. */
static void test_growing_link(void)
{
	char text[3 * 1024];
	struct tree t;

	setup_tree(&t);
	memset(text, '/', sizeof(text));
	memcpy(text + sizeof(text) - 10, "./grow/xxx", 10);
	text[sizeof(text) - 1] = 0;
	make_link(&t, t.root, "grow", text);
	CHECK_EQ(look_up(&t, "/grow"), -ENOENT);
	teardown(&t.s);
}

static void test_hostile(void)
{
	struct tree t;

	setup_tree(&t);
	fg_put64(&t.s.g, t.map + 104, t.map + 104); /* a list that leads to itself */
	CHECK_EQ(look_up(&t, "/tmp/nothing"), -ENOENT);
	fg_put64(&t.s.g, t.map + 104, t.etc + 104); /* into another directory's */
	CHECK_EQ(look_up(&t, "/tmp/nothing"), -EFAULT);
	fg_put64(&t.s.g, t.map + 104, 0x1234);
	CHECK_EQ(look_up(&t, "/tmp/nothing"), -EFAULT);
	fg_put64(&t.s.g, t.map + 104, 0); /* as lists end since 6.8 */
	CHECK_EQ(look_up(&t, "/tmp/nothing"), -ENOENT);
	CHECK_EQ(look_up(&t, "/tmp/perf-7.map"), 22);
	fg_put64(&t.s.g, t.inner + 32, t.inner + 32); /* mounts in a ring */
	CHECK_EQ(look_up(&t, "/tmp/perf-7.map"), 22);
	CHECK_EQ(look_up(&t, "/nowhere/perf-7.map"), -ENOENT);
	fg_put64(&t.s.g, t.map + 80, 0x1000);
	fg_put64(&t.s.g, t.task + 8, 0x1000);
	CHECK_EQ(look_up(&t, "/tmp/perf-7.map"), -ENOENT);
	t.s.km.lay.dentry_children = 4000; /* not in what is read of a dentry */
	fg_put64(&t.s.g, t.task + 8, t.task_fs);
	CHECK_EQ(look_up(&t, "/tmp/perf-7.map"), -ENOENT);
	t.s.km.lay.mount_child = -1;
	CHECK_EQ(look_up(&t, "/tmp/perf-7.map"), -ENOENT);
	teardown(&t.s);
}

int main(void)
{
	test_lookup();
	test_overlay();
	test_links();
	test_growing_link();
	test_hostile();
	return test_done();
}
