// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/perfmap.h"
#include "symbolize/symtab.h"

char *jit_name(char *name, size_t size, int32_t pid)
{
	snprintf(name, size, "[JIT] tid %" PRId32, pid);
	return name;
}

bool is_perf_map(const char *path)
{
	int pid, end = 0;

	return sscanf(path, "/tmp/perf-%d.map%n", &pid, &end) == 1 && end && !path[end];
}

/* Anybody can write to /tmp: only what root or the one who asks has written counts. */
static FILE *open_own(const char *path, struct vmprof_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	struct stat st;
	FILE *f;

	if (fd < 0) {
		err_sys(err, errno, "cannot open %s", path);
		return NULL;
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || (st.st_uid && st.st_uid != geteuid())) {
		err_set(err, EPERM, "%s is no file of yours or of root's", path);
		close(fd);
		return NULL;
	}
	f = fdopen(fd, "r");
	if (!f)
		close(fd);
	return f;
}

bool perf_map_parse(char *line, struct perf_map_entry *e)
{
	uint64_t size;
	char *end;

	e->start = strtoull(line, &end, 16);
	if (end == line || *end != ' ')
		return false;
	line = end + 1;
	size = strtoull(line, &end, 16);
	e->end = e->start + size;
	if (end == line || *end != ' ' || e->end <= e->start)
		return false;
	e->name = end + 1;
	end[1 + strcspn(end + 1, "\n")] = 0;
	return *e->name;
}

int perf_map_read(struct symtab **out, const char *path, struct vmprof_err *err)
{
	char line[PERF_MAP_MAX_LINE];
	struct perf_map_entry e;
	struct symtab *t;
	FILE *f = open_own(path, err);

	if (!f)
		return -err->code;
	t = symtab_new();
	while (t->n < SYMTAB_MAX && fgets(line, sizeof(line), f))
		if (perf_map_parse(line, &e))
			symtab_add(t, e.start, e.end, e.name, 'g');
	fclose(f);
	symtab_finish(t);
	*out = t;
	return 0;
}
