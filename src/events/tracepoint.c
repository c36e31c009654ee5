// SPDX-License-Identifier: GPL-2.0-only
#include "events/tracepoint.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events/names.h"
#include "events/sysfs.h"
#include "util/text.h"

static const char *const mounts[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

static int try_name(void *ctx, const char *name)
{
	suggestion_try(ctx, name);
	return 0;
}

static int unknown(const char *root, const char *mount, const char *system, const char *name,
		   struct vmprof_err *err)
{
	char dir[512], guess[128], sys[128], tp[128];
	struct suggestion s;

	suggestion_init(&s, name);
	snprintf(dir, sizeof(dir), "%s/events/%s", mount, system);
	if (sysfs_each(root, dir, try_name, &s) < 0) {
		suggestion_init(&s, system);
		snprintf(dir, sizeof(dir), "%s/events", mount);
		sysfs_each(root, dir, try_name, &s);
		return err_set(err, ENOENT,
			       "event '%s:%s': no such event, and no tracepoints of '%s'%s; a "
			       "module that has them may not be loaded",
			       escape_str(sys, sizeof(sys), system),
			       escape_str(tp, sizeof(tp), name), sys,
			       suggestion_text(&s, guess, sizeof(guess)));
	}
	return err_set(err, ENOENT, "event '%s:%s': no such tracepoint%s",
		       escape_str(sys, sizeof(sys), system), escape_str(tp, sizeof(tp), name),
		       suggestion_text(&s, guess, sizeof(guess)));
}

/* Where tracefs is, for a tracepoint that may be one. 0 or -errno with a sentence. */
static int find_mount(const char **mount, const char *root, const char *system, const char *name,
		      struct vmprof_err *err)
{
	char text[SYSFS_TEXT_MAX], sys[128], tp[128];
	int rc;

	*mount = NULL;
	escape_str(sys, sizeof(sys), system);
	escape_str(tp, sizeof(tp), name);
	if (!sysfs_is_name(system) || !sysfs_is_name(name) || strlen(system) > 100)
		return err_set(err, EINVAL, "event '%s:%s': no such event", sys, tp);
	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts) && !*mount; i++) {
		rc = sysfs_read(text, root, "%s/events/header_page", mounts[i]);
		*mount = rc == -ENOENT || rc == -ENOTDIR ? NULL : mounts[i];
	}
	if (!*mount)
		return err_set(err, ENOENT,
			       "event '%s:%s': no such event; if it is a tracepoint, tracefs is "
			       "not mounted at %s",
			       sys, tp, mounts[0]);
	return 0;
}

static int not_read(int code, const char *root, const char *mount, const char *system,
		    const char *name, struct vmprof_err *err)
{
	char sys[128], tp[128];

	if (code != -EACCES && code != -EPERM)
		return unknown(root, mount, system, name, err);
	return err_set(err, EACCES, "event '%s:%s': no permission to read %s: run as root",
		       escape_str(sys, sizeof(sys), system), escape_str(tp, sizeof(tp), name),
		       mount);
}

int tracepoint_id(uint64_t *id, const char *root, const char *system, const char *name,
		  struct vmprof_err *err)
{
	char text[SYSFS_TEXT_MAX], sys[128], tp[128];
	const char *mount;
	int rc = find_mount(&mount, root, system, name, err);
	char *end;

	if (rc)
		return rc;
	rc = sysfs_read(text, root, "%s/events/%s/%s/id", mount, system, name);
	if (rc)
		return not_read(rc, root, mount, system, name, err);
	errno = 0;
	*id = strtoull(text, &end, 10);
	if (errno || !isdigit((unsigned char)text[0]) || *end)
		return err_set(err, EINVAL, "event '%s:%s': its id in tracefs is no number",
			       escape_str(sys, sizeof(sys), system),
			       escape_str(tp, sizeof(tp), name));
	return 0;
}

/* ---------- fields ---------- */

int tracepoint_format(char format[TRACEPOINT_FORMAT_MAX], const char *root, const char *system,
		      const char *name, struct vmprof_err *err)
{
	const char *mount;
	char path[512];
	int rc = find_mount(&mount, root, system, name, err);

	format[0] = 0;
	if (rc)
		return rc;
	if (snprintf(path, sizeof(path), "%s/events/%s/%s/format", mount, system, name) >=
	    (int)sizeof(path))
		return not_read(-ENOENT, root, mount, system, name, err);
	rc = sysfs_read_start(format, TRACEPOINT_FORMAT_MAX, root, path);
	return rc ? not_read(rc, root, mount, system, name, err) : 0;
}

/* "; offset:8; size:4; signed:0;" behind a field's declaration. */
static bool read_place(struct tracepoint_field *f, const char *s)
{
	unsigned offset, size;

	if (sscanf(s, "; offset:%5u; size:%2u;", &offset, &size) != 2)
		return false;
	f->offset = offset;
	f->size = size;
	return (size == 1 || size == 2 || size == 4 || size == 8) && offset <= UINT16_MAX - size;
}

bool tracepoint_field(struct tracepoint_field *f, const char *format, const char *name)
{
	size_t len = strlen(name);

	/* "	field:unsigned int exit_reason;	offset:8;	size:4;	signed:0;" */
	for (const char *line = format; line; line = strchr(line, '\n')) {
		size_t decl;

		line += *line == '\n';
		line += strspn(line, "\t ");
		if (strncmp(line, "field:", 6) != 0)
			continue;
		decl = strcspn(line, ";\n");
		if (decl > len && !memcmp(line + decl - len, name, len) &&
		    isspace((unsigned char)line[decl - len - 1]))
			return read_place(f, line + decl);
	}
	return false;
}

bool tracepoint_value(uint64_t *v, const struct tracepoint_field *f, const void *data, size_t size)
{
	const uint8_t *at = (const uint8_t *)data + f->offset;
	uint32_t v32;
	uint16_t v16;

	if (f->offset > size || size - f->offset < f->size)
		return false;
	switch (f->size) {
	case 1:
		*v = *at;
		return true;
	case 2:
		memcpy(&v16, at, sizeof(v16));
		*v = v16;
		return true;
	case 4:
		memcpy(&v32, at, sizeof(v32));
		*v = v32;
		return true;
	default:
		memcpy(v, at, sizeof(*v));
		return true;
	}
}
