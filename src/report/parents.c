// SPDX-License-Identifier: GPL-2.0-only
#include "report/parents.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"
#include "util/xalloc.h"

struct parents {
	struct profile *p;
	regex_t regex;
	bool outermost;
	uint32_t *found; /* by node: the frame + 2, 1: none, 0: was not looked for */
	size_t n, cap;
	uint8_t *matches; /* by frame: 1 no, 2 yes, 0: was not looked at */
	size_t nr_matches, matches_cap;
};

int parents_new(struct parents **out, struct profile *p, const char *pattern, bool outermost,
		struct vmprof_err *err)
{
	struct parents *ps = xcalloc(1, sizeof(*ps));
	char why[128], text[128];
	int ret;

	ps->p = p;
	ps->outermost = outermost;
	ret = regcomp(&ps->regex, pattern ? pattern : PARENTS_DEFAULT, REG_EXTENDED | REG_NOSUB);
	if (!ret) {
		*out = ps;
		return 0;
	}
	regerror(ret, &ps->regex, why, sizeof(why));
	free(ps);
	return err_set(err, EINVAL, "--parent '%s': %s", escape_str(text, sizeof(text), pattern),
		       why);
}

void parents_free(struct parents *ps)
{
	if (!ps)
		return;
	regfree(&ps->regex);
	free(ps->found);
	free(ps->matches);
	free(ps);
}

static bool matches(struct parents *ps, uint32_t frame)
{
	const char *name;

	ps->matches = xgrow(ps->matches, &ps->matches_cap, frame + 1ull, 1);
	if (frame >= ps->nr_matches) {
		memset(ps->matches + ps->nr_matches, 0, frame + 1ull - ps->nr_matches);
		ps->nr_matches = frame + 1ull;
	}
	if (!ps->matches[frame]) {
		name = profile_frame_name(ps->p, frame);
		ps->matches[frame] = name && !regexec(&ps->regex, name, 0, NULL, 0) ? 2 : 1;
	}
	return ps->matches[frame] == 2;
}

static uint32_t look_up(struct parents *ps, uint32_t node)
{
	uint32_t found = 1;

	for (; node != PROFILE_NO_CHAIN; node = profile_caller(ps->p, node)) {
		uint32_t frame = profile_node_frame(ps->p, node);

		if (matches(ps, frame))
			found = frame + 2;
		if (found > 1 && !ps->outermost)
			break;
	}
	return found;
}

const char *parents_find(struct parents *ps, uint32_t node)
{
	ps->found = xgrow(ps->found, &ps->cap, node + 1ull, sizeof(*ps->found));
	if (node >= ps->n) {
		memset(ps->found + ps->n, 0, (node + 1ull - ps->n) * sizeof(*ps->found));
		ps->n = node + 1ull;
	}
	if (!ps->found[node])
		ps->found[node] = look_up(ps, node);
	return ps->found[node] > 1 ? profile_frame_name(ps->p, ps->found[node] - 2) : NULL;
}
