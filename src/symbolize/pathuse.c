// SPDX-License-Identifier: GPL-2.0-only
/*
 * What has become of the paths that the user has given: one that is of no use, or the wrong one,
 * would otherwise be seen by nothing but missing names.
 */
#include <stdlib.h>
#include <string.h>

#include "symbolize/session.h"
#include "util/xalloc.h"

/* Paths are interned: one address each. */
static struct path_use *use_of(struct session *s, const char *option, const char *path)
{
	struct path_use *u;

	for (size_t i = 0; i < s->nr_uses; i++)
		if (s->uses[i].path == path && !strcmp(s->uses[i].option, option))
			return &s->uses[i];
	s->uses = xgrow(s->uses, &s->cap_uses, s->nr_uses + 1, sizeof(*s->uses));
	u = &s->uses[s->nr_uses++];
	*u = (struct path_use){.option = option, .path = path};
	return u;
}

void session_path_used(struct session *s, const char *option, const char *path)
{
	use_of(s, option, path)->used++;
}

void session_path_refused(struct session *s, const char *option, const char *path, const char *why)
{
	struct path_use *u = use_of(s, option, path);

	u->refused += why != NULL;
	if (!u->why && why)
		u->why = strtab_intern(s->strings, why);
}

bool session_bad_path(const struct session *s, size_t *i, struct bad_path *out)
{
	while (*i < s->nr_uses) {
		const struct path_use *u = &s->uses[(*i)++];
		bool several = !strcmp(u->option, "--symfs");

		/* one file may be meant for one of several machines, a directory has to fit */
		if (u->used && (!several || !u->refused))
			continue;
		*out = (struct bad_path){u->option, u->path, u->used, u->refused,
					 u->why ? u->why : "it has no file that was looked for"};
		return true;
	}
	return false;
}
