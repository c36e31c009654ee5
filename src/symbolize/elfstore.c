// SPDX-License-Identifier: GPL-2.0-only
/*
 * The store of small ELF files: symbols and build id, no code. elfimage.h has the format.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/storefile.h"
#include "symbolize/symtab.h"
#include "util/buf.h"
#include "util/openfile.h"
#include "util/text.h"
#include "util/xalloc.h"

enum {
	MAX_STORED_NAMES = 256 << 20,
	NR_PHDRS = 2,
};

/* ---------- the file ---------- */

enum section_index {
	S_NULL,
	S_TEXT,
	S_BUILD_ID,
	S_VMPROF,
	S_SYMTAB,
	S_STRTAB,
	S_SHSTRTAB,
	S_COUNT
};

static const struct {
	const char *name;
	uint32_t type, flags, link, align, entsize;
} section_defs[S_COUNT] = {
	[S_NULL] = {"", SHT_NULL, 0, 0, 0, 0},
	[S_TEXT] = {".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, 0, 16, 0},
	[S_BUILD_ID] = {".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0, 4, 0},
	[S_VMPROF] = {".note.vmprof", SHT_NOTE, 0, 0, 4, 0},
	[S_SYMTAB] = {".symtab", SHT_SYMTAB, 0, S_STRTAB, 8, sizeof(Elf64_Sym)},
	[S_STRTAB] = {".strtab", SHT_STRTAB, 0, 0, 1, 0},
	[S_SHSTRTAB] = {".shstrtab", SHT_STRTAB, 0, 0, 1, 0},
};

struct image {
	struct buf b;
	uint64_t at[S_COUNT], size[S_COUNT];
};

static void align(struct buf *b, size_t n)
{
	buf_zero(b, (n - b->len % n) % n);
}

static void begin_section(struct image *im, enum section_index i)
{
	align(&im->b, 8);
	im->at[i] = im->b.len;
}

static void end_section(struct image *im, enum section_index i)
{
	im->size[i] = im->b.len - im->at[i];
}

static void add_note(struct buf *b, const char *owner, uint32_t type, const void *desc,
		     uint32_t len)
{
	uint32_t namesz = (uint32_t)strlen(owner) + 1;

	buf_u32(b, namesz);
	buf_u32(b, len);
	buf_u32(b, type);
	buf_add(b, owner, namesz);
	align(b, 4);
	buf_add(b, desc, len);
	align(b, 4);
}

static void add_vmprof_note(struct image *im, const struct symtab *t)
{
	struct buf d = {0};

	buf_u32(&d, (t->partial ? ELF_NOTE_PARTIAL : 0) |
			    (t->build_id_made_up ? ELF_NOTE_BUILD_ID_MADE_UP : 0));
	buf_u32(&d, t->nr_loads);
	for (uint32_t i = 0; i < t->nr_loads; i++) {
		buf_u64(&d, t->loads[i].vaddr);
		buf_u64(&d, t->loads[i].offset);
		buf_u64(&d, t->loads[i].size);
		buf_u32(&d, t->loads[i].flags);
		buf_u32(&d, 0);
	}
	begin_section(im, S_VMPROF);
	add_note(&im->b, ELF_NOTE_OWNER, ELF_NOTE_TYPE, d.data, (uint32_t)d.len);
	end_section(im, S_VMPROF);
	buf_free(&d);
}

static unsigned char bind_of(char binding)
{
	return binding == 'l' ? STB_LOCAL : binding == 'w' ? STB_WEAK : STB_GLOBAL;
}

/*
 * The guest chose the names, and perf prints what is in a file as it is. Nothing but control
 * characters and what is no UTF-8 changes.
 */
static void add_name(struct buf *strings, const char *name)
{
	size_t size = 4 * strlen(name) + 1;
	char *safe = xmalloc(size);

	escape_str(safe, size, name);
	buf_add(strings, safe, strlen(safe) + 1);
	free(safe);
}

/* Locals come first, as the gABI wants; returns their number with the null symbol. */
static uint32_t add_symbols(struct image *im, const struct symtab *t, struct buf *strings)
{
	uint32_t locals = 1;

	begin_section(im, S_SYMTAB);
	buf_zero(&im->b, sizeof(Elf64_Sym));
	buf_zero(strings, 1);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < t->n; i++) {
			const struct symbol *s = &t->syms[i];
			Elf64_Sym sym = {
				.st_name = (Elf64_Word)strings->len,
				.st_info = ELF64_ST_INFO(bind_of(s->binding), STT_FUNC),
				.st_shndx = S_TEXT,
				.st_value = s->start,
				.st_size = s->end - s->start,
			};

			if ((s->binding != 'l') != pass || strings->len > MAX_STORED_NAMES)
				continue;
			buf_add(&im->b, &sym, sizeof(sym));
			add_name(strings, s->name);
			locals += !pass;
		}
	}
	end_section(im, S_SYMTAB);
	return locals;
}

/* perf and libdwfl take the mapping from these: addresses are offsets. */
static void make_phdrs(const struct image *im, Elf64_Phdr p[NR_PHDRS])
{
	p[0] = (Elf64_Phdr){
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_filesz = im->size[S_TEXT],
		.p_memsz = im->size[S_TEXT],
		.p_align = 4096,
	};
	p[1] = (Elf64_Phdr){
		.p_type = PT_NOTE,
		.p_flags = PF_R,
		.p_offset = im->at[S_BUILD_ID],
		.p_vaddr = im->at[S_BUILD_ID],
		.p_paddr = im->at[S_BUILD_ID],
		.p_filesz = im->size[S_BUILD_ID],
		.p_memsz = im->size[S_BUILD_ID],
		.p_align = 4,
	};
}

static void add_section_names(struct image *im, uint32_t name_at[S_COUNT])
{
	begin_section(im, S_SHSTRTAB);
	for (size_t i = 0; i < S_COUNT; i++) {
		name_at[i] = (uint32_t)(im->b.len - im->at[S_SHSTRTAB]);
		buf_add(&im->b, section_defs[i].name, strlen(section_defs[i].name) + 1);
	}
	end_section(im, S_SHSTRTAB);
}

static void add_sections(struct image *im, const uint32_t name_at[S_COUNT], uint32_t locals)
{
	for (size_t i = 0; i < S_COUNT; i++) {
		Elf64_Shdr h = {
			.sh_name = name_at[i],
			.sh_type = section_defs[i].type,
			.sh_flags = section_defs[i].flags,
			.sh_addr = section_defs[i].flags & SHF_ALLOC ? im->at[i] : 0,
			.sh_offset = im->at[i],
			.sh_size = im->size[i],
			.sh_link = section_defs[i].link,
			.sh_info = i == S_SYMTAB ? locals : 0,
			.sh_addralign = section_defs[i].align,
			.sh_entsize = section_defs[i].entsize,
		};

		buf_add(&im->b, &h, sizeof(h));
	}
}

/*
 * .text reaches from 0 over all symbols: perf takes its offset for that of a kernel's or module's
 * mapping. A page if there are no symbols.
 */
static uint64_t text_size(const struct symtab *t)
{
	uint64_t end = 4096;

	for (size_t i = 0; i < t->n; i++)
		if (t->syms[i].end > end)
			end = t->syms[i].end;
	return end;
}

static void make_image(struct buf *out, const struct symtab *t, const uint8_t *id, uint32_t id_len)
{
	struct image im = {.size[S_TEXT] = text_size(t)};
	Elf64_Phdr phdrs[NR_PHDRS];
	uint32_t name_at[S_COUNT], locals;
	struct buf strings = {0};
	Elf64_Ehdr e = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = t->machine ? t->machine : EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(e),
		.e_ehsize = sizeof(e),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = NR_PHDRS,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = S_COUNT,
		.e_shstrndx = S_SHSTRTAB,
	};

	buf_zero(&im.b, sizeof(e) + sizeof(phdrs));
	begin_section(&im, S_BUILD_ID);
	add_note(&im.b, "GNU", NT_GNU_BUILD_ID, id, id_len);
	end_section(&im, S_BUILD_ID);
	add_vmprof_note(&im, t);
	locals = add_symbols(&im, t, &strings);
	begin_section(&im, S_STRTAB);
	buf_add(&im.b, strings.data, strings.len);
	end_section(&im, S_STRTAB);
	buf_free(&strings);
	add_section_names(&im, name_at);
	align(&im.b, 8);
	e.e_shoff = im.b.len;
	add_sections(&im, name_at, locals);
	make_phdrs(&im, phdrs);
	memcpy(im.b.data, &e, sizeof(e));
	memcpy(im.b.data + sizeof(e), phdrs, sizeof(phdrs));
	*out = im.b;
}

/* ---------- the directory ---------- */

/* Is there a file with this id at @path, and is it a partial one? */
static bool is_stored(const char *path, bool *partial)
{
	struct elf_file f;
	struct stat st;
	bool ok = false;
	int fd = open_plain_file(path);

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    !elf_file_open(&f, elf_read_fd, &fd, (uint64_t)st.st_size, path, true, NULL)) {
		*partial = f.note_flags & ELF_NOTE_PARTIAL;
		ok = true;
		elf_file_close(&f);
	}
	close(fd);
	return ok;
}

static int make_link(const char *dir, const char *below, const char *hex, bool partial)
{
	char link[PATH_MAX], target[PATH_MAX], elf[PATH_MAX + 8], tmp[PATH_MAX + 8];
	char parent[16];
	bool old_partial = false;
	int ret;

	snprintf(parent, sizeof(parent), ".build-id/%.2s", hex);
	ret = storefile_make_dirs(dir, parent);
	if (ret)
		return ret;
	if ((size_t)snprintf(link, sizeof(link), "%s/%s/%s", dir, parent, hex + 2) >=
		    sizeof(link) ||
	    (size_t)snprintf(target, sizeof(target), "../../%s", below) >= sizeof(target))
		return -ENAMETOOLONG;
	if (!symlink(target, link))
		return 0;
	if (errno != EEXIST)
		return -errno;
	snprintf(elf, sizeof(elf), "%s/elf", link);
	if (is_stored(elf, &old_partial) && (!old_partial || partial))
		return 0;
	snprintf(tmp, sizeof(tmp), "%s.new", link);
	unlink(tmp);
	if (symlink(target, tmp) || rename(tmp, link))
		return -errno;
	return 0;
}

static int put(const char *dir, const char *name, const uint8_t *build_id, uint32_t build_id_len,
	       const struct symtab *t, bool replace, struct vmprof_err *err)
{
	char hex[41], below[PATH_MAX], path[PATH_MAX], file[PATH_MAX + 8];
	bool partial = false;
	struct buf b;
	int ret;

	if (build_id_len < 2 || build_id_len > 20)
		return err_set(err, EINVAL, "cannot save symbols in %s: no build id", dir);
	hex_str(hex, build_id, build_id_len);
	ret = storefile_path(below, sizeof(below), "", name, hex);
	if (!ret)
		ret = storefile_path(path, sizeof(path), dir, name, hex);
	if (!ret && (size_t)snprintf(file, sizeof(file), "%s/elf", path) >= sizeof(file))
		ret = -ENAMETOOLONG;
	if (!ret)
		ret = storefile_make_dirs(dir, below);
	if (!ret && (replace || !is_stored(file, &partial) || (partial && !t->partial))) {
		make_image(&b, t, build_id, build_id_len);
		ret = storefile_write(file, &b);
		buf_free(&b);
	}
	if (!ret)
		ret = make_link(dir, below, hex, t->partial);
	return ret ? err_sys(err, -ret, "cannot save symbols in %s", dir) : 0;
}

int elfstore_put(const char *dir, const char *name, const uint8_t *build_id, uint32_t build_id_len,
		 const struct symtab *t, struct vmprof_err *err)
{
	return put(dir, name, build_id, build_id_len, t, false, err);
}

int elfstore_replace(const char *dir, const char *name, const uint8_t *build_id,
		     uint32_t build_id_len, const struct symtab *t, struct vmprof_err *err)
{
	return put(dir, name, build_id, build_id_len, t, true, err);
}

static int exists(const char *path)
{
	struct stat st;

	return stat(path, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -ENOENT;
}

int elfstore_get(const char *dir, const uint8_t *build_id, uint32_t build_id_len, char *path)
{
	char hex[41];

	if (build_id_len < 2 || build_id_len > 20)
		return -ENOENT;
	hex_str(hex, build_id, build_id_len);
	if (snprintf(path, PATH_MAX, "%s/.build-id/%.2s/%s/elf", dir, hex, hex + 2) >= PATH_MAX)
		return -ENAMETOOLONG;
	return exists(path);
}

int elfstore_get_named(const char *dir, const char *name, const uint8_t *build_id,
		       uint32_t build_id_len, char *path)
{
	char hex[41];
	size_t len;
	int ret;

	if (build_id_len < 2 || build_id_len > 20)
		return -ENOENT;
	hex_str(hex, build_id, build_id_len);
	ret = storefile_path(path, PATH_MAX, dir, name, hex);
	len = strlen(path);
	if (ret || (size_t)snprintf(path + len, PATH_MAX - len, "/elf") >= PATH_MAX - len)
		return -ENAMETOOLONG;
	return exists(path);
}

char *elfstore_beside(const char *profile)
{
	return xasprintf("%s.debug", strcmp(profile, "-") ? profile : "perf.data");
}
