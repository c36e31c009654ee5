// SPDX-License-Identifier: GPL-2.0-only
#include "symbolize/elffile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/xalloc.h"

ssize_t elf_read_fd(void *ctx, uint64_t off, void *buf, size_t len)
{
	ssize_t n;

	if (off > INT64_MAX)
		return 0;
	do
		n = pread(*(int *)ctx, buf, len, (off_t)off);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int elf_read_all(elf_read_fn *read, void *ctx, uint64_t off, void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len) {
		ssize_t n = read(ctx, off, p, len);

		if (n < 0)
			return (int)n;
		if (!n || (size_t)n > len)
			return -EBADMSG;
		p += n;
		off += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

static bool in_file(const struct elf_file *f, uint64_t off, uint64_t len)
{
	return off <= f->size && len <= f->size - off;
}

void *elf_file_bytes(const struct elf_file *f, uint64_t off, uint64_t len, uint64_t max, int *ret)
{
	size_t have = 0, cap = 0;
	uint8_t *p = NULL;

	*ret = !in_file(f, off, len) ? -EBADMSG : len > max ? -E2BIG : 0;
	if (*ret)
		return NULL;
	do {
		size_t step = len - have < (1 << 20) + have ? len - have : (1 << 20) + have;

		p = xgrow(p, &cap, have + step + 1, 1);
		*ret = elf_read_all(f->read, f->ctx, off + have, p + have, step);
		have += step;
	} while (!*ret && have < len);
	if (*ret) {
		free(p);
		return NULL;
	}
	p[len] = 0;
	return p;
}

static int read_ehdr(struct elf_file *f, Elf64_Ehdr *e)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr e32;
		Elf64_Ehdr e64;
	} u;
	int ret = elf_read_all(f->read, f->ctx, 0, u.ident, EI_NIDENT);

	if (ret)
		return ret;
	if (memcmp(u.ident, ELFMAG, SELFMAG) || u.ident[EI_DATA] != ELFDATA2LSB ||
	    (u.ident[EI_CLASS] != ELFCLASS32 && u.ident[EI_CLASS] != ELFCLASS64))
		return -ENOEXEC;
	f->is64 = u.ident[EI_CLASS] == ELFCLASS64;
	ret = elf_read_all(f->read, f->ctx, 0, &u, f->is64 ? sizeof(u.e64) : sizeof(u.e32));
	if (ret)
		return ret;
	if (f->is64)
		*e = u.e64;
	else
		*e = (Elf64_Ehdr){
			.e_type = u.e32.e_type,
			.e_machine = u.e32.e_machine,
			.e_phoff = u.e32.e_phoff,
			.e_shoff = u.e32.e_shoff,
			.e_phentsize = u.e32.e_phentsize,
			.e_phnum = u.e32.e_phnum,
			.e_shentsize = u.e32.e_shentsize,
			.e_shnum = u.e32.e_shnum,
			.e_shstrndx = u.e32.e_shstrndx,
		};
	f->type = e->e_type;
	f->machine = e->e_machine;
	return 0;
}

static void widen_phdr(const struct elf_file *f, const void *table, size_t i, struct elf_segment *s)
{
	if (f->is64) {
		Elf64_Phdr p;

		memcpy(&p, (const uint8_t *)table + i * sizeof(p), sizeof(p));
		*s = (struct elf_segment){p.p_type,  p.p_flags,	 p.p_offset,
					  p.p_vaddr, p.p_filesz, p.p_memsz};
	} else {
		Elf32_Phdr p;

		memcpy(&p, (const uint8_t *)table + i * sizeof(p), sizeof(p));
		*s = (struct elf_segment){p.p_type,  p.p_flags,	 p.p_offset,
					  p.p_vaddr, p.p_filesz, p.p_memsz};
	}
}

static void widen_shdr(const struct elf_file *f, const void *table, size_t i, struct elf_section *s,
		       uint32_t *name)
{
	if (f->is64) {
		Elf64_Shdr h;

		memcpy(&h, (const uint8_t *)table + i * sizeof(h), sizeof(h));
		*name = h.sh_name;
		*s = (struct elf_section){"",	     h.sh_type,	  h.sh_link, h.sh_flags,
					  h.sh_addr, h.sh_offset, h.sh_size, h.sh_entsize};
	} else {
		Elf32_Shdr h;

		memcpy(&h, (const uint8_t *)table + i * sizeof(h), sizeof(h));
		*name = h.sh_name;
		*s = (struct elf_section){"",	     h.sh_type,	  h.sh_link, h.sh_flags,
					  h.sh_addr, h.sh_offset, h.sh_size, h.sh_entsize};
	}
}

void elf_file_symbol(const struct elf_file *f, const void *table, size_t i, Elf64_Sym *sym)
{
	if (f->is64) {
		memcpy(sym, (const uint8_t *)table + i * sizeof(*sym), sizeof(*sym));
	} else {
		Elf32_Sym s;

		memcpy(&s, (const uint8_t *)table + i * sizeof(s), sizeof(s));
		*sym = (Elf64_Sym){s.st_name,  s.st_info,  s.st_other,
				   s.st_shndx, s.st_value, s.st_size};
	}
}

static int read_segments(struct elf_file *f, const Elf64_Ehdr *e)
{
	size_t entsize = f->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	void *table;
	int ret;

	if (!e->e_phnum)
		return 0;
	if (e->e_phentsize != entsize || e->e_phnum > ELF_MAX_SEGMENTS)
		return -EBADMSG;
	table = elf_file_bytes(f, e->e_phoff, e->e_phnum * entsize, UINT32_MAX, &ret);
	if (!table)
		return ret;
	f->segments = xcalloc(e->e_phnum, sizeof(*f->segments));
	f->nr_segments = e->e_phnum;
	for (size_t i = 0; i < f->nr_segments; i++)
		widen_phdr(f, table, i, &f->segments[i]);
	free(table);
	return 0;
}

/* With 0xff00 sections and more their number and the names' index stand in the first one. */
static int count_sections(struct elf_file *f, const Elf64_Ehdr *e, uint64_t *n, uint32_t *names)
{
	size_t entsize = f->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	struct elf_section first;
	uint32_t unused;
	void *p;
	int ret;

	*n = e->e_shnum;
	*names = e->e_shstrndx;
	if (!e->e_shoff)
		return 0;
	if (e->e_shentsize != entsize)
		return -EBADMSG;
	if (*n && *names != SHN_XINDEX)
		return 0;
	p = elf_file_bytes(f, e->e_shoff, entsize, entsize, &ret);
	if (!p)
		return ret;
	widen_shdr(f, p, 0, &first, &unused);
	free(p);
	if (!*n)
		*n = first.size;
	if (*names == SHN_XINDEX)
		*names = first.link;
	return *n > ELF_MAX_SECTIONS ? -EBADMSG : 0;
}

static int read_sections(struct elf_file *f, const Elf64_Ehdr *e)
{
	size_t entsize = f->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	uint32_t names, name, *name_at;
	const struct elf_section *strings;
	uint64_t n;
	void *table;
	int ret;

	ret = count_sections(f, e, &n, &names);
	if (ret || !n || !e->e_shoff)
		return ret;
	table = elf_file_bytes(f, e->e_shoff, n * entsize, UINT32_MAX, &ret);
	if (!table)
		return ret;
	f->sections = xcalloc(n, sizeof(*f->sections));
	f->nr_sections = n;
	name_at = xcalloc(n, sizeof(*name_at));
	for (size_t i = 0; i < n; i++) {
		widen_shdr(f, table, i, &f->sections[i], &name);
		name_at[i] = name;
	}
	free(table);
	strings = names < n ? &f->sections[names] : NULL;
	if (strings && strings->type == SHT_STRTAB)
		f->section_names =
			elf_file_bytes(f, strings->offset, strings->size, ELF_MAX_NOTES, &ret);
	for (size_t i = 0; f->section_names && i < n; i++)
		if (name_at[i] < strings->size)
			f->sections[i].name = f->section_names + name_at[i];
	free(name_at);
	/* Names in a hole: the tables can be found by type. */
	return ret == -ENODATA || ret == -EBADMSG ? 0 : ret;
}

static bool take_loads(struct elf_file *f, const uint8_t *desc, uint32_t size)
{
	uint32_t n;

	if (size < 8)
		return false;
	memcpy(&f->note_flags, desc, 4);
	memcpy(&n, desc + 4, 4);
	if (n > ELF_MAX_SEGMENTS || size - 8 < n * 32)
		return false;
	f->has_note = true;
	free(f->loads);
	f->loads = xcalloc(n ? n : 1, sizeof(*f->loads));
	f->nr_loads = n;
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *p = desc + 8 + i * 32;

		memcpy(&f->loads[i].vaddr, p, 8);
		memcpy(&f->loads[i].offset, p + 8, 8);
		memcpy(&f->loads[i].size, p + 16, 8);
		memcpy(&f->loads[i].flags, p + 24, 4);
	}
	return true;
}

static void take_note(struct elf_file *f, const Elf64_Nhdr *n, const char *owner,
		      const uint8_t *desc)
{
	if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && !memcmp(owner, "GNU", 4) &&
	    n->n_descsz && !f->build_id_len) {
		f->build_id_len = n->n_descsz < 20 ? n->n_descsz : 20;
		memcpy(f->build_id, desc, f->build_id_len);
	} else if (n->n_type == ELF_NOTE_TYPE && n->n_namesz == sizeof(ELF_NOTE_OWNER) &&
		   !memcmp(owner, ELF_NOTE_OWNER, sizeof(ELF_NOTE_OWNER)) && !f->has_note) {
		take_loads(f, desc, n->n_descsz);
	}
}

static int read_notes(struct elf_file *f, uint64_t off, uint64_t size)
{
	uint64_t at = 0;
	uint8_t *p;
	int ret;

	p = elf_file_bytes(f, off, size, ELF_MAX_NOTES, &ret);
	if (!p)
		return ret;
	while (size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr n;
		uint64_t name, desc;

		memcpy(&n, p + at, sizeof(n));
		name = at + sizeof(n);
		desc = name + (((uint64_t)n.n_namesz + 3) & ~3ull);
		if (desc > size || n.n_descsz > size - desc)
			break;
		take_note(f, &n, (const char *)p + name, p + desc);
		at = desc + (((uint64_t)n.n_descsz + 3) & ~3ull);
		if (at > size)
			break;
	}
	free(p);
	return 0;
}

/* By segment and by section: a file may lack either, and a page cache may lack pages. */
static void read_all_notes(struct elf_file *f)
{
	unsigned left = 64;

	for (size_t i = 0; i < f->nr_segments && left; i++)
		if (f->segments[i].type == PT_NOTE && left--)
			read_notes(f, f->segments[i].offset, f->segments[i].filesz);
	for (size_t i = 0; i < f->nr_sections && left; i++)
		if (f->sections[i].type == SHT_NOTE && left--)
			read_notes(f, f->sections[i].offset, f->sections[i].size);
}

/* Code sections, or segments where there are no sections, of which the file has no byte. */
static bool lacks_code(const struct elf_file *f)
{
	bool code = false;

	for (size_t i = 0; i < f->nr_sections; i++) {
		if (!(f->sections[i].flags & SHF_EXECINSTR))
			continue;
		if (f->sections[i].type != SHT_NOBITS)
			return false;
		code = true;
	}
	for (size_t i = 0; !code && i < f->nr_segments; i++) {
		const struct elf_segment *s = &f->segments[i];

		if (s->type == PT_LOAD && s->flags & PF_X && s->memsz)
			return !s->filesz;
	}
	return code;
}

static void loads_from_segments(struct elf_file *f)
{
	f->loads = xcalloc(f->nr_segments ? f->nr_segments : 1, sizeof(*f->loads));
	for (size_t i = 0; i < f->nr_segments; i++) {
		const struct elf_segment *s = &f->segments[i];
		uint64_t size = s->memsz > s->filesz ? s->memsz : s->filesz;

		if (s->type == PT_LOAD && size)
			f->loads[f->nr_loads++] =
				(struct elf_load){s->vaddr, s->offset, size, s->flags};
	}
}

static const char *why(int ret)
{
	static const struct {
		int code;
		const char *text;
	} texts[] = {
		{-ENODATA, "parts of its headers are not in memory"},
		{-ENOEXEC, "it is not a little-endian ELF file"},
		{-EBADMSG, "its ELF headers point outside of the file or have impossible values"},
		{-E2BIG, "a part of it is larger than vmprof takes"},
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (texts[i].code == ret)
			return texts[i].text;
	return NULL;
}

static int fail(int ret, const char *name, struct vmprof_err *err)
{
	const char *text = why(ret);

	if (!text)
		return err_sys(err, -ret, "cannot read %s", name);
	return err_set(err, ret == -ENOEXEC ? EBADMSG : -ret, "cannot read %s: %s", name, text);
}

int elf_file_open(struct elf_file *f, elf_read_fn *read, void *ctx, uint64_t size, const char *name,
		  bool sections, struct vmprof_err *err)
{
	Elf64_Ehdr e;
	int ret;

	*f = (struct elf_file){.read = read, .ctx = ctx, .size = size, .name = name};
	ret = read_ehdr(f, &e);
	if (!ret)
		ret = read_segments(f, &e);
	if (!ret && sections)
		ret = read_sections(f, &e);
	if (ret) {
		elf_file_close(f);
		return fail(ret, name, err);
	}
	read_all_notes(f);
	f->debug_only = lacks_code(f);
	if (!f->has_note)
		loads_from_segments(f);
	return 0;
}

void elf_file_close(struct elf_file *f)
{
	free(f->segments);
	free(f->sections);
	free(f->section_names);
	free(f->loads);
	f->segments = NULL;
	f->sections = NULL;
	f->section_names = NULL;
	f->loads = NULL;
}

const struct elf_section *elf_file_section(const struct elf_file *f, const char *name,
					   uint32_t type)
{
	for (size_t i = 1; i < f->nr_sections; i++)
		if ((type == SHT_NULL || f->sections[i].type == type) &&
		    (!name || !strcmp(f->sections[i].name, name)))
			return &f->sections[i];
	return NULL;
}
