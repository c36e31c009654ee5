// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where a session finds symbols: the store, --symfs, --vmlinux, --kallsyms, debug files, the host's
 * own; wrong build ids, and paths that would lead elsewhere.
 */
#include "tests/unit/elf_make.h"
#include "tests/unit/session_make.h"

static const char *source_of(struct session *s, uint64_t ip)
{
	struct location loc = resolve(s, WEB, 9, GU, ip);

	return loc.dso ? loc.dso->symbol_source : "";
}

static void copy_store_file(const char *name, uint8_t id, const char *to)
{
	char path[4096], cmd[9000];

	CHECK_EQ(elfstore_get_named(path_of("other"), name, id_of(id), 20, path), 0);
	snprintf(cmd, sizeof(cmd), "mkdir -p $(dirname '%s/%s') && cp '%s' '%s/%s'", dir, to, path,
		 dir, to);
	CHECK_EQ(system(cmd), 0);
}

static void test_symfs(void)
{
	struct symbol_paths p = {
		.symfs = {{"web1", path_of("root")}, {NULL, path_of("no-such")}},
		.nr_symfs = 2,
	};
	struct session *s;
	char secret[600], link[600];

	put(path_of("other"), "x", 30, "from_symfs", false);
	put(path_of("other"), "y", 31, "from_other", false);
	put(path_of("other"), "z", 32, "outside", false);
	copy_store_file("x", 30, "root/usr/bin/prog");
	copy_store_file("y", 31, "root/usr/bin/wrong");
	copy_store_file("z", 32, "secret");
	/* A link that leads out of the root must not; an absolute one is below the root. */
	snprintf(secret, sizeof(secret), "%s/secret", dir);
	snprintf(link, sizeof(link), "%s/root/out", dir);
	CHECK_EQ(symlink(secret, link), 0);
	snprintf(link, sizeof(link), "%s/root/abs", dir);
	CHECK_EQ(symlink("/usr/bin/prog", link), 0);

	s = open_session(&p);
	private(s, "vm", "{\"machine\":3000001,\"name\":\"web1\"}");
	map(s, GU, WEB, 9, 0x10000, 0x8000, 0, "/usr/bin/prog", id_of(30));
	map(s, GU, WEB, 9, 0x20000, 0x8000, 0, "/usr/bin/wrong", id_of(99));
	map(s, GU, WEB, 9, 0x30000, 0x8000, 0, "/out", id_of(32));
	map(s, GU, WEB, 9, 0x40000, 0x8000, 0, "/../secret", id_of(32));
	map(s, GU, WEB, 9, 0x50000, 0x8000, 0, "/abs", id_of(30));
	map(s, GU, DB, 9, 0x10000, 0x8000, 0, "/usr/bin/prog", id_of(30));
	CHECK_STR(sym_at(s, WEB, 9, GU, 0x11000), "from_symfs");
	CHECK(!sym_at(s, WEB, 9, GU, 0x21000));
	CHECK(strstr(source_of(s, 0x21000), "is another file: its build id is 1f1f"));
	CHECK(!sym_at(s, WEB, 9, GU, 0x31000));
	CHECK(!sym_at(s, WEB, 9, GU, 0x41000));
	CHECK_STR(sym_at(s, WEB, 9, GU, 0x51000), "from_symfs");
	CHECK(!sym_at(s, DB, 9, GU, 0x11000));
	session_free(s);
}

/* A full table elsewhere is better than exported symbols in the store. */
static void test_partial(void)
{
	struct symbol_paths p = {.buildid_dir = path_of("cache")};
	struct session *s;

	put(path_of("store"), "web1/lib/l.so", 40, "exported", true);
	put(path_of("cache"), "l.so", 40, "full", false);
	put(path_of("store"), "web1/lib/m.so", 41, "exported", true);
	put(path_of("cache"), "n.so", 42, "exported", true);
	put(path_of("store"), "web1/lib/n.so", 42, "full", false);
	s = open_session(&p);
	private(s, "vm", "{\"machine\":3000001,\"name\":\"web1\"}");
	map(s, GU, WEB, 9, 0x10000, 0x8000, 0, "/lib/l.so", id_of(40));
	map(s, GU, WEB, 9, 0x20000, 0x8000, 0, "/lib/m.so", id_of(41));
	CHECK_STR(sym_at(s, WEB, 9, GU, 0x11000), "full");
	map(s, GU, WEB, 9, 0x30000, 0x8000, 0, "/lib/n.so", id_of(42));
	CHECK_STR(sym_at(s, WEB, 9, GU, 0x21000), "exported");
	CHECK_STR(sym_at(s, WEB, 9, GU, 0x31000), "full");
	session_free(s);
}

/* One VM that claims another's build id does not name the other's functions. */
static void test_claimed_build_id(void)
{
	struct session *s;

	put(path_of("store"), "evil/lib/l.so", 50, "lies", false);
	put(path_of("store"), "web1/lib/l.so", 50, "truth", false);
	s = open_session(NULL);
	private(s, "vm", "{\"machine\":3000001,\"name\":\"web1\"}");
	map(s, GU, WEB, 9, 0x10000, 0x8000, 0, "/lib/l.so", id_of(50));
	CHECK_STR(sym_at(s, WEB, 9, GU, 0x11000), "truth");
	session_free(s);
}

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	CHECK(f != NULL);
	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

static void test_kernel_options(void)
{
	static const char kallsyms[] = "ffffffff9a000000 T _text\n"
				       "ffffffff9a001000 T func_a\n"
				       "ffffffff9a002000 t func_b\n"
				       "ffffffff9a003000 D data\n"
				       "ffffffffc0000000 t mod_a\t[virtio_net]\n"
				       "ffffffffc0008000 t mod_b\t[kvm]\n";
	static const char hidden[] = "0000000000000000 T _text\n0000000000000000 T func_a\n";
	struct symbol_paths p = {
		.kallsyms = {{"web1", path_of("kallsyms")}, {"db1", path_of("hidden")}},
		.nr_kallsyms = 2,
	};
	struct session *s;

	write_text(path_of("kallsyms"), kallsyms);
	write_text(path_of("hidden"), hidden);
	s = open_session(&p);
	private(s, "vm", "{\"machine\":3000001,\"name\":\"web1\"}");
	private(s, "vm", "{\"machine\":3000002,\"name\":\"db1\"}");
	/* Another KASLR offset than the file's. */
	map(s, GK, WEB, WEB, 0xffffffff81000000, 0x400000, 0, "/boot/[web1.kernel]", id_of(60));
	map(s, GK, WEB, WEB, 0xffffffffc0000000, 0x4000, 0, "/lib/modules/x/virtio_net.ko",
	    id_of(61));
	map(s, GK, DB, DB, 0xffffffff81000000, 0x400000, 0, "/boot/[db1.kernel]", id_of(60));
	CHECK_STR(sym_at(s, WEB, 1, GK, 0xffffffff81001004), "func_a");
	CHECK_STR(sym_at(s, WEB, 1, GK, 0xffffffff81002fff), "func_b");
	CHECK(!sym_at(s, WEB, 1, GK, 0xffffffff81005000));
	CHECK_STR(sym_at(s, WEB, 1, GK, 0xffffffffc0000010), "mod_a");
	/* One without a file is called by its name. */
	map(s, GK, WEB, WEB, 0xffffffffc0008000, 0x4000, 0, "[kvm]", NULL);
	CHECK_STR(sym_at(s, WEB, 1, GK, 0xffffffffc0008010), "mod_b");
	CHECK(!sym_at(s, DB, 1, GK, 0xffffffff81001004));
	CHECK(strstr(resolve(s, DB, 1, GK, 0xffffffff81001004).dso->symbol_source,
		     "kptr_restrict"));
	session_free(s);
}

static void make_elf(const char *path, uint8_t id, uint64_t base, const char *name)
{
	const struct elf_make_symbol syms[] = {
		{base, 0x10, "_text"}, {base + 0x1000, 0x100, name}, {0}};
	FILE *f = fopen(path, "w");
	struct buf b = {0};

	elf_make(&b, id_of(id), syms, base, 0x4000);
	CHECK(f && fwrite(b.data, 1, b.len, f) == b.len);
	if (f)
		fclose(f);
	buf_free(&b);
}

/* --vmlinux: of the build id alone, unless the id was made up; also where no kernel was found. */
static void test_vmlinux(void)
{
	struct symbol_paths p = {
		.vmlinux = {{NULL, path_of("vmlinux")}},
		.nr_vmlinux = 1,
	};
	struct symtab *t = symtab_new();
	struct session *s;

	make_elf(path_of("vmlinux"), 80, 0xffffffff81000000, "in_vmlinux");
	symtab_add(t, 0x1000, 0x1100, "in_store", 'g');
	symtab_finish(t);
	CHECK_EQ(elfstore_put(path_of("store"), "guest pid 3/boot/[a.kernel]", id_of(81), 20, t,
			      NULL),
		 0);
	t->build_id_made_up = true;
	CHECK_EQ(elfstore_put(path_of("store"), "guest pid 4/boot/[a.kernel]", id_of(82), 20, t,
			      NULL),
		 0);
	symtab_free(t);
	s = open_session(&p);
	map(s, GK, 1, 1, 0xffffffffa0000000, 0x4000, 0, "/boot/[a.kernel]", id_of(80));
	map(s, GK, 2, 2, 0xffffffffa0000000, 0x4000, 0, "/boot/[a.kernel]", id_of(89));
	map(s, GK, 3, 3, 0xffffffffa0000000, 0x4000, 0, "/boot/[a.kernel]", id_of(81));
	map(s, GK, 4, 4, 0xffffffffa0000000, 0x4000, 0, "/boot/[a.kernel]", id_of(82));
	CHECK_STR(sym_at(s, 1, 1, GK, 0xffffffffa0001000), "in_vmlinux");
	CHECK(!sym_at(s, 2, 1, GK, 0xffffffffa0001000));
	CHECK(strstr(resolve(s, 2, 1, GK, 0xffffffffa0001000).dso->symbol_source, "another file"));
	CHECK_STR(sym_at(s, 3, 1, GK, 0xffffffffa0001000), "in_store");
	CHECK(strstr(resolve(s, 3, 1, GK, 0xffffffffa0001000).dso->symbol_source, "another file"));
	CHECK_STR(sym_at(s, 4, 1, GK, 0xffffffffa0001000), "in_vmlinux");
	CHECK_STR(sym_at(s, 5, 1, GK, 0xffffffff81001000), "in_vmlinux");
	CHECK_STR(dso_at(s, 5, 1, GK, 0xffffffff81001000), "vmlinux");
	CHECK(!dso_at(s, 5, 1, GK, 0xffffffffa0001000));
	session_free(s);
}

/* A separate debug file has addresses; where they are in the file only another one can tell. */
static void test_debug_file(void)
{
	struct symbol_paths p = {.symfs = {{NULL, path_of("droot")}}, .nr_symfs = 1};
	struct symtab *t = symtab_new();
	struct session *s;
	char cmd[2048], *debug = path_of("droot/usr/lib/debug/.build-id/5a");

	snprintf(cmd, sizeof(cmd), "mkdir -p %s %s", debug,
		 path_of("droot/usr/lib/debug/.build-id/5b"));
	CHECK_EQ(system(cmd), 0);
	make_elf(path_of("droot/usr/lib/debug/.build-id/5a/"
			 "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a.debug"),
		 0x5a, 0x425000, "in_debug");
	make_elf(path_of("droot/usr/lib/debug/.build-id/5b/"
			 "5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b5b.debug"),
		 0x5b, 0x400000, "in_debug");
	symtab_add(t, 0x7000, 0x7100, "exported", 'g');
	symtab_finish(t);
	t->partial = true;
	t->nr_loads = 1;
	t->loads = calloc(1, sizeof(*t->loads));
	t->loads[0] = (struct elf_load){.vaddr = 0x425000, .offset = 0x6000, .size = 0x4000};
	CHECK_EQ(elfstore_put(path_of("store"), "x", id_of(0x5a), 20, t, NULL), 0);
	symtab_free(t);
	s = open_session(&p);
	map(s, GU, WEB, 9, 0x10000, 0x8000, 0, "/bin/a", id_of(0x5a));
	map(s, GU, WEB, 9, 0x20000, 0x8000, 0, "/bin/b", id_of(0x5b));
	CHECK_STR(sym_at(s, WEB, 9, GU, 0x17000), "in_debug");
	CHECK_STR(sym_at(s, WEB, 9, GU, 0x21000), "in_debug");
	session_free(s);
}

/* perf's files of hosts: ids in the BUILD_ID feature, the path itself as the last resort. */
static void test_host(void)
{
	struct perfdata_reader_build_id id = {.pid = -1, .cpumode = HU, .id = id_of(70), .len = 20};
	char own[600];
	struct session *s;

	put(path_of("other"), "host", 70, "host_main", false);
	copy_store_file("host", 70, "hostprog");
	snprintf(own, sizeof(own), "%s/hostprog", dir);
	id.filename = own;
	s = open_session(NULL);
	session_add_build_id(s, &id);
	map(s, HU, 0, 3, 0x10000, 0x8000, 0, own, NULL);
	map(s, HU, 0, 4, 0x10000, 0x8000, 0, own, id_of(71));
	/* A guest's DSO of that path is none of the host's. */
	map(s, GU, WEB, 3, 0x10000, 0x8000, 0, own, NULL);
	CHECK_STR(sym_at(s, 0, 3, HU, 0x11000), "host_main");
	CHECK(!sym_at(s, 0, 4, HU, 0x11000));
	CHECK(!sym_at(s, WEB, 3, GU, 0x11000));
	CHECK_STR(thread_at(s, 0, 0, 0)->comm, "swapper");
	session_free(s);
}

int main(void)
{
	char cmd[128];

	if (!mkdtemp(dir))
		return 1;
	test_symfs();
	test_partial();
	test_claimed_build_id();
	test_kernel_options();
	test_vmlinux();
	test_debug_file();
	test_host();
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd) ? 1 : test_done();
}
