// SPDX-License-Identifier: GPL-2.0-only
/*
 * Source lines and inlined functions of a DSO: which of its files has DWARF, how that numbers
 * addresses, and what was found for each address.
 */
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/dwarfinfo.h"
#include "symbolize/session.h"
#include "util/text.h"
#include "util/xalloc.h"

struct dso_source {
	struct dwarf_info *info;      /* NULL: there is none */
	const struct elf_load *loads; /* of a user DSO */
	uint32_t nr_loads;
	uint64_t link_base;	/* of a kernel */
	struct hashmap found;	/* struct source by address */
	struct hashmap symbols; /* of inlined functions, by the interned name */
};

/* ---------- files ---------- */

/* The alternate file of @f, which is the file @path, -1 and a sentence if it is not there. */
static int open_alt(const char *path, const char *name, const uint8_t *id, uint32_t len,
		    struct vmprof_err *err)
{
	char hex[41], text[512], *dir = xstrdup(path), *paths[2];
	struct elf_file f;
	int fd = -1;

	hex_str(hex, id, len);
	paths[0] = xasprintf("/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
	paths[1] = *name == '/' ? xstrdup(name) : xasprintf("%s/%s", dirname(dir), name);
	for (size_t i = 0; i < 2 && fd < 0 && len > 1; i++) {
		if (elf_file_open_path(&f, &fd, paths[i], text, sizeof(text), err)) {
			fd = -1;
			continue;
		}
		if (elf_file_check_build_id(&f, id, len, err) || f.build_id_len != len) {
			close(fd);
			fd = -1;
		}
		elf_file_close(&f);
	}
	free(paths[0]);
	free(paths[1]);
	free(dir);
	return fd;
}

static int open_info(struct dwarf_info **out, const struct elf_file *f, int fd, const char *path,
		     struct vmprof_err *err)
{
	char name[ELF_MAX_PATH];
	uint8_t id[20];
	uint32_t len;
	bool has_alt = elf_alt_link(f, name, id, &len);
	int alt = has_alt ? open_alt(path, name, id, len, err) : -1, ret;

	if (has_alt && alt < 0)
		return -ENOENT;
	ret = dwarf_info_open(out, f, fd, alt, err);
	if (alt >= 0)
		close(alt);
	return ret;
}

static void open_user(struct dso_priv *d, struct dso_source *src)
{
	struct dso_files files;
	struct vmprof_err err;

	src->loads = d->dso.symtab->loads;
	src->nr_loads = d->dso.symtab->nr_loads;
	dso_files_find_debug(&files, d);
	for (size_t i = 0; i < files.n && !src->info; i++) {
		const struct dso_file *c = files.c[i];

		if (dwarf_info_is_in(&c->f))
			open_info(&src->info, &c->f, c->fd, c->path, &err);
	}
	dso_files_close(&files);
}

static void try_kernel(struct dso_priv *d, struct dso_source *src, const char *path)
{
	struct vmprof_err err;
	struct elf_file f;
	char name[512];
	int fd;

	if (elf_file_open_path(&f, &fd, path, name, sizeof(name), &err))
		return;
	if (dwarf_info_is_in(&f) &&
	    !elf_file_check_build_id(&f, d->dso.build_id, d->dso.build_id_len, &err) &&
	    !kernel_link_base_of(&f, &src->link_base, &err))
		open_info(&src->info, &f, fd, path, &err);
	elf_file_close(&f);
	close(fd);
}

static void open_kernel(struct dso_priv *d, struct dso_source *src)
{
	char *path;

	for (unsigned i = 0; !src->info && (path = kernel_vmlinux_path(d, i)); i++) {
		try_kernel(d, src, path);
		free(path);
	}
}

static struct dso_source *source_of(struct dso_priv *d)
{
	if (d->source)
		return d->source;
	d->source = xcalloc(1, sizeof(*d->source));
	if (!d->dso.loaded)
		dso_load(d);
	/* modules are relocated when they are loaded: their sections have no addresses */
	if (d->dso.kernel && !dso_is_module(d))
		open_kernel(d, d->source);
	else if (!d->dso.kernel && d->dso.symtab && d->dso.symtab->nr_loads)
		open_user(d, d->source);
	return d->source;
}

/* False: no code is there. */
static bool address_of(const struct dso_priv *d, const struct dso_source *src, uint64_t offset,
		       uint64_t *addr)
{
	*addr = kernel_link_address(offset, src->link_base);
	if (d->dso.kernel)
		return true;
	for (uint32_t i = 0; i < src->nr_loads; i++) {
		const struct elf_load *l = &src->loads[i];

		*addr = offset - l->offset + l->vaddr;
		if (l->flags & PF_X && offset - l->offset < l->size)
			return true;
	}
	return false;
}

/* ---------- addresses ---------- */

static const char *whole_path(struct session *s, const struct dwarf_frame *f)
{
	const char *text;
	char *path;

	if (!f->file)
		return NULL;
	path = *f->file == '/' || !f->dir ? xstrdup(f->file) : xasprintf("%s/%s", f->dir, f->file);
	text = strtab_intern(s->strings, path);
	free(path);
	return text;
}

/* A symbol of its own for what is inlined: one a name. */
static const struct symbol *inlined_symbol(struct session *s, struct dso_source *src,
					   const char *name)
{
	const char *text = strtab_intern(s->strings, name ? name : "??");
	struct symbol *sym = hashmap_get(&src->symbols, (uintptr_t)text);

	if (sym)
		return sym;
	sym = xcalloc(1, sizeof(*sym));
	sym->name = text;
	sym->inlined = true;
	hashmap_set(&src->symbols, (uintptr_t)text, sym);
	return sym;
}

static struct source *look_up(struct session *s, struct dso_source *src, uint64_t addr)
{
	struct dwarf_frame frames[DWARF_MAX_FRAMES];
	size_t n = dwarf_info_find(src->info, addr, frames);
	struct source *out = xmalloc(sizeof(*out) + n * sizeof(out->frames[0]));

	out->n = n;
	for (size_t i = 0; i < n; i++)
		out->frames[i] = (struct source_frame){
			.sym = i + 1 < n ? inlined_symbol(s, src, frames[i].function) : NULL,
			.file = whole_path(s, &frames[i]),
			.line = frames[i].line,
		};
	return out;
}

const struct source *session_source(struct session *s, const struct dso *dso, uint64_t offset)
{
	static const struct source none;
	struct dso_priv *d = s->dsos[dso->index];
	struct dso_source *src = source_of(d);
	struct source *found;
	uint64_t addr;

	if (!src->info || !address_of(d, src, offset, &addr))
		return &none;
	found = hashmap_get(&src->found, addr);
	if (!found) {
		found = look_up(s, src, addr);
		hashmap_set(&src->found, addr, found);
	}
	return found;
}

void dso_source_free(struct dso_source *src)
{
	void *p;

	if (!src)
		return;
	for (size_t i = 0; (p = hashmap_next(&src->found, &i, NULL));)
		free(p);
	for (size_t i = 0; (p = hashmap_next(&src->symbols, &i, NULL));)
		free(p);
	hashmap_free(&src->found);
	hashmap_free(&src->symbols);
	dwarf_info_close(src->info);
	free(src);
}
