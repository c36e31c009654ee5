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

int tracepoint_id(uint64_t *id, const char *root, const char *system, const char *name,
		  struct vmprof_err *err)
{
	char text[SYSFS_TEXT_MAX], sys[128], tp[128];
	const char *mount = NULL;
	int rc = -ENOENT;
	char *end;

	escape_str(sys, sizeof(sys), system);
	escape_str(tp, sizeof(tp), name);
	if (!sysfs_is_name(system) || !sysfs_is_name(name) || strlen(system) > 100)
		return err_set(err, EINVAL, "event '%s:%s': no such event", sys, tp);
	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts) && !mount; i++) {
		rc = sysfs_read(text, root, "%s/events/header_page", mounts[i]);
		mount = rc == -ENOENT || rc == -ENOTDIR ? NULL : mounts[i];
	}
	if (!mount)
		return err_set(err, ENOENT,
			       "event '%s:%s': no such event; if it is a tracepoint, tracefs is "
			       "not mounted at %s",
			       sys, tp, mounts[0]);
	rc = sysfs_read(text, root, "%s/events/%s/%s/id", mount, system, name);
	if (rc == -EACCES || rc == -EPERM)
		return err_set(err, EACCES, "event '%s:%s': no permission to read %s: run as root",
			       sys, tp, mount);
	if (rc)
		return unknown(root, mount, system, name, err);
	errno = 0;
	*id = strtoull(text, &end, 10);
	if (errno || !isdigit((unsigned char)text[0]) || *end)
		return err_set(err, EINVAL, "event '%s:%s': its id in tracefs is no number", sys,
			       tp);
	return 0;
}
