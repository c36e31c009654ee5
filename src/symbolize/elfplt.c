// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of the slots through which a program calls other files' functions, and its own indirect
 * ones: no symbol table has them. A slot jumps to where a word of the GOT points, and a relocation
 * says of that word whose address it is. Which section has the slots, how large they are, and in
 * which order, differs by linker, hardening and kind of program: so the code of the slots is read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/symtab.h"
#include "util/xalloc.h"

enum {
	MAX_SLOTS = 1 << 16,
	MAX_RELOCS = 1 << 19,
	MAX_CODE = 16 << 20, /* bytes of one section of slots */
	MAX_NAME = 1 << 10,
	MAX_SLOT = 24, /* bytes */
};

/* What the relocations say of one word of the GOT. */
struct target {
	uint64_t got;
	uint32_t sym; /* of .dynsym; 0: an indirect function of this file, at: */
	uint64_t addend;
};

struct plt {
	struct symtab *t;
	const struct elf_file *f;
	size_t nr_finished; /* symbols of @t without the slots that are added to it */
	struct elf_table dyn;
	struct target *targets; /* by got */
	size_t nr_targets, cap_targets;
	unsigned slots;
};

/* ---------- relocations ---------- */

static bool is_slot_reloc(uint16_t machine, uint32_t type)
{
	switch (machine) {
	case EM_X86_64:
		return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT ||
		       type == R_X86_64_IRELATIVE;
	case EM_386:
		return type == R_386_JMP_SLOT || type == R_386_GLOB_DAT || type == R_386_IRELATIVE;
	case EM_AARCH64:
		return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT ||
		       type == R_AARCH64_IRELATIVE;
	case EM_ARM:
		return type == R_ARM_JUMP_SLOT || type == R_ARM_GLOB_DAT || type == R_ARM_IRELATIVE;
	}
	return false;
}

static bool read_reloc(const struct elf_file *f, const uint8_t *p, bool rela, struct target *out)
{
	uint32_t type;

	if (f->is64) {
		Elf64_Rela r = {0};

		memcpy(&r, p, rela ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel));
		type = (uint32_t)ELF64_R_TYPE(r.r_info);
		*out = (struct target){r.r_offset, (uint32_t)ELF64_R_SYM(r.r_info),
				       (uint64_t)r.r_addend};
	} else {
		Elf32_Rela r = {0};

		memcpy(&r, p, rela ? sizeof(Elf32_Rela) : sizeof(Elf32_Rel));
		type = ELF32_R_TYPE(r.r_info);
		*out = (struct target){r.r_offset, ELF32_R_SYM(r.r_info), (uint32_t)r.r_addend};
	}
	return is_slot_reloc(f->machine, type);
}

/* How many relocations of the file's own addresses come first in .rela.dyn: often nearly all. */
static uint64_t nr_relative(const struct elf_file *f)
{
	const struct elf_section *sec = elf_file_section(f, ".dynamic", SHT_DYNAMIC);
	uint64_t n = sec ? sec->size / sizeof(Elf64_Dyn) : 0, count = 0;
	Elf64_Dyn *dyn;
	int ret;

	if (!f->is64 || !n)
		return 0;
	dyn = elf_file_bytes(f, sec->offset, n * sizeof(*dyn), 1 << 16, &ret);
	for (uint64_t i = 0; dyn && i < n && dyn[i].d_tag != DT_NULL; i++)
		if (dyn[i].d_tag == DT_RELACOUNT)
			count = dyn[i].d_un.d_val;
	free(dyn);
	return count;
}

static void add_relocs(struct plt *p, const struct elf_section *sec)
{
	const struct elf_file *f = p->f;
	bool rela = sec->type == SHT_RELA;
	size_t entsize = f->is64 ? (rela ? sizeof(Elf64_Rela) : sizeof(Elf64_Rel))
				 : (rela ? sizeof(Elf32_Rela) : sizeof(Elf32_Rel));
	uint64_t skip = strcmp(sec->name, ".rela.dyn") ? 0 : nr_relative(f);
	uint64_t n = sec->size / entsize;
	uint8_t *bytes;
	int ret;

	skip = skip < n ? skip : 0;
	n -= skip;
	if (!n || n > MAX_RELOCS - p->nr_targets)
		return;
	bytes = elf_file_bytes(f, sec->offset + skip * entsize, n * entsize, UINT32_MAX, &ret);
	if (!bytes)
		return;
	p->targets = xgrow(p->targets, &p->cap_targets, p->nr_targets + n, sizeof(*p->targets));
	for (uint64_t i = 0; i < n; i++)
		if (read_reloc(f, bytes + i * entsize, rela, &p->targets[p->nr_targets]))
			p->nr_targets++;
	free(bytes);
}

static int by_got(const void *a, const void *b)
{
	const struct target *x = a, *y = b;

	return x->got < y->got ? -1 : x->got > y->got;
}

/* Those that the running linker sees; a relocatable file (a module) has others. */
static void read_relocs(struct plt *p)
{
	for (size_t i = 1; i < p->f->nr_sections; i++) {
		const struct elf_section *sec = &p->f->sections[i];

		if ((sec->type == SHT_RELA || sec->type == SHT_REL) && sec->flags & SHF_ALLOC)
			add_relocs(p, sec);
	}
	if (p->nr_targets)
		qsort(p->targets, p->nr_targets, sizeof(*p->targets), by_got);
}

static const struct target *find_target(const struct plt *p, uint64_t got)
{
	const struct target key = {.got = got};

	return p->nr_targets ? bsearch(&key, p->targets, p->nr_targets, sizeof(key), by_got) : NULL;
}

/* ---------- slots ---------- */

/* Slots without a symbol call what an indirect function returns: named after that function. */
static void slot_name(char *name, size_t size, const struct plt *p, const struct target *target)
{
	const struct symtab finished = {
		.syms = p->t->syms, .n = p->nr_finished, .outer = p->t->outer};
	const struct elf_file *f = p->f;
	const struct symbol *own;
	Elf64_Sym sym = {0};
	const char *base;
	uint64_t off;

	if (target->sym && target->sym < p->dyn.n)
		elf_file_symbol(f, p->dyn.syms, target->sym, &sym);
	base = elf_table_name(&p->dyn, &sym);
	if (target->sym && *base) {
		snprintf(name, size, "%.*s@plt", MAX_NAME - 8, base);
		return;
	}
	own = elfsym_offset(f->loads, f->nr_loads, target->addend, &off)
		      ? symtab_find(&finished, off)
		      : NULL;
	if (own && own->start == off)
		snprintf(name, size, "%.*s@plt", MAX_NAME - 8, own->name);
	else
		snprintf(name, size, "*ABS*+0x%llx@plt", (unsigned long long)target->addend);
}

static void add_slot(struct plt *p, uint64_t start, uint64_t end, const struct target *target)
{
	char name[MAX_NAME];

	if (p->slots++ >= MAX_SLOTS)
		return;
	slot_name(name, sizeof(name), p, target);
	symtab_add(p->t, start, end, name, 'g');
}

/* [endbr64] [bnd] jmp *DISP(%rip): the address of the word; 0: it is something else. */
static uint64_t got_x86_64(const uint8_t *code, size_t len, uint64_t addr)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t at = len >= 4 && !memcmp(code, endbr64, 4) ? 4 : 0;
	int32_t disp;

	if (at < len && code[at] == 0xf2)
		at++;
	if (len < at + 6 || code[at] != 0xff || code[at + 1] != 0x25)
		return 0;
	memcpy(&disp, code + at + 2, 4);
	return addr + at + 6 + (uint64_t)disp;
}

/* [bti c] adrp x16, PAGE; ldr x17, [x16, #LOW] */
static uint64_t got_aarch64(const uint8_t *code, size_t len, uint64_t addr)
{
	uint32_t insn[3] = {0}, n = 0;
	int64_t pages;

	memcpy(insn, code, len < sizeof(insn) ? len : sizeof(insn));
	if (insn[0] == 0xd503245f) /* bti c */
		n = 1;
	if (len < 4 * (n + 2) || (insn[n] & 0x9f00001f) != 0x90000010 ||
	    (insn[n + 1] & 0xffc003ff) != 0xf9400211)
		return 0;
	pages = (int64_t)((uint64_t)((insn[n] >> 5 & 0x7ffff) << 2 | (insn[n] >> 29 & 3)) << 43) >>
		43;
	return (addr & ~4095ull) + (uint64_t)(pages * 4096) + 8 * (insn[n + 1] >> 10 & 0xfff);
}

/* A slot reaches to the next one, but not further than slots are long. */
static void read_slots(struct plt *p, const struct elf_section *sec, const uint8_t *code,
		       uint64_t len)
{
	bool arm64 = p->f->machine == EM_AARCH64;
	uint64_t step = arm64 ? 4 : 8, longest = arm64 ? MAX_SLOT : 16, start = 0;
	const struct target *target = NULL, *next;

	for (uint64_t at = 0; at <= len; at += step) {
		uint64_t got = at == len ? 0
			       : arm64	 ? got_aarch64(code + at, len - at, sec->addr + at)
					 : got_x86_64(code + at, len - at, sec->addr + at);

		next = got ? find_target(p, got) : NULL;
		/* what follows bti c is the same slot */
		if (next && target == next && at == start + step && arm64)
			continue;
		if (target && (next || at >= start + longest || at + step > len)) {
			uint64_t end = at < start + longest ? at : start + longest;

			add_slot(p, sec->offset + start, sec->offset + end, target);
			target = NULL;
		}
		if (next) {
			target = next;
			start = at;
		}
	}
}

static bool has_slots(const struct elf_section *sec)
{
	static const char *const names[] = {".plt", ".plt.sec", ".plt.got", ".iplt"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (sec->type == SHT_PROGBITS && !strcmp(sec->name, names[i]))
			return true;
	return false;
}

static void decode_slots(struct plt *p)
{
	for (size_t i = 1; i < p->f->nr_sections; i++) {
		const struct elf_section *sec = &p->f->sections[i];
		uint8_t *code;
		int ret;

		if (!has_slots(sec) || !sec->size)
			continue;
		code = elf_file_bytes(p->f, sec->offset, sec->size, MAX_CODE, &ret);
		if (code)
			read_slots(p, sec, code, sec->size);
		free(code);
	}
}

/* ---------- slots whose code is not read: in the order of their relocations ---------- */

/* Where the slots of the PLT are: .plt.sec has them alone, .plt has a first one of its own. */
static bool find_first(const struct elf_file *f, uint64_t *at, uint64_t *step)
{
	const struct elf_section *sec = elf_file_section(f, ".plt.sec", SHT_PROGBITS);
	uint64_t header = 0;

	*step = 16;
	if (!sec) {
		sec = elf_file_section(f, ".plt", SHT_PROGBITS);
		if (!sec)
			return false;
		header = 16;
		if (f->machine == EM_AARCH64)
			header = 32;
		else if (f->machine == EM_ARM)
			header = 20, *step = 12;
	}
	*at = sec->offset + header;
	return true;
}

static void count_slots(struct plt *p)
{
	const struct elf_section *rel = elf_file_section(p->f, ".rela.plt", SHT_RELA);
	uint64_t at, step;

	if (!rel)
		rel = elf_file_section(p->f, ".rel.plt", SHT_REL);
	if (!rel || !find_first(p->f, &at, &step))
		return;
	p->nr_targets = 0;
	add_relocs(p, rel);
	for (size_t i = 0; i < p->nr_targets; i++, at += step)
		add_slot(p, at, at + step, &p->targets[i]);
}

void elfsym_add_plt(struct symtab *t, const struct elf_file *f)
{
	const struct elf_section *dynsym = elf_file_section(f, NULL, SHT_DYNSYM);
	struct plt p = {.t = t, .f = f, .nr_finished = t->n};

	if (dynsym && elf_table_read(&p.dyn, f, dynsym))
		elf_table_free(&p.dyn);
	if (f->machine == EM_X86_64 || f->machine == EM_AARCH64) {
		read_relocs(&p);
		decode_slots(&p);
	}
	if (!p.slots)
		count_slots(&p);
	free(p.targets);
	elf_table_free(&p.dyn);
	if (p.slots)
		symtab_merge(t);
}
