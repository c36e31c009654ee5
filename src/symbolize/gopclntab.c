// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions of Go programs whose symbol table was stripped: the runtime's own table of them
 * (src/debug/gosym/pclntab.go and src/runtime/symtab.go of Go) is needed to run and stays. It knows
 * where functions start, their names, and where the last one ends.
 *
 * After eight bytes (magic, 0, 0, instruction quantum, size of a pointer) come words of the size of
 * a pointer, then the table of functions: address and offset of the function's data, as words up to
 * Go 1.17, after that as 32 bits, addresses from the start of the text on.
 */
#include <stdlib.h>
#include <string.h>

#include "symbolize/symtab.h"

enum { MAX_NAME = 1 << 12, MAX_RELOCS = 64 << 20 /* bytes */ };

/* The forms by their magic numbers, little endian. */
static const struct form {
	uint32_t magic;
	bool relative; /* addresses to the text's start, 32 bits each */
	/* which words: number of functions; text; offsets of names and functions; -1 none */
	int nfunc, text, names, functions;
	int table; /* the table's own offset in words where @functions is -1 */
} forms[] = {
	{0xfffffff1, true, 0, 2, 3, 7, 0},   /* Go 1.20 */
	{0xfffffff0, true, 0, 2, 3, 7, 0},   /* Go 1.18 */
	{0xfffffffa, false, 0, -1, 2, 6, 0}, /* Go 1.16 */
	{0xfffffffb, false, 0, -1, -1, -1, 1},
};

struct table {
	const uint8_t *bytes;
	uint64_t size;
	const struct form *form;
	unsigned word;	/* bytes of a pointer */
	unsigned entry; /* bytes of an entry's half */
	uint64_t nfunc, text, names, functions;
};

/* @n bytes at @off, little endian; 0 and *@bad if they are not all there. */
static uint64_t get(const struct table *t, uint64_t off, unsigned n, bool *bad)
{
	uint64_t v = 0;

	if (off > t->size || n > t->size - off)
		*bad = true;
	else
		memcpy(&v, t->bytes + off, n);
	return v;
}

static uint64_t header_word(const struct table *t, int i, bool *bad)
{
	return i < 0 ? 0 : get(t, 8 + (uint64_t)i * t->word, t->word, bad);
}

static bool open_table(struct table *t)
{
	bool bad = false;
	uint32_t magic = (uint32_t)get(t, 0, 4, &bad);

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (forms[i].magic == magic)
			t->form = &forms[i];
	t->word = (unsigned)get(t, 7, 1, &bad);
	if (bad || !t->form || get(t, 4, 2, &bad) || (t->word != 4 && t->word != 8))
		return false;
	t->entry = t->form->relative ? 4 : t->word;
	t->nfunc = header_word(t, t->form->nfunc, &bad);
	t->text = header_word(t, t->form->text, &bad);
	t->names = header_word(t, t->form->names, &bad);
	t->functions = t->form->functions < 0 ? 8 + (uint64_t)t->form->table * t->word
					      : header_word(t, t->form->functions, &bad);
	return !bad && t->functions <= t->size && t->nfunc < ELF_MAX_SYMBOLS &&
	       (2 * t->nfunc + 1) * t->entry <= t->size - t->functions;
}

static uint64_t address(const struct table *t, uint64_t i)
{
	bool bad = false;
	uint64_t addr = get(t, t->functions + 2 * i * t->entry, t->entry, &bad);

	return t->form->relative ? t->text + addr : addr;
}

/* "" where the table is damaged. A function's data begins with its address, then its name's offset.
 */
static const char *name_of(const struct table *t, uint64_t i)
{
	bool bad = false;
	uint64_t data = get(t, t->functions + (2 * i + 1) * t->entry, t->entry, &bad), name;

	if (t->form->functions >= 0) /* else from the beginning of all */
		data += t->functions;
	name = t->names + get(t, data + t->entry, 4, &bad);
	if (bad || name >= t->size || !memchr(t->bytes + name, 0, t->size - name))
		return "";
	return (const char *)t->bytes + name;
}

/* The address that the dynamic linker adds to where the program is loaded, for the word at @at. */
static uint64_t relocated(const struct elf_file *f, uint64_t at)
{
	const struct elf_section *sec = elf_file_section(f, ".rela.dyn", SHT_RELA);
	uint64_t n = sec ? sec->size / sizeof(Elf64_Rela) : 0, addr = 0;
	Elf64_Rela *r;
	int ret;

	if (!f->is64 || !n)
		return 0;
	r = elf_file_bytes(f, sec->offset, n * sizeof(*r), MAX_RELOCS, &ret);
	for (uint64_t i = 0; r && i < n && !addr; i++)
		if (r[i].r_offset == at)
			addr = (uint64_t)r[i].r_addend;
	free(r);
	return addr;
}

/* @at: of the table. In position-independent programs the start of the text is left to be
 * relocated. */
static void fix_text(struct table *t, const struct elf_file *f, uint64_t at)
{
	const struct elf_section *text = elf_file_section(f, ".text", SHT_PROGBITS);

	if (!t->form->relative || t->text)
		return;
	t->text = relocated(f, at + 8 + (uint64_t)t->form->text * t->word);
	if (!t->text && text)
		t->text = text->addr;
}

static uint64_t add_functions(struct symtab *s, const struct table *t, const struct elf_file *f,
			      const struct elfsym_opts *o)
{
	uint64_t budget = 4 * t->size, added = 0;

	for (uint64_t i = 0; i < t->nfunc; i++) {
		uint64_t start = address(t, i), end = address(t, i + 1), off = start;
		const char *name = name_of(t, i);
		size_t len = strnlen(name, MAX_NAME);

		if (end <= start || !len)
			continue;
		if (!o->absolute &&
		    !elfsym_offset(o->loads ? o->loads : f->loads,
				   o->loads ? o->nr_loads : f->nr_loads, start, &off))
			continue;
		if (len > budget) /* names that share their bytes: see add_all() in elfsym.c */
			break;
		budget -= len;
		symtab_add(s, off, off + (end - start), name, 'l');
		added++;
	}
	return added;
}

/* GNU ld, which links programs that use C, puts the table into a section with other things. */
static const struct elf_section *find_section(const struct elf_file *f)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab", ".data.rel.ro"};
	const struct elf_section *sec = NULL;

	if (!elf_file_section(f, ".go.buildinfo", SHT_PROGBITS))
		return NULL;
	for (size_t i = 0; !sec && i < sizeof(names) / sizeof(*names); i++)
		sec = elf_file_section(f, names[i], SHT_PROGBITS);
	return sec;
}

/* The first table in @bytes, which is aligned there; what is behind it does no harm. */
static bool find_table(struct table *t, const uint8_t *bytes, uint64_t size, uint64_t *at)
{
	for (*at = 0; *at + 8 <= size; *at += 32) {
		*t = (struct table){.bytes = bytes + *at, .size = size - *at};
		if (open_table(t))
			return true;
	}
	return false;
}

bool elfsym_add_go(struct symtab *s, const struct elf_file *f, const struct elfsym_opts *o)
{
	const struct elf_section *sec = find_section(f);
	uint64_t size, at;
	struct table t;
	uint8_t *bytes;
	bool good;
	int ret;

	if (!sec)
		return false;
	bytes = elf_section_data(f, sec, ELF_MAX_STRINGS, &size, &ret);
	if (!bytes)
		return false;
	good = find_table(&t, bytes, size, &at);
	if (good) {
		fix_text(&t, f, sec->addr + at);
		good = add_functions(s, &t, f, o) > 0;
	}
	free(bytes);
	return good;
}
