// SPDX-License-Identifier: GPL-2.0-only
/*
 * Symbols of kernels and their modules. A kernel's mapping starts at _text; tables have addresses
 * relative to that, so that KASLR is in the mapping alone.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "symbolize/session.h"
#include "util/text.h"
#include "util/xalloc.h"

static bool is_host(const struct dso_priv *d)
{
	return d->machine->m.pid == -1;
}

/*
 * Name as kallsyms has it: "virtio_net" of "[virtio_net]"; "" for the kernel itself. Its map is
 * called by its file, or by that name where perf found no file of the module.
 */
static void module_of(const struct dso_priv *d, char *out, size_t size)
{
	const char *s = d->dso.short_name, *path = d->dso.long_name;
	size_t len = strlen(s);

	*out = 0;
	if (len > 2 && *s == '[' &&
	    (strstr(path, ".ko") || (*path == '[' && !session_is_kernel_name(path))))
		snprintf(out, size, "%.*s", (int)(len - 2), s + 1);
}

bool dso_is_module(const struct dso_priv *d)
{
	char name[128];

	module_of(d, name, sizeof(name));
	return *name;
}

static void take(struct dso_priv *d, struct symtab *t, const char *path)
{
	session_keep_table(d->machine->session, t);
	d->dso.symtab = t;
	d->dso.symbol_source = strtab_intern(d->machine->session->strings, path);
}

uint64_t kernel_link_base(const struct symtab *t)
{
	uint64_t base = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (!strcmp(t->syms[i].name, "_text"))
			base = t->syms[i].start;
		else if (!base && !strcmp(t->syms[i].name, "_stext"))
			base = t->syms[i].start;
	}
	for (uint32_t i = 0; !base && i < t->nr_loads; i++)
		if (t->loads[i].flags & PF_X)
			base = t->loads[i].vaddr;
	return base;
}

int kernel_link_base_of(const struct elf_file *f, uint64_t *base, struct vmprof_err *err)
{
	struct elfsym_opts opts = {.absolute = true};
	struct symtab *t;
	int ret = elfsym_read(&t, f, &opts, err);

	if (ret)
		return ret;
	*base = kernel_link_base(t);
	symtab_free(t);
	return 0;
}

/* A table of link addresses, made relative to _text. */
static struct symtab *rebase(const struct symtab *from)
{
	uint64_t base = kernel_link_base(from);
	struct symtab *t;

	t = symtab_new();
	for (size_t i = 0; i < from->n; i++)
		if (from->syms[i].start >= base)
			symtab_add(t, from->syms[i].start - base, from->syms[i].end - base,
				   from->syms[i].name, from->syms[i].binding);
	symtab_finish(t);
	return t;
}

/*
 * Symbols of an ELF file for @d: one of the store's has them as they are needed, a vmlinux at link
 * addresses. A made-up build id is not looked for in a vmlinux. @relative false leaves the latter.
 */
static int read_elf(struct symtab **out, struct dso_priv *d, const char *path, bool check,
		    bool relative, struct vmprof_err *err)
{
	struct elfsym_opts opts = {.absolute = true};
	struct symtab *t = NULL;
	struct elf_file f;
	char name[512];
	int fd, ret;

	*out = NULL;
	ret = elf_file_open_path(&f, &fd, path, name, sizeof(name), err);
	if (ret)
		return ret;
	if (check)
		ret = elf_file_check_build_id(&f, d->dso.build_id, d->dso.build_id_len, err);
	if (!ret)
		ret = elfsym_read(&t, &f, &opts, err);
	if (!ret && relative && !f.has_note) {
		*out = rebase(t);
		symtab_free(t);
	} else if (!ret) {
		*out = t;
	}
	elf_file_close(&f);
	close(fd);
	return ret;
}

/* Where the recorder saved a kernel that has no build id, the id is one of ours. */
static bool has_made_up_id(const struct dso_priv *d, const char *stored)
{
	struct elf_file f;
	char name[512];
	bool made_up;
	int fd;

	if (elf_file_open_path(&f, &fd, stored, name, sizeof(name), NULL))
		return false;
	made_up = f.note_flags & ELF_NOTE_BUILD_ID_MADE_UP;
	elf_file_close(&f);
	close(fd);
	return made_up;
}

static bool find_stored(const struct dso_priv *d, char path[PATH_MAX])
{
	const struct symbol_paths *p = &d->machine->session->paths;
	const struct dso *dso = &d->dso;
	char *name;
	int ret = -ENOENT;

	if (p->store) {
		name = xasprintf("%s/%s", d->machine->m.name, dso->long_name);
		ret = elfstore_get_named(p->store, name, dso->build_id, dso->build_id_len, path);
		free(name);
		if (ret)
			ret = elfstore_get(p->store, dso->build_id, dso->build_id_len, path);
	}
	if (ret && p->buildid_dir)
		ret = elfstore_get(p->buildid_dir, dso->build_id, dso->build_id_len, path);
	return !ret;
}

const struct kallsyms *session_kallsyms(struct session *s, const char *path, struct vmprof_err *err)
{
	struct kallsyms *k;

	for (size_t i = 0; i < s->nr_kallsyms; i++)
		if (!strcmp(s->kallsyms[i]->path, path))
			return s->kallsyms[i];
	if (kallsyms_read(&k, path, err))
		return NULL;
	k->path = strtab_intern(s->strings, path);
	s->kallsyms =
		xgrow(s->kallsyms, &s->cap_kallsyms, s->nr_kallsyms + 1, sizeof(*s->kallsyms));
	s->kallsyms[s->nr_kallsyms++] = k;
	return k;
}

/* A module's addresses hold for the boot that the file is from, a kernel's can be moved. */
static bool load_kallsyms(struct dso_priv *d, const char *path, struct vmprof_err *err)
{
	const struct kallsyms *k = session_kallsyms(d->machine->session, path, err);
	char module[128];
	struct symtab *t;

	if (!k)
		return false;
	module_of(d, module, sizeof(module));
	t = kallsyms_symtab(k, module, *module || !k->text ? d->start : k->text);
	if (!t->n) {
		err_set(err, ENOENT, "%s has no symbols of %s", path, d->dso.short_name);
		symtab_free(t);
		return false;
	}
	take(d, t, path);
	return true;
}

/* By its build id, else by its release. */
bool dso_is_running_kernel(const struct dso_priv *d)
{
	const char *release = d->machine->session->paths.host_release;
	struct utsname here;
	uint8_t id[20];
	uint32_t len = running_kernel_build_id(id);

	if (!dso_is_module(d) && d->dso.build_id_len)
		return len == d->dso.build_id_len && !memcmp(id, d->dso.build_id, len);
	return !release || uname(&here) || !strcmp(release, here.release);
}

/* The kernel that runs here, if it is the recorded one as far as can be told. */
static bool load_running(struct dso_priv *d, struct vmprof_err *err)
{
	if (!dso_is_running_kernel(d)) {
		err_set(err, ESTALE,
			"the profile is of another kernel than the one that runs; name its vmlinux "
			"with --vmlinux");
		return false;
	}
	return load_kallsyms(d, "/proc/kallsyms", err);
}

/* perf's cache has a kernel's kallsyms or vmlinux under its build id. */
static bool load_from_cache(struct dso_priv *d, struct vmprof_err *err)
{
	const char *dir = d->machine->session->paths.buildid_dir;
	char hex[41], *path;
	struct symtab *t;
	bool ok;

	if (!dir || d->dso.build_id_len < 2)
		return false;
	hex_str(hex, d->dso.build_id, d->dso.build_id_len);
	path = xasprintf("%s/.build-id/%.2s/%s/kallsyms", dir, hex, hex + 2);
	ok = !access(path, R_OK) && load_kallsyms(d, path, err);
	free(path);
	if (ok || dso_is_module(d))
		return ok;
	path = xasprintf("%s/.build-id/%.2s/%s/vmlinux", dir, hex, hex + 2);
	ok = !access(path, R_OK) && !read_elf(&t, d, path, true, true, err);
	if (ok)
		take(d, t, path);
	free(path);
	return ok;
}

static bool load_vmlinux(struct dso_priv *d, const char *path, bool check, struct vmprof_err *err)
{
	struct symtab *t;

	if (read_elf(&t, d, path, check, true, err))
		return false;
	take(d, t, path);
	return true;
}

/* Which option a path of a kernel's was given by. */
static const char *option_of(const struct session *s, const char *path, bool vmlinux)
{
	if (path == (vmlinux ? s->paths.guest_vmlinux : s->paths.guest_kallsyms))
		return vmlinux ? "--guestvmlinux" : "--guestkallsyms";
	return vmlinux ? "--vmlinux" : "--kallsyms";
}

/* Notes what has become of it. @taken is handed through. */
static bool note_use(const struct dso_priv *d, const char *path, bool vmlinux, bool taken,
		     const struct vmprof_err *err)
{
	struct session *s = d->machine->session;

	if (taken)
		session_path_used(s, option_of(s, path, vmlinux), path);
	else
		session_path_refused(s, option_of(s, path, vmlinux), path, err->msg);
	return taken;
}

/*
 * kallsyms has no build id. If the recorder saved the kernel's symbols they tell whether it is the
 * same kernel: of another one hardly any symbol is at the same place.
 */
static bool fits_stored(struct dso_priv *d, const char *stored, const struct symtab *t)
{
	size_t same = 0, n = 0, step;
	struct symtab *known;

	if (read_elf(&known, d, stored, true, true, NULL))
		return true;
	step = known->n / 1000 + 1;
	for (size_t i = 0; i < known->n; i += step, n++) {
		const struct symbol *sym = symtab_find(t, known->syms[i].start);

		same += sym && sym->start == known->syms[i].start &&
			!strcmp(sym->name, known->syms[i].name);
	}
	symtab_free(known);
	return 2 * same >= n;
}

static bool load_given_kallsyms(struct dso_priv *d, const char *path, const char *stored,
				struct vmprof_err *err)
{
	if (!load_kallsyms(d, path, err))
		return false;
	if (!stored || fits_stored(d, stored, d->dso.symtab))
		return true;
	d->dso.symtab = NULL; /* the session frees it */
	err_set(err, ESTALE, "%s is of another kernel, or of another boot, than the profile", path);
	return false;
}

const char *machine_vmlinux(const struct machine_priv *m)
{
	const struct symbol_paths *p = &m->session->paths;

	return session_path(p->vmlinux, p->nr_vmlinux, m,
			    session_guest_path(m, p->guest_vmlinux, NULL));
}

/* The release of the recorded host's kernel, as a part of a path; NULL unknown. */
static const char *release_of(const struct dso_priv *d)
{
	const char *release = d->machine->session->paths.host_release;

	return is_host(d) && release && !strchr(release, '/') ? release : NULL;
}

char *kernel_vmlinux_path(const struct dso_priv *d, unsigned i)
{
	static const char *const by_release[] = {
		"/boot/vmlinux-%s",
		"/usr/lib/debug/boot/vmlinux-%s",
		"/usr/lib/debug/lib/modules/%s/vmlinux",
		"/lib/modules/%s/build/vmlinux",
	};
	const char *given = machine_vmlinux(d->machine), *release = release_of(d);
	const char *dir = d->machine->session->paths.buildid_dir;
	char hex[41];

	if (given)
		return i ? NULL : xstrdup(given);
	hex_str(hex, d->dso.build_id, d->dso.build_id_len);
	if (i == 0)
		return xasprintf("%s/.build-id/%.2s/%s/vmlinux", dir ? dir : "", hex, hex + 2);
	if (i == 1)
		return xasprintf("/usr/lib/debug/.build-id/%.2s/%s.debug", hex, hex + 2);
	i -= 2;
	return release && i < sizeof(by_release) / sizeof(*by_release)
		       ? xasprintf(by_release[i], release)
		       : NULL;
}

const char *machine_kallsyms(const struct machine_priv *m)
{
	const struct symbol_paths *p = &m->session->paths;

	return session_path(p->kallsyms, p->nr_kallsyms, m,
			    session_guest_path(m, p->guest_kallsyms, "proc/kallsyms"));
}

void dso_load_kernel(struct dso_priv *d)
{
	const char *vmlinux = machine_vmlinux(d->machine);
	const char *kallsyms = machine_kallsyms(d->machine);
	struct vmprof_err err = {0}, refused = {0};
	char stored[PATH_MAX];
	bool have_stored = find_stored(d, stored);

	if (vmlinux && !dso_is_module(d) &&
	    note_use(d, vmlinux, true,
		     load_vmlinux(d, vmlinux, !have_stored || !has_made_up_id(d, stored), &refused),
		     &refused))
		return;
	if (kallsyms &&
	    note_use(d, kallsyms, false,
		     load_given_kallsyms(d, kallsyms, have_stored ? stored : NULL, &refused),
		     &refused))
		return;
	if (have_stored && load_vmlinux(d, stored, true, &err)) {
		if (refused.code)
			dso_say(d, "%s (%s)", stored, refused.msg);
		return;
	}
	/* perf's cache goes by build id, so that it can be a guest's that was brought along */
	if (load_from_cache(d, &err) || (is_host(d) && load_running(d, &err)))
		return;
	if (refused.code || err.code)
		dso_say(d, "%s", refused.code ? refused.msg : err.msg);
	else
		dso_say(d,
			"the recorder saved no symbols of it; name its vmlinux with --vmlinux or "
			"its kallsyms with --kallsyms");
}

bool machine_map_vmlinux(struct machine_priv *m)
{
	const char *path = machine_vmlinux(m);
	struct dso_key key = {.name = path, .kernel = true};
	struct vmprof_err err = {0};
	struct dso_priv *d;
	struct elf_file f;
	char name[512];
	struct symtab *t;
	int fd;

	if (!path)
		return false;
	d = session_dso(m, &key);
	d->dso.loaded = true;
	if (read_elf(&t, d, path, false, false, &err) ||
	    elf_file_open_path(&f, &fd, path, name, sizeof(name), &err)) {
		dso_say(d, "%s", err.msg);
		note_use(d, path, true, false, &err);
		return true;
	}
	note_use(d, path, true, true, &err);
	take(d, t, path);
	for (uint32_t i = 0; i < f.nr_loads; i++) {
		const struct elf_load *l = &f.loads[i];
		struct map map = {l->vaddr, l->vaddr + l->size, l->vaddr, 0, 0, &d->dso};

		if (l->flags & PF_X)
			maps_insert(&m->kernel, &map);
	}
	elf_file_close(&f);
	close(fd);
	return true;
}
