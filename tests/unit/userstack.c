// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chains out of registers and a copy of the stack, of x86-64 and aarch64: a leaf, a function whose
 * frame another register than sp or fp leads to, signed return addresses, code that a program has
 * made itself; and the ways in which a chain can end.
 */
#include <elf.h>
#include <sys/mman.h>

#include "symbolize/userstack.h"
#include "tests/unit/session_make.h"
#include "unwind/unwind.h"

enum {
	PID = 9,
	HDR = 0x200, /* .eh_frame_hdr, in the file and in memory */
	FRAMES = 0x280,
	START = 0x1000, /* outermost; */
	MIDDLE = 0x1100,
	LEAF = 0x1200, /* they call each other */
	END = 0x1300,
	SIZE = 0x2000,
};
#define BASE  0x7f0000000000ull
#define JIT   0x7e0000000000ull
#define GONE  0x7d0000000000ull
#define STACK 0x7fff00001000ull
#define CODES 0x00a5000000000000ull /* of a signed return address */

/* ---------- a program ---------- */

struct program {
	uint8_t image[SIZE];
	unsigned at, nr_fdes; /* in .eh_frame */
};

static void put32(struct program *p, unsigned at, uint32_t v)
{
	memcpy(p->image + at, &v, sizeof(v));
}

static void finish_record(struct program *p, unsigned start)
{
	while ((p->at - start) % 8)
		p->image[p->at++] = 0; /* DW_CFA_nop */
	put32(p, start, p->at - start - 4);
}

static void add_bytes(struct program *p, const uint8_t *bytes, size_t n)
{
	memcpy(p->image + p->at, bytes, n);
	p->at += (unsigned)n;
}

/* Version 1, "zR": addresses relative to where they stand; factors 1 and -8. */
static void add_cie(struct program *p, uint8_t ra, const uint8_t *initial, size_t n)
{
	const uint8_t head[] = {1, 'z', 'R', 0, 1, 0x78, ra, 1, 0x1b};

	p->at = FRAMES + 8;
	put32(p, FRAMES + 4, 0);
	add_bytes(p, head, sizeof(head));
	add_bytes(p, initial, n);
	finish_record(p, FRAMES);
}

static void add_fde(struct program *p, unsigned code, const uint8_t *program, size_t n)
{
	unsigned start = p->at, entry = HDR + 12 + 8 * p->nr_fdes++;

	put32(p, start + 4, start + 4 - FRAMES);
	put32(p, start + 8, code - (start + 8));
	put32(p, start + 12, 0x100);
	p->at = start + 16;
	p->image[p->at++] = 0; /* no augmentation data */
	add_bytes(p, program, n);
	finish_record(p, start);
	put32(p, entry, code - HDR);
	put32(p, entry + 4, start - HDR);
}

static void add_headers(struct program *p, uint16_t machine)
{
	Elf64_Ehdr e = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(e),
		.e_ehsize = sizeof(e),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	};
	Elf64_Phdr load = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = SIZE};
	Elf64_Phdr hdr = {
		.p_type = PT_GNU_EH_FRAME, .p_offset = HDR, .p_vaddr = HDR, .p_filesz = 36};
	const uint8_t forms[4] = {1, 0x1b, 0x03, 0x3b};

	load.p_memsz = load.p_filesz;
	memcpy(p->image, &e, sizeof(e));
	memcpy(p->image + sizeof(e), &load, sizeof(load));
	memcpy(p->image + sizeof(e) + sizeof(load), &hdr, sizeof(hdr));
	memcpy(p->image + HDR, forms, sizeof(forms));
	put32(p, HDR + 4, FRAMES - (HDR + 4));
	put32(p, HDR + 8, 3);
}

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static void write_program(enum unwind_arch arch, const char *path)
{
	static struct program p;
	FILE *f = fopen(path, "we");

	memset(&p, 0, sizeof(p));
	if (arch == UNWIND_AARCH64) {
		add_headers(&p, EM_AARCH64);
		add_cie(&p, 30, BYTES(0x0c, 31, 0)); /* CFA: sp */
		add_fde(&p, START, BYTES(0x07, 30)); /* x30 undefined */
		/* CFA: x19 + 32; x29 at -32, x30 at -24, x19 at -16; signed */
		add_fde(&p, MIDDLE,
			BYTES(0x0c, 19, 32, 0x80 | 29, 4, 0x80 | 30, 3, 0x80 | 19, 2, 0x2d));
	} else {
		add_headers(&p, EM_X86_64);
		add_cie(&p, 16, BYTES(0x0c, 7, 8, 0x80 | 16, 1)); /* CFA: rsp + 8; at -8 */
		add_fde(&p, START, BYTES(0x07, 16));
		/* CFA: rbx + 32, rbx itself at -16 */
		add_fde(&p, MIDDLE, BYTES(0x0c, 3, 32, 0x80 | 3, 2));
	}
	add_fde(&p, LEAF, BYTES(0));
	CHECK(f && fwrite(p.image, sizeof(p.image), 1, f) == 1);
	if (f)
		fclose(f);
}

/* ---------- a sample ---------- */

struct dump {
	enum unwind_arch arch;
	uint64_t ip, r[UNWIND_REGS]; /* by DWARF's numbers */
	uint64_t stack[16];
	uint64_t stack_size;
	uint64_t abi;
	size_t max;
};

static const uint8_t x86_perf[16] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23};

/* Frames in @ips; returns how it ended. */
static int chain_of(struct session *s, const struct dump *d, uint64_t *ips, size_t *n)
{
	bool arm = d->arch == UNWIND_AARCH64;
	uint64_t words[33] = {0}, all[33] = {0}, ends[USERSTACK_END_COUNT];
	struct perfdata_evsel e = {.attr.sample_regs_user = arm ? (1ull << 33) - 1 : 0xff0fff};
	struct perfdata_parts parts = {.regs_user = {d->abi, e.attr.sample_regs_user, words},
				       .stack = d->stack,
				       .stack_size = d->stack_size};
	struct perfdata_record r = rec(PERF_RECORD_SAMPLE, HU, 0, PID, PID);
	const uint64_t *found;
	unsigned k = 0;

	for (unsigned i = 0; i < (arm ? 32 : 16); i++)
		all[arm ? i : x86_perf[i]] = d->r[i];
	all[arm ? 32 : 8] = d->ip;
	for (unsigned i = 0; i < 33; i++)
		if (e.attr.sample_regs_user >> i & 1)
			words[k++] = all[i];
	r.evsel = &e;
	r.parts = &parts;
	memcpy(ends, session_user_stack_ends(s), sizeof(ends));
	found = session_user_stack(s, thread_at(s, 0, PID, PID), &r, d->max, n);
	if (found)
		memcpy(ips, found, *n * sizeof(*ips));
	for (int i = 0; i < USERSTACK_END_COUNT; i++)
		if (session_user_stack_ends(s)[i] != ends[i])
			return i;
	return -1;
}

/* The leaf was called by the middle one, that by the start. */
static struct dump dump_of(enum unwind_arch arch)
{
	struct dump d = {
		.arch = arch, .ip = BASE + LEAF + 8, .abi = 2, .stack_size = 128, .max = 127};

	if (arch == UNWIND_AARCH64) {
		d.r[31] = STACK;
		d.r[30] = (BASE + MIDDLE + 0x40) | CODES;
		d.r[19] = STACK; /* of the middle one, at -32 to 0 of its CFA */
		d.stack[0] = 0;
		d.stack[1] = (BASE + START + 0x40) | CODES;
		d.stack[2] = 77;
	} else {
		d.r[7] = STACK;
		d.r[3] = STACK + 8;
		d.stack[0] = BASE + MIDDLE + 0x40;
		d.stack[3] = 77;
		d.stack[4] = BASE + START + 0x40;
	}
	return d;
}

static void check_chain(struct session *s, const struct dump *d, int end, size_t n)
{
	const uint64_t want[] = {BASE + LEAF + 8, BASE + MIDDLE + 0x3f, BASE + START + 0x3f};
	uint64_t ips[128];
	size_t got;

	CHECK_EQ(chain_of(s, d, ips, &got), end);
	CHECK_EQ(got, n);
	for (size_t i = 0; i < got && i < 3; i++)
		CHECK_EQ(ips[i], want[i]);
}

static void test_ends(struct session *s, enum unwind_arch arch)
{
	const struct dump whole = dump_of(arch);
	struct dump d = whole;
	unsigned slot = arch == UNWIND_AARCH64 ? 1 : 4; /* of the address in the start */
	uint64_t ips[128];
	size_t n;

	check_chain(s, &d, USERSTACK_OUTERMOST, 3);
	d.max = 2;
	check_chain(s, &d, USERSTACK_DEPTH, 2);
	d = whole;
	d.stack_size = slot * 8;
	check_chain(s, &d, USERSTACK_CUT, 2);
	d.stack_size = slot * 8 + 7; /* half a word is none */
	check_chain(s, &d, USERSTACK_CUT, 2);
	d = whole;
	d.stack[slot] = 0x1234; /* no code */
	check_chain(s, &d, USERSTACK_BAD_FRAME, 2);
	d.stack[slot] = 0;
	check_chain(s, &d, USERSTACK_OUTERMOST, 2);
	d.stack[slot] = GONE + 0x10; /* a frame, but what called it? */
	CHECK_EQ(chain_of(s, &d, ips, &n), USERSTACK_NO_FILE);
	CHECK_EQ(n, 3);
	CHECK_EQ(ips[2], GONE + 0xf);
	d = whole;
	d.r[arch == UNWIND_AARCH64 ? 19 : 3] = 8; /* it would be below */
	check_chain(s, &d, USERSTACK_BAD_FRAME, 2);
	d = whole;
	d.abi = 1; /* 32 bits */
	check_chain(s, &d, USERSTACK_NO_REGS, 0);
	d.abi = 0;
	check_chain(s, &d, USERSTACK_NO_REGS, 0);
	d = whole;
	d.stack_size = 0; /* as of kernel threads: nothing to say */
	check_chain(s, &d, -1, 0);
}

/* Code that the program has made: by frame pointer, if that can be one. */
static void test_jit(struct session *s, enum unwind_arch arch)
{
	struct dump d = dump_of(arch);
	const struct unwind_abi *abi = &unwind_abis[arch];
	uint64_t ips[128];
	size_t n;

	d.ip = JIT + 8;
	d.r[abi->fp] = STACK + 16;
	d.stack[2] = STACK + 48;
	d.stack[3] = JIT + 0x20;
	d.stack[6] = 0;
	d.stack[7] = BASE + START + 0x40;
	CHECK_EQ(chain_of(s, &d, ips, &n), USERSTACK_OUTERMOST);
	CHECK_EQ(n, 3);
	CHECK_EQ(ips[1], JIT + 0x1f);
	CHECK_EQ(ips[2], BASE + START + 0x3f);
	d.stack[7] = JIT + 0x30;
	CHECK_EQ(chain_of(s, &d, ips, &n), USERSTACK_OUTERMOST); /* fp is 0 */
	CHECK_EQ(n, 3);
	d.r[abi->fp] = STACK + 17;
	CHECK_EQ(chain_of(s, &d, ips, &n), USERSTACK_NO_RULE);
	CHECK_EQ(n, 1);
	/* A loop: frames must go up. */
	d.r[abi->fp] = STACK + 16;
	d.stack[2] = STACK + 16;
	CHECK_EQ(chain_of(s, &d, ips, &n), USERSTACK_NO_RULE);
	CHECK_EQ(n, 2);
}

static uint64_t random_word(void)
{
	uint64_t x = (uint64_t)rand() << 31 ^ (uint64_t)rand();

	switch (rand() % 4) {
	case 0:
		return STACK + x % 256;
	case 1:
		return BASE + START + x % (END - START);
	case 2:
		return JIT + x % 0x1000;
	default:
		return x << (x % 32);
	}
}

/* Random registers and stacks: it must end, within the limit, and read nothing outside. */
static void test_random(struct session *s, enum unwind_arch arch)
{
	uint64_t ips[128];
	size_t n;

	for (int i = 0; i < 20000; i++) {
		struct dump d = dump_of(arch), *copy;

		d.ip = random_word();
		for (unsigned r = 0; r < UNWIND_REGS; r++)
			d.r[r] = random_word();
		for (unsigned w = 0; w < 16; w++)
			d.stack[w] = random_word();
		d.stack_size = (uint64_t)rand() % 129;
		copy = malloc(sizeof(d)); /* the sanitizer sees its end */
		*copy = d;
		CHECK(chain_of(s, copy, ips, &n) >= -1);
		CHECK(n <= 127);
		free(copy);
	}
}

static void test_arch(enum unwind_arch arch)
{
	char *path = path_of(arch == UNWIND_AARCH64 ? "arm" : "x86");
	struct session *s = open_session(NULL);

	write_program(arch, path);
	map(s, HU, 0, PID, BASE, SIZE, 0, path, NULL);
	map(s, HU, 0, PID, JIT, 0x1000, 0, "//anon", NULL);
	map(s, HU, 0, PID, GONE, 0x1000, 0, "/no/such/file", NULL);
	test_ends(s, arch);
	test_jit(s, arch);
	test_random(s, arch);
	session_free(s);
}

int main(void)
{
	char command[256];

	if (!mkdtemp(dir))
		test_skip("no directory for files");
	test_arch(UNWIND_X86_64);
	test_arch(UNWIND_AARCH64);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command) ? 1 : test_done();
}
