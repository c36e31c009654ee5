// SPDX-License-Identifier: GPL-2.0-only
/*
 * Symbols by the section table. Which ones count is perf's choice (dso__load_sym_internal of Linux
 * 6.1): functions, indirect functions and objects in allocated sections, and visible labels in
 * sections that have "text" or "data" in their name.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/symtab.h"
#include "util/text.h"
#include "util/xalloc.h"

bool elfsym_offset(const struct elf_load *loads, uint32_t n, uint64_t vaddr, uint64_t *offset)
{
	for (uint32_t i = 0; i < n; i++) {
		if (vaddr >= loads[i].vaddr && vaddr - loads[i].vaddr < loads[i].size) {
			*offset = vaddr - loads[i].vaddr + loads[i].offset;
			return true;
		}
	}
	return false;
}

char elfsym_binding(unsigned char info)
{
	return ELF64_ST_BIND(info) == STB_GLOBAL  ? 'g'
	       : ELF64_ST_BIND(info) == STB_LOCAL ? 'l'
						  : 'w';
}

void elf_table_free(struct elf_table *t)
{
	free(t->syms);
	free(t->strings);
	*t = (struct elf_table){0};
}

int elf_table_read(struct elf_table *t, const struct elf_file *f, const struct elf_section *sec)
{
	size_t entsize = elf_file_symbol_size(f);
	const struct elf_section *str;
	uint64_t size;
	int ret;

	*t = (struct elf_table){0};
	if (sec->entsize != entsize || sec->link >= f->nr_sections)
		return -EBADMSG;
	str = &f->sections[sec->link];
	if (sec->type == SHT_NOBITS || str->type != SHT_STRTAB)
		return -EBADMSG;
	t->syms = elf_section_data(f, sec, ELF_MAX_SYMBOLS * (uint64_t)entsize, &size, &ret);
	if (!t->syms)
		return ret;
	t->n = size / entsize;
	t->strings = elf_section_data(f, str, ELF_MAX_STRINGS, &t->size, &ret);
	return ret;
}

const char *elf_table_name(const struct elf_table *t, const Elf64_Sym *sym)
{
	return sym->st_name < t->size ? t->strings + sym->st_name : "";
}

/* Marks of data in code and the like on ARM. */
static bool is_mapping_symbol(const struct elf_file *f, const char *name)
{
	return (f->machine == EM_AARCH64 || f->machine == EM_ARM) && name[0] == '$' && name[1] &&
	       strchr("adtx", name[1]) && (!name[2] || name[2] == '.');
}

static bool wanted(const struct elf_file *f, const Elf64_Sym *sym, const char *name)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info), vis = ELF64_ST_VISIBILITY(sym->st_other);
	bool label = type == STT_NOTYPE && vis != STV_HIDDEN && vis != STV_INTERNAL;
	const struct elf_section *sec;

	if (!sym->st_name || !*name || sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS)
		return false;
	if (!label && type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_OBJECT)
		return false;
	if (is_mapping_symbol(f, name))
		return false;
	if (sym->st_shndx >= f->nr_sections)
		return !label && sym->st_shndx == SHN_XINDEX;
	sec = &f->sections[sym->st_shndx];
	return sec->flags & SHF_ALLOC &&
	       (!label || strstr(sec->name, "text") || strstr(sec->name, "data"));
}

static uint64_t end_of(uint64_t start, uint64_t size)
{
	return size > UINT64_MAX - start ? UINT64_MAX : start + size;
}

/*
 * Debug files have their code's addresses and nobody's offsets. The usual linkers lay out a file so
 * that the first page of it is the first that is loaded, and all code after it without a gap.
 */
static uint64_t guess_offset(const struct elf_file *f, uint64_t vaddr)
{
	uint64_t base = UINT64_MAX;

	for (uint32_t i = 0; i < f->nr_loads; i++)
		if (f->loads[i].vaddr < base)
			base = f->loads[i].vaddr;
	return base <= vaddr ? vaddr - (base & ~4095ull) : vaddr;
}

static uint64_t symbol_offset(const struct elf_file *f, const struct elfsym_opts *o,
			      const Elf64_Sym *sym)
{
	const struct elf_load *loads = o->loads ? o->loads : f->loads;
	uint32_t n = o->loads ? o->nr_loads : f->nr_loads;
	const struct elf_section *sec;
	uint64_t off;

	if (o->absolute)
		return sym->st_value;
	if (!o->loads && f->debug_only && !f->has_note)
		return guess_offset(f, sym->st_value);
	if (f->has_note && !o->loads)
		return sym->st_value; /* the store's own: offsets already */
	if (elfsym_offset(loads, n, sym->st_value, &off))
		return off;
	if (sym->st_shndx >= f->nr_sections)
		return sym->st_value;
	sec = &f->sections[sym->st_shndx];
	return sym->st_value - (sec->addr - sec->offset);
}

static void add_all(struct symtab *t, const struct elf_file *f, const struct elfsym_opts *o,
		    const struct elf_table *tab)
{
	/*
	 * Names may share their bytes. Honest files do so little; a made-up one could let a
	 * million symbols have the same megabyte, which would have to be compared again and again.
	 */
	uint64_t budget = 4 * tab->size + 256 * (uint64_t)tab->n;
	void (*add)(struct symtab *, uint64_t, uint64_t, const char *, char) =
		tab->copy ? symtab_add : symtab_add_name;

	for (size_t i = 0; i < tab->n; i++) {
		const char *name;
		Elf64_Sym sym;
		uint64_t start;
		size_t len;

		elf_file_symbol(f, tab->syms, i, &sym);
		name = elf_table_name(tab, &sym);
		if (!wanted(f, &sym, name))
			continue;
		len = strlen(name);
		if (len > budget)
			break;
		budget -= len;
		if (f->machine == EM_ARM && ELF64_ST_TYPE(sym.st_info) == STT_FUNC)
			sym.st_value &= ~1ull;
		start = symbol_offset(f, o, &sym);
		add(t, start, end_of(start, sym.st_size), name, elfsym_binding(sym.st_info));
	}
}

static void copy_facts(struct symtab *t, const struct elf_file *f, const struct elfsym_opts *o)
{
	const struct elf_load *loads = o->loads ? o->loads : f->loads;

	t->machine = f->machine;
	t->build_id_len = f->build_id_len;
	memcpy(t->build_id, f->build_id, sizeof(t->build_id));
	t->build_id_made_up = f->note_flags & ELF_NOTE_BUILD_ID_MADE_UP;
	t->nr_loads = o->loads ? o->nr_loads : f->nr_loads;
	t->loads = xcalloc(t->nr_loads + 1, sizeof(*t->loads));
	if (t->nr_loads)
		memcpy(t->loads, loads, t->nr_loads * sizeof(*loads));
}

/* The first of .symtab and .dynsym that can be read. */
static int read_table(struct elf_table *tab, const struct elf_file *f, bool *partial)
{
	static const uint32_t types[] = {SHT_SYMTAB, SHT_DYNSYM};
	int ret = -ENOENT;

	for (size_t i = 0; i < 2; i++) {
		const struct elf_section *sec = elf_file_section(f, NULL, types[i]);
		int r;

		if (!sec)
			continue;
		*partial = types[i] == SHT_DYNSYM;
		r = elf_table_read(tab, f, sec);
		if (!r)
			return 0;
		elf_table_free(tab);
		if (ret == -ENOENT || r == -ENODATA)
			ret = r;
	}
	return ret;
}

/*
 * Mini debug info has the functions that .dynsym does not have, at the addresses of the file around
 * it.
 */
static bool add_debug_data(struct symtab *t, const struct elf_file *f, const struct elfsym_opts *o)
{
	struct elfsym_opts opts = *o;
	const struct elf_section *sec;
	struct elf_table tab = {0};
	struct elf_memory m;
	struct elf_file mini;
	uint8_t *bytes;
	bool good;

	bytes = elf_debug_data(f, &m.size);
	if (!bytes)
		return false;
	m.bytes = bytes;
	good = !elf_file_open(&mini, elf_read_memory, &m, m.size, f->name, true, NULL);
	if (good) {
		sec = elf_file_section(&mini, NULL, SHT_SYMTAB);
		good = sec && mini.is64 == f->is64 && !elf_table_read(&tab, &mini, sec);
		if (!o->loads) {
			opts.loads = f->loads;
			opts.nr_loads = f->nr_loads;
		}
		tab.copy = true;
		if (good)
			add_all(t, &mini, &opts, &tab);
		elf_table_free(&tab);
		elf_file_close(&mini);
	}
	free(bytes);
	return good;
}

static int say_why(int ret, const struct elf_file *f, struct vmprof_err *err)
{
	if (ret == -ENOENT)
		return err_set(err, ENOENT, "%s has no symbol table", f->name);
	if (ret == -ENODATA)
		return err_set(err, ENODATA, "the symbol table of %s is not in memory", f->name);
	if (ret == -E2BIG)
		return err_set(err, E2BIG,
			       "the symbol table of %s is larger than vmprof takes (%d symbols)",
			       f->name, ELF_MAX_SYMBOLS);
	if (ret == -ENOSYS)
		return err_set(err, ENOSYS,
			       "the symbol table of %s is compressed in a way that this vmprof was "
			       "built without",
			       f->name);
	if (ret == -EBADMSG)
		return err_set(err, EBADMSG, "the symbol table of %s is damaged", f->name);
	return err_sys(err, -ret, "cannot read the symbol table of %s", f->name);
}

int elfsym_read(struct symtab **out, const struct elf_file *f, const struct elfsym_opts *opts,
		struct vmprof_err *err)
{
	struct symtab *t = symtab_new();
	struct elf_table tab = {0};
	bool partial = true;
	int ret;

	*out = NULL;
	ret = read_table(&tab, f, &partial);
	if (!ret)
		add_all(t, f, opts, &tab);
	t->strings = tab.strings;
	free(tab.syms);
	if ((ret || partial) && (add_debug_data(t, f, opts) || elfsym_add_go(t, f, opts)))
		ret = 0;
	if (ret) {
		symtab_free(t);
		return say_why(ret, f, err);
	}
	t->partial = partial || f->note_flags & ELF_NOTE_PARTIAL;
	copy_facts(t, f, opts);
	symtab_finish(t);
	*out = t;
	return 0;
}

/* Where a length was not written down, perf's 20 bytes have zeros behind a shorter id. */
static bool same_build_id(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len)
{
	static const uint8_t zeros[20];
	uint32_t n = a_len < b_len ? a_len : b_len;

	if (!n || a_len > 20 || b_len > 20 || memcmp(a, b, n))
		return false;
	return !memcmp(a + n, zeros, a_len - n) && !memcmp(b + n, zeros, b_len - n);
}

int elf_file_check_build_id(const struct elf_file *f, const uint8_t *build_id, uint32_t len,
			    struct vmprof_err *err)
{
	char want[41], have[41];

	if (!len || !build_id || same_build_id(f->build_id, f->build_id_len, build_id, len))
		return 0;
	hex_str(want, build_id, len < 20 ? len : 20);
	if (!f->build_id_len)
		return err_set(err, ESTALE, "%s has no build id, the profile's is %s", f->name,
			       want);
	hex_str(have, f->build_id, f->build_id_len);
	return err_set(err, ESTALE, "%s is another file: its build id is %s, the profile's is %s",
		       f->name, have, want);
}

int symtab_read_fd(struct symtab **out, int fd, const char *path, const uint8_t *build_id,
		   uint32_t build_id_len, const struct elfsym_opts *opts, struct vmprof_err *err)
{
	struct elf_file f;
	char shown[512];
	struct stat st;
	int ret;

	*out = NULL;
	escape_str(shown, sizeof(shown), path);
	if (fstat(fd, &st))
		return err_sys(err, errno, "cannot look at %s", shown);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "%s is not a regular file", shown);
	ret = elf_file_open(&f, elf_read_fd, &fd, (uint64_t)st.st_size, shown, true, err);
	if (ret)
		return ret;
	ret = elf_file_check_build_id(&f, build_id, build_id_len, err);
	if (!ret)
		ret = elfsym_read(out, &f, opts, err);
	if (!ret) {
		if (!opts->absolute)
			elfsym_add_plt(*out, &f);
		(*out)->path = xstrdup(path);
	}
	elf_file_close(&f);
	return ret;
}

int symtab_read_file(struct symtab **out, const char *path, const uint8_t *build_id,
		     uint32_t build_id_len, struct vmprof_err *err)
{
	static const struct elfsym_opts none;
	char shown[512];
	int fd, ret;

	*out = NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return err_sys(err, errno, "cannot open %s",
			       escape_str(shown, sizeof(shown), path));
	ret = symtab_read_fd(out, fd, path, build_id, build_id_len, &none, err);
	close(fd);
	return ret;
}

int symtab_read_fn(struct symtab **out, elf_read_fn *read, void *ctx, uint64_t size,
		   const char *name, struct vmprof_err *err)
{
	static const struct elfsym_opts none;
	struct elf_file f;
	char shown[512];
	int ret;

	*out = NULL;
	escape_str(shown, sizeof(shown), name);
	ret = elf_file_open(&f, read, ctx, size, shown, true, err);
	if (ret)
		return ret;
	ret = elfsym_read(out, &f, &none, err);
	if (!ret) {
		elfsym_add_plt(*out, &f);
		(*out)->path = xstrdup(name);
	}
	elf_file_close(&f);
	return ret;
}

int elf_build_id(const char *path, uint8_t id[20])
{
	struct elf_file f;
	struct stat st;
	int fd, ret;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	ret = fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (!ret)
		ret = elf_file_open(&f, elf_read_fd, &fd, (uint64_t)st.st_size, "", true, NULL);
	if (!ret) {
		memcpy(id, f.build_id, f.build_id_len);
		ret = (int)f.build_id_len;
		elf_file_close(&f);
	}
	close(fd);
	return ret;
}
