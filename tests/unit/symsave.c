// SPDX-License-Identifier: GPL-2.0-only
/*
 * Saving symbols while a VM is recorded, with a guest of our own making behind guest.h: its files
 * are this program and its libc, its kernel is a list.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include "record/symsave.h"
#include "symbolize/codestore.h"
#include "symbolize/elfimage.h"
#include "tests/unit/test.h"

static char dir[] = "/tmp/vmprof-symsave-XXXXXX";
static struct guest *const guest = (struct guest *)dir; /* never looked into */

enum { EXE = 1, LIBC, VDSO, NOTHING, REPLACED };

/* What of the page cache is there. */
static bool cached = true;

static const struct guest_symbol kernel[] = {
	{0xffffffff80fff000, 0x1000, 'T', "before"},   {0xffffffff81000000, 0, 'T', "_text"},
	{0xffffffff81000000, 0, 't', "alias_of_text"}, {0xffffffff81001000, 0, 't', "func_a"},
	{0xffffffff81002000, 0x10, 'W', "func_b"},     {0xffffffff81003000, 0, 'D', "data"},
	{0xffffffff81fff000, 0, 'T', "last"},	       {0xffffffff82000000, 0, 'T', "behind"},
};
static bool many;
static char long_name[32 << 10];
static size_t nr_kernel = sizeof(kernel) / sizeof(*kernel);

int guest_kernel_symbols(struct guest *g, const char *module,
			 int (*fn)(void *ctx, const struct guest_symbol *sym), void *ctx)
{
	if (module)
		return -ENOENT;
	for (uint64_t i = 0; many && i < 9000; i++) {
		struct guest_symbol sym = {kernel[1].addr + 16 * i, 16, 'T', long_name};

		fn(ctx, &sym);
	}
	for (size_t i = 0; i < nr_kernel; i++)
		fn(ctx, &kernel[i]);
	return 0;
}

/* Code of the kernel's is its address, but for a page that is not there. */
int guest_kernel_read(struct guest *g, uint64_t addr, void *buf, size_t len)
{
	if (addr >> 12 == 0xffffffff81fff)
		return -EFAULT;
	memset(buf, (int)(addr >> 12 & 0xff), len);
	return 0;
}

static ssize_t read_file(const char *path, uint64_t off, void *buf, size_t len)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = pread(fd, buf, len, (off_t)off);

	close(fd);
	return n;
}

ssize_t guest_dso_read(struct guest *g, uint32_t dso_id, uint64_t off, void *buf, size_t len,
		       uint8_t *present)
{
	if (!cached || dso_id == NOTHING || dso_id == VDSO)
		return -ENODATA;
	return read_file(dso_id == EXE ? "/proc/self/exe" : "/lib/x86_64-linux-gnu/libc.so.6", off,
			 buf, len);
}

/* What a program has written about its code so far, of which one page is not there. */
static char jit_map[3 * 4096];
static uint64_t jit_size, jit_hole = UINT64_MAX;
static bool jit_file = true;

ssize_t guest_perf_map_read(struct guest *g, uint32_t dso_id, uint64_t off, void *buf, size_t len,
			    uint64_t *size)
{
	*size = jit_size;
	if (!jit_file)
		return -ENOENT;
	if (off >= jit_size)
		return 0;
	len = len < jit_size - off ? len : jit_size - off;
	if (off < jit_hole + 4096 && off + len > jit_hole)
		return -ENODATA;
	memcpy(buf, jit_map + off, len);
	return (ssize_t)len;
}

/* Code that was made lies in two pages at MADE. */
enum { MADE = 0x7f0000 };

int guest_made_read(struct guest *g, uint32_t dso_id, uint64_t addr, void *buf, size_t len)
{
	if (addr < MADE || addr + len > MADE + 2 * 4096)
		return -EFAULT;
	memset(buf, 0x90 + (int)((addr - MADE) >> 12), len);
	return 0;
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *ctx)
{
	if (!strstr(info->dlpi_name, "libc.so.6"))
		return 0;
	*(uint64_t *)ctx = info->dlpi_addr;
	return 1;
}

int guest_dso_read_image(struct guest *g, uint32_t dso_id, uint64_t vaddr, void *buf, size_t len)
{
	uint64_t base = 0;

	if (dso_id != LIBC || !dl_iterate_phdr(find_libc, &base))
		return -ENODATA;
	return read_file("/proc/self/mem", base + vaddr, buf, len) == (ssize_t)len ? 0 : -EFAULT;
}

static struct guest_dso dso(uint32_t id, const char *path)
{
	struct guest_dso d = {.id = id, .path = path, .ino = id, .dev = 1};
	int len = id == EXE ? elf_build_id("/proc/self/exe", d.build_id)
		  : id == LIBC || id == REPLACED
			  ? elf_build_id("/lib/x86_64-linux-gnu/libc.so.6", d.build_id)
			  : 0;

	d.build_id_len = len > 0 ? (uint32_t)len : 0;
	if (id == REPLACED)
		d.build_id[0] ^= 1;
	return d;
}

static struct symtab *stored(const char *name, const uint8_t *id, uint8_t len)
{
	char path[PATH_MAX];
	struct symtab *t = NULL;

	if (!elfstore_get_named(dir, name, id, len, path))
		CHECK_EQ(symtab_read_file(&t, path, id, len, NULL), 0);
	return t;
}

static const char *at(const struct symtab *t, uint64_t off)
{
	const struct symbol *s = t ? symtab_find(t, off) : NULL;

	return s ? s->name : "-";
}

static void test_kernel(void)
{
	struct guest_event ev = {
		.type = GUEST_EVENT_KERNEL,
		.start = 0xffffffff81000000,
		.len = 0x1000000,
		.dso = {.path = "[kernel]"},
	};
	struct symsave *s = symsave_new(dir, "web1");
	struct symsave_stats st;
	uint8_t id[20], again[20], other[20];
	struct symtab *t;

	CHECK_EQ(symsave_kernel(s, guest, &ev, "/boot/[web1.kernel]", id), 20);
	t = stored("web1/boot/[web1.kernel]", id, 20);
	CHECK(t && t->build_id_made_up && !t->partial);
	CHECK_STR(at(t, 0), "_text");
	CHECK_STR(at(t, 0xfff), "_text");
	CHECK_STR(at(t, 0x1000), "func_a");
	CHECK_STR(at(t, 0x2000), "func_b");
	CHECK_STR(at(t, 0x2010), "-");
	CHECK_STR(at(t, 0x3000), "-");
	CHECK_STR(at(t, 0xfff000), "last");
	CHECK_STR(at(t, 0xffffff), "last");
	CHECK_STR(at(t, 0x1000000), "-");
	symtab_free(t);
	/* The same kernel somewhere else has the same id, another one has another. */
	CHECK_EQ(symsave_kernel(s, guest, &ev, "/boot/[web1.kernel]", again), 20);
	CHECK(!memcmp(id, again, 20));
	nr_kernel--;
	ev.len--;
	CHECK_EQ(symsave_kernel(s, guest, &ev, "/boot/[web1.kernel]", other), 20);
	CHECK(memcmp(id, other, 20) != 0);
	/* Its own id is kept; a module without symbols is counted. */
	ev.dso.build_id_len = 16;
	memset(ev.dso.build_id, 7, 16);
	CHECK_EQ(symsave_kernel(s, guest, &ev, "/boot/[web1.kernel]", other), 16);
	CHECK_EQ(other[15], 7);
	t = stored("web1/boot/[web1.kernel]", other, 16);
	CHECK(t && !t->build_id_made_up);
	symtab_free(t);
	ev.type = GUEST_EVENT_MODULE;
	ev.dso.path = "../../x";
	ev.dso.build_id_len = 0;
	CHECK_EQ(symsave_kernel(s, guest, &ev, "/lib/modules/../../x.ko", other), 20);
	symsave_get_stats(s, &st);
	CHECK_EQ(st.full, 4);
	CHECK_EQ(st.none, 1);
	CHECK_STR(st.last_error, "");
	symsave_free(s);
}

static void test_dsos(void)
{
	struct symsave *s = symsave_new(dir, "db1");
	struct guest_dso exe = dso(EXE, "/usr/bin/test"), libc = dso(LIBC, "/lib/libc.so.6"),
			 vdso = dso(VDSO, "[vdso]"), replaced = dso(REPLACED, "/lib/libc.so.7");
	struct symsave_stats st;
	uint8_t id[20], len;
	struct symtab *t;

	symsave_dso(s, guest, &exe, exe.path);
	len = symsave_build_id(s, &exe, id);
	t = stored("db1/usr/bin/test", id, len);
	CHECK(t && t->n > 20 && !t->partial && t->nr_loads > 0);
	symtab_free(t);
	/* A file that was replaced after it was mapped names nothing. */
	symsave_dso(s, guest, &replaced, replaced.path);
	len = symsave_build_id(s, &replaced, id);
	CHECK(!stored("db1/lib/libc.so.7", id, len));
	/* No page of the file, but its loaded image. */
	cached = false;
	symsave_dso(s, guest, &libc, libc.path);
	len = symsave_build_id(s, &libc, id);
	t = stored("db1/lib/libc.so.6", id, len);
	CHECK(t && t->partial && t->n > 1000);
	symtab_free(t);
	symsave_dso(s, guest, &vdso, vdso.path);
	symsave_get_stats(s, &st);
	CHECK_EQ(st.full, 1);
	CHECK_EQ(st.dynamic, 1);
	CHECK_EQ(st.none, 2);
	symsave_free(s);
}

static void test_made_up_ids(void)
{
	struct symsave *web = symsave_new(dir, "web1"), *db = symsave_new(dir, "db1");
	struct guest_dso a = dso(NOTHING, "/a"), b = dso(NOTHING, "/b");
	uint8_t id[4][20];

	CHECK_EQ(symsave_build_id(web, &a, id[0]), 20);
	CHECK_EQ(symsave_build_id(web, &b, id[1]), 20);
	CHECK_EQ(symsave_build_id(db, &a, id[2]), 20);
	a.size++;
	CHECK_EQ(symsave_build_id(web, &a, id[3]), 20);
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < i; k++)
			CHECK(memcmp(id[i], id[k], 20) != 0);
	a.size--;
	CHECK_EQ(symsave_build_id(web, &a, id[3]), 20);
	CHECK(!memcmp(id[0], id[3], 20));
	symsave_free(web);
	symsave_free(db);
}

/* A guest with endless symbols does not fill the disk. */
static void test_too_many(void)
{
	struct guest_event ev = {
		.type = GUEST_EVENT_KERNEL,
		.start = 0xffffffff81000000,
		.len = 0x1000000,
		.dso = {.path = "[kernel]", .build_id_len = 20},
	};
	struct symsave *s = symsave_new(dir, "big");
	struct symsave_stats st;
	uint8_t id[20];

	memset(long_name, 'x', sizeof(long_name) - 1);
	many = true;
	symsave_kernel(s, guest, &ev, "/boot/[big.kernel]", id);
	many = false;
	ev.dso.build_id[0] = 1;
	symsave_kernel(s, guest, &ev, "/boot/[big.kernel]", id);
	symsave_get_stats(s, &st);
	CHECK_EQ(st.none, 1);
	CHECK_EQ(st.full, 1);
	CHECK(strstr(st.last_error, "more than 256 MiB"));
	symsave_free(s);
}

static struct code_runs stored_code(const char *name, const uint8_t *id, uint8_t len)
{
	struct code_runs r = {0};
	char path[PATH_MAX];

	if (!codestore_get(dir, name, id, len, path))
		CHECK_EQ(codestore_read(&r, path, id, len, NULL, NULL), 0);
	return r;
}

/* Functions that samples hit, whole and once, and none else; programs' when their symbols are in.
 */
static void test_code(void)
{
	struct guest_event ev = {
		.type = GUEST_EVENT_KERNEL,
		.start = 0xffffffff81000000,
		.len = 0x1000000,
		.dso = {.path = "[kernel]"},
	};
	struct sample k = {.mode = SAMPLE_MODE_GUEST_KERNEL, .ip = 0xffffffff81001010};
	struct sample u = {.mode = SAMPLE_MODE_GUEST_USER, .has_dso = true, .dso = EXE};
	struct symsave *s = symsave_new(dir, "code1");
	struct guest_dso exe = dso(EXE, "/usr/bin/test");
	uint8_t id[20], exe_id[20], len;
	struct code_runs r;
	struct symtab *t;

	cached = true;
	symsave_kernel(s, guest, &ev, "kernel", id);
	symsave_hit(s, guest, &k);
	symsave_hit(s, guest, &k);
	k.ip = 0xffffffff81fff800; /* cannot be read */
	symsave_hit(s, guest, &k);
	symsave_reset(s);
	k.ip = 0xffffffff81002004; /* of a kernel that is gone */
	symsave_hit(s, guest, &k);

	len = symsave_build_id(s, &exe, exe_id);
	symtab_read_file(&t, "/proc/self/exe", NULL, 0, NULL);
	CHECK(t && t->n > 5);
	u.dso_offset = t ? t->syms[5].start : 0;
	symsave_hit(s, guest, &u);
	symsave_work(s, guest);
	symsave_dso(s, guest, &exe, exe.path);
	symsave_finish(s, guest);
	symsave_free(s);

	r = stored_code("code1/kernel", id, 20);
	CHECK_EQ(r.n, 1);
	CHECK_EQ(r.n ? r.run[0].start : 0, 0x1000);
	CHECK_EQ(r.bytes, 0x1000);
	CHECK_EQ(r.n ? r.run[0].bytes[0xfff] : 0, 1);
	code_runs_free(&r);
	r = stored_code("code1/usr/bin/test", exe_id, len);
	CHECK_EQ(r.n > 0 && t ? r.run[0].start : 0, t ? t->syms[5].start : 1);
	CHECK_EQ(r.bytes, t ? t->syms[5].end - t->syms[5].start : 1);
	code_runs_free(&r);
	symtab_free(t);
}

static void jit_say(const char *text)
{
	memcpy(jit_map + jit_size, text, strlen(text));
	jit_size += strlen(text);
}

/* A map that grows in the middle of a line, has a hole, names an address anew, begins anew. */
static void test_jit(void)
{
	const struct guest_dso mem = {.id = 77, .path = "//anon", .owner = 7, .owner_start = 5};
	struct symsave *s = symsave_new(dir, "jit1");
	struct guest_dso later = mem;
	struct symsave_stats st;
	uint8_t id[20], id2[20];
	struct symtab *t;

	later.owner_start = 6; /* another process of that number */
	symsave_build_id(s, &mem, id);
	symsave_build_id(s, &later, id2);
	CHECK(memcmp(id, id2, 20) != 0);
	symsave_dso(s, guest, &mem, "[JIT] tid 7");
	jit_say("7f0000001000 100 first\n7f0000002000 100 sec");
	symsave_work(s, guest);
	jit_say("ond\n7f0000001000 80 anew\nrubbish\n10 0 empty\nffffffffffffffff 2 over\n7f00");
	jit_size = 4090;
	jit_say("\n7f0000003000 10 cut off here");
	jit_hole = 4096;
	jit_size = 8200;
	jit_say("\n7f0000004000 10 with \x1b[31m signs\n7f0000005000 10 unfinis");
	usleep(1100000); /* it looks once a second */
	symsave_work(s, guest);
	jit_size = 0; /* an exec: the next program begins its own */
	jit_say("7f0000006000 10 next\n");
	symsave_finish(s, guest);
	symsave_get_stats(s, &st);
	CHECK_EQ(st.full, 1);
	CHECK_EQ(st.none, 0);
	symsave_free(s);

	t = stored("jit1/[JIT] tid 7", id, 20);
	CHECK_STR(at(t, 0x7f0000001010), "anew");
	CHECK_STR(at(t, 0x7f0000001090), "-");
	CHECK_STR(at(t, 0x7f00000020ff), "second");
	CHECK_STR(at(t, 0x7f0000003008), "-");
	CHECK_STR(at(t, 0x7f0000004008), "with \\x1b[31m signs");
	CHECK_STR(at(t, 0x7f0000005008), "-");
	CHECK_STR(at(t, 0x7f0000006008), "next");
	symtab_free(t);
}

/* What a recorder that is killed leaves behind: the first lines, those up to its process's end. */
static void test_jit_killed(void)
{
	const struct guest_dso mem = {.id = 79, .path = "//anon", .owner = 9, .owner_start = 5};
	struct symsave *s = symsave_new(dir, "jit3");
	struct symsave_stats st;
	struct symtab *t;
	uint8_t id[20];

	jit_size = 0;
	jit_hole = UINT64_MAX;
	symsave_build_id(s, &mem, id);
	symsave_dso(s, guest, &mem, "[JIT] tid 9");
	jit_say("7f0000001000 100 first\n");
	symsave_work(s, guest);
	t = stored("jit3/[JIT] tid 9", id, 20);
	CHECK_STR(at(t, 0x7f0000001010), "first");
	symtab_free(t);
	jit_say("7f0000001000 100 again\n7f0000002000 100 last\n");
	symsave_exit(s, 10); /* another one */
	symsave_exit(s, 9);
	symsave_work(s, guest);
	t = stored("jit3/[JIT] tid 9", id, 20);
	CHECK_STR(at(t, 0x7f0000001010), "again");
	CHECK_STR(at(t, 0x7f0000002010), "last");
	symtab_free(t);
	symsave_get_stats(s, &st);
	CHECK_EQ(st.full, 0);
	symsave_finish(s, guest);
	symsave_get_stats(s, &st);
	CHECK_EQ(st.full, 1);
	symsave_free(s);
}

static void test_made_code(void)
{
	const struct guest_dso mem = {.id = 80, .path = "//anon", .owner = 10, .owner_start = 5};
	struct sample u = {.mode = SAMPLE_MODE_GUEST_USER, .has_dso = true, .dso = mem.id};
	struct symsave *s = symsave_new(dir, "jit4");
	struct code_runs r;
	uint8_t id[20];

	jit_size = 0;
	symsave_build_id(s, &mem, id);
	u.dso_offset = 0x10; /* of a file that is none: the address counts */
	u.ip = MADE + 0x1010;
	symsave_hit(s, guest, &u);
	symsave_work(s, guest);
	symsave_dso(s, guest, &mem, "[JIT] tid 10");
	symsave_work(s, guest);
	symsave_finish(s, guest);
	symsave_free(s);
	r = stored_code("jit4/[JIT] tid 10", id, 20);
	CHECK_EQ(r.bytes, 2 * 4096);
	CHECK(code_runs_find(&r, MADE) && code_runs_find(&r, MADE)->bytes[7] == 0x90);
	CHECK(code_runs_find(&r, MADE + 4096) && code_runs_find(&r, MADE + 0x1fff));
	CHECK(!code_runs_find(&r, MADE + 0x2000));
	code_runs_free(&r);
}

static void test_no_jit_map(void)
{
	const struct guest_dso mem = {.id = 78, .path = "//anon", .owner = 8};
	struct symsave *s = symsave_new(dir, "jit2");
	struct symsave_stats st;

	jit_file = false;
	symsave_dso(s, guest, &mem, "[JIT] tid 8");
	symsave_work(s, guest);
	symsave_finish(s, guest);
	symsave_get_stats(s, &st);
	CHECK_EQ(st.none, 1);
	symsave_free(s);
}

/* No store, and one that cannot be written: ids all the same. */
static void test_no_store(void)
{
	struct symsave *s = symsave_new(NULL, "web1"), *full = symsave_new("/proc/x", "web1");
	struct guest_dso exe = dso(EXE, "/usr/bin/test");
	struct symsave_stats st;
	uint8_t id[20];

	cached = true;
	symsave_dso(s, guest, &exe, exe.path);
	CHECK(symsave_build_id(s, &exe, id) > 0);
	symsave_dso(full, guest, &exe, exe.path);
	symsave_get_stats(full, &st);
	CHECK_EQ(st.none, 1);
	CHECK(strstr(st.last_error, "/proc/x"));
	symsave_free(s);
	symsave_free(full);
	symsave_free(NULL);
}

int main(void)
{
	char cmd[128];

	if (!mkdtemp(dir))
		return 1;
	test_kernel();
	test_dsos();
	test_made_up_ids();
	test_code();
	test_jit();
	test_jit_killed();
	test_made_code();
	test_no_jit_map();
	test_no_store();
	test_too_many();
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd) ? 1 : test_done();
}
