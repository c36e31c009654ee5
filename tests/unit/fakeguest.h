// SPDX-License-Identifier: GPL-2.0-only
/*
 * A minimal Linux guest, made up in fakemem: page tables, IDT, GDT, a kernel image with kallsyms
 * and BTF, one module, one task. A test declares what it needs between fakeguest_init() and
 * fakeguest_finish(): symbols, members of structs, contents of memory.
 *
 * Physical memory is handed out page by page from 0x1000 on. Kernel data can be anywhere in the
 * direct map (fg_kva()); the image is mapped at .text with 4 KiB pages, in the order of allocation.
 */
#ifndef VMPROF_TESTS_UNIT_FAKEGUEST_H
#define VMPROF_TESTS_UNIT_FAKEGUEST_H

#include <elf.h>
#include <stdio.h>

#include "guest/sample.h"
#include "tests/unit/fakemem.h"
#include "util/buf.h"

#define FG_PAGE	      4096ull
#define FG_RAM	      (512ull << 10)
#define FG_DIRECT_MAP 0xffff888000000000ull /* of RAM; with LA57 0xff11000000000000 */
#define FG_TEXT	      0xffffffff82a00000ull
#define FG_MODULE     0xffffffffc0201000ull
#define FG_CANARY     0x1122334455667700ull

enum { FG_MAX_SYMS = 1024, FG_MAX_MEMBERS = 256, FG_MAX_STRUCTS = 64, FG_MAX_ENUMS = 32 };

enum fg_addresses { FG_RELATIVE_PERCPU, FG_RELATIVE, FG_ABSOLUTE, FG_PLACE_RELATIVE };

struct fg_options {
	bool la57, pti;
	bool no_btf, no_module;
	bool arm64;	     /* blocks of page tables are its; see fakearm64.h */
	bool functions_only; /* no data in kallsyms: without CONFIG_KALLSYMS_ALL */
	/* how kallsyms is laid out; 0 is that of 6.4 to 6.14 */
	bool old_order;	  /* addresses before num_syms: up to 6.3 */
	bool seqs;	  /* seqs_of_names between markers and tokens: 6.2 and 6.3 */
	bool narrow;	  /* lengths of one byte: before 6.1 */
	bool markers64;	  /* before 4.20 */
	bool align4;	  /* 7.x; else to 8 */
	bool core_layout; /* struct module before 6.4 */
	enum fg_addresses addresses;
};

struct fg_sym {
	char name[256];
	char type;
	uint64_t addr;
};

struct fg_member {
	char of[32], name[32],
		type[32]; /* type: "" for long, "NAME", "NAME[]", "*" for a pointer */
	uint32_t off;
};

struct fakeguest {
	struct fakemem fm;
	struct guest_regs regs; /* of CPU 0, in kernel mode */
	struct fg_options opt;
	uint64_t next; /* gpa of the next free page */
	uint64_t root; /* init_top_pgt, gpa */
	uint64_t image_pages;
	uint64_t direct_map;
	uint64_t init_task, percpu, module, modules_head; /* kernel addresses */
	uint64_t spare; /* 256 bytes of data in the image: what has a symbol must lie there */
	struct fg_sym syms[FG_MAX_SYMS];
	size_t nsyms;
	struct fg_member members[FG_MAX_MEMBERS];
	size_t nmembers;
	struct {
		char name[32];
		uint32_t size;
	} structs[FG_MAX_STRUCTS];
	size_t nstructs;
	struct {
		char name[32];
		int32_t value;
	} enums[FG_MAX_ENUMS];
	size_t nenums;
};

#define FG_FUNC __attribute__((unused)) static

/* ---------- memory ---------- */

FG_FUNC uint64_t fg_alloc(struct fakeguest *g, uint64_t pages)
{
	uint64_t gpa = g->next;

	g->next += pages * FG_PAGE;
	if (g->next > g->fm.size) {
		fprintf(stderr, "fakeguest: out of RAM\n");
		abort();
	}
	return gpa;
}

FG_FUNC uint64_t fg_kva(const struct fakeguest *g, uint64_t gpa)
{
	return g->direct_map + gpa;
}

FG_FUNC uint64_t *fg_entry(struct fakeguest *g, uint64_t table, uint64_t va, int level)
{
	return (uint64_t *)(g->fm.ram + table) + ((va >> (12 + 9 * (level - 1))) & 511);
}

/* Maps a page of 4 KiB << 9 * (level - 1); tables are allocated as needed. */
FG_FUNC void fg_map_level(struct fakeguest *g, uint64_t root, uint64_t va, uint64_t gpa, int level)
{
	uint64_t table = root;

	for (int l = g->opt.la57 ? 5 : 4; l > level; l--) {
		uint64_t *e = fg_entry(g, table, va, l);

		if (!*e)
			*e = fg_alloc(g, 1) | 0x67;
		table = *e & 0xffffffffff000ull;
	}
	*fg_entry(g, table, va, level) = gpa | (level == 1 ? 0x67 : g->opt.arm64 ? 0xe5 : 0xe7);
}

FG_FUNC void fg_map(struct fakeguest *g, uint64_t root, uint64_t va, uint64_t gpa, uint64_t pages)
{
	for (uint64_t i = 0; i < pages; i++)
		fg_map_level(g, root, va + i * FG_PAGE, gpa + i * FG_PAGE, 1);
}

/* Where a mapped address lies in host memory; NULL if it is not mapped. */
FG_FUNC uint8_t *fg_host(struct fakeguest *g, uint64_t root, uint64_t va)
{
	uint64_t table = root;

	for (int l = g->opt.la57 ? 5 : 4;; l--) {
		uint64_t e = *fg_entry(g, table, va, l), page = FG_PAGE << 9 * (l - 1);

		if (!(e & 1))
			return NULL;
		table = e & 0xffffffffff000ull;
		if (l == 1 || (e & 0x80))
			return g->fm.ram + table + (va & (page - 1));
	}
}

FG_FUNC void fg_write(struct fakeguest *g, uint64_t root, uint64_t va, const void *buf, size_t len)
{
	for (const uint8_t *p = buf; len; len--, p++, va++) {
		uint8_t *to = fg_host(g, root, va);

		if (!to) {
			fprintf(stderr, "fakeguest: %#lx is not mapped\n", (unsigned long)va);
			abort();
		}
		*to = *p;
	}
}

FG_FUNC void fg_put64(struct fakeguest *g, uint64_t va, uint64_t v)
{
	fg_write(g, g->root, va, &v, 8);
}

FG_FUNC void fg_put32(struct fakeguest *g, uint64_t va, uint32_t v)
{
	fg_write(g, g->root, va, &v, 4);
}

FG_FUNC void fg_puts(struct fakeguest *g, uint64_t va, const char *s)
{
	fg_write(g, g->root, va, s, strlen(s) + 1);
}

/* Fresh pages of kernel data, by their direct-map address. */
FG_FUNC uint64_t fg_data(struct fakeguest *g, uint64_t pages)
{
	return fg_kva(g, fg_alloc(g, pages));
}

/* The same inside the kernel's image, behind what is there. */
FG_FUNC uint64_t fg_image(struct fakeguest *g, uint64_t pages)
{
	uint64_t va = FG_TEXT + g->image_pages * FG_PAGE;

	fg_map(g, g->root, va, fg_alloc(g, pages), pages);
	g->image_pages += pages;
	return va;
}

/* A process's page table: its own lower half, the kernel's upper half. Returns its gpa. */
FG_FUNC uint64_t fg_new_root(struct fakeguest *g)
{
	uint64_t root = fg_alloc(g, 1);

	memcpy(g->fm.ram + root + 2048, g->fm.ram + g->root + 2048, 2048);
	return root;
}

/* ---------- what the kernel is made of ---------- */

FG_FUNC void fg_sym(struct fakeguest *g, char type, const char *name, uint64_t addr)
{
	struct fg_sym *s = &g->syms[g->nsyms];

	if (g->opt.functions_only && type != 'T' && type != 't')
		return;
	if (++g->nsyms > FG_MAX_SYMS)
		abort();
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->type = type;
	s->addr = addr;
}

FG_FUNC void fg_struct(struct fakeguest *g, const char *name, uint32_t size)
{
	if (g->nstructs >= FG_MAX_STRUCTS)
		abort();
	snprintf(g->structs[g->nstructs].name, 32, "%s", name);
	g->structs[g->nstructs++].size = size;
}

/* A name of "" is an unnamed member. The struct must have been declared, @type too. */
FG_FUNC void fg_member(struct fakeguest *g, const char *of, const char *name, uint32_t off,
		       const char *type)
{
	struct fg_member *m = &g->members[g->nmembers++];

	if (g->nmembers > FG_MAX_MEMBERS)
		abort();
	snprintf(m->of, sizeof(m->of), "%s", of);
	snprintf(m->name, sizeof(m->name), "%s", name);
	snprintf(m->type, sizeof(m->type), "%s", type);
	m->off = off;
}

FG_FUNC void fg_enum(struct fakeguest *g, const char *name, int32_t value)
{
	if (g->nenums >= FG_MAX_ENUMS)
		abort();
	snprintf(g->enums[g->nenums].name, 32, "%s", name);
	g->enums[g->nenums++].value = value;
}

#include "tests/unit/fakeguest_image.h"

/* ---------- the module ---------- */

enum {
	FG_MOD_LIST = 8,
	FG_MOD_NAME = 24,
	FG_MOD_KALLSYMS = 88,
	FG_MOD_NOTES = 96,
	FG_MOD_MEM = 128, /* [7] of 24 bytes: base, size */
	FG_MOD_ARCH = 320,
	FG_MOD_SIZE = 384
};

FG_FUNC void fg_module_types(struct fakeguest *g)
{
	fg_struct(g, "list_head", 16);
	fg_struct(g, "module_memory", 24);
	fg_member(g, "module_memory", "base", 0, "*");
	fg_member(g, "module_memory", "size", 8, "");
	fg_struct(g, "module_layout", 24);
	fg_member(g, "module_layout", "base", 0, "*");
	fg_member(g, "module_layout", "text_size", 8, "");
	fg_struct(g, "mod_arch_specific", 24);
	fg_member(g, "mod_arch_specific", "num_orcs", 0, "");
	fg_member(g, "mod_arch_specific", "orc_unwind_ip", 8, "*");
	fg_member(g, "mod_arch_specific", "orc_unwind", 16, "*");
	fg_struct(g, "mod_kallsyms", 32);
	fg_member(g, "mod_kallsyms", "symtab", 0, "*");
	fg_member(g, "mod_kallsyms", "num_symtab", 8, "");
	fg_member(g, "mod_kallsyms", "strtab", 16, "*");
	fg_member(g, "mod_kallsyms", "typetab", 24, "*");
	fg_struct(g, "attribute", 16);
	fg_member(g, "attribute", "name", 0, "*");
	fg_struct(g, "bin_attribute", 40);
	fg_member(g, "bin_attribute", "attr", 0, "attribute");
	fg_member(g, "bin_attribute", "size", 16, "");
	fg_member(g, "bin_attribute", "private", 24, "*");
	fg_struct(g, "module_notes_attrs", 16);
	fg_member(g, "module_notes_attrs", "notes", 8, "");
	fg_member(g, "module_notes_attrs", "attrs", 16, "bin_attribute[]");
	fg_struct(g, "module", FG_MOD_SIZE);
	fg_member(g, "module", "state", 0, "");
	fg_member(g, "module", "list", FG_MOD_LIST, "list_head");
	fg_member(g, "module", "name", FG_MOD_NAME, "");
	fg_member(g, "module", "kallsyms", FG_MOD_KALLSYMS, "*");
	fg_member(g, "module", "notes_attrs", FG_MOD_NOTES, "*");
	if (g->opt.core_layout) {
		fg_member(g, "module", "core_layout", FG_MOD_MEM, "module_layout");
	} else {
		fg_member(g, "module", "mem", FG_MOD_MEM, "module_memory[]");
		fg_enum(g, "MOD_TEXT", 0);
	}
	fg_member(g, "module", "arch", FG_MOD_ARCH, "mod_arch_specific");
}

FG_FUNC void fg_elf_sym(struct fakeguest *g, uint64_t va, uint32_t name, uint64_t value)
{
	Elf64_Sym s = {.st_name = name, .st_value = value, .st_info = STB_GLOBAL << 4 | STT_FUNC};

	s.st_shndx = value ? 1 : SHN_UNDEF;
	fg_write(g, g->root, va, &s, sizeof(s));
}

/* An ELF note with build id @byte repeated. Returns its length. */
FG_FUNC uint64_t fg_build_id(struct fakeguest *g, uint64_t va, uint8_t byte)
{
	Elf64_Nhdr h = {4, 20, NT_GNU_BUILD_ID};
	uint8_t id[20];

	memset(id, byte, sizeof(id));
	fg_write(g, g->root, va, &h, sizeof(h));
	fg_puts(g, va + sizeof(h), "GNU");
	fg_write(g, g->root, va + sizeof(h) + 4, id, sizeof(id));
	return sizeof(h) + 4 + sizeof(id);
}

/*
 * Puts module @name of one page of text at @text into the list, as its first. Symbols: mod_init at
 * its start, mod_work 0x100 behind it; build id 0xbb. Returns the address of struct module.
 */
FG_FUNC uint64_t fg_add_module(struct fakeguest *g, const char *name, uint64_t text)
{
	uint64_t mod = fg_data(g, 1), first, ks = mod + 512, syms = mod + 576, strs = mod + 704;
	uint64_t types = mod + 768, notes = mod + 832, note = mod + 1024;

	fg_map(g, g->root, text, fg_alloc(g, 1), 1);
	memcpy(&first, fg_host(g, g->root, g->modules_head), 8);
	fg_put64(g, mod + FG_MOD_LIST, first);
	fg_put64(g, mod + FG_MOD_LIST + 8, g->modules_head);
	fg_put64(g, g->modules_head, mod + FG_MOD_LIST);
	fg_puts(g, mod + FG_MOD_NAME, name);
	fg_put64(g, mod + FG_MOD_KALLSYMS, ks);
	fg_put64(g, mod + FG_MOD_NOTES, notes);
	fg_put64(g, mod + FG_MOD_MEM, text);
	fg_put32(g, mod + FG_MOD_MEM + 8, FG_PAGE);
	fg_put32(g, mod + FG_MOD_ARCH, 2);
	fg_put64(g, mod + FG_MOD_ARCH + 8, mod + 2048);
	fg_put64(g, mod + FG_MOD_ARCH + 16, mod + 2064);
	fg_put64(g, ks, syms);
	fg_put32(g, ks + 8, 4);
	fg_put64(g, ks + 16, strs);
	fg_put64(g, ks + 24, types);
	fg_elf_sym(g, syms, 0, 0);
	fg_elf_sym(g, syms + 24, 10, text + 0x100); /* mod_work */
	fg_elf_sym(g, syms + 48, 1, text);	    /* mod_init */
	fg_elf_sym(g, syms + 72, 1, 0);		    /* undefined */
	fg_write(g, g->root, strs, "\0mod_init\0mod_work", 19);
	fg_write(g, g->root, types, "?tTU", 4);
	fg_put32(g, notes + 8, 1);
	fg_put64(g, notes + 16, mod + 960);
	fg_puts(g, mod + 960, ".note.gnu.build-id");
	fg_put64(g, notes + 16 + 24, note);
	fg_put64(g, notes + 16 + 16, fg_build_id(g, note, 0xbb));
	return mod;
}

/* ---------- all of it ---------- */

enum { FG_TASK_CANARY = 0x500, FG_TASK_SIZE = 0x800, FG_CAPABILITY = 64 };
#define FG_FUNC_0     (FG_TEXT + 0x100) /* func_0 ..; one every 8 bytes */
#define FG_NR_FUNCS   300
#define FG_DIV_ERROR  (FG_TEXT + 0xe00) /* lowest handler */
#define FG_PERCPU_SYM 0x1c0		/* value of the per-CPU symbol current_task */

FG_FUNC void fg_tables(struct fakeguest *g)
{
	uint64_t idt = fg_data(g, 1), gdt = fg_data(g, 1), handler = FG_DIV_ERROR;
	uint8_t node[8] = {0, 0, 0, 0, 0, 0xf5, 0, 0}; /* CPU 0, node 0 */

	for (int i = 0; i < 20; i++, handler += 16) {
		uint64_t low = (handler & 0xffff) | 0x10ull << 16 | 0x8eull << 40 |
			       (handler >> 16 & 0xffff) << 48;

		fg_put64(g, idt + i * 16u, low);
		fg_put64(g, idt + i * 16u + 8, handler >> 32);
	}
	fg_write(g, g->root, gdt + 15 * 8, node, 8);
	g->regs = (struct guest_regs){
		.ip = FG_FUNC_0,
		.cr0 = 0x80050033,
		.cr4 = 0x6f0 | (g->opt.la57 ? 0x1000 : 0),
		.efer = 0xd01,
		.has_efer = true,
		.has_gs = true,
		.pgtable = g->root,
		.idt_base = idt,
		.gdt_base = gdt,
		.gs_base = g->percpu,
	};
}

FG_FUNC void fg_kernel_data(struct fakeguest *g)
{
	uint64_t data = fg_image(g, 1);

	g->percpu = fg_data(g, 1);
	g->init_task = data;
	g->modules_head = data + 0x800;
	g->spare = data + 0xf00;
	fg_put64(g, g->init_task + FG_TASK_CANARY, FG_CANARY);
	fg_put64(g, g->modules_head, g->modules_head);
	fg_put64(g, g->modules_head + 8, g->modules_head);
	fg_sym(g, 'D', "init_task", g->init_task);
	fg_sym(g, 'd', "modules", g->modules_head);
	fg_sym(g, 'D', "__per_cpu_offset", data + 0x880);
	fg_put64(g, data + 0x880, g->percpu);
	fg_put64(g, data + 0x888, g->percpu + 0x800);
	fg_sym(g, 'D', "nr_cpu_ids", data + 0x8c0);
	fg_put32(g, data + 0x8c0, 2);
	fg_sym(g, 'D', "boot_cpu_data", data + 0x900);
	fg_put32(g, data + 0x900 + FG_CAPABILITY + 7 * 4, g->opt.pti ? 1u << 11 : 0);
	fg_sym(g, 'D', "linux_banner", data + 0xa00);
	fg_puts(g, data + 0xa00, "Linux version 6.99.0-fake\033 (a@b) #1 SMP");
	fg_sym(g, 'R', "__start_notes", data + 0xb00);
	fg_sym(g, 'R', "__stop_notes", data + 0xb00 + fg_build_id(g, data + 0xb00, 0xaa));
	fg_sym(g, 'D', "init_top_pgt", FG_TEXT + FG_PAGE);
	if (g->opt.addresses == FG_RELATIVE_PERCPU || g->opt.addresses == FG_ABSOLUTE)
		fg_sym(g, 'A', "current_task", FG_PERCPU_SYM);
	fg_put64(g, g->percpu + FG_PERCPU_SYM, g->init_task);
}

FG_FUNC void fg_text(struct fakeguest *g)
{
	char name[256];

	fg_sym(g, 'T', "_text", FG_TEXT);
	fg_sym(g, 'T', "_stext", FG_TEXT);
	fg_sym(g, 'T', "_etext", FG_TEXT + FG_PAGE);
	fg_sym(g, 'T', "asm_exc_divide_error", FG_DIV_ERROR);
	for (int i = 0; i < FG_NR_FUNCS; i++) {
		snprintf(name, sizeof(name), "func_%d", i);
		fg_sym(g, 't', name, FG_FUNC_0 + (uint64_t)i * 8);
	}
	memset(name, 'x', sizeof(name));
	name[g->opt.narrow ? 100 : 200] = 0;
	fg_sym(g, 't', name, FG_TEXT + 0xf80);
}

/* No kernel: 8 MiB of memory in the direct map, for a test that puts into it what it needs. */
FG_FUNC void fakeguest_init_bare(struct fakeguest *g)
{
	memset(g, 0, sizeof(*g));
	fakemem_init(&g->fm, 8 << 20);
	g->fm.map = true;
	g->next = FG_PAGE;
	g->root = fg_alloc(g, 1);
	g->direct_map = FG_DIRECT_MAP;
	for (uint64_t gpa = 0; gpa < g->fm.size; gpa += 2ull << 20)
		fg_map_level(g, g->root, FG_DIRECT_MAP + gpa, gpa, 2);
}

FG_FUNC void fakeguest_init(struct fakeguest *g, const struct fg_options *opt)
{
	uint64_t dir;

	memset(g, 0, sizeof(*g));
	fakemem_init(&g->fm, FG_RAM);
	g->fm.map = true;
	if (opt)
		g->opt = *opt;
	g->next = FG_PAGE;
	g->direct_map = g->opt.la57 ? 0xff11000000000000ull : FG_DIRECT_MAP;
	/* The image: a page of text, then the page table itself (two with PTI), then data. */
	dir = fg_alloc(g, 1); /* of text */
	g->next = (g->next + 2 * FG_PAGE - 1) & ~(2 * FG_PAGE - 1);
	g->root = fg_alloc(g, 2);
	fg_map(g, g->root, FG_TEXT, dir, 1);
	fg_map(g, g->root, FG_TEXT + FG_PAGE, g->root, 2);
	g->image_pages = 3;
	for (uint64_t gpa = 0; gpa < g->fm.size; gpa += 2ull << 20)
		fg_map_level(g, g->root, g->direct_map + gpa, gpa, 2);
	fg_text(g);
	fg_kernel_data(g);
	fg_tables(g);
	fg_struct(g, "task_struct", FG_TASK_SIZE);
	fg_member(g, "task_struct", "stack_canary", FG_TASK_CANARY, "");
	fg_struct(g, "cpuinfo_x86", 256);
	fg_member(g, "cpuinfo_x86", "x86_capability", FG_CAPABILITY, "");
	fg_module_types(g);
	if (!g->opt.no_module)
		g->module = fg_add_module(g, "fake_mod", FG_MODULE);
}

/* Writes BTF and kallsyms: after this nothing can be declared any more. */
FG_FUNC void fakeguest_finish(struct fakeguest *g)
{
	struct buf b = {0};
	uint64_t va, pages;

	if (!g->opt.no_btf) {
		fg_btf(g, &b);
		va = fg_image(g, (b.len + FG_PAGE - 1) / FG_PAGE);
		fg_write(g, g->root, va, b.data, b.len);
		fg_sym(g, 'R', "__start_BTF", va);
		fg_sym(g, 'R', "__stop_BTF", va + b.len);
		buf_reset(&b);
	}
	va = FG_TEXT + g->image_pages * FG_PAGE;
	fg_kallsyms(g, &b); /* for its size: "_end" has none of its own to change it */
	pages = b.len / FG_PAGE + 2;
	buf_reset(&b);
	fg_sym(g, 'B', "_end", va + pages * FG_PAGE);
	fg_kallsyms(g, &b);
	fg_image(g, pages);
	fg_write(g, g->root, va, b.data, b.len);
	buf_free(&b);
}

FG_FUNC void fakeguest_free(struct fakeguest *g)
{
	fakemem_free(&g->fm);
}

#endif
