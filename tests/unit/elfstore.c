// SPDX-License-Identifier: GPL-2.0-only
/*
 * The store of small ELF files: what is put can be read, partial tables give way to full ones and
 * never the reverse, no name leads out of the directory.
 *   elfstore scenario DIR     helper of tests/cli/symbols.bats: a store for perfdata_write's file
 */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/symtab.h"
#include "tests/unit/perfdata_scenario.h"
#include "tests/unit/test.h"

static char top[] = "/tmp/vmprof-elfstore-XXXXXX";
static char dir[64];
static int files, outside;

static struct symtab *table(const char *name, bool partial)
{
	struct symtab *t = symtab_new();

	symtab_add(t, 0x26000, 0x26010, name, 'g');
	symtab_add(t, 0x26010, 0x26030, "local", 'l');
	symtab_add(t, 0x27000, 0x27001, "weak", 'w');
	symtab_finish(t);
	t->partial = partial;
	t->nr_loads = 1;
	t->loads = calloc(1, sizeof(*t->loads));
	t->loads[0] = (struct elf_load){0x26000, 0x1000, 0x2000, PF_X};
	return t;
}

static int put(const char *name, const char *sym, const uint8_t *id, bool partial)
{
	struct symtab *t = table(sym, partial);
	struct vmprof_err err;
	int ret = elfstore_put(dir, name, id, 20, t, &err);

	symtab_free(t);
	return ret;
}

static const char *first_symbol(const char *path)
{
	static char name[4096];
	struct symtab *t;

	if (symtab_read_file(&t, path, NULL, 0, NULL))
		return "unreadable";
	snprintf(name, sizeof(name), "%s", t->n ? t->syms[0].name : "none");
	symtab_free(t);
	return name;
}

static void test_round_trip(void)
{
	static const uint8_t id[20] = {0xab, 0xcd, 1};
	struct vmprof_err err;
	char path[PATH_MAX], want[PATH_MAX], link[PATH_MAX];
	struct symtab *t;
	ssize_t n;

	CHECK_EQ(elfstore_get(dir, id, 20, path), -ENOENT);
	CHECK_EQ(put("web1/usr/lib/libc.so.6", "first", id, false), 0);
	CHECK_EQ(elfstore_get(dir, id, 20, path), 0);
	CHECK_EQ(symtab_read_file(&t, path, id, 20, &err), 0);
	if (!t)
		return;
	CHECK_EQ(t->n, 3);
	CHECK_EQ(t->syms[1].start, 0x26010);
	CHECK_EQ(t->syms[1].end, 0x26030);
	CHECK_STR(t->syms[1].name, "local");
	CHECK_EQ(t->syms[0].binding, 'g');
	CHECK_EQ(t->syms[1].binding, 'l');
	CHECK_EQ(t->syms[2].binding, 'w');
	CHECK_EQ(t->build_id_len, 20);
	CHECK(!t->partial && !t->build_id_made_up);
	CHECK_EQ(t->nr_loads, 1);
	CHECK_EQ(t->loads[0].vaddr, 0x26000);
	CHECK_EQ(t->loads[0].offset, 0x1000);
	symtab_free(t);
	/* perf's layout. */
	snprintf(want, sizeof(want),
		 "%s/web1/usr/lib/libc.so.6/abcd010000000000000000000000000000000000/elf", dir);
	CHECK_EQ(elfstore_get_named(dir, "/web1//usr/lib/libc.so.6", id, 20, path), 0);
	CHECK_STR(path, want);
	snprintf(link, sizeof(link), "%s/.build-id/ab/cd010000000000000000000000000000000000", dir);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = 0;
	CHECK_STR(path, "../../web1/usr/lib/libc.so.6/abcd010000000000000000000000000000000000");
}

/* A guest's names go to tools that print them as they are. */
static void test_hostile_names(void)
{
	static const uint8_t id[20] = {0xcc};
	char path[PATH_MAX];

	CHECK_EQ(put("web1/bad", "\033[31mred\n<b>\xff\xc3\xa9", id, false), 0);
	CHECK_EQ(elfstore_get(dir, id, 20, path), 0);
	CHECK_STR(first_symbol(path), "\\x1b[31mred\\x0a<b>\\xff\xc3\xa9");
}

static void test_partial(void)
{
	static const uint8_t id[20] = {0xbb};
	char path[PATH_MAX];

	CHECK_EQ(put("web1/l.so", "partial", id, true), 0);
	CHECK_EQ(put("db1/l.so", "full", id, false), 0);
	/* The link goes to the better one, the other name keeps its own. */
	CHECK_EQ(elfstore_get(dir, id, 20, path), 0);
	CHECK_STR(first_symbol(path), "full");
	CHECK_EQ(elfstore_get_named(dir, "web1/l.so", id, 20, path), 0);
	CHECK_STR(first_symbol(path), "partial");
	/* Better replaces, worse does not, and nor does another of the same kind. */
	CHECK_EQ(put("web1/l.so", "better", id, false), 0);
	CHECK_STR(first_symbol(path), "better");
	CHECK_EQ(put("web1/l.so", "worse", id, true), 0);
	CHECK_EQ(put("web1/l.so", "again", id, false), 0);
	CHECK_STR(first_symbol(path), "better");
}

static int count(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (type == FTW_F) {
		files++;
		if (strncmp(path, dir, strlen(dir)) != 0)
			outside++;
	}
	return 0;
}

static void test_names(void)
{
	static const char *const names[] = {
		"../../etc/passwd",
		"/../../../x",
		"web1/../../../../tmp/x",
		"..",
		"",
		"/",
		".",
		"a/./b",
		"-rf",
		".build-id/aa/bb",
		"\n\033[31m",
		"a\\b",
	};
	char path[PATH_MAX], deep[20000];
	uint8_t id[20] = {0xcc};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		id[1] = (uint8_t)i;
		CHECK_EQ(put(names[i], "evil", id, false), 0);
		CHECK_EQ(elfstore_get(dir, id, 20, path), 0);
		CHECK_EQ(elfstore_get_named(dir, names[i], id, 20, path), 0);
	}
	memset(deep, 'a', sizeof(deep));
	deep[sizeof(deep) - 1] = 0;
	id[1] = 100;
	CHECK_EQ(put(deep, "long", id, false), 0);
	for (size_t i = 1; i < sizeof(deep) - 1; i += 2)
		deep[i] = '/';
	id[1] = 101;
	CHECK_EQ(put(deep, "deep", id, false), 0);
	CHECK_EQ(elfstore_get(dir, id, 20, path), 0);
	files = outside = 0;
	CHECK_EQ(nftw(top, count, 16, FTW_PHYS), 0);
	CHECK_EQ(outside, 0);
	CHECK(files >= (int)(sizeof(names) / sizeof(*names)) + 2);
}

static void test_impossible(void)
{
	static const uint8_t id[20] = {0xdd};
	struct symtab *t = table("x", false);
	struct vmprof_err err;
	char path[PATH_MAX];

	CHECK_EQ(elfstore_put("/proc/no-such-dir", "x", id, 20, t, &err), -ENOENT);
	CHECK(strstr(err.msg, "cannot save symbols in /proc/no-such-dir"));
	CHECK_EQ(elfstore_put(dir, "x", id, 0, t, &err), -EINVAL);
	CHECK_EQ(elfstore_put(dir, "x", id, 21, t, &err), -EINVAL);
	CHECK_EQ(elfstore_get(dir, id, 0, path), -ENOENT);
	symtab_free(t);
	/* No symbols at all is a file, too. */
	t = symtab_new();
	CHECK_EQ(elfstore_put(dir, "empty", id, 20, t, &err), 0);
	symtab_free(t);
	CHECK_EQ(elfstore_get(dir, id, 20, path), 0);
	CHECK_STR(first_symbol(path), "none");
}

static int put_scenario(const char *store, const struct scenario_vm *vm)
{
	static const struct {
		const char *dso; /* %s is the VM, or its program */
		uint64_t at[2];
		const char *symbols[2];
	} dsos[] = {
		{"/boot/[%s.kernel]", {0x2000, 0x3000}, {"sys_read", "entry_SYSCALL_64"}},
		{"/lib/modules/6.1.0/virtio_net.ko", {0}, {"virtnet_poll"}},
		{"%s", {0x1000, 0x1100}, {"main", "_Z6handlev"}},
		{"/lib/libc.so.6", {0x1000}, {"libc_read"}},
	};

	for (unsigned i = 0; i < sizeof(dsos) / sizeof(*dsos); i++) {
		struct symtab *t = symtab_new();
		struct vmprof_err err;
		char name[256], dso[128];
		uint8_t id[20];

		for (int k = 0; k < 2 && dsos[i].symbols[k]; k++) {
			bool mangled = *dsos[i].symbols[k] == '_';

			snprintf(name, sizeof(name), mangled ? "%s%s" : "%s_%s",
				 mangled ? "" : vm->kernel_prefix, dsos[i].symbols[k]);
			symtab_add(t, dsos[i].at[k], dsos[i].at[k] + 0x100, name, 'g');
		}
		symtab_finish(t);
		snprintf(dso, sizeof(dso), dsos[i].dso, i ? vm->exe : vm->name);
		snprintf(name, sizeof(name), "%s/%s", vm->name, dso);
		scenario_bid(vm, i, id);
		if (elfstore_put(store, name, id, 20, t, &err)) {
			fprintf(stderr, "elfstore: %s\n", err.msg);
			test_failures++;
		}
		symtab_free(t);
	}
	return test_done();
}

int main(int argc, char **argv)
{
	char cmd[128];

	if (argc == 3 && !strcmp(argv[1], "scenario"))
		return put_scenario(argv[2], &scenario_vms[0]) |
		       put_scenario(argv[2], &scenario_vms[1]);
	if (!mkdtemp(top))
		return 1;
	snprintf(dir, sizeof(dir), "%s/out.debug", top);
	test_round_trip();
	test_hostile_names();
	test_partial();
	test_names();
	test_impossible();
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", top);
	return system(cmd) ? 1 : test_done();
}
