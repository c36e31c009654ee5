// SPDX-License-Identifier: GPL-2.0-only
#include "backend/tcg_program.h"

#include <errno.h>
#include <stdlib.h>

#include "backend/bpf_asm.h"
#include "guest/x86.h"
#include "util/xalloc.h"

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10 };

#define TABLE_LA57 1 /* in the address of the root table: five levels */

/* aarch64: descriptors of tables and pages of 4 KiB, addresses of 48 bits */
#define ARM64_VALID   1
#define ARM64_TABLE   2
#define ARM64_ADDRESS 0x0000fffffffff000ull

struct gen {
	struct bpf_asm a;
	const struct tcg_program *p;
	unsigned walk; /* label */
	bool arm64;
};

/* ---------- from an address of the guest to one of QEMU's ---------- */

enum { WALK_VA = R6, WALK_TABLE = R7, WALK_SLOT = -8 /* of the stack */ };

/* r3: guest-physical address in, the address in QEMU out; to @fail if it is no RAM. Uses r0, r1. */
static void translate(struct gen *g, unsigned fail)
{
	struct bpf_asm *a = &g->a;
	unsigned found = bpf_label(a);

	for (unsigned i = 0; i < g->p->nr_ram && i < TCG_SNAPSHOT_REGIONS; i++) {
		const struct vm_ram_region *r = &g->p->ram[i];
		unsigned next = bpf_label(a);

		bpf_load_imm64(a, R1, r->gpa);
		bpf_mov(a, R0, R3);
		bpf_alu(a, BPF_SUB, R0, R1);
		bpf_load_imm64(a, R1, r->len);
		bpf_jump(a, BPF_JGE, R0, R1, next);
		bpf_load_imm64(a, R3, r->hva);
		bpf_alu(a, BPF_ADD, R3, R0);
		bpf_goto(a, found);
		bpf_set_label(a, next);
	}
	bpf_goto(a, fail);
	bpf_set_label(a, found);
}

/* One level of page tables: WALK_TABLE is the table in, the next one, or the page, out. */
static void walk_level(struct gen *g, int level, unsigned page_found, unsigned fail)
{
	struct bpf_asm *a = &g->a;
	int shift = 12 + 9 * level;

	bpf_mov(a, R3, WALK_VA);
	bpf_alu_imm(a, BPF_RSH, R3, shift);
	bpf_alu_imm(a, BPF_AND, R3, 511);
	bpf_alu_imm(a, BPF_LSH, R3, 3);
	bpf_alu(a, BPF_ADD, R3, WALK_TABLE);
	translate(g, fail);
	bpf_mov(a, R1, R10);
	bpf_alu_imm(a, BPF_ADD, R1, WALK_SLOT);
	bpf_mov_imm(a, R2, 8);
	bpf_call(a, BPF_FUNC_probe_read_user);
	bpf_jump_imm(a, BPF_JNE, R0, 0, fail);
	bpf_load(a, R4, R10, WALK_SLOT);
	bpf_mov(a, R1, R4);
	bpf_alu_imm(a, BPF_AND, R1, g->arm64 ? ARM64_VALID : (int32_t)X86_PTE_PRESENT);
	bpf_jump_imm(a, BPF_JEQ, R1, 0, fail);
	bpf_load_imm64(a, R1, g->arm64 ? ARM64_ADDRESS : X86_ADDR_MASK);
	bpf_mov(a, WALK_TABLE, R4);
	bpf_alu(a, BPF_AND, WALK_TABLE, R1);
	if (level == 1 || level == 2) { /* 2 MiB, 1 GiB */
		unsigned small = bpf_label(a);

		bpf_alu_imm(a, BPF_AND, R4, g->arm64 ? ARM64_TABLE : (int32_t)X86_PTE_PSE);
		bpf_jump_imm(a, g->arm64 ? BPF_JNE : BPF_JEQ, R4, 0, small);
		bpf_alu_imm(a, BPF_RSH, WALK_TABLE, shift);
		bpf_alu_imm(a, BPF_LSH, WALK_TABLE, shift);
		bpf_mov(a, R1, WALK_VA);
		bpf_alu_imm(a, BPF_AND, R1, (1 << shift) - TCG_SNAPSHOT_PAGE);
		bpf_alu(a, BPF_ADD, WALK_TABLE, R1);
		bpf_goto(a, page_found);
		bpf_set_label(a, small);
	}
}

/* The function that walks the page tables. r1: address in the guest; r2: the root table, with
 * TABLE_LA57; r0: the address in QEMU, or 0. */
static void walk_function(struct gen *g)
{
	struct bpf_asm *a = &g->a;
	unsigned four = bpf_label(a), found = bpf_label(a), fail = bpf_label(a);

	bpf_set_label(a, g->walk);
	bpf_mov(a, WALK_VA, R1);
	bpf_mov(a, WALK_TABLE, R2);
	if (!g->arm64) {
		bpf_alu_imm(a, BPF_AND, R2, TABLE_LA57);
		bpf_jump_imm(a, BPF_JEQ, R2, 0, four);
		bpf_alu_imm(a, BPF_AND, WALK_TABLE, ~TABLE_LA57);
		walk_level(g, 4, found, fail);
	}
	bpf_set_label(a, four);
	for (int level = 3; level >= 0; level--)
		walk_level(g, level, found, fail);
	bpf_set_label(a, found);
	bpf_mov(a, R3, WALK_VA);
	bpf_alu_imm(a, BPF_AND, R3, TCG_SNAPSHOT_PAGE - 1);
	bpf_alu(a, BPF_ADD, R3, WALK_TABLE);
	translate(g, fail);
	bpf_mov(a, R0, R3);
	bpf_exit(a);
	bpf_set_label(a, fail);
	bpf_mov_imm(a, R0, 0);
	bpf_exit(a);
}

/* ---------- the snapshot ---------- */

enum { CTX = R6, REC = R7, VA = R8, ROOT = R9 }; /* what the main program keeps where */
enum { SLOT_WORD = -8, SLOT_GS = -16 };		 /* of its stack */

#define REC_OFF(member) ((int)offsetof(struct tcg_snapshot, member))

static int page_off(unsigned page)
{
	return REC_OFF(page) + (int)page * TCG_SNAPSHOT_PAGE;
}

static int va_off(unsigned page)
{
	return REC_OFF(page_va) + (int)page * 8;
}

/* Copies @len bytes of the thread's own memory at the address in @from to the record at @off. */
static void copy_in(struct bpf_asm *a, int off, int32_t len, int from)
{
	bpf_mov(a, R3, from);
	bpf_mov(a, R1, REC);
	bpf_alu_imm(a, BPF_ADD, R1, off);
	bpf_mov_imm(a, R2, len);
	bpf_call(a, BPF_FUNC_probe_read_user);
}

static void load_env(struct gen *g, int dst, uint32_t off)
{
	bpf_load(&g->a, dst, REC, REC_OFF(env) + (int)off);
}

/* The stack pointer, which tells the mode, too: user mode's is in the lower half. */
static void load_sp(struct gen *g, int dst)
{
	load_env(g, dst, g->arm64 ? tcg_arm64_sp() : X86_RSP * 8);
}

/* aarch64 has a table for each half: r2 the upper one's, if VA is there. */
static void choose_root(struct gen *g)
{
	struct bpf_asm *a = &g->a;
	unsigned lower = bpf_label(a);

	bpf_jump_imm(a, BPF_JSGE, VA, 0, lower);
	load_env(g, R2, g->p->layout->ttbr1);
	bpf_load_imm64(a, R3, ARM64_ADDRESS);
	bpf_alu(a, BPF_AND, R2, R3);
	bpf_set_label(a, lower);
}

/* r0: the address in QEMU of VA, or to @fail. */
static void walk_va(struct gen *g, unsigned fail)
{
	struct bpf_asm *a = &g->a;

	bpf_mov(a, R2, ROOT);
	if (g->arm64)
		choose_root(g);
	bpf_mov(a, R1, VA);
	bpf_call_label(a, g->walk);
	bpf_jump_imm(a, BPF_JEQ, R0, 0, fail);
}

/* r1: the aligned word that VA lies in, or to @fail. */
static void read_word(struct gen *g, unsigned fail)
{
	struct bpf_asm *a = &g->a;

	bpf_alu_imm(a, BPF_AND, VA, ~7);
	walk_va(g, fail);
	bpf_mov(a, R3, R0);
	bpf_mov(a, R1, R10);
	bpf_alu_imm(a, BPF_ADD, R1, SLOT_WORD);
	bpf_mov_imm(a, R2, 8);
	bpf_call(a, BPF_FUNC_probe_read_user);
	bpf_jump_imm(a, BPF_JNE, R0, 0, fail);
	bpf_load(a, R1, R10, SLOT_WORD);
}

/* Copies the page that VA lies in, and makes VA its start; to @fail if it cannot. */
static void copy_page(struct gen *g, unsigned page, unsigned fail)
{
	struct bpf_asm *a = &g->a;

	bpf_alu_imm(a, BPF_AND, VA, -TCG_SNAPSHOT_PAGE);
	walk_va(g, fail);
	copy_in(a, page_off(page), TCG_SNAPSHOT_PAGE, R0);
	bpf_jump_imm(a, BPF_JNE, R0, 0, fail);
	bpf_store(a, REC, va_off(page), VA);
}

/* That page, and the one above, as @page and the next one. */
static void copy_pages(struct gen *g, unsigned page)
{
	unsigned fail = bpf_label(&g->a);

	copy_page(g, page, fail);
	bpf_alu_imm(&g->a, BPF_ADD, VA, TCG_SNAPSHOT_PAGE);
	copy_page(g, page + 1, fail);
	bpf_set_label(&g->a, fail);
}

/* VA += an offset of the guest's. */
static void add_offset(struct bpf_asm *a, uint64_t offset)
{
	bpf_load_imm64(a, R1, offset);
	bpf_alu(a, BPF_ADD, VA, R1);
}

/* The event's own facts: time, CPU, counter, and where the host was. */
static void copy_tick(struct gen *g)
{
	struct bpf_asm *a = &g->a;

	bpf_call(a, BPF_FUNC_ktime_get_ns);
	bpf_store(a, REC, REC_OFF(time), R0);
	bpf_call(a, BPF_FUNC_get_smp_processor_id);
	bpf_store32(a, REC, REC_OFF(cpu), R0);
	bpf_mov_imm(a, R1, (int32_t)g->p->source);
	bpf_store32(a, REC, REC_OFF(source), R1);
	bpf_mov(a, R1, CTX);
	bpf_mov(a, R2, REC);
	bpf_alu_imm(a, BPF_ADD, R2, REC_OFF(value));
	bpf_mov_imm(a, R3, 24); /* value, enabled, running */
	bpf_call(a, BPF_FUNC_perf_prog_read_value);
	/* struct bpf_perf_event_data starts with x86's struct pt_regs: bp, ip and cs are words 4,
	 * 16, 17 */
	bpf_load(a, R1, CTX, 16 * 8);
	bpf_store(a, REC, REC_OFF(host_ip), R1);
	bpf_load(a, R1, CTX, 4 * 8);
	bpf_store(a, REC, REC_OFF(host_areg0), R1);
	bpf_load(a, R1, CTX, 17 * 8);
	bpf_alu_imm(a, BPF_AND, R1, 3);
	bpf_store(a, REC, REC_OFF(host_user), R1);
}

static void copy_state(struct gen *g)
{
	const struct tcg_layout *l = g->p->layout;
	struct bpf_asm *a = &g->a;

	bpf_load_imm64(a, R3, g->p->env);
	copy_in(a, REC_OFF(env), TCG_ENV_HEAD, R3);
	bpf_store(a, REC, REC_OFF(env_error), R0);
	bpf_mov_imm(a, R1, 0);
	bpf_store(a, REC, REC_OFF(kernel_gs), R1);
	bpf_store(a, REC, REC_OFF(halted), R1);
	if (l->kernel_gs) {
		bpf_load_imm64(a, R3, g->p->env + l->kernel_gs);
		copy_in(a, REC_OFF(kernel_gs), 8, R3);
	}
	if (l->halted) {
		bpf_load_imm64(a, R3, g->p->env - l->halted);
		copy_in(a, REC_OFF(halted), 4, R3);
	}
}

static void load_root_arm64(struct gen *g)
{
	load_env(g, ROOT, g->p->layout->ttbr0);
	bpf_load_imm64(&g->a, R1, ARM64_ADDRESS);
	bpf_alu(&g->a, BPF_AND, ROOT, R1);
}

static void load_root(struct gen *g)
{
	uint64_t clear = g->p->wanted ? g->p->wanted->root_clear : 0;
	struct bpf_asm *a = &g->a;
	unsigned four = bpf_label(a);

	load_env(g, ROOT, tcg_env_cr(g->p->layout, 3));
	bpf_load_imm64(a, R1, X86_ADDR_MASK & ~clear);
	bpf_alu(a, BPF_AND, ROOT, R1);
	load_env(g, R1, tcg_env_cr(g->p->layout, 4));
	bpf_alu_imm(a, BPF_AND, R1, X86_CR4_LA57);
	bpf_jump_imm(a, BPF_JEQ, R1, 0, four);
	bpf_alu_imm(a, BPF_OR, ROOT, TABLE_LA57);
	bpf_set_label(a, four);
}

/* VA: start of the CPU's own area. */
static void load_area(struct gen *g)
{
	struct bpf_asm *a = &g->a;
	unsigned upper = bpf_label(a);

	if (g->arm64) {
		load_env(g, VA, g->p->layout->tpidr_el1);
		return;
	}
	load_env(g, VA, tcg_env_gs_base(g->p->layout));
	bpf_jump_imm(a, BPF_JSLT, VA, 0, upper);
	bpf_load(a, VA, REC, REC_OFF(kernel_gs));
	bpf_set_label(a, upper);
}

/* r1, and to @known: the running task, where aarch64's kernel has it in a register. */
static void task_in_register(struct gen *g, unsigned known)
{
	struct bpf_asm *a = &g->a;
	unsigned user = bpf_label(a);

	load_sp(g, R1);
	bpf_jump_imm(a, BPF_JSGE, R1, 0, user);
	load_env(g, R1, g->p->layout->sp_el0);
	bpf_jump_imm(a, BPF_JSLT, R1, 0, known);
	bpf_set_label(a, user);
}

/* The running task, by the CPU's own area, which SLOT_GS is then. */
static void copy_task(struct gen *g, unsigned fail)
{
	struct bpf_asm *a = &g->a;
	unsigned known = bpf_label(a);

	if (g->arm64)
		task_in_register(g, known);
	load_area(g);
	bpf_store(a, R10, SLOT_GS, VA);
	add_offset(a, g->p->wanted->current);
	read_word(g, fail);
	bpf_set_label(a, known);
	bpf_store(a, REC, REC_OFF(task), R1);
	bpf_mov_imm(a, R1, 0);
	bpf_store(a, REC, REC_OFF(task_error), R1);
}

/* The top of the task's kernel stack, and where user mode's stack pointer that lies there leads. */
static void copy_user(struct gen *g)
{
	const struct guest_wanted *w = g->p->wanted;
	struct bpf_asm *a = &g->a;
	unsigned end = bpf_label(a);

	bpf_load(a, VA, REC, REC_OFF(task));
	add_offset(a, w->task_stack);
	read_word(g, end);
	bpf_mov(a, VA, R1);
	add_offset(a, w->saved_sp);
	copy_page(g, TCG_PAGE_TASK_TOP, end);
	bpf_load(a, VA, REC,
		 page_off(TCG_PAGE_TASK_TOP) + (int)(w->saved_sp & (TCG_SNAPSHOT_PAGE - 8)));
	bpf_jump_imm(a, BPF_JSLE, VA, 0, end); /* a kernel thread has none */
	copy_pages(g, TCG_PAGE_USER);
	bpf_set_label(a, end);
}

/*
 * aarch64 on another stack than the task's: the page below the one at the top of that, which has
 * been copied already. It is not known where the CPU has its other stacks, but few stacks are
 * deeper.
 */
static void copy_below_top(struct gen *g)
{
	const struct guest_wanted *w = g->p->wanted;
	struct bpf_asm *a = &g->a;
	unsigned end = bpf_label(a);

	bpf_load(a, VA, REC, va_off(TCG_PAGE_TASK_TOP));
	bpf_jump_imm(a, BPF_JEQ, VA, 0, end);
	bpf_mov(a, R1, VA);
	load_sp(g, R2);
	bpf_alu_imm(a, BPF_ADD, R1, TCG_SNAPSHOT_PAGE);
	bpf_alu(a, BPF_SUB, R1, R2);
	bpf_load_imm64(a, R2, w->thread_size);
	bpf_jump(a, BPF_JLT, R1, R2, end);
	bpf_alu_imm(a, BPF_ADD, VA, -TCG_SNAPSHOT_PAGE);
	copy_page(g, TCG_PAGE_INTERRUPTED, end);
	bpf_set_label(a, end);
}

/* On the interrupt stack: the stack that was left for it. */
static void copy_interrupted(struct gen *g)
{
	const struct guest_wanted *w = g->p->wanted;
	struct bpf_asm *a = &g->a;
	unsigned end = bpf_label(a);

	if (!w->irq_stack)
		return;
	bpf_load(a, VA, R10, SLOT_GS);
	add_offset(a, w->irq_stack);
	read_word(g, end);
	bpf_mov(a, VA, R1);
	load_sp(g, R2);
	bpf_alu(a, BPF_SUB, R1, R2);
	bpf_load_imm64(a, R2, w->thread_size);
	bpf_jump(a, BPF_JGE, R1, R2, end);
	read_word(g, end);
	bpf_mov(a, VA, R1);
	copy_pages(g, TCG_PAGE_INTERRUPTED);
	bpf_set_label(a, end);
}

static void copy_memory(struct gen *g)
{
	struct bpf_asm *a = &g->a;
	unsigned end = bpf_label(a);

	bpf_mov_imm(a, R1, 0);
	for (unsigned page = 0; page < TCG_SNAPSHOT_PAGES; page++)
		bpf_store(a, REC, va_off(page), R1);
	bpf_mov_imm(a, R1, -EFAULT);
	bpf_store(a, REC, REC_OFF(task_error), R1);
	if (g->arm64)
		load_root_arm64(g);
	else
		load_root(g);
	load_sp(g, VA);
	copy_pages(g, TCG_PAGE_SP);
	if (g->p->wanted) {
		copy_task(g, end);
		load_sp(g, R1);
		bpf_jump_imm(a, BPF_JSGE, R1, 0, end); /* user mode */
		copy_user(g);
		if (g->arm64)
			copy_below_top(g);
		else
			copy_interrupted(g);
	}
	bpf_set_label(a, end);
}

/* VA: struct tcg_shared. Goes to @is_new if the task is not known, which it is then. */
static void know_task(struct gen *g, unsigned is_new)
{
	struct bpf_asm *a = &g->a;
	unsigned known = bpf_label(a);

	bpf_load(a, R1, REC, REC_OFF(task_error));
	bpf_jump_imm(a, BPF_JNE, R1, 0, known);
	bpf_load(a, R1, REC, REC_OFF(task));
	bpf_mov(a, R2, R1);
	bpf_alu_imm(a, BPF_RSH, R2, 6);
	bpf_alu_imm(a, BPF_AND, R2, TCG_KNOWN_TASKS - 1);
	bpf_alu_imm(a, BPF_LSH, R2, 3);
	bpf_alu(a, BPF_ADD, R2, VA);
	bpf_load(a, R3, R2, (int)offsetof(struct tcg_shared, known));
	bpf_jump(a, BPF_JEQ, R3, R1, known);
	bpf_store(a, R2, (int)offsetof(struct tcg_shared, known), R1);
	bpf_goto(a, is_new);
	bpf_set_label(a, known);
}

/* r2: whether submitting wakes the reader, as tcg_snapshots_sleep() has it. */
static void choose_wakeup(struct gen *g)
{
	struct bpf_asm *a = &g->a;
	unsigned wake = bpf_label(a), end = bpf_label(a);

	bpf_load_map_value(a, VA, g->p->shared_fd);
	know_task(g, wake);
	bpf_load(a, R1, VA, (int)offsetof(struct tcg_shared, sleeping));
	bpf_jump_imm(a, BPF_JNE, R1, 0, wake);
	bpf_load_map(a, R1, g->p->ring_fd);
	bpf_mov_imm(a, R2, BPF_RB_AVAIL_DATA);
	bpf_call(a, BPF_FUNC_ringbuf_query);
	bpf_jump_imm(a, BPF_JGE, R0, (int32_t)(g->p->ring_size / 4), wake);
	bpf_mov_imm(a, R2, BPF_RB_NO_WAKEUP);
	bpf_goto(a, end);
	bpf_set_label(a, wake);
	bpf_mov_imm(a, R1, 0);
	bpf_store(a, VA, (int)offsetof(struct tcg_shared, sleeping), R1);
	bpf_mov_imm(a, R2, BPF_RB_FORCE_WAKEUP);
	bpf_set_label(a, end);
}

static void generate(struct gen *g)
{
	struct bpf_asm *a = &g->a;
	unsigned full = bpf_label(a);

	g->walk = bpf_label(a);
	bpf_mov(a, CTX, R1);
	bpf_load_map(a, R1, g->p->ring_fd);
	bpf_mov_imm(a, R2, (int32_t)sizeof(struct tcg_snapshot));
	bpf_mov_imm(a, R3, 0);
	bpf_call(a, BPF_FUNC_ringbuf_reserve);
	bpf_jump_imm(a, BPF_JEQ, R0, 0, full);
	bpf_mov(a, REC, R0);
	copy_tick(g);
	copy_state(g);
	copy_memory(g);
	choose_wakeup(g);
	bpf_mov(a, R1, REC);
	bpf_call(a, BPF_FUNC_ringbuf_submit);
	bpf_mov_imm(a, R0, 0); /* the event writes nothing */
	bpf_exit(a);
	bpf_set_label(a, full);
	bpf_mov_imm(a, R0, 1); /* it writes its own record */
	bpf_exit(a);
	walk_function(g);
}

int tcg_program_load(const struct tcg_program *p, struct vmprof_err *err)
{
	struct gen *g = xcalloc(1, sizeof(*g));
	int fd;

	bpf_asm_init(&g->a);
	g->p = p;
	g->arm64 = p->layout->arch == GUEST_ARCH_AARCH64;
	generate(g);
	fd = bpf_asm_load(&g->a, BPF_PROG_TYPE_PERF_EVENT, "vmprof_tcg", err);
	free(g);
	return fd;
}
