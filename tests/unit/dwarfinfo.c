// SPDX-License-Identifier: GPL-2.0-only
/*
 * Source lines and inlined functions: of this very program, and of its file damaged.
 *
 *   dwarfinfo lookup FILE [ALT]   for each hexadecimal address of standard input what addr2line
 *                                 -a -f -i prints: the address, then two lines for each function
 *   dwarfinfo kernel VMLINUX      the same by way of a profile of a guest whose kernel runs
 *                                 elsewhere than it was linked (KASLR)
 *   dwarfinfo program FILE        as lookup, but as a profile finds it: by way of the program's
 * path
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/dwarfinfo.h"
#include "symbolize/machine.h"
#include "tests/unit/session_make.h"
#include "tests/unit/test.h"

static int open_fd(struct dwarf_info **d, int fd, int alt_fd, struct vmprof_err *err)
{
	struct elf_file f;
	int ret = elf_file_open(&f, elf_read_fd, &fd, (uint64_t)lseek(fd, 0, SEEK_END), "file",
				true, err);

	*d = NULL;
	if (!ret) {
		ret = dwarf_info_open(d, &f, fd, alt_fd, err);
		elf_file_close(&f);
	}
	return ret;
}

static int open_info(struct dwarf_info **d, const char *path, const char *alt,
		     struct vmprof_err *err)
{
	int fd = open(path, O_RDONLY), alt_fd = alt ? open(alt, O_RDONLY) : -1;
	int ret = open_fd(d, fd, alt_fd, err);

	close(fd);
	if (alt)
		close(alt_fd);
	return ret;
}

/* Files that units were split off to, for addr2line's sake where it looks for them. */
static int open_split(void *ctx, const char *name, const char *dir, unsigned i)
{
	char path[4096];
	int fd;

	if (!name)
		snprintf(path, sizeof(path), "%s.dwp", (const char *)ctx);
	else
		snprintf(path, sizeof(path), "%s%s%s", *name != '/' && dir ? dir : "",
			 *name != '/' && dir ? "/" : "", name);
	fd = i ? -ERANGE : open(path, O_RDONLY);
	return fd == -1 ? -ENOENT : fd;
}

static int lookup(const char *path, const char *alt)
{
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	struct dwarf_info *d;
	struct vmprof_err err;
	char line[64];

	if (open_info(&d, path, alt, &err)) {
		fprintf(stderr, "dwarfinfo: %s\n", err.msg);
		return 1;
	}
	dwarf_info_set_split(d, open_split, (void *)path);
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t addr = strtoull(line, NULL, 16);
		size_t n = dwarf_info_find(d, addr, frames);

		printf("0x%016" PRIx64 "\n", addr);
		for (size_t i = 0; i < n; i++)
			printf("%s\n%s:%u\n", frames[i].function ? frames[i].function : "??",
			       frames[i].file ? frames[i].file : "??", frames[i].line);
		if (!n)
			puts("??\n??:0");
	}
	dwarf_info_close(d);
	return 0;
}

static void print_source(const struct location *loc, const struct source *src)
{
	for (size_t i = 0; src && i < src->n; i++) {
		const struct symbol *sym = src->frames[i].sym ? src->frames[i].sym : loc->sym;

		printf("%s\n%s:%u\n", sym ? sym->name : "??",
		       src->frames[i].file ? src->frames[i].file : "??", src->frames[i].line);
	}
	if (!src || !src->n)
		puts("??\n??:0");
}

static int kernel(const char *path)
{
	const uint64_t linked = 0xffffffff81000000, runs = 0xffffffffa0000000;
	struct symbol_paths p = {.vmlinux = {{NULL, path}}, .nr_vmlinux = 1, .store = "none"};
	struct session *s = session_new(&p);
	char line[64];

	map(s, GK, WEB, 0, runs, 64 << 20, 0, "[guest.kernel.kallsyms]_text", NULL);
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t addr = strtoull(line, NULL, 16);
		struct location loc = resolve(s, WEB, 1, GK, addr - linked + runs);

		printf("0x%016" PRIx64 "\n", addr);
		print_source(&loc, loc.sym ? session_source(s, loc.dso, loc.sym->start + loc.offset)
					   : NULL);
	}
	session_free(s);
	return 0;
}

/* Addresses are those of a program that is mapped where it was linked to be. */
static int program(const char *path)
{
	struct symbol_paths p = {.store = "none"};
	struct session *s = session_new(&p);
	struct vmprof_err err;
	struct elf_file f;
	int fd = open(path, O_RDONLY);
	char line[64];

	if (elf_file_open(&f, elf_read_fd, &fd, (uint64_t)lseek(fd, 0, SEEK_END), path, true, &err))
		return 1;
	for (uint32_t i = 0; i < f.nr_loads; i++)
		if (f.loads[i].flags & PF_X)
			map(s, HU, 0, 1, f.loads[i].vaddr, f.loads[i].size, f.loads[i].offset, path,
			    NULL);
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t addr = strtoull(line, NULL, 16);
		struct location loc = resolve(s, 0, 1, HU, addr);
		uint64_t at = loc.sym ? loc.sym->start + loc.offset : loc.offset;

		printf("0x%016" PRIx64 "\n", addr);
		print_source(&loc, loc.dso ? session_source(s, loc.dso, at) : NULL);
	}
	elf_file_close(&f);
	close(fd);
	session_free(s);
	return 0;
}

/* ---------- what is tested ---------- */

static volatile unsigned sink;

static inline __attribute__((always_inline)) void inner(unsigned n)
{
	while (n--)
		sink += sink * 3 + n;
}

static inline __attribute__((always_inline)) void middle(unsigned n)
{
	inner(n + 1);
}

static __attribute__((noinline)) void outer(unsigned n)
{
	middle(n);
	sink++;
}

static int take_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
	*(uint64_t *)bias = info->dlpi_addr;
	return 1; /* the program is the first one */
}

static uint64_t address_of(void (*fn)(unsigned))
{
	uint64_t bias = 0;

	dl_iterate_phdr(take_bias, &bias);
	return (uint64_t)(uintptr_t)fn - bias;
}

static bool is_here(const struct dwarf_frame *f)
{
	return f->file && f->line && strstr(f->file, "dwarfinfo.c");
}

/* One of its instructions at least is the innermost function's. */
static void test_own(void)
{
	struct dwarf_frame frames[DWARF_MAX_FRAMES], place;
	uint64_t start = address_of(outer);
	struct dwarf_info *d;
	struct vmprof_err err;
	bool found = false;
	size_t n;

	outer(3);
	CHECK_EQ(open_info(&d, "/proc/self/exe", NULL, &err), 0);
	n = dwarf_info_find(d, start, frames);
	CHECK(n >= 1);
	CHECK_STR(frames[n - 1].function, "outer");
	CHECK(is_here(&frames[0]));
	for (uint64_t at = start; at < start + 64 && !found; at++) {
		n = dwarf_info_find(d, at, frames);
		if (n != 3)
			continue;
		found = true;
		CHECK_STR(frames[0].function, "inner");
		CHECK_STR(frames[1].function, "middle");
		CHECK_STR(frames[2].function, "outer");
		CHECK(is_here(&frames[0]) && is_here(&frames[1]) && is_here(&frames[2]));
		CHECK(frames[0].line < frames[1].line && frames[1].line < frames[2].line);
		CHECK(dwarf_info_line(d, at, &place) && place.line == frames[0].line);
	}
	CHECK(found);
	CHECK_EQ(dwarf_info_find(d, 0, frames), 0);
	CHECK_EQ(dwarf_info_find(d, UINT64_MAX, frames), 0);
	dwarf_info_close(d);
}

static uint32_t draw(uint32_t *state)
{
	return *state = *state * 1664525 + 1013904223;
}

/* Ends, and reads nothing outside, whatever bytes there are where the DWARF is. */
static void test_damaged(void)
{
	int in = open("/proc/self/exe", O_RDONLY), fd;
	size_t size = (size_t)lseek(in, 0, SEEK_END);
	uint64_t start = address_of(outer);
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	uint8_t *bytes = malloc(size);
	uint32_t state = 1;
	struct dwarf_info *d;
	struct vmprof_err err;

	CHECK(bytes && pread(in, bytes, size, 0) == (ssize_t)size);
	for (int round = 0; round < 60; round++) {
		fd = memfd_create("damaged", MFD_CLOEXEC);
		CHECK(write(fd, bytes, size) == (ssize_t)size);
		for (int i = 0; i < 1 << round % 12; i++) {
			/* the first part is headers and code */
			size_t at = size / 4 + draw(&state) % (size - size / 4);
			uint8_t byte = (uint8_t)(draw(&state) >> 24);

			CHECK(pwrite(fd, &byte, 1, (off_t)at) == 1);
		}
		if (!open_fd(&d, fd, -1, &err))
			for (uint64_t at = start; at < start + 64; at += 4)
				dwarf_info_find(d, at, frames);
		else
			CHECK(err.code && *err.msg);
		dwarf_info_close(d);
		close(fd);
	}
	free(bytes);
	close(in);
}

int main(int argc, char **argv)
{
	struct dwarf_info *d;
	struct vmprof_err err;

	if (argc > 2 && !strcmp(argv[1], "lookup"))
		return lookup(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "kernel"))
		return kernel(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "program"))
		return program(argv[2]);
	if (open_info(&d, "/proc/self/exe", NULL, &err) == -ENOSYS)
		test_skip(err.msg);
	dwarf_info_close(d);
	test_own();
	test_damaged();
	return test_done();
}
