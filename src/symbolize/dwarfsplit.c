// SPDX-License-Identifier: GPL-2.0-only
/*
 * Units whose functions the compiler has put into files of their own (.dwo), or the linker's helper
 * into a package of them (.dwp). libdw would open whatever path a unit names, and knows no
 * packages: so the sections of one unit, with its part of the program's table of addresses, are
 * given to it as a file that exists in memory only. Lists of addresses, which count from what the
 * program has, are read here.
 */
#if HAVE_LIBDW

#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/dwarfinfo_impl.h"
#include "unwind/dwarf_cursor.h"
#include "util/xalloc.h"

enum kind { INFO, ABBREV, LINE, STR_OFFSETS, STR, RNGLISTS, CU_INDEX, NR_KINDS };

static const char *const kind_names[NR_KINDS] = {
	"info", "abbrev", "line", "str_offsets", "str", "rnglists", "cu_index",
};

enum {
	MAX_PLACES = 16,       /* where one file is looked for */
	MAX_ENTRIES = 1 << 20, /* of one list of addresses */
	MAX_PROBES = 1 << 12,  /* of a package's table, which is a third empty */
	LIST_HEADER = 12,
};
#define MAX_BYTES (8ull << 30) /* of all units together */

/* A .dwo or .dwp; sections that it has not are empty. */
struct file {
	Elf *elf; /* NULL: there is none */
	Elf_Data sections[NR_KINDS];
};

struct dwarf_split {
	struct file file; /* empty if the unit is in the package */
	Elf *elf;	  /* in memory only */
	Dwarf *dwarf;
	Dwarf_Die die;
	uint64_t base; /* of the unit's addresses */
	Dwarf_Half version;
	uint8_t address_size;
	Elf_Data sections[NR_KINDS]; /* the unit's */
	Elf_Data addresses, ranges;  /* its part of the program's */
};

struct dwarf_splitter {
	dwarf_split_fn *open;
	void *ctx;
	struct file package;
	bool tried_package;
	uint64_t bytes_left;
	char *missing;
};

/* ---------- sections ---------- */

/* Is @name .debug_KIND or .zdebug_KIND, with @suffix behind it? */
static bool is_section(const char *name, const char *kind, const char *suffix)
{
	size_t len = strlen(kind);

	if (!strncmp(name, ".debug_", 7))
		name += 7;
	else if (!strncmp(name, ".zdebug_", 8))
		name += 8;
	else
		return false;
	return !strncmp(name, kind, len) && !strcmp(name + len, suffix);
}

static void take_data(Elf_Scn *scn, const char *name, Elf_Data *out)
{
	GElf_Shdr shdr;
	Elf_Data *data;

	if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
		return;
	if (name[1] == 'z')
		elf_compress_gnu(scn, 0, 0);
	else if (shdr.sh_flags & SHF_COMPRESSED)
		elf_compress(scn, 0, 0);
	data = elf_getdata(scn, NULL);
	if (data && data->d_buf)
		*out = *data;
}

static void find_sections(Elf *elf, const char *const *kinds, size_t n, const char *suffix,
			  Elf_Data *out)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name =
			gelf_getshdr(scn, &shdr) ? elf_strptr(elf, names, shdr.sh_name) : NULL;

		for (size_t i = 0; name && i < n; i++)
			if (!out[i].d_buf && is_section(name, kinds[i], suffix))
				take_data(scn, name, &out[i]);
	}
}

static Elf_Data part_of(const Elf_Data *d, uint64_t off, uint64_t len)
{
	Elf_Data part = {0};

	if (d->d_buf && off <= d->d_size && len <= d->d_size - off) {
		part.d_buf = (uint8_t *)d->d_buf + off;
		part.d_size = len;
	}
	return part;
}

static Elf_Data rest_of(const Elf_Data *d, uint64_t off)
{
	return part_of(d, off, off <= d->d_size ? d->d_size - off : 0);
}

static struct dwarf_cursor cursor_at(const Elf_Data *d, uint64_t off)
{
	const uint8_t *p = d->d_buf;

	if (!p || off > d->d_size)
		return (struct dwarf_cursor){.bad = true};
	return (struct dwarf_cursor){.p = p + off, .end = p + d->d_size};
}

/* ---------- files ---------- */

static bool open_file(struct file *file, int fd)
{
	struct vmprof_err err;
	struct elf_file f;
	off_t size = lseek(fd, 0, SEEK_END);
	int ret = size < 0 ? -errno
			   : elf_file_open(&f, elf_read_fd, &fd, (uint64_t)size, "split file", true,
					   &err);

	*file = (struct file){0};
	if (ret)
		return false;
	ret = dwarf_check_sizes(&f, &err);
	elf_file_close(&f);
	file->elf = ret ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!file->elf)
		return false;
	find_sections(file->elf, kind_names, NR_KINDS, ".dwo", file->sections);
	/* the index of a package is not a part of one */
	find_sections(file->elf, &kind_names[CU_INDEX], 1, "", &file->sections[CU_INDEX]);
	return file->sections[INFO].d_buf && file->sections[ABBREV].d_buf;
}

static void close_file(struct file *file)
{
	elf_end(file->elf);
	file->elf = NULL;
}

/* A file with these sections, which are not copied. */
static bool make_dwarf(struct dwarf_split *s, int fd)
{
	static const char names[] =
		"\0.debug_info\0.debug_abbrev\0.debug_line\0.debug_str_offsets\0"
		".debug_str\0.debug_addr\0.shstrtab";
	static const enum kind kinds[] = {INFO, ABBREV, LINE, STR_OFFSETS, STR};
	enum { N = sizeof(kinds) / sizeof(*kinds) };
	const char *name = names + 1;
	GElf_Ehdr ehdr;

	s->elf = elf_begin(fd, ELF_C_WRITE, NULL);
	if (!s->elf || !gelf_newehdr(s->elf, ELFCLASS64))
		return false;
	for (size_t i = 0; i < N + 2; i++, name += strlen(name) + 1) {
		Elf_Data in = i < N ? s->sections[kinds[i]]
			      : i == N
				      ? s->addresses
				      : (Elf_Data){.d_buf = (void *)names, .d_size = sizeof(names)};
		Elf_Scn *scn = in.d_buf ? elf_newscn(s->elf) : NULL;
		Elf_Data *data = scn ? elf_newdata(scn) : NULL;
		GElf_Shdr shdr;

		if (!in.d_buf)
			continue;
		if (!data || !gelf_getshdr(scn, &shdr))
			return false;
		data->d_buf = in.d_buf;
		data->d_size = in.d_size;
		data->d_type = ELF_T_BYTE;
		shdr.sh_type = i <= N ? SHT_PROGBITS : SHT_STRTAB;
		shdr.sh_name = (uint32_t)(name - names);
		shdr.sh_size = in.d_size;
		if (!gelf_update_shdr(scn, &shdr) || !gelf_getehdr(s->elf, &ehdr))
			return false;
		ehdr.e_shstrndx = (uint16_t)elf_ndxscn(scn); /* of the last one in the end */
		ehdr.e_ident[EI_DATA] = ELFDATA2LSB;
		if (!gelf_update_ehdr(s->elf, &ehdr))
			return false;
	}
	s->dwarf = dwarf_begin_elf(s->elf, DWARF_C_READ, NULL);
	return s->dwarf;
}

/* ---------- packages ---------- */

/*
 * Where the unit's parts of the package's sections are: a hash table of identifiers with numbers of
 * rows, then a row of offsets and a row of sizes for each unit.
 */
static bool find_in_package(const struct file *p, uint64_t id, Elf_Data *out)
{
	/* by what the index calls them; 8 is another one before version 5 */
	static const struct {
		uint32_t section;
		enum kind kind;
	} kinds[] = {{1, INFO}, {3, ABBREV}, {4, LINE}, {6, STR_OFFSETS}, {8, RNGLISTS}};
	const Elf_Data *index = &p->sections[CU_INDEX];
	struct dwarf_cursor c = cursor_at(index, 0);
	uint32_t version = (uint16_t)dwarf_uint(&c, 4), columns = (uint32_t)dwarf_uint(&c, 4),
		 units = (uint32_t)dwarf_uint(&c, 4), slots = (uint32_t)dwarf_uint(&c, 4);
	uint64_t rows, at, step, row = 0;

	if (c.bad || (version != 2 && version != 5) || !columns || columns > NR_KINDS + 4 ||
	    !slots || slots & (slots - 1))
		return false;
	step = ((id >> 32) & (slots - 1)) | 1;
	at = id & (slots - 1);
	for (uint32_t i = 0; i < slots && i < MAX_PROBES && !row;
	     i++, at = (at + step) & (slots - 1)) {
		struct dwarf_cursor key = cursor_at(index, 16 + 8 * at);
		struct dwarf_cursor number = cursor_at(index, 16 + 8ull * slots + 4 * at);
		uint64_t found = dwarf_uint(&key, 8), n = dwarf_uint(&number, 4);

		if (key.bad || number.bad || (!found && !n))
			return false;
		if (found == id)
			row = n;
	}
	if (!row || row > units)
		return false;
	rows = 16 + 12ull * slots; /* the first one says which sections there are */
	for (uint32_t i = 0; i < columns; i++) {
		struct dwarf_cursor section = cursor_at(index, rows + 4ull * i);
		struct dwarf_cursor off = cursor_at(index, rows + 4 * (row * columns + i));
		struct dwarf_cursor len =
			cursor_at(index, rows + 4 * ((row + units) * columns + i));
		uint32_t what = (uint32_t)dwarf_uint(&section, 4);
		uint64_t start = dwarf_uint(&off, 4), size = dwarf_uint(&len, 4);

		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			if (kinds[k].section == what && (what != 8 || version == 5))
				out[kinds[k].kind] =
					part_of(&p->sections[kinds[k].kind], start, size);
		if (section.bad || off.bad || len.bad)
			return false;
	}
	out[STR] = p->sections[STR];
	return out[INFO].d_buf && out[ABBREV].d_buf;
}

/* ---------- units ---------- */

static const char *string_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;

	return dwarf_attr(die, name, &attr) ? dwarf_formstring(&attr) : NULL;
}

static uint64_t offset_of(Dwarf_Die *die, unsigned name, unsigned gnu_name)
{
	Dwarf_Attribute attr;
	Dwarf_Word v = 0;

	if (!dwarf_attr(die, name, &attr) && !dwarf_attr(die, gnu_name, &attr))
		return 0;
	return dwarf_formudata(&attr, &v) ? 0 : v;
}

/* What the unit's other half needs of the program. */
static void take_program(struct dwarf_info *d, struct dwarf_unit *u, struct dwarf_split *s)
{
	static const char *const kinds[] = {"addr", "ranges"};
	Elf_Data found[2] = {{0}};
	Dwarf_Addr base;

	find_sections(d->elf, kinds, 2, "", found);
	s->addresses = rest_of(&found[0], offset_of(&u->die, DW_AT_addr_base, DW_AT_GNU_addr_base));
	s->ranges = rest_of(&found[1], offset_of(&u->die, DW_AT_GNU_ranges_base, 0));
	s->base = dwarf_lowpc(&u->die, &base) ? 0 : base;
}

static bool find_die(struct dwarf_split *s, uint64_t id)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	uint8_t type;
	uint64_t found;

	while (!dwarf_get_units(s->dwarf, cu, &cu, &version, &type, &s->die, NULL))
		if (type == DW_UT_split_compile &&
		    !dwarf_cu_info(cu, &s->version, NULL, NULL, NULL, &found, &s->address_size,
				   NULL) &&
		    found == id)
			return true;
	return false;
}

/* @s->sections are the unit's; takes what is left of the limits. */
static bool take_unit(struct dwarf_info *d, struct dwarf_unit *u, struct dwarf_split *s, int fd,
		      uint64_t id)
{
	uint64_t size = s->sections[INFO].d_size;

	if (size > d->splitter->bytes_left)
		return false;
	d->splitter->bytes_left -= size;
	take_program(d, u, s);
	if (!make_dwarf(s, fd) || !find_die(s, id))
		return false;
	d->entries_left += 4 * size;
	u->split = s;
	return true;
}

static int open_next(struct dwarf_splitter *sp, const char *name, const char *dir, unsigned *i)
{
	int fd = -ENOENT;

	while (*i < MAX_PLACES && fd < 0 && fd != -ERANGE)
		fd = sp->open(sp->ctx, name, dir, (*i)++);
	return fd;
}

static bool open_package(struct dwarf_splitter *sp)
{
	unsigned i = 0;
	int fd;

	if (sp->tried_package)
		return sp->package.elf;
	sp->tried_package = true;
	while (!sp->package.elf && (fd = open_next(sp, NULL, NULL, &i)) >= 0) {
		if (!open_file(&sp->package, fd) || !sp->package.sections[CU_INDEX].d_buf)
			close_file(&sp->package);
		close(fd);
	}
	return sp->package.elf;
}

static bool try_package(struct dwarf_info *d, struct dwarf_unit *u, uint64_t id)
{
	struct dwarf_split *s;
	int fd;
	bool good;

	if (!open_package(d->splitter))
		return false;
	s = xcalloc(1, sizeof(*s));
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* libelf wants one, and writes nothing */
	good = fd >= 0 && find_in_package(&d->splitter->package, id, s->sections) &&
	       take_unit(d, u, s, fd, id);
	if (fd >= 0)
		close(fd);
	if (!good)
		dwarf_split_free(s);
	return good;
}

static bool try_file(struct dwarf_info *d, struct dwarf_unit *u, uint64_t id, int fd)
{
	struct dwarf_split *s = xcalloc(1, sizeof(*s));

	if (open_file(&s->file, fd)) {
		memcpy(s->sections, s->file.sections, sizeof(s->sections));
		if (take_unit(d, u, s, fd, id))
			return true;
	}
	dwarf_split_free(s);
	return false;
}

void dwarf_split_find(struct dwarf_info *d, struct dwarf_unit *u)
{
	struct dwarf_splitter *sp = d->splitter;
	const char *name = string_of(&u->die, DW_AT_dwo_name);
	const char *dir = string_of(&u->die, DW_AT_comp_dir);
	uint64_t id = 0;
	unsigned i = 0;
	int fd;

	if (!name)
		name = string_of(&u->die, DW_AT_GNU_dwo_name);
	if (!sp || !name || dwarf_cu_info(u->die.cu, NULL, NULL, NULL, NULL, &id, NULL, NULL) ||
	    try_package(d, u, id))
		return;
	while (!u->split && (fd = open_next(sp, name, dir, &i)) >= 0) {
		try_file(d, u, id, fd);
		close(fd);
	}
	if (!u->split && !sp->missing)
		sp->missing = xstrdup(name);
}

Dwarf_Die *dwarf_unit_functions(struct dwarf_unit *u)
{
	return u->split ? &u->split->die : &u->die;
}

const char *dwarf_unit_file(struct dwarf_unit *u, uint32_t file)
{
	bool own = u->split && u->split->sections[LINE].d_buf;
	Dwarf_Files *files;
	size_t n;

	return !dwarf_getsrcfiles(own ? &u->split->die : &u->die, &files, &n) && file < n
		       ? dwarf_filesrc(files, file, NULL, NULL)
		       : NULL;
}

/* ---------- lists of addresses ---------- */

static uint64_t address_at(const struct dwarf_split *s, uint64_t index, bool *bad)
{
	struct dwarf_cursor c = {.bad = true};
	uint64_t addr;

	if (index < UINT32_MAX)
		c = cursor_at(&s->addresses, index * s->address_size);
	addr = dwarf_uint(&c, s->address_size);
	*bad |= c.bad;
	return addr;
}

/* The attribute's value where it stands: libdw would look into sections that are not there. */
static struct dwarf_cursor list_of(const struct dwarf_split *s, const Dwarf_Attribute *attr)
{
	const Elf_Data *info = &s->sections[INFO], *lists = &s->sections[RNGLISTS];
	uint64_t off = (uint64_t)((uintptr_t)attr->valp - (uintptr_t)info->d_buf);
	struct dwarf_cursor value = cursor_at(info, off), entry;
	uint64_t v;

	switch (attr->form) {
	case DW_FORM_sec_offset:
	case DW_FORM_data4:
		v = dwarf_uint(&value, 4);
		break;
	case DW_FORM_rnglistx:
		v = dwarf_uleb(&value);
		entry = cursor_at(lists, LIST_HEADER + 4 * (v & UINT32_MAX));
		v = LIST_HEADER + dwarf_uint(&entry, 4);
		value.bad |= entry.bad;
		break;
	default:
		value.bad = true;
	}
	return value.bad ? value : cursor_at(s->version < 5 ? &s->ranges : lists, v);
}

/* The next one of version 5. False at the end. */
static bool next_entry(const struct dwarf_split *s, struct dwarf_cursor *c, uint64_t *base,
		       uint64_t *start, uint64_t *end)
{
	bool bad = false;

	*start = *end = 0;
	switch (dwarf_uint(c, 1)) {
	case DW_RLE_base_addressx:
		*base = address_at(s, dwarf_uleb(c), &bad);
		break;
	case DW_RLE_startx_endx:
		*start = address_at(s, dwarf_uleb(c), &bad);
		*end = address_at(s, dwarf_uleb(c), &bad);
		break;
	case DW_RLE_startx_length:
		*start = address_at(s, dwarf_uleb(c), &bad);
		*end = *start + dwarf_uleb(c);
		break;
	case DW_RLE_offset_pair:
		*start = *base + dwarf_uleb(c);
		*end = *base + dwarf_uleb(c);
		break;
	case DW_RLE_base_address:
		*base = dwarf_uint(c, s->address_size);
		break;
	case DW_RLE_start_end:
		*start = dwarf_uint(c, s->address_size);
		*end = dwarf_uint(c, s->address_size);
		break;
	case DW_RLE_start_length:
		*start = dwarf_uint(c, s->address_size);
		*end = *start + dwarf_uleb(c);
		break;
	default:
		return false;
	}
	return !bad && !c->bad;
}

/* The next pair before version 5; two zeros are the end. */
static bool next_pair(const struct dwarf_split *s, struct dwarf_cursor *c, uint64_t *base,
		      uint64_t *start, uint64_t *end)
{
	uint64_t none = s->address_size == 4 ? UINT32_MAX : UINT64_MAX;
	uint64_t from = dwarf_uint(c, s->address_size), to = dwarf_uint(c, s->address_size);

	*start = *end = 0;
	if (c->bad || (!from && !to))
		return false;
	if (from == none) {
		*base = to;
		return true;
	}
	*start = *base + from;
	*end = *base + to;
	return true;
}

void dwarf_split_ranges(struct dwarf_info *d, struct dwarf_unit *u, struct dwarf_ranges *to,
			Dwarf_Die *die, uint32_t id)
{
	const struct dwarf_split *s = u->split;
	uint64_t base = s->base, start, end;
	struct dwarf_cursor c;
	Dwarf_Attribute attr;

	if (s->address_size != 4 && s->address_size != 8)
		return;
	if (!dwarf_attr(die, DW_AT_ranges, &attr)) {
		if (!dwarf_lowpc(die, &start) && !dwarf_highpc(die, &end))
			dwarf_range_add(d, to, start, end, id);
		return;
	}
	c = list_of(s, &attr);
	for (unsigned i = 0; i < MAX_ENTRIES && d->ranges_left && !c.bad; i++) {
		/* not all are addresses: what only moves the base is read, too */
		if (!d->entries_left)
			break;
		d->entries_left--;
		if (!(s->version < 5 ? next_pair : next_entry)(s, &c, &base, &start, &end))
			break;
		dwarf_range_add(d, to, start, end, id);
	}
}

/* ---------- the whole ---------- */

void dwarf_info_set_split(struct dwarf_info *d, dwarf_split_fn *open, void *ctx)
{
	if (!d->splitter)
		d->splitter = xcalloc(1, sizeof(*d->splitter));
	d->splitter->open = open;
	d->splitter->ctx = ctx;
	d->splitter->bytes_left = MAX_BYTES;
}

const char *dwarf_info_missing(const struct dwarf_info *d)
{
	return d->splitter ? d->splitter->missing : NULL;
}

void dwarf_split_free(struct dwarf_split *s)
{
	if (!s)
		return;
	dwarf_end(s->dwarf);
	elf_end(s->elf);
	close_file(&s->file);
	free(s);
}

void dwarf_splitter_free(struct dwarf_splitter *s)
{
	if (!s)
		return;
	close_file(&s->package);
	free(s->missing);
	free(s);
}

#endif
