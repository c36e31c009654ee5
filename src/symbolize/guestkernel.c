// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kernels of guests of which the file says nothing, as in files of perf kvm: what the user has
 * copied from the guest, or mounted, says where they and their modules are.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/session.h"
#include "util/openfile.h"
#include "util/text.h"
#include "util/xalloc.h"

enum { MAX_MODULES = 10000 };

const char *session_guest_path(const struct machine_priv *m, const char *given,
			       const char *in_mount)
{
	const char *mount = m->session->paths.guest_mount, *path = NULL;
	char *text;

	if (m->m.pid == -1 || given)
		return m->m.pid == -1 ? NULL : given;
	if (!mount || !in_mount || m->m.pid <= 0)
		return NULL;
	text = xasprintf("%s/%" PRId32 "/%s", mount, m->m.pid, in_mount);
	if (!access(text, R_OK))
		path = strtab_intern(m->session->strings, text);
	free(text);
	return path;
}

bool session_is_mounted(const struct session *s, int32_t pid)
{
	char *path;
	bool is;

	if (!s->paths.guest_mount || pid <= 0)
		return false;
	path = xasprintf("%s/%" PRId32, s->paths.guest_mount, pid);
	is = !access(path, X_OK);
	free(path);
	return is;
}

static void map_object(struct machine_priv *m, const char *name, uint64_t start, uint64_t end)
{
	const struct dso_key key = {.name = name, .kernel = true};
	struct dso_priv *d = session_dso(m, &key);
	const struct map map = {.start = start, .end = end, .dso = &d->dso};

	d->start = start;
	maps_insert(&m->kernel, &map);
}

/* "NAME SIZE USES USERS STATE 0xADDRESS", a line of /proc/modules. */
static void map_module(struct machine_priv *m, const char *line)
{
	char module[64], name[80];
	uint64_t size, start;

	if (sscanf(line, "%63s %" SCNu64 " %*s %*s %*s %" SCNx64, module, &size, &start) != 3 ||
	    !start || start + size < start)
		return;
	snprintf(name, sizeof(name), "%s.ko", module);
	map_object(m, name, start, start + size);
}

static void map_modules(struct machine_priv *m)
{
	const char *path = session_guest_path(m, m->session->paths.guest_modules, "proc/modules");
	int fd = path ? open_plain_file(path) : -1;
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
	char line[4096];

	if (!f) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (unsigned n = 0; n < MAX_MODULES && fgets(line, sizeof(line), f); n++)
		map_module(m, line);
	fclose(f);
}

/* From its start up to where the modules are, which come after it and take their part. */
void machine_map_kernel(struct machine_priv *m)
{
	const struct kallsyms *k = NULL;
	const char *path;
	char name[64] = "[guest.kernel.kallsyms]";

	m->tried_kernel = true;
	if (machine_map_vmlinux(m) || m->m.pid == -1)
		return;
	path = machine_kallsyms(m);
	if (path)
		k = session_kallsyms(m->session, path, NULL);
	if (!k || !k->text)
		return;
	if (m->m.pid > 0)
		snprintf(name, sizeof(name), "[guest.kernel.kallsyms.%" PRId32 "]", m->m.pid);
	map_object(m, name, k->text, UINT64_MAX);
	map_modules(m);
}
