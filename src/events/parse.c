// SPDX-License-Identifier: GPL-2.0-only
/*
 * What one -e says, cut up: "cycles:u,{r1a8,cpu/event=0x3c/}:p,kvm:kvm_exit".
 */
#include <ctype.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events/event.h"
#include "events/names.h"
#include "events/pmu.h"
#include "events/tracepoint.h"
#include "util/text.h"
#include "util/xalloc.h"

#define SHOWN 128

/* One event as it was written: NAME[/TERMS/][:MODIFIERS], SYSTEM:NAME[:MODIFIERS]. */
struct piece {
	char *whole;
	char *name, *terms, *mods; /* parts of a copy; terms NULL: none, mods "" */
	char *copy;
};

/* ---------- modifiers ---------- */

/* What the letters say, before it is known what goes without saying. */
struct modifiers {
	bool user, kernel, guest, host;
	bool pinned, exclusive, precise_max;
	unsigned precise;
};

static const char modifier_help[] =
	"modifiers are u (user), k (kernel), G (guest), H (host), p, pp, "
	"ppp, P (precise), D (pinned), e (exclusive)";

static int read_modifier(struct modifiers *m, char c, const char *whole, struct vmprof_err *err)
{
	char shown[SHOWN], one[8];
	const char str[] = {c, 0};

	escape_str(shown, sizeof(shown), whole);
	escape_str(one, sizeof(one), str);
	switch (c) {
	case 'u':
		m->user = true;
		return 0;
	case 'k':
		m->kernel = true;
		return 0;
	case 'G':
		m->guest = true;
		return 0;
	case 'H':
		m->host = true;
		return 0;
	case 'D':
		m->pinned = true;
		return 0;
	case 'e':
		m->exclusive = true;
		return 0;
	case 'P':
		m->precise_max = true;
		return 0;
	case 'p':
		if (++m->precise <= 3)
			return 0;
		return err_set(err, EINVAL, "event '%s': ppp is as precise as it gets", shown);
	case 'h':
	case 'I':
	case 'S':
	case 'W':
	case 'b':
		return err_set(
			err, EINVAL,
			"event '%s': modifier '%s' of perf does not apply to a VM's event; %s",
			shown, one, modifier_help);
	default:
		return err_set(err, EINVAL, "event '%s': there is no modifier '%s'; %s", shown, one,
			       modifier_help);
	}
}

static int read_modifiers(struct modifiers *m, const char *text, const char *whole,
			  struct vmprof_err *err)
{
	for (; *text; text++) {
		int rc = read_modifier(m, *text, whole, err);

		if (rc)
			return rc;
	}
	return 0;
}

static void apply_modifiers(struct event *e, const struct modifiers *m)
{
	e->exclude_kernel = m->user && !m->kernel;
	e->exclude_user = m->kernel && !m->user;
	e->said_machine = m->guest || m->host;
	e->guest = e->said_machine ? m->guest : !event_is_of_host(e);
	e->host = e->said_machine ? m->host : event_is_of_host(e);
	e->precise = (uint8_t)m->precise;
	e->precise_max = m->precise_max;
	e->pinned = m->pinned;
	e->exclusive = m->exclusive;
}

/* ---------- one event ---------- */

static int unknown_event(const char *whole, struct suggestion *s, struct vmprof_err *err)
{
	char shown[SHOWN], guess[SHOWN];

	suggestion_try_names(s);
	return err_set(err, EINVAL, "event '%s': no such event%s",
		       escape_str(shown, sizeof(shown), whole),
		       *s->name ? suggestion_text(s, guess, sizeof(guess))
				: "; 'vmprof list -v' shows what each VM has, 'perf list' the "
				  "names that this host knows");
}

/* r1a8: bits of the PMU's event select register. false: it is none, "ref-cycles" say. */
static bool raw_config(const char *name, uint64_t *config)
{
	size_t digits = *name == 'r' ? strspn(name + 1, "0123456789abcdefABCDEF") : 0;

	if (!digits || digits > 16 || name[1 + digits])
		return false;
	*config = strtoull(name + 1, NULL, 16);
	return true;
}

static int find_named(struct event *e, const char *root, struct piece *p, struct vmprof_err *err)
{
	struct suggestion s;
	int rc;

	if (event_name_find(p->name, strlen(p->name), &e->type, &e->config))
		return 0;
	if (raw_config(p->name, &e->config)) {
		e->type = PERF_TYPE_RAW;
		return 0;
	}
	suggestion_init(&s, p->name);
	e->type = 0;
	e->config = 0;
	rc = *p->name ? pmu_find_event(e, root, p->name, p->whole, &s, err) : -ENOENT;
	return rc == -ENOENT ? unknown_event(p->whole, &s, err) : rc;
}

/* "kvm:kvm_exit:u": what is behind the first colon may be a tracepoint's name. */
static int find_tracepoint(struct event *e, const char *root, struct piece *p,
			   struct vmprof_err *err)
{
	char *mods = strchr(p->mods, ':');

	if (mods)
		*mods++ = 0;
	e->type = PERF_TYPE_TRACEPOINT;
	if (tracepoint_id(&e->config, root, p->name, p->mods, err))
		return -err->code;
	p->mods = mods ? mods : p->mods + strlen(p->mods);
	return 0;
}

/* Letters only, and not many: else it is the name of a tracepoint. */
static bool looks_like_modifiers(const char *s)
{
	return strspn(s, "ukhGHpPDeSIWb") == strlen(s) || strlen(s) == 1;
}

static int find_event(struct event *e, const char *root, struct piece *p, struct vmprof_err *err)
{
	uint32_t type;
	uint64_t config;
	int rc;

	if (p->terms) {
		if (event_name_find(p->name, strlen(p->name), &e->type, &e->config))
			return pmu_apply_terms(e, root, NULL, p->terms, p->whole, err);
		rc = pmu_type(&e->type, root, p->name, p->whole, err);
		return rc ? rc : pmu_apply_terms(e, root, p->name, p->terms, p->whole, err);
	}
	if (*p->mods && !event_name_find(p->name, strlen(p->name), &type, &config) &&
	    !raw_config(p->name, &config) && !looks_like_modifiers(p->mods))
		return find_tracepoint(e, root, p, err);
	return find_named(e, root, p, err);
}

static int cut_up(struct piece *p, const char *text, size_t len, struct vmprof_err *err)
{
	char shown[SHOWN];
	char *slash, *end;

	*p = (struct piece){.whole = xstrndup(text, len), .copy = xstrndup(text, len)};
	p->name = p->copy;
	slash = strchr(p->copy, '/');
	if (!slash || strcspn(p->copy, ":") < (size_t)(slash - p->copy)) {
		p->mods = p->copy + strcspn(p->copy, ":");
		if (*p->mods)
			*p->mods++ = 0;
		return 0;
	}
	*slash = 0;
	p->terms = slash + 1;
	end = strrchr(p->terms, '/');
	if (!end)
		return err_set(err, EINVAL, "event '%s': the '/' behind the terms is missing",
			       escape_str(shown, sizeof(shown), p->whole));
	*end = 0;
	p->mods = end + 1 + (end[1] == ':');
	return 0;
}

/* @group_mods: of the group around it; they come on top of its own. */
static int parse_one(struct event *e, const char *root, const char *text, size_t len,
		     const char *group_mods, struct vmprof_err *err)
{
	struct modifiers m = {0};
	struct piece p;
	int rc = cut_up(&p, text, len, err);

	*e = (struct event){.name = NULL};
	rc = rc ? rc : find_event(e, root, &p, err);
	rc = rc ? rc : read_modifiers(&m, p.mods, p.whole, err);
	rc = rc ? rc : read_modifiers(&m, group_mods, p.whole, err);
	if (!rc) {
		apply_modifiers(e, &m);
		if (!e->name)
			e->name = *group_mods ? xasprintf("%s%s%s", p.whole, *p.mods ? "" : ":",
							  group_mods)
					      : xstrdup(p.whole);
	} else {
		free((char *)e->name);
	}
	free(p.whole);
	free(p.copy);
	return rc;
}

/* ---------- lists and groups ---------- */

/* Length up to the next of @stops that is not within slashes. */
static size_t piece_len(const char *s, const char *stops)
{
	bool terms = false;
	size_t n;

	for (n = 0; s[n]; n++) {
		/* A '/' begins terms; within them the next one ends them. */
		terms ^= s[n] == '/';
		if (!terms && strchr(stops, s[n]))
			break;
	}
	return n;
}

static int add_one(struct event_list *l, const char *text, size_t len, unsigned leader,
		   const char *group_mods, struct vmprof_err *err)
{
	int rc;

	if (l->n == EVENTS_MAX)
		return err_set(err, EINVAL, "more than %d events", EVENTS_MAX);
	rc = parse_one(&l->events[l->n], l->root, text, len, group_mods, err);
	if (rc)
		return rc;
	l->events[l->n].leader = leader;
	l->n++;
	return 0;
}

/* @text is behind the "{"; *end gets what follows the group. */
static int add_group(struct event_list *l, const char *text, const char **end,
		     struct vmprof_err *err)
{
	size_t inner = piece_len(text, "{}"), mods_len;
	const char *mods = text + inner + 1;
	unsigned leader = l->n;
	char shown[SHOWN], *group_mods;
	int rc = 0;

	if (text[inner] != '}')
		return err_set(err, EINVAL, "events '{%s': %s",
			       escape_str(shown, sizeof(shown), text),
			       text[inner] ? "there is a group in a group" : "the '}' is missing");
	mods += *mods == ':';
	mods_len = strcspn(mods, ",");
	*end = mods + mods_len;
	group_mods = xstrndup(mods, mods_len);
	for (const char *s = text; !rc;) {
		size_t len = piece_len(s, ",}");

		rc = add_one(l, s, len, leader, group_mods, err);
		s += len;
		if (*s++ == '}')
			break;
	}
	free(group_mods);
	return rc;
}

int event_list_add(struct event_list *l, const char *spec, struct vmprof_err *err)
{
	for (;;) {
		const char *end = spec;
		int rc;

		if (*spec == '{') {
			rc = add_group(l, spec + 1, &end, err);
		} else {
			end = spec + piece_len(spec, ",");
			rc = add_one(l, spec, (size_t)(end - spec), l->n, "", err);
		}
		if (rc)
			return rc;
		if (!*end)
			return 0;
		spec = end + 1;
	}
}
