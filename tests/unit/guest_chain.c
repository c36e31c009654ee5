// SPDX-License-Identifier: GPL-2.0-only
/*
 * User call chains: frame pointers; functions caught before their frame is made and after it is
 * undone; an ip that lags behind the stack pointer; signal frames; where a stack begins; what is no
 * frame and what is no return address; functions that have frame information and no frame pointer.
 */
#include "guest/chain.h"
#include "tests/unit/fakeguest.h"
#include "tests/unit/test.h"

#define CODE  0x400000ull
#define STACK 0x7ffffffd0000ull
#define TOP   (STACK + 0x3000) /* behind the stack's last page */
#define LEAF  (CODE + 0x100)
#define SP    (STACK + 0x800)

struct setup {
	struct fakeguest g; /* only its memory and its mapping functions */
	struct guest_virt *v;
	struct guest_code *code;
	struct guest_stack stack;
	struct guest_dsos dsos;
	struct guest_map map;
	struct guest_process proc;
	struct guest_kmem km;
	struct guest_user_walk w;
	uint64_t out[SAMPLE_MAX_CHAIN];
	unsigned n;
};

static void put(struct setup *s, uint64_t va, const char *bytes, size_t len)
{
	fg_write(&s->g, s->g.root, va, bytes, len);
}

static void word(struct setup *s, uint64_t va, uint64_t v)
{
	fg_put64(&s->g, va, v);
}

/* A call to @target that returns to @ra. */
static uint64_t call(struct setup *s, uint64_t ra, uint64_t target)
{
	int32_t rel = (int32_t)(target - ra);

	put(s, ra - 5, "\xe8", 1);
	put(s, ra - 4, (const char *)&rel, 4);
	return ra;
}

static void setup(struct setup *s)
{
	memset(s, 0, sizeof(*s));
	fakemem_init(&s->g.fm, 1 << 20);
	s->g.next = FG_PAGE;
	s->g.root = fg_alloc(&s->g, 1);
	fg_map(&s->g, s->g.root, CODE, fg_alloc(&s->g, 2), 2);
	fg_map(&s->g, s->g.root, STACK, fg_alloc(&s->g, 3), 3);
	s->v = guest_virt_new(&s->g.fm.mem, GUEST_ARCH_X86_64);
	s->code = guest_code_new(s->v);
	s->map = (struct guest_map){.start = CODE,
				    .end = CODE + 8192,
				    .dso = guest_dsos_get(&s->dsos, "/srv/app", NULL)};
	s->proc = (struct guest_process){
		.as = {.root = s->g.root}, .generation = 1, .maps = &s->map, .nr_maps = 1};
	s->km = (struct guest_kmem){.virt = s->v};
	s->w = (struct guest_user_walk){
		.code = s->code,
		.stack = &s->stack,
		.proc = &s->proc,
		.dsos = &s->dsos,
		.km = &s->km,
	};
	memset(s->g.fm.ram + FG_PAGE * 2, 0x90, 8192); /* code is nop */
	/* main calls f1, f1 calls f2, f2 calls the leaf; frames of f2, f1, main on the stack. */
	word(s, SP + 0x40, SP + 0x80);
	word(s, SP + 0x48, call(s, CODE + 0x320, CODE + 0x200)); /* into f1 */
	word(s, SP + 0x80, SP + 0xc0);
	word(s, SP + 0x88, call(s, CODE + 0x420, CODE + 0x300)); /* into main */
	word(s, SP + 0xc0, 0);
	word(s, SP + 0xc8, call(s, CODE + 0x520, CODE + 0x400)); /* into start */
	call(s, CODE + 0x220, LEAF);
	/* the leaf's own frame, if it has made one */
	word(s, SP + 0x10, SP + 0x40);
	word(s, SP + 0x18, CODE + 0x220);
}

static void teardown(struct setup *s)
{
	guest_code_free(s->code);
	guest_virt_free(s->v);
	guest_dsos_free(&s->dsos);
	fakemem_free(&s->g.fm);
}

static enum chain_end walk(struct setup *s, uint64_t ip, uint64_t sp, uint64_t bp)
{
	guest_code_flush(s->code);
	guest_stack_init(&s->stack, s->v, s->proc.as);
	s->w.f = (struct guest_frame){.ip = ip, .sp = sp, .bp = bp};
	return guest_chain_user(&s->w, s->out, SAMPLE_MAX_CHAIN, &s->n);
}

/* The whole chain: @ip, and four callers. */
static void check_whole(struct setup *s, enum chain_end end, uint64_t ip)
{
	CHECK_EQ(end, CHAIN_OUTERMOST);
	CHECK_EQ(s->n, 5);
	CHECK_EQ(s->out[0], ip);
	CHECK_EQ(s->out[1], CODE + 0x220);
	CHECK_EQ(s->out[2], CODE + 0x320);
	CHECK_EQ(s->out[3], CODE + 0x420);
	CHECK_EQ(s->out[4], CODE + 0x520);
}

static void test_frames(void)
{
	struct setup s;

	setup(&s);
	check_whole(&s, walk(&s, LEAF + 8, SP, SP + 0x10), LEAF + 8);
	CHECK_EQ(s.w.slots.n, 2);
	CHECK_EQ(s.w.slots.at[0], SP + 0x18);
	CHECK_EQ(s.w.slots.at[1], SP + 0x48);
	CHECK(s.map.dso->dso.hit);
	guest_stack_init(&s.stack, s.v, s.proc.as);
	s.w.f = (struct guest_frame){.ip = LEAF + 8, .sp = SP, .bp = SP + 0x10};
	CHECK_EQ(guest_chain_user(&s.w, s.out, 3, &s.n), CHAIN_DEPTH);
	CHECK_EQ(s.n, 3);
	s.w.f = (struct guest_frame){.ip = LEAF + 8, .sp = SP, .bp = SP + 0x10};
	CHECK_EQ(guest_chain_user(&s.w, s.out, 0, &s.n), CHAIN_DEPTH);
	CHECK_EQ(s.n, 0);
	teardown(&s);
}

/* What restores rbp may have used it for something else before. */
static void test_pop(void)
{
	struct setup s;

	setup(&s);
	put(&s, LEAF + 0x40, "\x5d\xc3", 2);
	check_whole(&s, walk(&s, LEAF + 0x40, SP + 0x10, 0xdead), LEAF + 0x40);
	teardown(&s);
}

/* The stack pointer is at the return address (or so many bytes below), rbp is the caller's. */
static void test_edges(void)
{
	static const struct {
		const char *code;
		uint8_t len, below;
	} cases[] = {
		{"\x55", 1, 0},
		{"\xf3\x0f\x1e\xfa\x55", 5, 0},
		{"\x48\x89\xe5", 3, 8},
		{"\x48\x8b\xec", 3, 8},
		{"\xc3", 1, 0},
		{"\xf3\xc3", 2, 0},
		{"\xf2\xc3", 2, 0},
		{"\xc2\x08\x00", 3, 0},
		{"\x5d\xc3", 2, 8},
		{"\xff\x25\x10\x20\x30\x40", 6, 0},
		{"\xf3\x0f\x1e\xfa\xf2\xff\x25\x10\x20\x30\x40", 11, 0},
		{"\x68\x01\x00\x00\x00\xe9\x01\x02\x03\x04", 10, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct setup s;

		setup(&s);
		put(&s, LEAF + 0x40, cases[i].code, cases[i].len);
		if (!cases[i].below) /* the code alone must tell */
			word(&s, SP + 0x10, 0);
		check_whole(&s, walk(&s, LEAF + 0x40, SP + 0x18 - cases[i].below, SP + 0x40),
			    LEAF + 0x40);
		teardown(&s);
	}
}

static void test_frameless_entry(void)
{
	struct setup s;

	setup(&s); /* nops: only the call tells that the function has just been entered */
	check_whole(&s, walk(&s, LEAF, SP + 0x18, SP + 0x40), LEAF);
	word(&s, SP + 0x10, 0);
	/* The same place in the middle of another function: the caller is lost, not invented. */
	CHECK_EQ(walk(&s, LEAF + 4, SP + 0x18, SP + 0x40), CHAIN_OUTERMOST);
	CHECK_EQ(s.n, 4);
	CHECK_EQ(s.out[1], CODE + 0x320);
	teardown(&s);
}

/* ip stays at the start of a block while sp and bp move on. */
static void test_lagging(void)
{
	struct setup s;

	setup(&s);
	put(&s, LEAF, "\x55\x48\x89\xe5", 4);
	check_whole(&s, walk(&s, LEAF, SP + 0x18, SP + 0x40), LEAF);	     /* at the start */
	check_whole(&s, walk(&s, LEAF, SP + 0x10, SP + 0x40), LEAF);	     /* pushed */
	check_whole(&s, walk(&s, LEAF, SP + 0x10, SP + 0x10), LEAF);	     /* and moved */
	check_whole(&s, walk(&s, LEAF, SP, SP + 0x10), LEAF);		     /* with locals */
	check_whole(&s, walk(&s, LEAF + 9, SP + 0x18, SP + 0x40), LEAF + 9); /* popped */
	check_whole(&s, walk(&s, LEAF, SP + 0x20, SP + 0x40), LEAF);	     /* returned */
	/* The leaf has called something at the end of the block: it is not its own caller. */
	word(&s, SP, call(&s, LEAF + 0x20, CODE + 0x600));
	word(&s, SP - 8, SP + 0x10); /* left by an earlier call */
	check_whole(&s, walk(&s, LEAF + 9, SP, SP + 0x10), LEAF + 9);
	teardown(&s);
}

static void test_calls(void)
{
	static const struct {
		const char *code;
		uint8_t len;
		bool is_call;
	} cases[] = {
		{"\xff\xd0", 2, true},			   /* call *%rax */
		{"\x41\xff\xd4", 3, true},		   /* call *%r12 */
		{"\xff\x10", 2, true},			   /* call *(%rax) */
		{"\xff\x14\xc7", 3, true},		   /* call *(%rdi,%rax,8) */
		{"\xff\x14\xc5\x00\x10\x40\x00", 7, true}, /* call *0x401000(,%rax,8) */
		{"\xff\x50\x18", 3, true},		   /* call *0x18(%rax) */
		{"\xff\x54\x24\x08", 4, true},		   /* call *8(%rsp) */
		{"\xff\x90\x00\x01\x00\x00", 6, true},	   /* call *0x100(%rax) */
		{"\xff\x94\x24\x00\x01\x00\x00", 7, true}, /* call *0x100(%rsp) */
		{"\xff\x15\x10\x20\x30\x40", 6, true},	   /* call *x(%rip) */
		{"\xff\xe0", 2, false},			   /* jmp *%rax */
		{"\xff\x25\x10\x20\x30\x40", 6, false},	   /* jmp *x(%rip) */
		{"\xff\x30", 2, false},			   /* push (%rax) */
		{"\x90\x90", 2, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct setup s;

		setup(&s);
		put(&s, CODE + 0x220 - 7, "\x90\x90\x90\x90\x90\x90\x90", 7);
		put(&s, CODE + 0x220 - cases[i].len, cases[i].code, cases[i].len);
		if (cases[i].is_call) {
			check_whole(&s, walk(&s, LEAF + 8, SP, SP + 0x10), LEAF + 8);
		} else {
			CHECK_EQ(walk(&s, LEAF + 8, SP, SP + 0x10), CHAIN_BAD_FRAME);
			CHECK_EQ(s.n, 1);
		}
		teardown(&s);
	}
}

static void test_bad(void)
{
	struct setup s;

	setup(&s);
	CHECK_EQ(walk(&s, LEAF + 8, SP, SP + 0x14), CHAIN_BAD_FRAME); /* unaligned */
	CHECK_EQ(walk(&s, LEAF + 8, SP, SP - 0x40), CHAIN_BAD_FRAME); /* below */
	CHECK_EQ(walk(&s, LEAF + 8, SP, 0), CHAIN_BAD_FRAME);	      /* none, and no frame yet */
	CHECK_EQ(walk(&s, LEAF + 8, SP, 0xffff888000000000), CHAIN_BAD_FRAME);
	CHECK_EQ(s.n, 1);
	CHECK_EQ(walk(&s, LEAF + 8, SP, TOP + 0x10), CHAIN_UNREADABLE);
	CHECK_EQ(walk(&s, LEAF + 8, TOP + 0x100, TOP + 0x110), CHAIN_UNREADABLE);
	word(&s, SP + 0x40, SP + 0x40); /* a frame that is its own caller's */
	CHECK_EQ(walk(&s, LEAF + 8, SP, SP + 0x10), CHAIN_BAD_FRAME);
	CHECK(s.n <= 4);
	word(&s, SP + 0x40, SP + 0x80);
	word(&s, SP + 0x48, STACK); /* a return address that is data */
	CHECK_EQ(walk(&s, LEAF + 8, SP, SP + 0x10), CHAIN_BAD_FRAME);
	CHECK_EQ(s.n, 2);
	teardown(&s);
}

/* libc's frames below main() have no frame pointer: rbp is anything there. */
static void test_start(void)
{
	struct setup s;

	setup(&s);
	word(&s, SP + 0xc0, 0xdead);
	CHECK_EQ(walk(&s, LEAF + 8, SP, SP + 0x10), CHAIN_BAD_FRAME);
	CHECK_EQ(s.n, 5);
	s.proc.start_stack = SP + 0xd0 + 0x200;
	check_whole(&s, walk(&s, LEAF + 8, SP, SP + 0x10), LEAF + 8);
	s.proc.start_stack = SP + 0xd0 + 0x1000;
	CHECK_EQ(walk(&s, LEAF + 8, SP, SP + 0x10), CHAIN_BAD_FRAME);
	s.w.fsbase = SP + 0xd0 + 0x400; /* a thread's control block is above its stack */
	check_whole(&s, walk(&s, LEAF + 8, SP, SP + 0x10), LEAF + 8);
	teardown(&s);
}

/* A handler called by the kernel on top of the leaf: over the ucontext to what was interrupted. */
static void test_signal(void)
{
	static const char restorer[] = "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05";
	uint64_t frame = SP - 0x300, context = frame + 16 + 40;
	struct setup s;

	setup(&s);
	put(&s, CODE + 0x700, restorer, 9);
	word(&s, frame, SP + 0x10); /* the handler has pushed the interrupted rbp */
	word(&s, frame + 8, CODE + 0x700);
	word(&s, context + 10 * 8, SP + 0x10);
	word(&s, context + 15 * 8, SP);
	word(&s, context + 16 * 8, LEAF + 8);
	CHECK_EQ(walk(&s, CODE + 0x808, frame - 0x20, frame), CHAIN_OUTERMOST);
	CHECK_EQ(s.n, 7);
	CHECK_EQ(s.out[0], CODE + 0x808);
	CHECK_EQ(s.out[1], CODE + 0x700);
	CHECK_EQ(s.out[2], LEAF + 8);
	CHECK_EQ(s.out[3], CODE + 0x220);
	CHECK_EQ(s.out[6], CODE + 0x520);
	/* A ucontext that leads back to the handler's frame does not go on for ever. */
	word(&s, context + 10 * 8, frame);
	word(&s, context + 15 * 8, frame - 0x20);
	CHECK_EQ(walk(&s, CODE + 0x808, frame - 0x20, frame), CHAIN_DEPTH);
	CHECK_EQ(s.n, SAMPLE_MAX_CHAIN);
	teardown(&s);
}

#define FRAMES (CODE + 0x2000) /* .eh_frame_hdr and .eh_frame */
#define FUNCTION                                                                                   \
	(CODE + 0x600) /* that they are of: from its fifth byte on it has 32 on the stack */

/* An ELF image at CODE, loaded whole. */
static void put_image(struct setup *s)
{
	static const uint8_t cie[] = {20, 0,	0,  0, 0,    0,	 0, 0, 1,    'z', 'R', 0,
				      1,  0x78, 16, 1, 0x1b, 12, 7, 8, 0x90, 1,	  0,   0};
	static const uint8_t fde_code[] = {0, 0x44, 14, 0x28};
	const int32_t hdr[] = {0x3b031b01, 0x1c, 1, (int32_t)(FUNCTION - FRAMES), 0x38};
	const int32_t fde[] = {16, 0x1c, (int32_t)(FUNCTION - (FRAMES + 0x40)), 0x100};
	Elf64_Ehdr e = {.e_phoff = sizeof(e), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2};
	const Elf64_Phdr p[] = {
		{.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 0x3000},
		{.p_type = PT_GNU_EH_FRAME, .p_vaddr = FRAMES - CODE},
	};

	memcpy(e.e_ident, ELFMAG, SELFMAG);
	e.e_ident[EI_CLASS] = ELFCLASS64;
	fg_write(&s->g, s->g.root, CODE, &e, sizeof(e));
	fg_write(&s->g, s->g.root, CODE + sizeof(e), p, sizeof(p));
	fg_write(&s->g, s->g.root, FRAMES, hdr, sizeof(hdr));
	fg_write(&s->g, s->g.root, FRAMES + 0x20, cie, sizeof(cie));
	fg_write(&s->g, s->g.root, FRAMES + 0x38, fde, sizeof(fde));
	fg_write(&s->g, s->g.root, FRAMES + 0x38 + sizeof(fde), fde_code, sizeof(fde_code));
}

/* The same of a static program: no index, but section headers. */
static void put_static_image(struct setup *s)
{
	static const char names[] = "\0.eh_frame\0.shstrtab";
	const uint64_t table = FRAMES - CODE + 0x800, strings = FRAMES - CODE + 0xa00;
	const Elf64_Shdr sections[] = {
		{0},
		{.sh_name = 1,
		 .sh_type = SHT_PROGBITS,
		 .sh_addr = FRAMES - CODE + 0x20,
		 .sh_offset = FRAMES - CODE + 0x20,
		 .sh_size = 0x2c},
		{.sh_name = 11, .sh_type = SHT_STRTAB, .sh_offset = strings, .sh_size = 21},
	};
	Elf64_Ehdr e = {
		.e_phoff = sizeof(e),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shoff = table,
		.e_shentsize = sizeof(*sections),
		.e_shnum = 3,
		.e_shstrndx = 2,
	};

	put_image(s);
	memcpy(e.e_ident, ELFMAG, SELFMAG);
	e.e_ident[EI_CLASS] = ELFCLASS64;
	fg_write(&s->g, s->g.root, CODE, &e, sizeof(e));
	fg_write(&s->g, s->g.root, CODE + table, sections, sizeof(sections));
	fg_write(&s->g, s->g.root, CODE + strings, names, sizeof(names));
}

/* As in a sample: the registers are a vCPU's. */
static unsigned walk_regs(struct setup *s, uint64_t ip)
{
	guest_code_flush(s->code);
	guest_stack_init(&s->stack, s->v, s->proc.as);
	s->w.f = (struct guest_frame){.ip = ip, .sp = SP, .bp = SP + 0x40, .has_regs = true};
	guest_chain_user(&s->w, s->out, SAMPLE_MAX_CHAIN, &s->n);
	return s->n;
}

static void test_cfi(void)
{
	struct setup s;
	uint64_t frames;

	setup(&s);
	frames = fg_alloc(&s.g, 1);
	fg_map(&s.g, s.g.root, FRAMES, frames, 1);
	put_image(&s);
	word(&s, SP + 0x20, call(&s, CODE + 0x220, FUNCTION)); /* by frame pointer it is left out */
	s.w.time = 1000000000;
	check_whole(&s, (walk_regs(&s, FUNCTION + 0x10), CHAIN_OUTERMOST), FUNCTION + 0x10);
	/* At the block's start, where ip may lag, the stack has not been made yet. */
	check_whole(&s, (walk_regs(&s, FUNCTION), CHAIN_OUTERMOST), FUNCTION);
	CHECK_EQ(walk_regs(&s, FUNCTION - 0x10), 4); /* no information: by frame pointer */

	/* The information is gone: what was read of it is known, the rest is tried again later. */
	fg_map(&s.g, s.g.root, FRAMES, 1ull << 40, 1);
	guest_virt_flush(s.v, 0);
	CHECK_EQ(walk_regs(&s, FUNCTION + 0x20), 4);
	CHECK_EQ(walk_regs(&s, FUNCTION + 0x10), 5);
	fg_map(&s.g, s.g.root, FRAMES, frames, 1);
	guest_virt_flush(s.v, 0);
	s.w.time += 999999999;
	CHECK_EQ(walk_regs(&s, FUNCTION + 0x20), 4);
	s.w.time += 1;
	CHECK_EQ(walk_regs(&s, FUNCTION + 0x20), 5);
	teardown(&s);
}

static void test_static(void)
{
	struct setup s;

	setup(&s);
	fg_map(&s.g, s.g.root, FRAMES, fg_alloc(&s.g, 1), 1);
	put_static_image(&s);
	word(&s, SP + 0x20, call(&s, CODE + 0x220, FUNCTION));
	s.w.time = 1000000000;
	check_whole(&s, (walk_regs(&s, FUNCTION + 0x10), CHAIN_OUTERMOST), FUNCTION + 0x10);
	CHECK_EQ(walk_regs(&s, FUNCTION - 0x10), 4); /* of other code it says nothing */
	teardown(&s);
}

int main(void)
{
	test_frames();
	test_edges();
	test_pop();
	test_frameless_entry();
	test_lagging();
	test_calls();
	test_bad();
	test_start();
	test_signal();
	test_cfi();
	test_static();
	return test_done();
}
