// SPDX-License-Identifier: GPL-2.0-only
/*
 * The made-up process of faketask.h in a guest of aarch64: page tables of this kind are those of
 * x86-64 but for blocks, and what differs in code, registers and saved registers is put over. The
 * kernel has functions only in its symbols: two of them use the variables that have none.
 *
 * fakearm64_make() goes behind faketask_add(), in a guest with .arm64 and .functions_only.
 */
#ifndef VMPROF_TESTS_UNIT_FAKEARM64_H
#define VMPROF_TESTS_UNIT_FAKEARM64_H

#include "tests/unit/faketask.h"

#define FA_IDLE_TASK   (FG_TEXT + 0xb00)
#define FA_FIND_MODULE (FG_TEXT + 0xb80)
#define FA_KERNEL_RET  (FG_DIV_ERROR + 8)
#define FA_TCR	       0x00000005b5503510ull

enum {
	FA_PT_REGS = 0x150,
	FA_RECORD = 0x130,
	FA_TASKS = 0x300, /* of task_struct */
	FA_RQ_CURR = 0x10,
	FA_RQ_IDLE = 0x18,
};

FG_FUNC uint32_t fa_bl(uint64_t from, uint64_t to)
{
	return 0x94000000u | ((uint32_t)((int64_t)(to - from) >> 2) & 0x3ffffff);
}

/* adrp xN, page of @to; add xN, xN, the rest */
FG_FUNC void fa_address(struct fakeguest *g, uint64_t at, unsigned n, uint64_t to)
{
	uint32_t pages = (uint32_t)((int64_t)((to & ~4095ull) - (at & ~4095ull)) >> 12);

	fg_put32(g, at, 0x90000000u | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5 | n);
	fg_put32(g, at + 4, 0x91000000u | (uint32_t)(to & 4095) << 10 | n << 5 | n);
}

FG_FUNC void fa_list(struct fakeguest *g, uint64_t a, uint64_t b)
{
	fg_put64(g, a, b);
	fg_put64(g, b + 8, a);
}

/* What x86-64 has of address spaces, and this has not. */
FG_FUNC void fa_types(struct fakeguest *g)
{
	for (size_t i = 0; i < g->nmembers; i++)
		if (!strcmp(g->members[i].name, "ctx_id") || !strcmp(g->members[i].name, "tlb_gen"))
			g->members[i].name[0] = '_';
	fg_member(g, "mm_struct", "arg_start", 0x58, "");
	fg_member(g, "task_struct", "tasks", FA_TASKS, "");
	fg_struct(g, "rq", 0x100);
	fg_member(g, "rq", "cpu", 0, "");
	fg_member(g, "rq", "nr_switches", 8, "");
	fg_member(g, "rq", "curr", FA_RQ_CURR, "*");
	fg_member(g, "rq", "idle", FA_RQ_IDLE, "*");
	fg_struct(g, "pt_regs", FA_PT_REGS);
	fg_member(g, "pt_regs", "stackframe", FA_RECORD, "");
}

/* The run queue is linked to where the image's spare bytes are. */
FG_FUNC void fa_variables(struct fakeguest *g, const struct faketask *t)
{
	uint64_t offsets = g->init_task + 0x880, linked = g->spare + 0x40, rq;
	uint64_t offset = g->percpu - (linked & ~4095ull);

	fg_put64(g, offsets, offset);
	rq = linked + offset;
	fg_put32(g, rq, 0);
	fg_put64(g, rq + 8, 17);
	fg_put64(g, rq + FA_RQ_CURR, t->task);
	fg_put64(g, rq + FA_RQ_IDLE, g->init_task);
	fg_put32(g, g->init_task + 0x2c, 0);
	fg_puts(g, g->init_task + 0x50, "swapper/0");
	fa_list(g, g->init_task + FA_TASKS, t->task + FA_TASKS);
	fa_list(g, t->task + FA_TASKS, g->init_task + FA_TASKS);
	fg_sym(g, 't', "idle_task", FA_IDLE_TASK);
	fa_address(g, FA_IDLE_TASK, 1, linked);
	fa_address(g, FA_IDLE_TASK + 8, 2, offsets);
	fg_put32(g, FA_IDLE_TASK + 16, 0xd65f03c0);
	fg_sym(g, 't', "find_module_all", FA_FIND_MODULE);
	fa_address(g, FA_FIND_MODULE, 1, g->spare);
	fa_address(g, FA_FIND_MODULE + 8, 19, g->modules_head);
	fg_put32(g, FA_FIND_MODULE + 16, 0xd65f03c0);
}

FG_FUNC void fa_code(struct fakeguest *g, struct faketask *t)
{
	for (int i = 0; i < FT_FRAMES; i++) {
		for (uint64_t at = FT_FUNC(i); at < FT_FUNC(i) + 0x40; at += 4)
			fg_write(g, t->root, at, &(uint32_t){0xd503201f}, 4);
		if (i)
			fg_write(g, t->root, FT_RETURN(i) - 4,
				 &(uint32_t){fa_bl(FT_RETURN(i) - 4, FT_FUNC(i - 1))}, 4);
	}
	fg_put32(g, FA_KERNEL_RET - 4, fa_bl(FA_KERNEL_RET - 4, FT_KERNEL_IP));
}

FG_FUNC void fa_registers(struct fakeguest *g, struct faketask *t)
{
	struct guest_regs regs = {
		.tcr = FA_TCR,
		.pgtable = t->root | 0x00ab000000000001ull,
		.pgtable_kernel = g->root | 1,
		.vbar = FG_TEXT + 0x800,
		.tpidr_el1 = g->percpu - ((g->spare + 0x40) & ~4095ull),
	};
	uint64_t saved = t->kstack + FT_THREAD - FA_PT_REGS, record = saved - 32;
	uint64_t sp = t->user.sp, fp = t->user.fp;

	t->user = t->kernel = regs;
	t->user.ip = FT_FUNC(0) + 8;
	t->user.sp = t->user.sp_el0 = sp;
	t->user.fp = t->user.gpr[29] = fp;
	t->user.gpr[30] = FT_RETURN(1);
	t->user.cpl = 3;
	t->kernel.ip = FT_KERNEL_IP;
	t->kernel.sp = t->kernel.fp = t->kernel.gpr[29] = record;
	t->kernel.gpr[30] = FA_KERNEL_RET;
	t->kernel.sp_el0 = t->task;
	g->regs = t->kernel;
	fg_put64(g, record, saved + FA_RECORD);
	fg_put64(g, record + 8, FA_KERNEL_RET);
	for (uint64_t i = 0; i < FA_PT_REGS; i += 8)
		fg_put64(g, saved + i, 0);
	fg_put64(g, saved + 29 * 8, fp);
	fg_put64(g, saved + 30 * 8, FT_RETURN(1));
	fg_put64(g, saved + 31 * 8, sp);
	fg_put64(g, saved + 32 * 8, FT_FUNC(0) + 8);
}

FG_FUNC void fakearm64_make(struct fakeguest *g, struct faketask *t)
{
	fa_types(g);
	fa_variables(g, t);
	fa_code(g, t);
	fa_registers(g, t);
}

#endif
