// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linux calls its FIQ handler by a pointer, handle_arch_fiq, which an interrupt controller's driver
 * may set while the kernel starts; afterwards it is read-only, and no module can name it. It is
 * found in the code that loads it, and known by what it points to. Where that fails, the handler
 * that it points to, default_handle_fiq(), is replaced as a live patch replaces a function, by
 * ftrace: that costs some hundred instructions each time.
 */
#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/version.h>
#include <linux/vmalloc.h>

#include "fiq_arm64.h"

typedef void handler(struct pt_regs *regs);

static char default_name[] = "default_handle_fiq";
static const char entry_name[] = "el1h_64_fiq_handler";

static handler **pointer; /* null if it is not found */
static handler **alias; /* the same word where it can be written, while ours is there; else null */
static handler *ours, *before;

/* ------------------------------------------------------------------ by the pointer */

/* Arm ARM C6.2, ADRP: which page this instruction at address puts into a register. */
static unsigned long adrp_page(unsigned long address, u32 code)
{
	s64 pages = sign_extend64((code >> 5 & 0x7ffff) << 2 | (code >> 29 & 3), 20);

	return (address & ~0xffful) + (pages << 12);
}

/* Of the words that this code loads by ADRP and LDR, the one that is value; or null. */
static unsigned long *loaded_word(const u32 *code, u32 nr, unsigned long value)
{
	unsigned long page[32] = {0}, *word;
	u32 i;

	for (i = 0; i < nr; i++) {
		u32 base = code[i] >> 5 & 31;

		if ((code[i] & 0x9f000000) == 0x90000000)
			page[code[i] & 31] = adrp_page((unsigned long)&code[i], code[i]);
		if ((code[i] & 0xffc00000) != 0xf9400000 || !page[base])
			continue;
		word = (unsigned long *)(page[base] + (code[i] >> 10 & 0xfff) * sizeof(*word));
		if (*word == value)
			return word;
	}
	return NULL;
}

static handler **find_pointer(void)
{
	struct kprobe probe = {.symbol_name = "kallsyms_lookup_name"};
	unsigned long (*look_up)(const char *name), entry, wanted;

	if (register_kprobe(&probe))
		return NULL;
	look_up = (void *)probe.addr;
	unregister_kprobe(&probe);
	entry = look_up(entry_name);
	wanted = look_up(default_name);
	return entry && wanted ? (handler **)loaded_word((const u32 *)entry, 32, wanted) : NULL;
}

static int set_pointer(void)
{
	struct page *page = phys_to_page(__pa_symbol(pointer));
	void *mapped = vmap(&page, 1, VM_MAP, PAGE_KERNEL);

	if (!mapped)
		return -ENOMEM;
	alias = mapped + offset_in_page(pointer);
	before = *alias;
	WRITE_ONCE(*alias, ours);
	return 0;
}

static void reset_pointer(void)
{
	WRITE_ONCE(*alias, before);
	vunmap((void *)((unsigned long)alias & PAGE_MASK));
	alias = NULL;
}

/* ------------------------------------------------------------------ by ftrace */

/* In place of default_handle_fiq(), with its argument. */
static void notrace redirect(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
			     struct ftrace_regs *fregs)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
	ftrace_regs_set_instruction_pointer(fregs, (unsigned long)ours);
#else
	instruction_pointer_set(ftrace_get_regs(fregs), (unsigned long)ours);
#endif
}

static struct ftrace_ops ops = {
	.func = redirect,
	.flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT
#ifndef CONFIG_HAVE_DYNAMIC_FTRACE_WITH_ARGS
		 | FTRACE_OPS_FL_SAVE_REGS
#endif
	,
};

static bool chosen; /* the function, once: freed, a filter is of no further use before 6.13 */

static int replace(void)
{
	int err = chosen ? 0 : ftrace_set_filter(&ops, default_name, strlen(default_name), 1);

	chosen = !err;
	return err ?: register_ftrace_function(&ops);
}

/* ------------------------------------------------------------------ */

int vg_fiq_take(handler *handler)
{
	ours = handler;
	if (!pointer)
		pointer = find_pointer();
	return pointer && !set_pointer() ? 0 : replace();
}

void vg_fiq_give_back(void)
{
	if (alias)
		reset_pointer();
	else
		unregister_ftrace_function(&ops);
	/* What was called before runs with interrupts off. */
	synchronize_rcu();
}

void vg_fiq_exit(void)
{
	if (chosen)
		ftrace_free_filter(&ops);
}
