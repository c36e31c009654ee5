// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/symbolize: how a struct symtab is filled.
 */
#ifndef VMPROF_SYMBOLIZE_SYMTAB_H
#define VMPROF_SYMBOLIZE_SYMTAB_H

#include "symbolize/elffile.h"

enum { SYMTAB_MAX = 4 << 20 }; /* symbols; more are left out */

/* symtab_add() without a copy: @name lives as long as @t. */
void symtab_add_name(struct symtab *t, uint64_t start, uint64_t end, const char *name,
		     char binding);
/* Sorts symbols added after symtab_finish() in; where one starts with an older one, the older
 * stays. */
void symtab_merge(struct symtab *t);

/*
 * The symbols of an open ELF file. @loads, if not NULL, replace its own PT_LOADs (for separate
 * debug files); @absolute leaves values as they are (a kernel's addresses).
 */
struct elfsym_opts {
	const struct elf_load *loads;
	uint32_t nr_loads;
	bool absolute;
};
int elfsym_read(struct symtab **out, const struct elf_file *f, const struct elfsym_opts *opts,
		struct vmprof_err *err);
/* symtab_read_file() of an open file; @path is for messages and t->path. */
int symtab_read_fd(struct symtab **out, int fd, const char *path, const uint8_t *build_id,
		   uint32_t build_id_len, const struct elfsym_opts *opts, struct vmprof_err *err);

/* A symbol table of a file with its names. */
struct elf_table {
	void *syms; /* of the file's class: elf_file_symbol() */
	size_t n;
	char *strings; /* with a NUL behind them */
	uint64_t size;
	bool copy; /* the names go away before the symtab does */
};
/* 0 or -errno as elf_section_data() has it; also after an error elf_table_free() is fine. */
int elf_table_read(struct elf_table *t, const struct elf_file *f, const struct elf_section *sec);
void elf_table_free(struct elf_table *t);
/* "" for a name that does not lie inside the strings. */
const char *elf_table_name(const struct elf_table *t, const Elf64_Sym *sym);

/*
 * Adds the functions that a Go program has a table of for its own use. False: it is none, or its
 * table is damaged.
 */
bool elfsym_add_go(struct symtab *t, const struct elf_file *f, const struct elfsym_opts *opts);

/* Adds "name@plt" for the slots of @f's procedure linkage table (finished tables only). */
void elfsym_add_plt(struct symtab *t, const struct elf_file *f);

/* Value of a symbol by the loads; false if it is in none. */
bool elfsym_offset(const struct elf_load *loads, uint32_t n, uint64_t vaddr, uint64_t *offset);

/* 'g', 'l', 'w' of st_info */
char elfsym_binding(unsigned char info);

/* -ESTALE with a sentence if @f has not this build id; 0 if it has or @len is 0. */
int elf_file_check_build_id(const struct elf_file *f, const uint8_t *build_id, uint32_t len,
			    struct vmprof_err *err);

#endif
