// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where a user DSO's symbols are looked for, and which of the files found is taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "symbolize/dwarfinfo.h"
#include "symbolize/session.h"
#include "util/text.h"
#include "util/xalloc.h"

/* What a file says of its separate debug file. */
struct debug_link {
	const struct dso_file *from;
	char name[256];
	uint32_t crc;
};

void dso_say(struct dso_priv *d, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	d->dso.symbol_source = strtab_intern(d->machine->session->strings, text);
}

void session_keep_table(struct session *s, struct symtab *t)
{
	s->tables = xgrow(s->tables, &s->cap_tables, s->nr_tables + 1, sizeof(*s->tables));
	s->tables[s->nr_tables++] = t;
}

static int open_headers(struct elf_file *f, int *fd, const char *name, struct vmprof_err *err)
{
	struct stat st;

	if (fstat(*fd, &st))
		return err_sys(err, errno, "cannot look at %s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "%s is not a regular file", name);
	return elf_file_open(f, elf_read_fd, fd, (uint64_t)st.st_size, name, true, err);
}

int elf_file_open_path(struct elf_file *f, int *fd, const char *path, char *name, size_t size,
		       struct vmprof_err *err)
{
	int ret;

	escape_str(name, size, path);
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0)
		return err_sys(err, errno, "cannot open %s", name);
	ret = open_headers(f, fd, name, err);
	if (ret)
		close(*fd);
	return ret;
}

/*
 * @link: by that of another file, which is an accepted one. Build ids decide where both have one;
 * to compare the CRC all of the file must be read.
 */
static int check_candidate(const struct dso_files *s, const struct dso_file *c,
			   const struct debug_link *link, struct vmprof_err *err)
{
	const struct dso *dso = &s->d->dso;
	const struct elf_file *from = link ? &link->from->f : NULL;

	if (!link)
		return elf_file_check_build_id(&c->f, dso->build_id, dso->build_id_len, err);
	if (c->f.build_id_len && from->build_id_len)
		return elf_file_check_build_id(&c->f, from->build_id, from->build_id_len, err);
	if (elf_has_crc(c->fd, link->crc))
		return 0;
	return err_set(err, ESTALE, "%s is not the debug file of %s: its CRC is not %08x", c->name,
		       link->from->name, link->crc);
}

/* Takes over @fd. */
static void add_candidate(struct dso_files *s, int fd, const char *path,
			  const struct debug_link *link)
{
	struct dso_file *c;
	struct vmprof_err err;

	if (s->n == DSO_FILES_MAX || strlen(path) >= PATH_MAX) {
		close(fd);
		return;
	}
	s->tried++;
	c = xcalloc(1, sizeof(*c));
	c->fd = fd;
	strcpy(c->path, path);
	escape_str(c->name, sizeof(c->name), path);
	if (open_headers(&c->f, &c->fd, c->name, &err)) {
		if (!s->refused.code)
			s->refused = err;
	} else if (check_candidate(s, c, link, &err)) {
		if (!s->refused.code)
			s->refused = err;
		elf_file_close(&c->f);
	} else {
		s->c[s->n++] = c;
		return;
	}
	close(c->fd);
	free(c);
}

static void try_linked(struct dso_files *s, const char *path, const struct debug_link *link)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0)
		add_candidate(s, fd, path, link);
}

static void try_path(struct dso_files *s, const char *path)
{
	try_linked(s, path, NULL);
}

/*
 * A path of a guest below a directory of the host: neither ".." nor a link, absolute ones above
 * all, may lead out of it.
 */
static int open_in_root(const char *root, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;

	if (dir < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	close(dir);
	return fd;
}

static void try_in_root(struct dso_files *s, const char *root, const char *path,
			const struct debug_link *link)
{
	char full[PATH_MAX];
	int fd = open_in_root(root, path);

	if (fd < 0)
		return;
	if ((size_t)snprintf(full, sizeof(full), "%s/%s", root, path + (*path == '/')) <
	    sizeof(full))
		add_candidate(s, fd, full, link);
	else
		close(fd);
}

/*
 * The debug file that the last candidate, which is @path (below @root, if not NULL), names, at
 * gdb's three places.
 */
static void try_debug_link(struct dso_files *s, const char *root, const char *path)
{
	static const char *const places[][2] = {{"", ""}, {"", ".debug/"}, {"/usr/lib/debug", ""}};
	int dir = (int)(strrchr(path, '/') + 1 - path);
	struct debug_link link = {.from = s->c[s->n - 1]};
	char debug[PATH_MAX];

	if (!elf_debug_link(&link.from->f, link.name, &link.crc))
		return;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (snprintf(debug, sizeof(debug), "%s%.*s%s%s", places[i][0], dir, path,
			     places[i][1], link.name) >= PATH_MAX)
			continue;
		if (root)
			try_in_root(s, root, debug, &link);
		else
			try_linked(s, debug, &link);
	}
}

/* The directory that @m's files are below, NULL: none was given. */
static const char *root_of(const struct machine_priv *m)
{
	const struct symbol_paths *p = &m->session->paths;

	return session_path(p->symfs, p->nr_symfs, m, session_guest_path(m, NULL, ""));
}

int session_open_source(struct session *s, const struct dso *dso, const char *path)
{
	const struct machine_priv *m = s->dsos[dso->index]->machine;
	const char *root = root_of(m);
	int fd = root ? open_in_root(root, path) : -1;

	return fd < 0 && m->m.pid == -1 ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
					: fd;
}

static void try_symfs(struct dso_files *s)
{
	const struct machine_priv *m = s->d->machine;
	const char *root = root_of(m);
	const struct dso *dso = &s->d->dso;
	char hex[41], debug[128];
	size_t n = s->n;

	if (!root || dso->long_name[0] != '/')
		return;
	try_in_root(s, root, dso->long_name, NULL);
	if (s->n > n)
		try_debug_link(s, root, dso->long_name);
	if (dso->build_id_len >= 2) {
		hex_str(hex, dso->build_id, dso->build_id_len);
		snprintf(debug, sizeof(debug), "/usr/lib/debug/.build-id/%.2s/%s.debug", hex,
			 hex + 2);
		try_in_root(s, root, debug, NULL);
	}
	if (s->n > n)
		session_path_used(m->session, "--symfs", root);
	else
		session_path_refused(m->session, "--symfs", root,
				     s->refused.code ? s->refused.msg : NULL);
}

static void try_debug_dir(struct dso_files *s, const uint8_t *id, uint32_t len)
{
	char hex[41], path[128];

	if (len < 2)
		return;
	hex_str(hex, id, len);
	snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
	try_path(s, path);
}

static void try_stores(struct dso_files *s)
{
	const struct machine_priv *m = s->d->machine;
	const struct symbol_paths *p = &m->session->paths;
	const struct dso *dso = &s->d->dso;
	char path[PATH_MAX], *name;

	if (p->buildid_dir && !elfstore_get(p->buildid_dir, dso->build_id, dso->build_id_len, path))
		try_path(s, path);
	if (!p->store)
		return;
	name = xasprintf("%s/%s", m->m.name, dso->long_name);
	if (!elfstore_get_named(p->store, name, dso->build_id, dso->build_id_len, path) ||
	    !elfstore_get(p->store, dso->build_id, dso->build_id_len, path))
		try_path(s, path);
	free(name);
}

/* The host's own files; where the profile has no build id the file's leads to its debug file. */
static void try_host(struct dso_files *s)
{
	const struct dso *dso = &s->d->dso;
	size_t n = s->n;

	if (dso->long_name[0] != '/')
		return;
	try_path(s, dso->long_name);
	if (s->n == n)
		return;
	if (!dso->build_id_len)
		try_debug_dir(s, s->c[n]->f.build_id, s->c[n]->f.build_id_len);
	if (s->n == n + 1)
		try_debug_link(s, NULL, dso->long_name);
}

/* This process has the same vDSO as those that were recorded, if the kernel still runs. */
static ssize_t read_own_vdso(void *ctx, uint64_t off, void *buf, size_t len)
{
	uintptr_t start = *(uintptr_t *)ctx;
	struct iovec to = {buf, len}, from = {(void *)(start + off), len};
	ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

	return n < 0 ? -errno : n;
}

int dso_open_vdso(const struct dso_priv *d, struct elf_file *f, uintptr_t *start)
{
	enum { SIZE = 1 << 20 }; /* more than it has: reading behind its end fails */
	struct vmprof_err err;
	int ret;

	*start = getauxval(AT_SYSINFO_EHDR);
	if (!*start)
		return -ENOENT;
	ret = elf_file_open(f, read_own_vdso, start, SIZE, "[vdso]", false, &err);
	if (ret)
		return ret;
	ret = elf_file_check_build_id(f, d->dso.build_id, d->dso.build_id_len, &err);
	if (ret)
		elf_file_close(f);
	return ret;
}

static bool load_vdso(struct dso_priv *d, struct vmprof_err *err)
{
	uintptr_t start = getauxval(AT_SYSINFO_EHDR);
	struct symtab *t;

	if (!start || symtab_read_image(&t, read_own_vdso, &start, "[vdso]", err))
		return false;
	session_keep_table(d->machine->session, t);
	if (d->dso.build_id_len && (d->dso.build_id_len != t->build_id_len ||
				    memcmp(d->dso.build_id, t->build_id, t->build_id_len) != 0)) {
		err_set(err, ESTALE, "the profile is of another kernel than the one that runs");
		return false;
	}
	d->dso.symtab = t;
	dso_say(d, "[vdso] of the running kernel");
	return true;
}

static bool is_full(const struct elf_file *f)
{
	return elf_file_section(f, NULL, SHT_SYMTAB) && !(f->note_flags & ELF_NOTE_PARTIAL);
}

const struct elf_file *dso_files_with_loads(const struct dso_files *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->c[i]->f.has_note || !s->c[i]->f.debug_only)
			return &s->c[i]->f;
	return NULL;
}

static struct symtab *find_table(struct session *s, const char *path)
{
	for (size_t i = 0; i < s->nr_tables; i++)
		if (s->tables[i]->path && !strcmp(s->tables[i]->path, path))
			return s->tables[i];
	return NULL;
}

static int read_candidate(struct dso_files *s, const struct dso_file *c, struct vmprof_err *err)
{
	const struct elf_file *loads =
		c->f.debug_only && !c->f.has_note ? dso_files_with_loads(s) : NULL;
	struct elfsym_opts opts = {0};
	struct symtab *t = find_table(s->d->machine->session, c->path);
	int ret;

	if (!t) {
		if (loads) {
			opts.loads = loads->loads;
			opts.nr_loads = loads->nr_loads;
		}
		ret = elfsym_read(&t, &c->f, &opts, err);
		if (ret)
			return ret;
		for (size_t i = 0; i < s->n; i++) {
			if (elf_file_section(&s->c[i]->f, ".plt", SHT_PROGBITS)) {
				elfsym_add_plt(t, &s->c[i]->f);
				break;
			}
		}
		t->path = xstrdup(c->path);
		session_keep_table(s->d->machine->session, t);
	}
	s->d->dso.symtab = t;
	if (s->refused.code)
		dso_say(s->d, "%s (%s)", c->path, s->refused.msg);
	else
		dso_say(s->d, "%s", c->path);
	return 0;
}

/*
 * Servers are asked only if nothing here has what is wanted. Where the profile has no build id the
 * file's is taken; an id of our making nobody else knows.
 */
static void try_debuginfod(struct dso_files *s, bool (*is_enough)(const struct elf_file *f))
{
	const struct dso *dso = &s->d->dso;
	const uint8_t *id = dso->build_id;
	uint32_t len = dso->build_id_len;
	char *path;
	int fd;

	for (size_t i = 0; i < s->n; i++)
		if (is_enough(&s->c[i]->f) || s->c[i]->f.note_flags & ELF_NOTE_BUILD_ID_MADE_UP)
			return;
	if (dso->long_name[0] != '/')
		return;
	if (!len && s->n) {
		id = s->c[0]->f.build_id;
		len = s->c[0]->f.build_id_len;
	}
	fd = debuginfod_open(s->d->machine->session, id, len, &path);
	if (fd >= 0)
		add_candidate(s, fd, path ? path : "debuginfod", NULL);
	free(path);
}

static bool take_first(struct dso_files *s, bool full, struct vmprof_err *err)
{
	for (size_t i = 0; i < s->n; i++)
		if (is_full(&s->c[i]->f) == full && !read_candidate(s, s->c[i], err))
			return true;
	return false;
}

static void say_none(struct dso_files *s, const struct vmprof_err *err)
{
	struct dso_priv *d = s->d;
	char hex[41];

	hex_str(hex, d->dso.build_id, d->dso.build_id_len);
	if (s->refused.code)
		dso_say(d, "%s", s->refused.msg);
	else if (err->code)
		dso_say(d, "%s", err->msg);
	else if (d->dso.build_id_len)
		dso_say(d, "no file with build id %s was found, and the recorder saved none", hex);
	else
		dso_say(d, "the profile has no build id for it; name its file with --symfs");
}

void dso_files_find(struct dso_files *s, struct dso_priv *d)
{
	*s = (struct dso_files){.d = d};
	try_symfs(s);
	try_debug_dir(s, d->dso.build_id, d->dso.build_id_len);
	try_stores(s);
	if (d->machine->m.pid == -1)
		try_host(s);
}

void dso_files_find_debug(struct dso_files *s, struct dso_priv *d)
{
	dso_files_find(s, d);
	try_debuginfod(s, dwarf_info_is_in);
}

void dso_files_close(struct dso_files *s)
{
	for (size_t i = 0; i < s->n; i++) {
		elf_file_close(&s->c[i]->f);
		close(s->c[i]->fd);
		free(s->c[i]);
	}
	s->n = 0;
}

static void load_user(struct dso_priv *d)
{
	struct dso_files s;
	struct vmprof_err err = {0};
	bool host = d->machine->m.pid == -1;

	dso_files_find(&s, d);
	try_debuginfod(&s, is_full);
	if (!take_first(&s, true, &err) && !take_first(&s, false, &err) &&
	    (!host || strcmp(d->dso.long_name, "[vdso]") != 0 || !load_vdso(d, &err)))
		say_none(&s, &err);
	dso_files_close(&s);
}

static void load_perf_map(struct dso_priv *d)
{
	struct vmprof_err err = {0};
	struct symtab *t;

	if (perf_map_read(&t, d->dso.long_name, &err)) {
		dso_say(d, "%s", err.msg);
		return;
	}
	session_keep_table(d->machine->session, t);
	d->dso.symtab = t;
	dso_say(d, "%s", d->dso.long_name);
}

void dso_load(struct dso_priv *d)
{
	bool host = d->machine->m.pid == -1;

	d->dso.loaded = true;
	if (host && is_perf_map(d->dso.long_name))
		load_perf_map(d);
	else if (d->dso.kernel)
		dso_load_kernel(d);
	else
		load_user(d);
}
