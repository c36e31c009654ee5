// SPDX-License-Identifier: GPL-2.0-only
#include "agent/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "util/text.h"

#define PERIOD_DEFAULT 1000000ull
#define NAME_CHARS     "abcdefghijklmnopqrstuvwxyz0123456789-_"

/* One event while its words are read. */
struct words {
	char name[32];
	uint64_t value[4];
	bool given[4];
};

enum { PERIOD, UMASK, KERNEL, USER };

static const struct {
	const char *key;
	uint64_t otherwise, least, most;
} numbers[] = {
	[PERIOD] = {"period", PERIOD_DEFAULT, AGENT_PERIOD_MIN, AGENT_PERIOD_MAX},
	[UMASK] = {"umask", 0, 0, UINT8_MAX},
	[KERNEL] = {"kernel", 1, 0, 1},
	[USER] = {"user", 1, 0, 1},
};
#define NUMBERS (sizeof(numbers) / sizeof(*numbers))

static int not_a_word(const char *word, struct vmprof_err *err)
{
	char shown[80];

	return err_set(err, EINVAL,
		       "'%s' is none of event=NAME, period=NS, umask=N, kernel=0|1 and user=0|1",
		       escape_str(shown, sizeof(shown), word));
}

/* strtoull() would take a sign, space, and a number that is not there. */
static bool parse_number(const char *text, uint64_t *value)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return !errno && !*end;
}

static int set_number(struct words *w, size_t i, const char *text, struct vmprof_err *err)
{
	uint64_t value;

	if (w->given[i])
		return err_set(err, EINVAL, "%s= is there twice for one event", numbers[i].key);
	if (!parse_number(text, &value) || value < numbers[i].least || value > numbers[i].most)
		return err_set(err, EINVAL, "%s= takes a number from %" PRIu64 " to %" PRIu64,
			       numbers[i].key, numbers[i].least, numbers[i].most);
	w->given[i] = true;
	w->value[i] = value;
	return 0;
}

static int set_name(struct words *w, const char *text, struct vmprof_err *err)
{
	size_t len = strlen(text);

	if (*w->name)
		return err_set(err, EINVAL, "event= is there twice: ';' separates events");
	/* It goes to a parser for the command line of root. */
	if (!len || len >= sizeof(w->name) || strspn(text, NAME_CHARS) != len)
		return err_set(err, EINVAL, "event= takes a name of at most %zu of %s",
			       sizeof(w->name) - 1, NAME_CHARS);
	memcpy(w->name, text, len + 1);
	return 0;
}

static int add_word(struct words *w, char *word, struct vmprof_err *err)
{
	char *value = strchr(word, '=');

	if (!value)
		return not_a_word(word, err);
	*value++ = 0;
	if (!strcmp(word, "event"))
		return set_name(w, value, err);
	for (size_t i = 0; i < NUMBERS; i++)
		if (!strcmp(word, numbers[i].key))
			return set_number(w, i, value, err);
	return not_a_word(word, err);
}

/* Has the backend an event of this name? */
static int try_name(const char *name, struct vmprof_err *err)
{
	struct event_list l = {0};
	int rc = event_list_add(&l, name, err);

	/* What event_list_add() says of an unknown one is advice for the host's user. */
	if (rc)
		rc = err_set(err, rc, "there is no event '%s'", name);
	for (unsigned i = 0; i < l.n && !rc; i++)
		rc = backend_xen.try_event(NULL, &l.events[i], err);
	event_list_free(&l);
	return rc;
}

static int add_event(struct agent_request *r, const struct words *w, struct vmprof_err *err)
{
	uint64_t v[NUMBERS];
	const char *mode;
	int rc;

	if (!*w->name)
		return err_set(err, EINVAL, "an event without event=NAME");
	if (r->n == AGENT_EVENTS_MAX)
		return err_set(err, E2BIG, "more than %d events", AGENT_EVENTS_MAX);
	for (size_t i = 0; i < NUMBERS; i++)
		v[i] = w->given[i] ? w->value[i] : numbers[i].otherwise;
	if (!v[KERNEL] && !v[USER])
		return err_set(err, EINVAL, "event '%s' counts neither kernel nor user", w->name);
	rc = try_name(w->name, err);
	if (rc)
		return rc;
	if (v[UMASK])
		return err_set(err, EOPNOTSUPP,
			       "event '%s' has no unit mask: it is a clock, not a counter",
			       w->name);
	mode = v[KERNEL] && v[USER] ? "" : v[USER] ? "u" : "k";
	snprintf(r->event[r->n++], sizeof(*r->event), "%s/period=%" PRIu64 "/%s", w->name,
		 v[PERIOD], mode);
	return 0;
}

int agent_request_parse(struct agent_request *r, const char *text, size_t len,
			struct vmprof_err *err)
{
	char copy[AGENT_REQUEST_MAX + 1], *rest = copy, *event;
	int rc = 0;

	*r = (struct agent_request){0};
	if (len > AGENT_REQUEST_MAX)
		return err_set(err, E2BIG, "a request has at most %d bytes", AGENT_REQUEST_MAX);
	if (memchr(text, 0, len))
		return err_set(err, EINVAL, "a request is text, with no zero bytes in it");
	memcpy(copy, text, len);
	copy[len] = 0;
	while (!rc && (event = strsep(&rest, ";"))) {
		struct words w = {0};
		char *word;

		while (!rc && (word = strsep(&event, " \t\n")))
			if (*word)
				rc = add_word(&w, word, err);
		if (!rc)
			rc = add_event(r, &w, err);
	}
	return rc;
}
