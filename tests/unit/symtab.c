// SPDX-License-Identifier: GPL-2.0-only
/*
 * Symbol tables: which alias is chosen and where a symbol ends, symbols inside of others, readable
 * names; this program's own symbols by file, with holes, and by its loaded image.
 *   symtab list FILE     helper of tests/cli/symbols.bats: "START END NAME" a line
 *   symtab demangle      the readable form of each line of standard input
 *   symtab lookup FILE   the name at each hexadecimal offset of standard input; "-": none
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/stat.h>

#include "symbolize/demangle.h"
#include "symbolize/symtab.h"
#include "tests/unit/test.h"

static const char *at(const struct symtab *t, uint64_t off)
{
	const struct symbol *s = symtab_find(t, off);

	return s ? s->name : "-";
}

static void test_aliases(void)
{
	static const struct {
		const char *a, *b, *want;
		char bind_a, bind_b;
		uint64_t size_a, size_b;
	} cases[] = {
		{"without_size", "with", "with", 'g', 'l', 0, 8},
		{"weak_and_long", "strong", "strong", 'w', 'l', 8, 8},
		{"global", "localname", "global", 'g', 'l', 8, 8},
		{"__under", "plain", "plain", 'g', 'g', 8, 8},
		{"short", "the_longer", "the_longer", 'g', 'g', 8, 8},
		{"first", "later", "first", 'g', 'g', 8, 8},
		{"SyS_read", "sys_read", "sys_read", 'g', 'g', 8, 8},
		/* by what is shown: foo::~foo() of D1 and D2 read the same, and no underscore
		   counts */
		{"_ZN3fooD2Ev", "_ZN3fooD1Ev", "_ZN3fooD2Ev", 'w', 'w', 8, 8},
		{"_Z20a_function_of_length", "a_functio", "_Z20a_function_of_length", 'g', 'g', 8,
		 8},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct symtab *t = symtab_new();

		symtab_add(t, 0x100, 0x100 + cases[i].size_a, cases[i].a, cases[i].bind_a);
		symtab_add(t, 0x100, 0x100 + cases[i].size_b, cases[i].b, cases[i].bind_b);
		symtab_finish(t);
		CHECK_EQ(t->n, 1);
		CHECK_STR(at(t, 0x100), cases[i].want);
		symtab_free(t);
	}
}

static void test_ends(void)
{
	struct symtab *t = symtab_new();

	symtab_add(t, 0x3001, 0x3001, "last", 'g');
	symtab_add(t, 0x1000, 0x1010, "sized", 'g');
	symtab_add(t, 0x2000, 0x2000, "to_next", 'g');
	symtab_add(t, UINT64_MAX - 5, UINT64_MAX - 5, "at_the_end", 'g');
	symtab_finish(t);
	CHECK_STR(at(t, 0xfff), "-");
	CHECK_STR(at(t, 0x100f), "sized");
	CHECK_STR(at(t, 0x1010), "-");
	CHECK_STR(at(t, 0x3000), "to_next");
	CHECK_STR(at(t, 0x3001), "last");
	CHECK_STR(at(t, UINT64_MAX - 1), "at_the_end");
	symtab_free(t);

	t = symtab_new();
	symtab_add(t, 0x3001, 0x3001, "last", 'g');
	symtab_finish(t);
	CHECK_EQ(t->syms[0].end, 0x5000);
	symtab_free(t);

	t = symtab_new();
	symtab_finish(t);
	CHECK(!symtab_find(t, 0));
	symtab_free(t);
}

static void test_nested(void)
{
	struct symtab *t = symtab_new();

	symtab_add(t, 0x1000, 0x2000, "outer", 'g');
	symtab_add(t, 0x1100, 0x1800, "middle", 'g');
	symtab_add(t, 0x1200, 0x1210, "inner", 'g');
	symtab_add(t, 0x1300, 0x1310, "other", 'g');
	symtab_add(t, 0x3000, 0x3010, "behind", 'g');
	symtab_finish(t);
	CHECK_STR(at(t, 0x1000), "outer");
	CHECK_STR(at(t, 0x1200), "inner");
	CHECK_STR(at(t, 0x1210), "middle");
	CHECK_STR(at(t, 0x1320), "middle");
	CHECK_STR(at(t, 0x1800), "outer");
	CHECK_STR(at(t, 0x2000), "-");
	CHECK_STR(at(t, 0x3000), "behind");
	CHECK_STR(at(t, 0x3010), "-");
	symtab_free(t);
}

/* Large tables have an index: beside a plain search, with gaps, crowds and one symbol far away. */
static void test_many(void)
{
	struct symtab *t = symtab_new();
	unsigned seed = 1;
	uint64_t at = 0x1000;

	for (int i = 0; i < 3000; i++) {
		seed = seed * 1103515245 + 12345;
		symtab_add(t, at, at + 1 + (seed >> 16) % 24, "f", 'g');
		at += 1 + (seed >> 20) % (i % 100 ? 16 : 4000);
	}
	symtab_add(t, 1ull << 40, (1ull << 40) + 16, "far", 'g');
	symtab_finish(t);
	for (uint64_t o = 0xff0; o < at + 64; o++) {
		const struct symbol *want = NULL;

		for (size_t i = 0; i < t->n && t->syms[i].start <= o; i++)
			if (t->syms[i].end > o)
				want = &t->syms[i];
		CHECK(symtab_find(t, o) == want);
		if (o % 64 == 63)
			o += 32 * (seed % 64);
	}
	CHECK_STR(symtab_find(t, (1ull << 40) + 15)->name, "far");
	CHECK(!symtab_find(t, (1ull << 40) + 16));
	CHECK(!symtab_find(t, UINT64_MAX));
	CHECK(!symtab_find(t, 0));
	symtab_free(t);
}

static void test_names(void)
{
	static const struct {
		const char *mangled, *readable;
	} cases[] = {
		{"main", NULL},
		{"_start", NULL},
		{"_Z", NULL},
		{"_ZN3foo3barEi", "foo::bar"},
		{"_ZN3foo3barEi@plt", "foo::bar@plt"},
		{"_ZNSt6vectorIiSaIiEE9push_backEOi",
		 "std::vector<int, std::allocator<int> >::push_back"},
		{"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
		{"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar"
		 "17h930b740aa94f1d3aE",
		 "<Test + 'static as foo::Bar<Test>>::bar"},
		{"_ZN3foo17h05af221e174051e9E.llvm.11", "foo"},
		/* of the v0 scheme; those with generics, paths and punycode are from its RFC 2603
		 */
		{"_RNvCskwGfYPst2Cb_3foo3bar", "foo::bar"},
		{"_RNvC6_123foo3bar", "123foo::bar"},
		{"_RINvNtC3std3mem8align_ofjE", "std::mem::align_of::<usize>"},
		{"_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_", "cc::spawn::{closure#0}::{closure#0}"},
		{"_RNvMs_C1aINtB4_1SpE1f", "<a::S<_>>::f"},
		{"_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
		 "utf8_idents::\u10e1\u10d0\u10ed\u10db\u10d4\u10da\u10d0\u10d3_"
		 "\u10d2\u10d4\u10db\u10e0\u10d8\u10d4\u10da\u10d8_"
		 "\u10e1\u10d0\u10d3\u10d8\u10da\u10d8"},
		/* of Go, of linkers, of other languages: as they are */
		{"main.sum[go.shape.int_0]", NULL},
		{"_GLOBAL__sub_I_foo.cpp", NULL},
		{"_D3foo3barFZv", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *s = demangle(cases[i].mangled);

		if (cases[i].readable && HAVE_LIBIBERTY)
			CHECK_STR(s, cases[i].readable);
		else
			CHECK(!s);
		free(s);
	}
}

/* f<p<int, int>, f<p, p>, ...>: each argument stands for two of the one before. */
static void test_long_name(void)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[4096] = "_Z1fI1pIiiE", *s;
	size_t n = strlen(name);

	for (int i = 0; i < 36; i++)
		n += (size_t)sprintf(name + n, "S_IS%c_S%c_E", digits[i], digits[i]);
	strcpy(name + n, "EvT_");
	s = demangle(name);
	CHECK(!s);
	free(s);
	/* With a dozen of them it is a name. */
	strcpy(name + strlen("_Z1fI1pIiiE") + 12 * strlen("S_IS0_S0_E"), "EvT_");
	s = demangle(name);
	CHECK(!HAVE_LIBIBERTY || (s && strlen(s) > 1000));
	free(s);
}

int a_function_of_this_test(int x);

__attribute__((noinline, used)) int a_function_of_this_test(int x)
{
	__asm__ volatile("");
	return x + 1;
}

/* Where this program's file offset of an address is, by its own maps. */
static uint64_t own_offset(const void *p)
{
	uint64_t start, end, off, want = (uintptr_t)p;
	char line[512], prot[8];
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s %lx", &start, &end, prot, &off) == 4 &&
		    want >= start && want < end) {
			fclose(f);
			return want - start + off;
		}
	if (f)
		fclose(f);
	return 0;
}

static void test_own_file(void)
{
	uint64_t off = own_offset((const void *)(uintptr_t)a_function_of_this_test);
	static const uint8_t other[20] = {1};
	uint8_t id[20];
	struct vmprof_err err;
	struct symtab *t;
	int len;

	CHECK_EQ(symtab_read_file(&t, "/proc/self/exe", NULL, 0, &err), 0);
	CHECK_STR(at(t, off), "a_function_of_this_test");
	CHECK_STR(at(t, off + 2), "a_function_of_this_test");
	CHECK(!t->partial);
	CHECK(t->nr_loads > 0);
	symtab_free(t);
	len = elf_build_id("/proc/self/exe", id);
	CHECK(len > 0);
	CHECK_EQ(symtab_read_file(&t, "/proc/self/exe", id, (uint32_t)len, &err), 0);
	symtab_free(t);
	CHECK_EQ(symtab_read_file(&t, "/proc/self/exe", other, 20, &err), -ESTALE);
	CHECK(strstr(err.msg, "build id"));
	CHECK_EQ(symtab_read_file(&t, "/proc/self/status", NULL, 0, &err), -EBADMSG);
	CHECK_EQ(symtab_read_file(&t, "/no/such", NULL, 0, &err), -ENOENT);
	CHECK_EQ(symtab_read_file(&t, "/", NULL, 0, &err), -EINVAL);
}

/* A file in a page cache: pages from hole_from on are not there, but for the last ones. */
struct holes {
	int fd;
	uint64_t from, to;
	unsigned reads;
};

static ssize_t read_holes(void *ctx, uint64_t off, void *buf, size_t len)
{
	struct holes *h = ctx;

	h->reads++;
	if (off < h->to && off + len > h->from)
		return -ENODATA;
	/* short, as a read may be */
	return pread(h->fd, buf, len > 100000 ? 100000 : len, (off_t)off);
}

static void test_holes(void)
{
	struct holes h = {.fd = open("/proc/self/exe", O_RDONLY)};
	struct elf_file f;
	const struct elf_section *sec;
	struct vmprof_err err;
	struct symtab *t;
	struct stat st;

	CHECK_EQ(fstat(h.fd, &st), 0);
	CHECK_EQ(symtab_read_fn(&t, read_holes, &h, (uint64_t)st.st_size, "exe", &err), 0);
	CHECK(!t->partial);
	symtab_free(t);
	CHECK_EQ(elf_file_open(&f, read_holes, &h, (uint64_t)st.st_size, "exe", true, &err), 0);
	sec = elf_file_section(&f, ".symtab", SHT_SYMTAB);
	CHECK(sec != NULL);
	if (sec) {
		h.from = sec->offset;
		h.to = sec->offset + 1;
	}
	elf_file_close(&f);
	/* .dynsym has only what other files use, and is marked so. */
	CHECK_EQ(symtab_read_fn(&t, read_holes, &h, (uint64_t)st.st_size, "exe", &err), 0);
	CHECK(t && t->partial);
	symtab_free(t);
	h.from = 4096;
	h.to = UINT64_MAX;
	CHECK_EQ(symtab_read_fn(&t, read_holes, &h, (uint64_t)st.st_size, "exe", &err), -ENODATA);
	h.from = 0;
	CHECK_EQ(symtab_read_fn(&t, read_holes, &h, (uint64_t)st.st_size, "exe", &err), -ENODATA);
	close(h.fd);
}

struct loaded {
	int mem;
	uint64_t bias;
};

static ssize_t read_loaded(void *ctx, uint64_t off, void *buf, size_t len)
{
	struct loaded *l = ctx;
	ssize_t n = pread(l->mem, buf, len, (off_t)(l->bias + off));

	return n == (ssize_t)len ? n : -EFAULT;
}

struct find_lib {
	const char *name;
	uint64_t bias;
	char path[512];
};

static int find_lib(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct find_lib *f = ctx;

	if (!strstr(info->dlpi_name, f->name))
		return 0;
	f->bias = info->dlpi_addr;
	snprintf(f->path, sizeof(f->path), "%s", info->dlpi_name);
	return 1;
}

/* The loaded libc against its file's .dynsym: the dynamic linker has relocated its pointers. */
static void test_image(void)
{
	struct find_lib lib = {.name = "libc.so.6"};
	struct loaded l = {.mem = open("/proc/self/mem", O_RDONLY)};
	struct symtab *image, *file;
	struct vmprof_err err;
	size_t found = 0, plt = 0;
	void *libc = dlopen(lib.name, RTLD_NOW);

	CHECK(dl_iterate_phdr(find_lib, &lib) == 1);
	l.bias = lib.bias;
	CHECK_EQ(symtab_read_image(&image, read_loaded, &l, "libc", &err), 0);
	CHECK_EQ(symtab_read_file(&file, lib.path, NULL, 0, &err), 0);
	if (!image || !file)
		return;
	CHECK(image->partial);
	CHECK(image->build_id_len > 0 && !memcmp(image->build_id, file->build_id, 20));
	CHECK_STR(at(image, own_offset(dlsym(libc, "qsort"))), "qsort");
	for (size_t i = 0; i < file->n; i++) {
		const struct symbol *s = symtab_find(image, file->syms[i].start);

		if (strstr(file->syms[i].name, "@plt"))
			plt++;
		else if (s && !strcmp(s->name, file->syms[i].name) && s->end == file->syms[i].end)
			found++;
	}
	/* Stripped, the file has no more. */
	if (file->partial)
		CHECK_EQ(found, file->n - plt);
	symtab_free(image);
	symtab_free(file);
	dlclose(libc);
	/* Nothing there, and rubbish there. */
	l.bias = (uintptr_t)&l & ~4095ull;
	CHECK(symtab_read_image(&image, read_loaded, &l, "stack", &err) < 0);
	close(l.mem);
}

/* Every byte of a small file changed, and the file cut everywhere: an answer, and no more. */
static void test_damaged(void)
{
	char path[] = "/tmp/vmprof-symtab-XXXXXX", dir[] = "/tmp/vmprof-symstore-XXXXXX", elf[4096];
	static const uint8_t id[20] = {0xaa, 1};
	struct symtab *t = symtab_new();
	struct vmprof_err err;
	uint8_t file[4096];
	int fd, in;
	ssize_t n;

	if (!mkdtemp(dir))
		return;
	symtab_add(t, 0x1000, 0x1010, "one", 'g');
	symtab_add(t, 0x2000, 0x2010, "two", 'l');
	symtab_finish(t);
	CHECK_EQ(elfstore_put(dir, "x", id, 20, t, &err), 0);
	symtab_free(t);
	CHECK_EQ(elfstore_get(dir, id, 20, elf), 0);
	in = open(elf, O_RDONLY);
	n = read(in, file, sizeof(file));
	close(in);
	CHECK(n > 500 && n < (ssize_t)sizeof(file));
	if (n <= 0)
		return;
	fd = mkstemp(path);
	for (ssize_t i = 0; i < n; i++) {
		for (int bit = 0; bit < 3; bit++) {
			uint8_t old = file[i];

			file[i] = bit == 0 ? 0xff : bit == 1 ? 0 : old ^ 0x80;
			CHECK_EQ(pwrite(fd, file, (size_t)n, 0), n);
			if (!symtab_read_file(&t, path, NULL, 0, NULL))
				symtab_find(t, 0x1004);
			symtab_free(t);
			file[i] = old;
		}
	}
	CHECK_EQ(pwrite(fd, file, (size_t)n, 0), n);
	while (n-- > 0) {
		CHECK_EQ(ftruncate(fd, n), 0);
		symtab_read_file(&t, path, NULL, 0, NULL);
		symtab_free(t);
	}
	close(fd);
	unlink(path);
	snprintf(elf, sizeof(elf), "rm -rf '%s'", dir);
	CHECK_EQ(system(elf), 0);
}

static int list(const char *path)
{
	struct vmprof_err err;
	struct symtab *t;

	if (symtab_read_file(&t, path, NULL, 0, &err)) {
		fprintf(stderr, "symtab: %s\n", err.msg);
		return 1;
	}
	for (size_t i = 0; i < t->n; i++)
		printf("%016" PRIx64 " %016" PRIx64 " %s\n", t->syms[i].start, t->syms[i].end,
		       t->syms[i].name);
	symtab_free(t);
	return 0;
}

static int lookup(const char *path)
{
	struct vmprof_err err;
	struct symtab *t;
	char line[64];

	if (symtab_read_file(&t, path, NULL, 0, &err)) {
		fprintf(stderr, "symtab: %s\n", err.msg);
		return 1;
	}
	while (fgets(line, sizeof(line), stdin))
		puts(at(t, strtoull(line, NULL, 16)));
	symtab_free(t);
	return 0;
}

static int demangle_lines(void)
{
	char line[32768];

	while (fgets(line, sizeof(line), stdin)) {
		char *readable;

		line[strcspn(line, "\n")] = 0;
		readable = demangle(line);
		puts(readable ? readable : line);
		free(readable);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "demangle"))
		return demangle_lines();
	if (argc == 3 && !strcmp(argv[1], "lookup"))
		return lookup(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "list"))
		return list(argv[2]);
	test_aliases();
	test_ends();
	test_nested();
	test_many();
	test_names();
	test_long_name();
	test_own_file();
	test_holes();
	test_image();
	test_damaged();
	return test_done();
}
