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
#include "util/openfile.h"
#include "util/text.h"
#include "util/xalloc.h"

struct dso_source {
	struct dwarf_info *info;      /* NULL: there is none */
	const struct elf_load *loads; /* of a user DSO */
	uint32_t nr_loads;
	uint64_t link_base; /* of a kernel */
	struct session *session;
	const struct dso *dso;
	char *path;		/* of the file with the DWARF */
	bool said;		/* that a file is missing that was split off */
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

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A path that stands in a program's DWARF: of a guest, below what --symfs names; freed here. */
static int open_named(const struct dso_source *src, char *path)
{
	int fd = session_open_source(src->session, src->dso, path);

	free(path);
	return fd < 0 ? -ENOENT : fd;
}

/* Beside the file with the DWARF, of which only the user, and not a file, has said where it is. */
static int open_beside(const struct dso_source *src, const char *name, const char *suffix)
{
	int len = (int)(base_of(src->path) - src->path), fd;
	char *path = xasprintf("%.*s%s%s", len, src->path, name, suffix);

	fd = open_plain_file(path);
	free(path);
	return fd < 0 ? -ENOENT : fd;
}

/* The package is called as the program is, of which this may be the debug file. */
static int open_package(const struct dso_source *src, unsigned i)
{
	const char *name = base_of(src->path), *dot = strrchr(name, '.');
	char *bare;
	int fd = -ENOENT;

	switch (i) {
	case 0:
		return open_beside(src, name, ".dwp");
	case 1:
		if (!dot || strcmp(dot, ".debug") != 0)
			return -ENOENT;
		bare = xstrndup(name, (size_t)(dot - name));
		fd = open_beside(src, bare, ".dwp");
		free(bare);
		return fd;
	case 2:
		return *src->dso->long_name == '/'
			       ? open_named(src, xasprintf("%s.dwp", src->dso->long_name))
			       : -ENOENT;
	default:
		return -ERANGE;
	}
}

static int open_split(void *ctx, const char *name, const char *dir, unsigned i)
{
	const struct dso_source *src = ctx;

	if (!name)
		return open_package(src, i);
	switch (i) {
	case 0:
		if (*name == '/')
			return open_named(src, xstrdup(name));
		return dir && *dir == '/' ? open_named(src, xasprintf("%s/%s", dir, name))
					  : -ENOENT;
	case 1:
		return open_beside(src, base_of(name), "");
	default:
		return -ERANGE;
	}
}

static int open_info(struct dso_source *src, const struct elf_file *f, int fd, const char *path,
		     struct vmprof_err *err)
{
	char name[ELF_MAX_PATH];
	uint8_t id[20];
	uint32_t len;
	bool has_alt = elf_alt_link(f, name, id, &len);
	int alt = has_alt ? open_alt(path, name, id, len, err) : -1, ret;

	if (has_alt && alt < 0)
		return -ENOENT;
	ret = dwarf_info_open(&src->info, f, fd, alt, err);
	if (alt >= 0)
		close(alt);
	if (!ret) {
		src->path = xstrdup(path);
		dwarf_info_set_split(src->info, open_split, src);
	}
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
			open_info(src, &c->f, c->fd, c->path, &err);
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
		open_info(src, &f, fd, path, &err);
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
	d->source->session = d->machine->session;
	d->source->dso = &d->dso;
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

/* Once: what is known of a unit without its functions is but its lines. */
static void say_missing(struct dso_priv *d, struct dso_source *src)
{
	const char *name = src->said ? NULL : dwarf_info_missing(src->info);
	char text[512];

	if (!name)
		return;
	src->said = true;
	escape_str(text, sizeof(text), name);
	dso_say(d,
		"%s; inlined functions are missing where they were split off: there is no %s of "
		"this build, and no %s.dwp with it",
		d->dso.symbol_source ? d->dso.symbol_source : "no symbols", text,
		base_of(d->dso.long_name));
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
		say_missing(d, src);
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
	free(src->path);
	free(src);
}
