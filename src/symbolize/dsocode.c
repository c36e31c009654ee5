// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bytes of a function, for disassembly. What is read is as hostile as all that is in ELF files:
 * sizes are bounded by the file and by a bound of our own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/codestore.h"
#include "symbolize/session.h"
#include "util/text.h"
#include "util/xalloc.h"

enum { MAX_FUNCTION = 1 << 20 }; /* bytes; a symbol may claim any size */

/* Part of a file that is code: where it is in the file, and in the space that is searched by. */
struct code_part {
	uint64_t key, addr, offset, size;
};

static void name_section(struct dso_code *c, const struct elf_file *f, uint64_t addr)
{
	for (size_t i = 1; i < f->nr_sections; i++) {
		const struct elf_section *s = &f->sections[i];

		if (s->flags & SHF_EXECINSTR && addr - s->addr < s->size) {
			escape_str(c->section, sizeof(c->section), s->name);
			return;
		}
	}
}

static int read_part(struct dso_code *c, const struct elf_file *f, const struct code_part *p,
		     uint64_t start, uint64_t len)
{
	uint64_t skip = start - p->key, left = p->size - skip;
	int ret;

	len = len < left ? len : left;
	len = len < MAX_FUNCTION ? len : MAX_FUNCTION;
	c->bytes = elf_file_bytes(f, p->offset + skip, len, MAX_FUNCTION, &ret);
	if (!c->bytes)
		return ret;
	c->len = len;
	c->addr = p->addr + skip;
	c->machine = f->machine;
	c->is64 = f->is64;
	name_section(c, f, c->addr);
	return 0;
}

/* @by_addr: @start is an address; else an offset in the file. -ENOENT: no code is there. */
static int read_code(struct dso_code *c, const struct elf_file *f, uint64_t start, uint64_t len,
		     bool by_addr)
{
	for (size_t i = 0; i < f->nr_segments; i++) {
		const struct elf_segment *s = &f->segments[i];
		struct code_part p = {by_addr ? s->vaddr : s->offset, s->vaddr, s->offset,
				      s->filesz};

		if (s->type == PT_LOAD && s->flags & PF_X && start - p.key < p.size)
			return read_part(c, f, &p, start, len);
	}
	return -ENOENT;
}

/* As many of them as there are without a gap. */
static void take_runs(struct dso_code *c, const struct code_runs *r, const struct symbol *sym)
{
	uint64_t want = sym->end - sym->start, at = sym->start;
	const struct code_run *run;

	want = want < MAX_FUNCTION ? want : MAX_FUNCTION;
	c->bytes = xmalloc(want);
	while (c->len < want && (run = code_runs_find(r, at))) {
		uint64_t skip = at - run->start, n = run->len - skip;

		n = n < want - c->len ? n : want - c->len;
		memcpy(c->bytes + c->len, run->bytes + skip, n);
		c->len += n;
		at += n;
	}
}

/* What the recorder has saved of the guest's memory. */
static bool read_saved(struct dso_priv *d, const struct symbol *sym, struct dso_code *c)
{
	const struct symbol_paths *p = &d->machine->session->paths;
	const struct dso *dso = &d->dso;
	char path[PATH_MAX], *name;
	struct code_runs runs = {0};
	bool ok;

	if (!p->store || d->machine->m.pid == -1)
		return false;
	name = xasprintf("%s/%s", d->machine->m.name, dso->long_name);
	ok = !codestore_get(p->store, name, dso->build_id, dso->build_id_len, path) &&
	     !codestore_read(&runs, path, dso->build_id, dso->build_id_len, &c->machine, NULL) &&
	     code_runs_find(&runs, sym->start);
	free(name);
	if (ok) {
		take_runs(c, &runs, sym);
		c->is64 = true;
		c->from_memory = true;
		c->path = xstrdup(path);
		c->addr = sym->start;
		for (uint32_t i = 0; !dso->kernel && i < dso->symtab->nr_loads; i++) {
			const struct elf_load *l = &dso->symtab->loads[i];

			if (sym->start - l->offset < l->size && l->flags & PF_X)
				c->addr = sym->start - l->offset + l->vaddr;
		}
	}
	code_runs_free(&runs);
	return ok;
}

/* A file of the store has symbols only, though its segment looks as if it had code. */
static bool has_code(const struct elf_file *f)
{
	return !f->has_note && !f->debug_only;
}

/* Of code that a program has made there is no file; what is known of it are names. */
static int say_made(const struct dso_priv *d, struct vmprof_err *err)
{
	bool host = d->machine->m.pid == -1;

	return err_set(err, ENOENT,
		       host ? "its program has made it, and perf records only what %s says of it"
			    : "its program has made it, and it was not saved when it was recorded "
			      "(%s)",
		       d->dso.long_name);
}

static int read_user(struct dso_priv *d, const struct symbol *sym, struct dso_code *c,
		     struct vmprof_err *err)
{
	struct dso_files files;
	char text[256];
	int ret = -ENOENT;

	if (is_perf_map(d->dso.long_name) || !strncmp(d->dso.long_name, "[JIT] tid ", 10))
		return say_made(d, err);
	dso_files_find(&files, d);
	for (size_t i = 0; i < files.n && ret; i++) {
		struct dso_file *f = files.c[i];

		if (!has_code(&f->f))
			continue;
		ret = read_code(c, &f->f, sym->start, sym->end - sym->start, false);
		if (!ret)
			c->path = xstrdup(f->path);
	}
	if (ret && files.refused.code)
		*err = files.refused;
	else if (ret)
		err_set(err, ENOENT, "no file with the code of %s was found; name it with --symfs",
			escape_str(text, sizeof(text), d->dso.long_name));
	dso_files_close(&files);
	return ret ? -err->code : 0;
}

static int read_vmlinux(struct dso_priv *d, const char *path, const struct symbol *sym,
			struct dso_code *c, struct vmprof_err *err)
{
	struct elf_file f;
	char name[512];
	uint64_t base = 0;
	int fd, ret;

	ret = elf_file_open_path(&f, &fd, path, name, sizeof(name), err);
	if (ret)
		return ret;
	ret = elf_file_check_build_id(&f, d->dso.build_id, d->dso.build_id_len, err);
	if (!ret && !(sym->start >> 63))
		ret = kernel_link_base_of(&f, &base, err);
	if (!ret) {
		ret = read_code(c, &f, kernel_link_address(sym->start, base), sym->end - sym->start,
				true);
		if (ret)
			err_set(err, ret, "%s has no code there", name);
	}
	if (!ret) {
		c->addr = sym->start;
		c->path = xstrdup(path);
	}
	elf_file_close(&f);
	close(fd);
	return ret;
}

static char *cached_vmlinux(const struct dso_priv *d)
{
	const char *dir = d->machine->session->paths.buildid_dir;
	char hex[41], *path;

	if (!dir || d->dso.build_id_len < 2)
		return NULL;
	hex_str(hex, d->dso.build_id, d->dso.build_id_len);
	path = xasprintf("%s/.build-id/%.2s/%s/vmlinux", dir, hex, hex + 2);
	if (!access(path, R_OK))
		return path;
	free(path);
	return NULL;
}

static int read_kernel(struct dso_priv *d, const struct symbol *sym, struct dso_code *c,
		       struct vmprof_err *err)
{
	const char *given = dso_is_module(d) ? NULL : machine_vmlinux(d->machine);
	char *cached = dso_is_module(d) ? NULL : cached_vmlinux(d);
	int ret;

	if (given)
		ret = read_vmlinux(d, given, sym, c, err);
	else if (cached)
		ret = read_vmlinux(d, cached, sym, c, err);
	else if (dso_is_module(d))
		ret = err_set(err, ENOENT, "its code was not saved when it was recorded");
	else
		ret = err_set(err, ENOENT,
			      "its code was not saved when it was recorded; name its vmlinux with "
			      "--vmlinux");
	free(cached);
	return ret;
}

int session_read_code(struct session *s, const struct dso *dso, const struct symbol *sym,
		      struct dso_code *out, struct vmprof_err *err)
{
	struct dso_priv *d = s->dsos[dso->index];

	*out = (struct dso_code){0};
	if (read_saved(d, sym, out))
		return 0;
	return dso->kernel ? read_kernel(d, sym, out, err) : read_user(d, sym, out, err);
}

void dso_code_free(struct dso_code *c)
{
	free(c->bytes);
	free(c->path);
	*c = (struct dso_code){0};
}
