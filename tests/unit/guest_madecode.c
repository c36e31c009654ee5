// SPDX-License-Identifier: GPL-2.0-only
/*
 * Code that a made-up kernel has made: BPF programs, trampolines, pages of kprobes; that come, go
 * and are replaced; and lists that lead nowhere.
 */
#include <string.h>

#include "guest/kernel_impl.h"
#include "guest/orc.h"
#include "tests/unit/guest_setup.h"

#define PROG_A (FG_MODULE + 0x10000)
#define PROG_B (FG_MODULE + 0x20000)
#define PROBE  (FG_MODULE + 0x30000)

enum { KSYM_SIZE = 160, START = 0, END = 8, NAME = 16, LNODE = 128 };
enum { HEAD_BPF = 0, HEAD_FTRACE = 16, PROBES = 32 }; /* in the guest's spare bytes */

static uint64_t head(const struct setup *s, int at)
{
	return s->g.spare + (uint64_t)at;
}

static uint64_t get64(struct setup *s, uint64_t va)
{
	uint64_t v;

	memcpy(&v, fg_host(&s->g, s->g.root, va), sizeof(v));
	return v;
}

static void set_up(struct setup *s)
{
	struct fakeguest *g = &s->g;

	memset(s, 0, sizeof(*s));
	fakeguest_init(g, NULL);
	fg_struct(g, "bpf_ksym", KSYM_SIZE);
	fg_member(g, "bpf_ksym", "start", START, "");
	fg_member(g, "bpf_ksym", "end", END, "");
	fg_member(g, "bpf_ksym", "name", NAME, "");
	fg_member(g, "bpf_ksym", "lnode", LNODE, "list_head");
	fg_struct(g, "ftrace_ops", 64);
	fg_member(g, "ftrace_ops", "list", 8, "list_head");
	fg_member(g, "ftrace_ops", "trampoline", 24, "");
	fg_member(g, "ftrace_ops", "trampoline_size", 32, "");
	fg_struct(g, "kprobe_insn_cache", 64);
	fg_member(g, "kprobe_insn_cache", "pages", 8, "list_head");
	fg_struct(g, "kprobe_insn_page", 32);
	fg_member(g, "kprobe_insn_page", "list", 0, "list_head");
	fg_member(g, "kprobe_insn_page", "insns", 16, "*");
	fg_sym(g, 'd', "bpf_kallsyms", head(s, HEAD_BPF));
	fg_sym(g, 'd', "ftrace_ops_trampoline_list", head(s, HEAD_FTRACE));
	fg_sym(g, 'd', "kprobe_insn_slots", head(s, PROBES));
	fg_put64(g, head(s, HEAD_BPF), head(s, HEAD_BPF));
	fg_put64(g, head(s, HEAD_FTRACE), head(s, HEAD_FTRACE));
	fg_put64(g, head(s, PROBES + 8), head(s, PROBES + 8));
	fakeguest_finish(g);
	s->v = guest_virt_new(&g->fm.mem, GUEST_ARCH_X86_64);
	CHECK_EQ(find(s), 0);
}

/* Puts what is at @at into a list, as its first. */
static void add(struct setup *s, uint64_t list, uint64_t at)
{
	fg_put64(&s->g, at, get64(s, list));
	fg_put64(&s->g, list, at);
}

static uint64_t add_prog(struct setup *s, uint64_t start, uint64_t len, const char *name)
{
	uint64_t at = fg_data(&s->g, 1);

	fg_put64(&s->g, at + START, start);
	fg_put64(&s->g, at + END, start + len);
	fg_puts(&s->g, at + NAME, name);
	add(s, head(s, HEAD_BPF), at + LNODE);
	return at;
}

static const char *at(struct setup *s, uint64_t addr)
{
	const struct guest_made_code *c;

	guest_virt_flush(s->v, 0);
	made_codes_refresh(s->k->made, 0);
	c = made_codes_at(s->k->made, addr);
	return c ? c->name : "-";
}

static void test_lists(void)
{
	uint64_t other, prog, off = 0;
	struct setup s;

	set_up(&s);
	CHECK_STR(at(&s, PROG_A), "-");
	prog = add_prog(&s, PROG_A, 0x100, "bpf_prog_0123456789abcdef_a");
	add_prog(&s, PROG_B, 0x40, "bpf_prog_0123456789abcdef_b");
	CHECK_STR(at(&s, PROG_A), "bpf_prog_0123456789abcdef_a");
	CHECK_STR(at(&s, PROG_A + 0xff), "bpf_prog_0123456789abcdef_a");
	CHECK_STR(at(&s, PROG_A + 0x100), "-");
	CHECK_STR(at(&s, PROG_A - 1), "-");
	CHECK_STR(at(&s, PROG_B), "bpf_prog_0123456789abcdef_b");
	CHECK(guest_kernel_is_text(s.k, PROG_B + 8));
	CHECK(!guest_kernel_is_text(s.k, PROG_B + 0x40));
	CHECK_STR(guest_kernel_symbolize(s.k, PROG_B + 8, &off), "bpf_prog_0123456789abcdef_b");
	CHECK_EQ(off, 8);
	CHECK_EQ(guest_kernel_made_code_nth(s.k, 0)->id, 2);
	CHECK_EQ(guest_kernel_made_code_nth(s.k, 1)->id, 1);
	CHECK(!guest_kernel_made_code_nth(s.k, 2));

	other = fg_data(&s.g, 1);
	fg_put64(&s.g, other + 24, PROBE + 0x1000);
	fg_put64(&s.g, other + 32, 0x80);
	add(&s, head(&s, HEAD_FTRACE), other + 8);
	fg_put64(&s.g, other + 0x100 + 16, PROBE);
	add(&s, head(&s, PROBES + 8), other + 0x100);
	CHECK_STR(at(&s, PROBE + 4095), "kprobe_insn_page");
	CHECK_STR(at(&s, PROBE + 0x107f), "ftrace_trampoline");
	CHECK_STR(at(&s, PROBE + 0x1080), "-");

	/* Another program in one's place, and one that is gone. */
	fg_puts(&s.g, prog + NAME, "bpf_prog_fedcba9876543210_c");
	CHECK_STR(at(&s, PROG_A), "bpf_prog_fedcba9876543210_c");
	CHECK_EQ(guest_kernel_made_code_nth(s.k, 0)->id, 5);
	fg_put64(&s.g, head(&s, HEAD_BPF), head(&s, HEAD_BPF));
	CHECK_STR(at(&s, PROG_A), "-");
	CHECK(guest_kernel_made_code_nth(s.k, 1));
	teardown(&s);
}

/* By which register the caller is found, and up to where that holds. */
static void check_rule(struct setup *s, uint64_t ip, uint8_t reg, int offset, uint64_t until)
{
	struct guest_orc o = {.kernel = s->k};
	struct guest_orc_rule rule = {0};
	uint64_t next = 0;

	CHECK(guest_orc_find(&o, ip, &rule, &next));
	CHECK_EQ(rule.sp_reg, reg);
	CHECK_EQ(rule.sp_offset, offset);
	CHECK_EQ(next, until);
}

static void test_frames(void)
{
	static const uint8_t code[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0,
				       0,    0x55, 0x48, 0x89, 0xe5, 0x90, 0xc9, 0xc3};
	struct guest_orc none = {0};
	struct guest_orc_rule rule;
	struct setup s;

	set_up(&s);
	fg_map(&s.g, s.g.root, PROG_A, fg_alloc(&s.g, 1), 1);
	fg_write(&s.g, s.g.root, PROG_A, code, sizeof(code));
	add_prog(&s, PROG_A, sizeof(code), "bpf_prog_1");
	add_prog(&s, PROG_B, 16, "bpf_trampoline_1"); /* its code cannot be read */
	CHECK_STR(at(&s, PROG_A), "bpf_prog_1");
	check_rule(&s, PROG_A, ORC_REG_SP, 8, PROG_A + 10);
	check_rule(&s, PROG_A + 9, ORC_REG_SP, 8, PROG_A + 10);
	check_rule(&s, PROG_A + 10, ORC_REG_SP, 16, PROG_A + 13);
	check_rule(&s, PROG_A + 13, ORC_REG_BP, 16, PROG_A + 16);
	check_rule(&s, PROG_B, ORC_REG_BP, 16, PROG_B + 16);
	CHECK(!guest_orc_find(&none, PROG_A, &rule, NULL));
	teardown(&s);
}

static void test_hostile(void)
{
	char name[KSYM_SIZE];
	struct setup s;
	uint64_t prog;

	set_up(&s);
	prog = add_prog(&s, PROG_A, 0x100, "bpf_prog_1");
	fg_put64(&s.g, prog + LNODE, prog + LNODE); /* a ring without its head */
	CHECK_STR(at(&s, PROG_A), "bpf_prog_1");
	fg_put64(&s.g, prog + LNODE, 0x1234);
	CHECK_STR(at(&s, PROG_A), "bpf_prog_1");
	fg_put64(&s.g, prog + LNODE, head(&s, HEAD_BPF));
	fg_put64(&s.g, prog + END, PROG_A); /* empty, backwards, all of memory, of user mode */
	CHECK_STR(at(&s, PROG_A), "-");
	fg_put64(&s.g, prog + END, 8);
	CHECK_STR(at(&s, PROG_A), "-");
	fg_put64(&s.g, prog + END, UINT64_MAX);
	CHECK_STR(at(&s, PROG_A), "-");
	fg_put64(&s.g, prog + START, 0x1000);
	fg_put64(&s.g, prog + END, 0x2000);
	CHECK_STR(at(&s, 0x1000), "-");
	memset(name, 'n', sizeof(name)); /* a name that does not end in the structure */
	fg_put64(&s.g, prog + START, PROG_A);
	fg_put64(&s.g, prog + END, PROG_A + 16);
	fg_write(&s.g, s.g.root, prog + NAME, name, LNODE - NAME);
	fg_write(&s.g, s.g.root, prog + LNODE + 8, name, KSYM_SIZE - LNODE - 8);
	CHECK(strlen(at(&s, PROG_A)) <= KSYM_SIZE - NAME);
	fg_puts(&s.g, prog + NAME, "");
	CHECK_STR(at(&s, PROG_A), "-");
	teardown(&s);
}

/* A kernel of which nothing is known that makes code. */
static void test_none(void)
{
	struct setup s;

	setup(&s, NULL);
	CHECK(!s.k->made);
	CHECK(!guest_kernel_made_code(s.k, PROG_A));
	CHECK(!guest_kernel_made_code_nth(s.k, 0));
	teardown(&s);
}

int main(void)
{
	test_lists();
	test_frames();
	test_hostile();
	test_none();
	return test_done();
}
