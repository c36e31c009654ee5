// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel that runs here, and its modules: where they are, by /proc, and which, by /sys.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "symbolize/session.h"
#include "util/xalloc.h"

/* The build id among ELF notes in a file. Returns its length, 0 none. */
static uint32_t read_notes(const char *path, uint8_t id[20])
{
	uint8_t notes[4096];
	FILE *f = fopen(path, "re");
	size_t size = f ? fread(notes, 1, sizeof(notes), f) : 0, at = 0;

	if (f)
		fclose(f);
	while (size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr n;
		size_t desc;

		memcpy(&n, notes + at, sizeof(n));
		desc = at + sizeof(n) + ((n.n_namesz + 3ull) & ~3ull);
		if (desc > size || n.n_descsz > size - desc)
			return 0;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_descsz <= 20 && n.n_namesz == 4) {
			memcpy(id, notes + desc, n.n_descsz);
			return n.n_descsz;
		}
		at = desc + ((n.n_descsz + 3ull) & ~3ull);
		if (at > size)
			return 0;
	}
	return 0;
}

uint32_t running_kernel_build_id(uint8_t id[20])
{
	return read_notes("/sys/kernel/notes", id);
}

struct symtab *running_kernel_symtab(struct session *s)
{
	const struct kallsyms *k = session_kallsyms(s, "/proc/kallsyms", NULL);
	struct symtab *t = k && k->text ? kallsyms_symtab(k, "", k->text) : NULL;

#ifdef __aarch64__
	if (t)
		t->machine = EM_AARCH64;
#endif
	return t;
}

/* Is "kernel/net/virtio-net.ko.xz" the file of module "virtio_net"? */
static bool is_file_of(const char *path, const char *module)
{
	const char *base = strrchr(path, '/');

	for (base = base ? base + 1 : path; *module; base++, module++)
		if (*base != *module && (*base != '-' || *module != '_'))
			return false;
	return !strncmp(base, ".ko", 3);
}

/* The path of a module's file, "[NAME]" if it is not known. To be freed. */
static char *module_path(const char *module)
{
	char *line = NULL, *path = NULL, *list;
	struct utsname here;
	size_t size = 0;
	FILE *f;

	if (uname(&here))
		return xasprintf("[%s]", module);
	list = xasprintf("/lib/modules/%s/modules.dep", here.release);
	f = fopen(list, "re");
	free(list);
	while (f && !path && getline(&line, &size, f) > 0) {
		line[strcspn(line, ":\n")] = 0;
		if (is_file_of(line, module))
			path = xasprintf("/lib/modules/%s/%s", here.release, line);
	}
	if (f)
		fclose(f);
	free(line);
	return path ? path : xasprintf("[%s]", module);
}

static void add(struct running_maps *m, uint64_t start, uint64_t end, char *name)
{
	m->map = xgrow(m->map, &m->cap, m->n + 1, sizeof(*m->map));
	m->map[m->n++] = (struct running_map){.start = start, .end = end, .name = name};
}

static int by_start(const void *a, const void *b)
{
	const struct running_map *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* A line is "NAME SIZE USES USERS STATE 0xADDRESS"; without modules there is no such file. */
static void add_modules(struct running_maps *m)
{
	FILE *f = fopen("/proc/modules", "re");
	char line[4096], name[64], notes[256];
	uint64_t size, start;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %" SCNu64 " %*s %*s %*s %" SCNx64, name, &size, &start) != 3)
			continue;
		add(m, start, start + size, module_path(name));
		snprintf(notes, sizeof(notes), "/sys/module/%s/notes/.note.gnu.build-id", name);
		m->map[m->n - 1].id_len = read_notes(notes, m->map[m->n - 1].id);
	}
	if (f)
		fclose(f);
}

int running_maps_read(struct running_maps *m, struct vmprof_err *err)
{
	uint64_t end = 0;
	struct kallsyms *k;
	int ret;

	*m = (struct running_maps){0};
	ret = kallsyms_read(&k, "/proc/kallsyms", err);
	if (ret)
		return ret;
	for (size_t i = 0; i < k->n && !end; i++)
		if (!k->entries[i].module &&
		    !strcmp(kallsyms_name(k, k->entries[i].name), "_etext"))
			end = k->entries[i].addr;
	add(m, k->text, end, xstrdup("[kernel.kallsyms]"));
	m->map[0].id_len = running_kernel_build_id(m->map[0].id);
	kallsyms_free(k);
	add_modules(m);
	qsort(m->map, m->n, sizeof(*m->map), by_start);
	return 0;
}

void running_maps_free(struct running_maps *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->map[i].name);
	free(m->map);
	*m = (struct running_maps){0};
}
