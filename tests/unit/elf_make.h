// SPDX-License-Identifier: GPL-2.0-only
/*
 * A small ELF file of nobody's making: a build id and function symbols, and of the code only where
 * it is loaded, as in a separate debug file.
 */
#ifndef VMPROF_TESTS_UNIT_ELF_MAKE_H
#define VMPROF_TESTS_UNIT_ELF_MAKE_H

#include <elf.h>
#include <string.h>

#include "util/buf.h"

struct elf_make_symbol {
	uint64_t value, size;
	const char *name;
};

static inline uint64_t elf_make_align(struct buf *b)
{
	buf_zero(b, -b->len % 8);
	return b->len;
}

/* Symbols up to one without a name; .text at @addr. */
static inline void elf_make(struct buf *b, const uint8_t build_id[20],
			    const struct elf_make_symbol *syms, uint64_t addr, uint64_t size)
{
	static const char names[] = "\0.text\0.note.gnu.build-id\0.symtab\0.strtab\0.shstrtab";
	Elf64_Ehdr eh = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(eh),
		.e_phoff = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 6,
		.e_shstrndx = 5,
	};
	Elf64_Phdr ph = {.p_type = PT_LOAD,
			 .p_flags = PF_R | PF_X,
			 .p_vaddr = addr,
			 .p_memsz = size,
			 .p_align = 4096};
	Elf64_Shdr sh[6] = {
		{0},
		{.sh_name = 1,
		 .sh_type = SHT_NOBITS,
		 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		 .sh_addr = addr,
		 .sh_offset = addr,
		 .sh_size = size,
		 .sh_addralign = 16},
		{.sh_name = 7, .sh_type = SHT_NOTE, .sh_flags = SHF_ALLOC, .sh_addralign = 4},
		{.sh_name = 26,
		 .sh_type = SHT_SYMTAB,
		 .sh_link = 4,
		 .sh_info = 1,
		 .sh_entsize = sizeof(Elf64_Sym),
		 .sh_addralign = 8},
		{.sh_name = 34, .sh_type = SHT_STRTAB, .sh_addralign = 1},
		{.sh_name = 42, .sh_type = SHT_STRTAB, .sh_addralign = 1},
	};
	Elf64_Sym none = {0};
	struct buf strings = {0};

	buf_zero(b, sizeof(eh) + sizeof(ph));
	sh[2].sh_offset = sh[2].sh_addr = b->len;
	buf_u32(b, 4);
	buf_u32(b, 20);
	buf_u32(b, NT_GNU_BUILD_ID);
	buf_add(b, "GNU", 4);
	buf_add(b, build_id, 20);
	sh[2].sh_size = b->len - sh[2].sh_offset;
	sh[3].sh_offset = elf_make_align(b);
	buf_add(b, &none, sizeof(none));
	buf_zero(&strings, 1);
	for (; syms->name; syms++) {
		Elf64_Sym s = {.st_name = (Elf64_Word)strings.len,
			       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			       .st_shndx = 1,
			       .st_value = syms->value,
			       .st_size = syms->size};

		buf_add(b, &s, sizeof(s));
		buf_add(&strings, syms->name, strlen(syms->name) + 1);
	}
	sh[3].sh_size = b->len - sh[3].sh_offset;
	sh[4].sh_offset = b->len;
	sh[4].sh_size = strings.len;
	buf_add(b, strings.data, strings.len);
	buf_free(&strings);
	sh[5].sh_offset = b->len;
	sh[5].sh_size = sizeof(names);
	buf_add(b, names, sizeof(names));
	eh.e_shoff = elf_make_align(b);
	buf_add(b, sh, sizeof(sh));
	memcpy(b->data, &eh, sizeof(eh));
	memcpy(b->data + sizeof(eh), &ph, sizeof(ph));
}

#endif
