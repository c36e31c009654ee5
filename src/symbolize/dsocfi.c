// SPDX-License-Identifier: GPL-2.0-only
/*
 * Call frame information of the host's user DSOs, out of the files that symbols are looked for in:
 * .eh_frame of one that has the code, and .debug_frame, wherever it is, where that says nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/session.h"
#include "util/xalloc.h"

enum { MAX_SECTION = 256 << 20, MAX_HDR = 64 << 20, MAX_STUBS = 8 };

/* Bytes of an image as it is loaded. */
struct piece {
	uint8_t *bytes;
	uint64_t vaddr, size;
};

struct dso_cfi {
	enum unwind_arch arch;
	bool has_loads;
	bool tried_debug;
	struct piece hdr, frames;
	struct cfi *eh, *debug; /* NULL: has none */
	struct elf_load *loads;
	uint32_t nr_loads;
	struct range {
		uint64_t start, size;
	} stubs[MAX_STUBS]; /* slots of the PLT */
	unsigned nr_stubs;
};

void dso_cfi_free(struct dso_cfi *c)
{
	if (!c)
		return;
	cfi_free(c->eh);
	cfi_free(c->debug);
	free(c->hdr.bytes);
	free(c->frames.bytes);
	free(c->loads);
	free(c);
}

static int read_pieces(void *ctx, uint64_t vaddr, void *buf, size_t len)
{
	const struct dso_cfi *c = ctx;
	const struct piece *p = vaddr - c->hdr.vaddr < c->hdr.size ? &c->hdr : &c->frames;
	uint64_t in = vaddr - p->vaddr;

	if (in > p->size || len > p->size - in)
		return -EIO;
	memcpy(buf, p->bytes + in, len);
	return 0;
}

/* ---------- .eh_frame ---------- */

static const struct elf_segment *segment_of(const struct elf_file *f, uint32_t type, uint64_t vaddr)
{
	for (size_t i = 0; i < f->nr_segments; i++)
		if (f->segments[i].type == type &&
		    (!vaddr || vaddr - f->segments[i].vaddr < f->segments[i].filesz))
			return &f->segments[i];
	return NULL;
}

/* Without sections: the header says where it begins, and the segment that it is in where it ends.
 */
static bool find_by_hdr(const struct elf_file *f, const struct piece *hdr, uint64_t *vaddr,
			uint64_t *offset, uint64_t *size)
{
	const struct elf_segment *s;

	*vaddr = cfi_hdr_frames(hdr->bytes, hdr->size, hdr->vaddr);
	s = *vaddr ? segment_of(f, PT_LOAD, *vaddr) : NULL;
	if (!s)
		return false;
	*offset = s->offset + (*vaddr - s->vaddr);
	*size = s->filesz - (*vaddr - s->vaddr);
	return true;
}

static bool find_frames(const struct elf_file *f, const struct piece *hdr, uint64_t *vaddr,
			uint64_t *offset, uint64_t *size)
{
	const struct elf_section *sec = elf_file_section(f, ".eh_frame", SHT_NULL);

	if (!sec || sec->type == SHT_NOBITS)
		return hdr->size && find_by_hdr(f, hdr, vaddr, offset, size);
	*vaddr = sec->addr;
	*offset = sec->offset;
	*size = sec->size;
	return true;
}

static void load_hdr(struct dso_cfi *c, const struct elf_file *f)
{
	const struct elf_segment *s = segment_of(f, PT_GNU_EH_FRAME, 0);
	int ret;

	if (!s)
		return;
	c->hdr.bytes = elf_file_bytes(f, s->offset, s->filesz, MAX_HDR, &ret);
	c->hdr.vaddr = s->vaddr;
	c->hdr.size = c->hdr.bytes ? s->filesz : 0;
}

static void load_eh_frame(struct dso_cfi *c, const struct elf_file *f)
{
	struct cfi_section section = {0};
	uint64_t offset, size, max = MAX_SECTION;
	int ret;

	load_hdr(c, f);
	if (!find_frames(f, &c->hdr, &c->frames.vaddr, &offset, &size))
		return;
	size = size < max ? size : max;
	c->frames.bytes = elf_file_bytes(f, offset, size, max, &ret);
	if (!c->frames.bytes)
		return;
	c->frames.size = size;
	if (c->hdr.size && cfi_has_table(c->hdr.bytes, c->hdr.size)) {
		c->eh = cfi_new(c->arch, c->hdr.vaddr);
		return;
	}
	section = (struct cfi_section){c->frames.bytes, size, c->frames.vaddr, false};
	c->frames = (struct piece){0};
	c->eh = cfi_new_section(c->arch, &section);
}

/* ---------- .debug_frame ---------- */

static uint8_t *debug_frame(const struct elf_file *f, uint64_t *size)
{
	const struct elf_section *sec = elf_file_section(f, ".debug_frame", SHT_PROGBITS);
	int ret;

	if (!sec)
		sec = elf_file_section(f, ".zdebug_frame", SHT_PROGBITS);
	return sec ? elf_section_data(f, sec, MAX_SECTION, size, &ret) : NULL;
}

static void load_debug_frame(struct dso_cfi *c, struct dso_priv *d)
{
	struct cfi_section section = {.debug_frame = true};
	struct dso_files files;

	c->tried_debug = true;
	dso_files_find(&files, d);
	for (size_t i = 0; i < files.n && !section.bytes; i++)
		section.bytes = debug_frame(&files.c[i]->f, &section.size);
	dso_files_close(&files);
	if (section.bytes)
		c->debug = cfi_new_section(c->arch, &section);
}

/* ---------- the PLT ---------- */

static void note_stubs(struct dso_cfi *c, const struct elf_file *f)
{
	for (size_t i = 1; i < f->nr_sections && c->nr_stubs < MAX_STUBS; i++) {
		const struct elf_section *s = &f->sections[i];

		if (s->flags & SHF_EXECINSTR && !strncmp(s->name, ".plt", 4))
			c->stubs[c->nr_stubs++] = (struct range){s->addr, s->size};
	}
}

/* Some linkers say nothing of its slots: they jump on, and have no frame. */
static bool is_stub(const struct dso_cfi *c, uint64_t vaddr, struct cfi_place *place)
{
	const struct unwind_abi *abi = &unwind_abis[c->arch];
	bool pushed = abi->ra == UNWIND_REGS; /* the return address, by the call */
	unsigned i = 0;

	while (i < c->nr_stubs && vaddr - c->stubs[i].start >= c->stubs[i].size)
		i++;
	if (i == c->nr_stubs)
		return false;
	*place = (struct cfi_place){
		.function = vaddr,
		.function_end = vaddr + 1,
		.end = vaddr + 1,
		.row = {.cfa_base = abi->sp, .ra = pushed ? abi->ip : abi->ra},
	};
	if (pushed) {
		place->row.cfa_offset = 8;
		place->row.nr_rules = 1;
		place->row.rule[0] = (struct unwind_rule){abi->ip, UNWIND_AT, UNWIND_CFA, -8};
	}
	return true;
}

/* ---------- a DSO ---------- */

static bool set_arch(struct dso_cfi *c, const struct elf_file *f)
{
	c->arch = f->machine == EM_AARCH64 ? UNWIND_AARCH64 : UNWIND_X86_64;
	return f->is64 && (f->machine == EM_AARCH64 || f->machine == EM_X86_64);
}

static void take_file(struct dso_cfi *c, const struct elf_file *f)
{
	if (!set_arch(c, f))
		return;
	c->has_loads = true;
	c->nr_loads = f->nr_loads;
	c->loads = xcalloc(f->nr_loads ? f->nr_loads : 1, sizeof(*c->loads));
	memcpy(c->loads, f->loads, f->nr_loads * sizeof(*c->loads));
	if (!f->has_note)
		load_eh_frame(c, f);
	note_stubs(c, f);
}

static void take_vdso(struct dso_cfi *c, struct dso_priv *d)
{
	struct elf_file f;
	uintptr_t start;

	c->tried_debug = true;
	if (dso_open_vdso(d, &f, &start))
		return;
	take_file(c, &f);
	elf_file_close(&f);
}

/* A file of the recorder's store has symbols and addresses only. */
static const struct elf_file *best_file(const struct dso_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		if (!files->c[i]->f.has_note && !files->c[i]->f.debug_only)
			return &files->c[i]->f;
	return dso_files_with_loads(files);
}

static struct dso_cfi *load(struct dso_priv *d)
{
	struct dso_cfi *c = xcalloc(1, sizeof(*c));
	const struct elf_file *f;
	struct dso_files files;

	if (!strcmp(d->dso.long_name, "[vdso]")) {
		take_vdso(c, d);
		return c;
	}
	dso_files_find(&files, d);
	f = best_file(&files);
	if (f)
		take_file(c, f);
	dso_files_close(&files);
	return c;
}

static bool address_of(const struct dso_cfi *c, uint64_t offset, uint64_t *vaddr)
{
	for (uint32_t i = 0; i < c->nr_loads; i++) {
		const struct elf_load *l = &c->loads[i];

		if (l->flags & PF_X && offset - l->offset < l->size) {
			*vaddr = offset - l->offset + l->vaddr;
			return true;
		}
	}
	return false;
}

/* Else its code has been made by the program itself. */
static bool is_of_file(const struct dso *dso)
{
	const char *name = dso->long_name;

	return *name == '/' && !is_perf_map(name) && strncmp(name, "//", 2) != 0 &&
	       strncmp(name, "/memfd:", 7) != 0;
}

int dso_find_row(struct dso_priv *d, enum unwind_arch arch, uint64_t offset,
		 struct cfi_place *place)
{
	struct dso_cfi *c = d->cfi;
	uint64_t vaddr;
	int rc = -ENOENT;

	if (!c)
		c = d->cfi = load(d);
	if (!c->has_loads && is_of_file(&d->dso))
		return -ENXIO;
	if (!c->has_loads || c->arch != arch || !address_of(c, offset, &vaddr))
		return -ENOENT;
	if (c->eh)
		rc = cfi_find(c->eh, vaddr, read_pieces, c, place);
	if (!rc)
		return 0;
	if (!c->tried_debug)
		load_debug_frame(c, d);
	if (c->debug)
		rc = cfi_find(c->debug, vaddr, NULL, NULL, place);
	return rc && is_stub(c, vaddr, place) ? 0 : rc;
}

/*
 * Where the function has stored it already its record may not be in use yet: then what is in x30
 * does not lead back into the function itself, as the return from a call of its own would.
 */
bool dso_link_is_caller(struct dso *dso, uint64_t offset, uint64_t distance)
{
	struct dso_priv *d = (struct dso_priv *)dso;
	struct cfi_place place;
	uint64_t vaddr, link;

	if (dso_find_row(d, UNWIND_AARCH64, offset, &place) || !address_of(d->cfi, offset, &vaddr))
		return false;
	if (unwind_rule_of(&place.row, place.row.ra).place == UNWIND_SAME)
		return true;
	link = vaddr + distance;
	return link - place.function - 1 >= place.function_end - place.function;
}
