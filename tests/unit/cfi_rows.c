// SPDX-License-Identifier: GPL-2.0-only
/*
 * Call frame information of real programs, row by row against what binutils' readelf makes of it:
 * .eh_frame by its index and without, .debug_frame, and of aarch64.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "unwind/cfi.h"

struct file {
	const uint8_t *data;
	size_t size;
	uint64_t hdr;
	enum unwind_arch arch;
	struct cfi *by_hdr, *eh_frame, *debug_frame; /* NULL: it has none */
};

static int read_file(void *ctx, uint64_t vaddr, void *buf, size_t len)
{
	const struct file *f = ctx;
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)f->data;
	const Elf64_Phdr *p = (const Elf64_Phdr *)(f->data + e->e_phoff);

	for (unsigned i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && vaddr - p[i].p_vaddr < p[i].p_filesz &&
		    len <= p[i].p_filesz - (vaddr - p[i].p_vaddr)) {
			memcpy(buf, f->data + p[i].p_offset + (vaddr - p[i].p_vaddr), len);
			return 0;
		}
	return -EFAULT;
}

static const Elf64_Shdr *section(const struct file *f, const char *name)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)f->data;
	const Elf64_Shdr *s = (const Elf64_Shdr *)(f->data + e->e_shoff);

	for (unsigned i = 0; i < e->e_shnum; i++)
		if (!strcmp((const char *)f->data + s[e->e_shstrndx].sh_offset + s[i].sh_name,
			    name))
			return &s[i];
	return NULL;
}

static struct cfi *of_section(const struct file *f, const char *name, bool debug_frame)
{
	const Elf64_Shdr *s = section(f, name);
	struct cfi_section copy = {.debug_frame = debug_frame};

	if (!s || s->sh_type == SHT_NOBITS)
		return NULL;
	copy.bytes = malloc(s->sh_size + 1);
	memcpy(copy.bytes, f->data + s->sh_offset, s->sh_size);
	copy.size = s->sh_size;
	copy.vaddr = debug_frame ? 0 : s->sh_addr;
	return cfi_new_section(f->arch, &copy);
}

static bool open_file(struct file *f, const char *path)
{
	int fd = open(path, O_RDONLY);
	const Elf64_Ehdr *e;
	const Elf64_Phdr *p;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return false;
	f->size = (size_t)st.st_size;
	f->data = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	e = (const Elf64_Ehdr *)f->data;
	f->arch = e->e_machine == EM_AARCH64 ? UNWIND_AARCH64 : UNWIND_X86_64;
	p = (const Elf64_Phdr *)(f->data + e->e_phoff);
	for (unsigned i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_GNU_EH_FRAME)
			f->hdr = p[i].p_vaddr;
	f->by_hdr = f->hdr ? cfi_new(f->arch, f->hdr) : NULL;
	f->eh_frame = of_section(f, ".eh_frame", false);
	f->debug_frame = of_section(f, ".debug_frame", true);
	return true;
}

static void close_file(struct file *f)
{
	cfi_free(f->by_hdr);
	cfi_free(f->eh_frame);
	cfi_free(f->debug_frame);
	munmap((void *)(uintptr_t)f->data, f->size);
}

enum { MAX_COLUMNS = 64 };

/* readelf's names of the registers, by number; "ra" stands for the return address's own column. */
static void name_of(enum unwind_arch arch, int reg, char name[8])
{
	static const char *const x86[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"};

	if (reg == (arch == UNWIND_AARCH64 ? 30 : 16))
		strcpy(name, "ra");
	else if (arch == UNWIND_AARCH64)
		snprintf(name, 8, reg == 31 ? "sp" : "x%d", reg);
	else
		snprintf(name, 8, reg < 8 ? x86[reg] : "r%d", reg);
}

static int number_of(enum unwind_arch arch, const char *name)
{
	char other[8];

	for (int i = 0; i < (arch == UNWIND_AARCH64 ? 32 : 17); i++) {
		name_of(arch, i, other);
		if (!strcmp(name, other))
			return i;
	}
	return -1;
}

/* In readelf's words. */
static const char *cfa_text(enum unwind_arch arch, const struct unwind_row *r, char *buf,
			    size_t size)
{
	char base[8];

	if (r->cfa_deref || r->cfa_base >= UNWIND_REGS)
		return r->cfa_deref ? "exp" : "none";
	name_of(arch, r->cfa_base, base);
	snprintf(buf, size, "%s%+d", base, r->cfa_offset);
	return buf;
}

static const char *rule_text(const struct unwind_rule *r, char *buf, size_t size)
{
	switch (r->place) {
	case UNWIND_SAME:
	case UNWIND_UNDEFINED:
		return "u"; /* readelf has one letter for what is not said and for no value */
	case UNWIND_AT:
		snprintf(buf, size, "c%+d", r->offset);
		return r->base == UNWIND_CFA ? buf : "exp";
	case UNWIND_IS:
		if (r->base != UNWIND_CFA && r->offset)
			return "vexp";
		if (r->base == UNWIND_CFA)
			snprintf(buf, size, "v%+d", r->offset);
		else
			snprintf(buf, size, "r%u", r->base);
		return buf;
	default:
		return "none";
	}
}

struct columns {
	int reg[MAX_COLUMNS]; /* whose rule a word of a line is; -1: nobody's */
	uint32_t named;	      /* registers that have a column */
};

/* "   LOC   CFA   rbx   rbp   ra" */
static struct columns parse_columns(enum unwind_arch arch, char *line)
{
	struct columns c = {.named = 0};
	int n = 0;

	for (char *w = strtok(line, " \n"); w && n < MAX_COLUMNS; w = strtok(NULL, " \n"), n++) {
		c.reg[n] = number_of(arch, w);
		if (c.reg[n] >= 0)
			c.named |= 1u << c.reg[n];
	}
	for (; n < MAX_COLUMNS; n++)
		c.reg[n] = -1;
	return c;
}

struct counts {
	unsigned rows, wrong, expressions;
};

/* Both as text. An expression of ours is worked out where readelf has "exp". */
static bool same(const char *theirs, const char *ours, struct counts *n)
{
	bool expression = !strcmp(theirs, "exp") || !strcmp(theirs, "vexp");

	n->expressions += expression;
	if (!strcmp(theirs, "s")) /* said to be unchanged */
		theirs = "u";
	return expression ? strcmp(ours, "none") : !strcmp(theirs, ours);
}

/*
 * The one expression of most programs is that of their PLT, whose slots are 16 bytes and push a
 * word in their eleventh: worked out for the address, it is rsp+8 before and rsp+16 behind.
 */
static bool is_plt_row(struct cfi *cfi, struct file *f, uint64_t loc)
{
	const uint8_t sp = unwind_abis[UNWIND_X86_64].sp;
	struct cfi_place before, behind;

	return !cfi_find(cfi, loc & ~15ull, read_file, f, &before) &&
	       !cfi_find(cfi, loc | 15, read_file, f, &behind) && before.row.cfa_base == sp &&
	       before.row.cfa_offset == 8 && behind.row.cfa_base == sp &&
	       behind.row.cfa_offset == 16;
}

/* What no column has is unchanged. */
static bool says_no_more(const struct unwind_row *row, const struct columns *c)
{
	for (unsigned i = 0; i < row->nr_rules; i++)
		if (!(c->named >> row->rule[i].reg & 1))
			return false;
	return true;
}

static bool is_good(struct cfi *cfi, struct file *f, uint64_t loc, char *line,
		    const struct columns *c, struct counts *n, struct cfi_place *p)
{
	int i = 0, rc = cfi_find(cfi, loc, read_file, f, p);
	bool good = !rc && p->function <= loc && loc < p->end && p->end <= p->function_end;
	char text[32];

	for (char *w = strtok(line, " \n"); w && good && i < MAX_COLUMNS; w = strtok(NULL, " \n")) {
		struct unwind_rule rule;

		if (*w == '(') /* a register's name behind its number */
			continue;
		if (i == 1 && !strcmp(w, "exp") && !p->row.cfa_deref) {
			n->expressions++;
			good = is_plt_row(cfi, f, loc);
		} else if (i == 1) {
			good = same(w, cfa_text(f->arch, &p->row, text, sizeof(text)), n);
		} else if (c->reg[i] >= 0) {
			rule = unwind_rule_of(&p->row, (unsigned)c->reg[i]);
			good = same(w, rule_text(&rule, text, sizeof(text)), n);
		}
		i++;
	}
	return good && says_no_more(&p->row, c);
}

static bool is_same_place(const struct cfi_place *a, const struct cfi_place *b)
{
	return !memcmp(a, b,
		       offsetof(struct cfi_place, row.rule) +
			       a->row.nr_rules * sizeof(*a->row.rule));
}

/* One line of readelf's. */
static void check_row(struct cfi *cfi, struct file *f, char *line, const struct columns *c,
		      struct counts *n)
{
	uint64_t loc = strtoull(line, NULL, 16);
	struct cfi_place p = {0}, other;
	char copy[512];
	bool good;

	snprintf(copy, sizeof(copy), "%s", line);
	good = is_good(cfi, f, loc, line, c, n, &p);
	if (good && cfi == f->eh_frame && f->by_hdr)
		good = !cfi_find(f->by_hdr, loc, read_file, f, &other) && is_same_place(&p, &other);
	n->rows++;
	n->wrong += !good;
	if (!good && n->wrong <= 5)
		fprintf(stderr, "differs: %s", copy);
}

static void check_lines(struct file *f, FILE *p, struct counts *n)
{
	struct columns c = {.named = 0};
	struct cfi *cfi = NULL;
	bool in_fde = false;
	char line[512];

	while (fgets(line, sizeof(line), p)) {
		if (strstr(line, "Contents of the"))
			cfi = strstr(line, ".debug_frame") ? f->debug_frame : f->eh_frame;
		else if (strstr(line, "LOC"))
			c = parse_columns(f->arch, line);
		else if (strstr(line, "FDE"))
			in_fde = true;
		else if (strstr(line, "CIE") || line[0] == '\n')
			in_fde = false;
		else if (in_fde && cfi && strspn(line, "0123456789abcdef") == 16)
			check_row(cfi, f, line, &c, n);
	}
}

static void check_file(const char *path)
{
	struct file f = {0};
	struct counts n = {0};
	char command[512];
	FILE *p;

	if (!open_file(&f, path))
		return;
	snprintf(command, sizeof(command), "readelf --debug-dump=frames-interp '%s' 2>/dev/null",
		 path);
	p = popen(command, "r");
	CHECK(p);
	if (p) {
		check_lines(&f, p, &n);
		pclose(p);
	}
	printf("%s: %u rows, %u wrong; %u by expressions\n", path, n.rows, n.wrong, n.expressions);
	CHECK(n.rows > 5);
	CHECK_EQ(n.wrong, 0);
	close_file(&f);
}

/* Compiles @sources and compares; says so where this machine cannot. */
static void check_compiled(const char *what, const char *compiler, const char *sources)
{
	char path[] = "/tmp/vmprof-rows-XXXXXX", command[1024];
	int fd = mkstemp(path);

	if (fd < 0)
		return;
	close(fd);
	snprintf(command, sizeof(command), "%s -shared -fPIC -O2 -o %s 2>/dev/null %s", compiler,
		 path, sources);
	if (system(command))
		printf("not compared: %s (%s)\n", what, compiler);
	else
		check_file(path);
	unlink(path);
}

/* ---------- a million descriptions ---------- */

enum { MANY = 1000000, RECORD = 24 };

static void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

/* .debug_frame or .eh_frame of functions of 16 bytes, in a mixed order, with a frame of 8 and 8 n.
 */
static struct cfi_section many(bool debug_frame)
{
	static const uint8_t cie[] = {4 + 12, 0,    0,	0,    0, 0, 0,	  0, 1, 0,
				      1,      0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0};
	struct cfi_section s = {.debug_frame = debug_frame, .vaddr = debug_frame ? 0 : 0x10000000};
	uint64_t start, len = 16;
	uint8_t *p;

	s.size = sizeof(cie) + (size_t)MANY * (RECORD + 4);
	s.bytes = p = calloc(1, s.size);
	memcpy(p, cie, sizeof(cie));
	if (debug_frame)
		put32(p + 4, UINT32_MAX);
	p += sizeof(cie);
	for (uint64_t i = 0; i < MANY; i++, p += RECORD + 4) {
		start = 0x400000 + i * 7919 % MANY * 16;
		put32(p, RECORD);
		put32(p + 4, debug_frame ? 0 : (uint32_t)(p + 4 - s.bytes));
		memcpy(p + 8, &start, 8);
		memcpy(p + 16, &len, 8);
		p[24] = 0x0e; /* DW_CFA_def_cfa_offset */
		p[25] = (uint8_t)(start / 16 % 15 + 1) * 8;
	}
	return s;
}

static void test_many(bool debug_frame)
{
	struct cfi_section s = many(debug_frame);
	struct cfi *c = cfi_new_section(UNWIND_X86_64, &s);
	struct cfi_place p;
	unsigned wrong = 0;

	for (uint64_t i = 0; i < MANY; i += 997) {
		uint64_t pc = 0x400000 + i * 16 + i % 16;

		wrong += cfi_find(c, pc, NULL, NULL, &p) ||
			 p.row.cfa_offset != (int)((0x400000 / 16 + i) % 15 + 1) * 8 ||
			 p.function != (pc & ~15ull);
	}
	CHECK_EQ(wrong, 0);
	CHECK_EQ(cfi_find(c, 0x400000 - 1, NULL, NULL, &p), -ENOENT);
	CHECK_EQ(cfi_find(c, 0x400000 + MANY * 16ull, NULL, NULL, &p), -ENOENT);
	cfi_free(c);
}

/* ---------- */

/* Leaves, large frames, frame pointers, signed return addresses. */
static const char arm64[] =
	"-x c - <<'EOF'\n"
	"int g(int *); void h(void); long k(long, long);\n"
	"int f(int n) { int a[100]; long s = 0; for (int i = 0; i < n; i++) {\n"
	"	a[i % 100] = g(a) + k(i, s); s += a[i % 99]; } return s + g(a); }\n"
	"int v(int n) { char b[n]; b[0] = 1; return g((int *)b) + b[n - 1]; }\n"
	"int g(int *p) { h(); return *p; }\n"
	"void h(void) { __asm__ volatile(\"\" ::: \"x19\", \"x25\", \"x28\", \"memory\"); }\n"
	"long k(long a, long b) { return a * b; }\n"
	"EOF\n";

int main(void)
{
	/* In each Debian, and not small. */
	static const char *const files[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib64/ld-linux-x86-64.so.2",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/bin/bash",
		"/usr/bin/perl",
	};
	char self[4096] = "";

	test_many(true);
	test_many(false);
	if (system("readelf --version >/dev/null 2>&1"))
		test_skip("no readelf (binutils)");
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		check_file(files[i]);
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) > 0)
		check_file(self);
	check_compiled(".debug_frame",
		       "cc -std=gnu11 -D_GNU_SOURCE -Isrc -g -fno-asynchronous-unwind-tables "
		       "-fno-unwind-tables",
		       "src/util/*.c src/unwind/*.c");
	check_compiled("aarch64",
		       "clang --target=aarch64-linux-gnu -funwind-tables "
		       "-mbranch-protection=pac-ret -nostdlib -fuse-ld=lld",
		       arm64);
	return test_done();
}
