// SPDX-License-Identifier: GPL-2.0-only
#include "events/pmu.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events/sysfs.h"
#include "util/buf.h"
#include "util/text.h"
#include "util/xalloc.h"

#define TERMS_MAX 64 /* of one event */

struct terms {
	struct event *e;
	const char *root, *pmu, *whole;
	bool alias;	 /* they are those of an event of the PMU, which has no events in it */
	char wanted[64]; /* a term that such an event leaves to the user (core=?), and is not there
			    yet */
	unsigned n;
	char *name; /* by name=, to be freed */
	struct vmprof_err *err;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct terms *t, const char *fmt, ...)
{
	char why[512], whole[128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return err_set(t->err, EINVAL, "event '%s': %s", escape_str(whole, sizeof(whole), t->whole),
		       why);
}

static int term_value(struct terms *t, const char *key, const char *value, uint64_t *out)
{
	char shown[64];
	char *end;

	errno = 0;
	*out = strtoull(value, &end, 0);
	if (errno || end == value || *end || !isdigit((unsigned char)*value))
		return refuse(t, "term %s: '%s' is not a number", key,
			      escape_str(shown, sizeof(shown), value));
	return 0;
}

/* ---------- formats ---------- */

/* "config1:0-7,32-35": where the bits of a value go. 0 or -EINVAL: it says no such thing. */
struct format {
	uint64_t *word;
	uint64_t bits;
};

static int parse_format(struct event *e, const char *text, struct format *f)
{
	static const char *const names[] = {"config", "config1", "config2"};
	uint64_t *const words[] = {&e->config, &e->config1, &e->config2};
	size_t len = strcspn(text, ":");

	*f = (struct format){0};
	for (size_t i = 0; i < 3; i++)
		if (strlen(names[i]) == len && !strncmp(names[i], text, len))
			f->word = words[i];
	if (!f->word || !text[len])
		return -EINVAL;
	for (const char *s = text + len; *s;) {
		char *end;
		unsigned long lo, hi;

		if (!isdigit((unsigned char)s[1]))
			return -EINVAL;
		lo = hi = strtoul(s + 1, &end, 10);
		if (*end == '-' && isdigit((unsigned char)end[1]))
			hi = strtoul(end + 1, &end, 10);
		if (lo > hi || hi > 63 || (*end && *end != ','))
			return -EINVAL;
		f->bits |= (hi == 63 ? ~0ull : (1ull << (hi + 1)) - 1) & ~((1ull << lo) - 1);
		s = end;
	}
	return f->bits ? 0 : -EINVAL;
}

/* The bits of @value, lowest first, into those of @bits. false: there are not as many. */
static bool deposit(uint64_t *word, uint64_t bits, uint64_t value)
{
	*word &= ~bits;
	for (; bits; bits &= bits - 1, value >>= 1)
		if (value & 1)
			*word |= bits & -bits;
	return !value;
}

static int apply_format(struct terms *t, const char *key, const char *value, const char *text)
{
	struct format f;
	uint64_t v = 1;
	int rc = value ? term_value(t, key, value, &v) : 0;

	if (rc)
		return rc;
	if (parse_format(t->e, text, &f))
		return refuse(t, "the format of term %s in sysfs is none", key);
	if (!deposit(f.word, f.bits, v))
		return refuse(t, "term %s=%#" PRIx64 " is too big: it has %d bits", key, v,
			      __builtin_popcountll(f.bits));
	return 0;
}

/* ---------- terms ---------- */

static int set_rate(struct terms *t, bool freq, const char *key, const char *value)
{
	uint64_t v;
	int rc = term_value(t, key, value, &v);

	if (rc)
		return rc;
	if (!v || v > INT64_MAX)
		return refuse(t, "term %s: %s is no rate", key, value);
	t->e->freq = freq;
	t->e->rate = v;
	t->e->own_rate = true;
	return 0;
}

/* Those that need no PMU's format. 1: @key is none of them. */
static int general_term(struct terms *t, const char *key, const char *value)
{
	static const char *const refused[] = {
		"branch_type",	 "time",      "call-graph", "stack-size",      "no-inherit",
		"inherit",	 "max-stack", "nr",	    "no-overwrite",    "overwrite",
		"driver-config", "percore",   "aux-output", "aux-sample-size", "metric-id",
	};
	char shown[128];

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		if (!strcmp(key, refused[i]))
			return refuse(t, "term '%s' of perf does not apply to VMs", key);
	if (!value)
		return 1;
	if (!strcmp(key, "config"))
		return term_value(t, key, value, &t->e->config);
	if (!strcmp(key, "config1"))
		return term_value(t, key, value, &t->e->config1);
	if (!strcmp(key, "config2"))
		return term_value(t, key, value, &t->e->config2);
	if (!strcmp(key, "period"))
		return set_rate(t, false, key, value);
	if (!strcmp(key, "freq"))
		return set_rate(t, true, key, value);
	if (strcmp(key, "name") != 0)
		return 1;
	free(t->name);
	t->name = xstrdup(escape_str(shown, sizeof(shown), value));
	return 0;
}

static int each_term(struct terms *t, char *text);

/* An event of the PMU's, which stands for terms: "event=0x3c,umask=0x1". 1: there is none so
 * called. */
static int alias_term(struct terms *t, const char *key)
{
	const char *symbol = event_name_symbol(key);
	char text[SYSFS_TEXT_MAX];
	int rc = sysfs_read(text, t->root, "%s/%s/events/%s", SYSFS_PMUS, t->pmu, key);

	if (rc && symbol)
		rc = sysfs_read(text, t->root, "%s/%s/events/%s", SYSFS_PMUS, t->pmu, symbol);
	if (rc)
		return 1;
	t->alias = true;
	rc = each_term(t, text);
	t->alias = false;
	return rc;
}

struct name_list {
	struct buf b;
	struct suggestion *s;
};

static int add_name(void *ctx, const char *name)
{
	struct name_list *l = ctx;
	char shown[64];

	if (l->s)
		suggestion_try(l->s, name);
	if (l->b.len < 256)
		buf_printf(&l->b, "%s%s", l->b.len ? ", " : "",
			   escape_str(shown, sizeof(shown), name));
	return 0;
}

static int unknown_term(struct terms *t, const char *key)
{
	struct suggestion s;
	struct name_list l = {.s = &s};
	char dir[512], guess[128], shown[64];
	int rc;

	suggestion_init(&s, key);
	snprintf(dir, sizeof(dir), "%s/%s/format", SYSFS_PMUS, t->pmu ? t->pmu : "-");
	if (t->pmu)
		sysfs_each(t->root, dir, add_name, &l);
	snprintf(dir, sizeof(dir), "%s/%s/events", SYSFS_PMUS, t->pmu ? t->pmu : "-");
	if (t->pmu)
		sysfs_each(t->root, dir, add_name, &l);
	rc = refuse(t,
		    "unknown term '%s'%s%s%s; terms are config, config1, config2, name, period, "
		    "freq%s%s",
		    escape_str(shown, sizeof(shown), key), t->pmu ? " of PMU '" : "",
		    t->pmu ? t->pmu : "", t->pmu ? "'" : "", l.b.len ? " and " : "",
		    l.b.len ? (char *)l.b.data : "");
	if (t->err && s.name[0]) {
		size_t at = strlen(t->err->msg);

		snprintf(t->err->msg + at, sizeof(t->err->msg) - at, "%s",
			 suggestion_text(&s, guess, sizeof(guess)));
	}
	buf_free(&l.b);
	return rc;
}

static int one_term(struct terms *t, char *key)
{
	char text[SYSFS_TEXT_MAX], *value = strchr(key, '=');
	int rc;

	if (value)
		*value++ = 0;
	if (++t->n > TERMS_MAX)
		return refuse(t, "more than %d terms", TERMS_MAX);
	rc = general_term(t, key, value);
	if (rc <= 0)
		return rc;
	if (!t->pmu || !sysfs_is_name(key))
		return unknown_term(t, key);
	if (value && t->alias && !strcmp(value, "?")) {
		snprintf(t->wanted, sizeof(t->wanted), "%s", key);
		return 0;
	}
	if (!strcmp(key, t->wanted))
		t->wanted[0] = 0;
	if (!sysfs_read(text, t->root, "%s/%s/format/%s", SYSFS_PMUS, t->pmu, key))
		return apply_format(t, key, value, text);
	rc = value || t->alias ? 1 : alias_term(t, key);
	return rc == 1 ? unknown_term(t, key) : rc;
}

static int each_term(struct terms *t, char *text)
{
	char *save = NULL;
	int rc = 0;

	for (char *k = strtok_r(text, ",", &save); k && !rc; k = strtok_r(NULL, ",", &save))
		rc = one_term(t, k);
	return rc;
}

int pmu_apply_terms(struct event *e, const char *root, const char *pmu, char *terms,
		    const char *whole, struct vmprof_err *err)
{
	struct terms t = {.e = e, .root = root, .pmu = pmu, .whole = whole, .err = err};
	int rc = each_term(&t, terms);

	if (!rc && t.wanted[0])
		rc = refuse(&t, "the PMU's event wants a value: add %s=NUMBER behind it", t.wanted);
	if (rc) {
		free(t.name);
		return rc;
	}
	if (t.name) {
		free((char *)e->name);
		e->name = t.name;
	}
	return 0;
}

/* ---------- PMUs ---------- */

int pmu_type(uint32_t *type, const char *root, const char *pmu, const char *whole,
	     struct vmprof_err *err)
{
	char text[SYSFS_TEXT_MAX], guess[128], shown[128];
	struct suggestion s;
	struct name_list l = {.s = &s};
	char *end;
	unsigned long v;

	if (sysfs_is_name(pmu) && !sysfs_read(text, root, "%s/%s/type", SYSFS_PMUS, pmu)) {
		errno = 0;
		v = strtoul(text, &end, 10);
		if (!errno && isdigit((unsigned char)text[0]) && !*end && v <= UINT32_MAX) {
			*type = (uint32_t)v;
			return 0;
		}
	}
	suggestion_init(&s, pmu);
	sysfs_each(root, SYSFS_PMUS, add_name, &l);
	err_set(err, EINVAL, "event '%s': this host has no PMU of that name; it has %s%s",
		escape_str(shown, sizeof(shown), whole), l.b.len ? (char *)l.b.data : "none",
		suggestion_text(&s, guess, sizeof(guess)));
	buf_free(&l.b);
	return -EINVAL;
}

struct event_search {
	const char *root, *name;
	struct suggestion *s;
	char pmus[4][64]; /* that have it */
	unsigned n;
};

static int try_event(void *ctx, const char *name)
{
	struct event_search *f = ctx;

	suggestion_try(f->s, name);
	return 0;
}

static int look_at_pmu(void *ctx, const char *pmu)
{
	struct event_search *f = ctx;
	char text[SYSFS_TEXT_MAX], dir[512];

	snprintf(dir, sizeof(dir), "%s/%s/events", SYSFS_PMUS, pmu);
	sysfs_each(f->root, dir, try_event, f);
	if (!sysfs_read(text, f->root, "%s/%s", dir, f->name) && f->n < 4)
		snprintf(f->pmus[f->n++], sizeof(f->pmus[0]), "%s", pmu);
	return 0;
}

int pmu_find_event(struct event *e, const char *root, const char *name, const char *whole,
		   struct suggestion *s, struct vmprof_err *err)
{
	struct event_search f = {.root = root, .name = name, .s = s};
	char terms[256], shown[128];
	int rc;

	if (!sysfs_is_name(name) || strlen(name) >= sizeof(terms))
		return -ENOENT;
	sysfs_each(root, SYSFS_PMUS, look_at_pmu, &f);
	if (!f.n)
		return -ENOENT;
	if (f.n > 1)
		return err_set(
			err, EINVAL, "event '%s': several PMUs have one: write %s/%s/ or %s/%s/",
			escape_str(shown, sizeof(shown), whole), f.pmus[0], name, f.pmus[1], name);
	snprintf(terms, sizeof(terms), "%s", name);
	rc = pmu_type(&e->type, root, f.pmus[0], whole, err);
	return rc ? rc : pmu_apply_terms(e, root, f.pmus[0], terms, whole, err);
}
