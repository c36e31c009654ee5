// SPDX-License-Identifier: GPL-2.0-only
#include "report/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "report/hist.h"
#include "util/text.h"
#include "util/xalloc.h"

static const struct column *column_find(const char *name, size_t len)
{
	for (unsigned i = 0; i < COLUMN_COUNT; i++)
		if (!strncasecmp(name, columns[i].key, len))
			return &columns[i];
	return NULL;
}

void layout_print_keys(FILE *f)
{
	for (unsigned i = 0; i < COLUMN_COUNT; i++)
		fprintf(f, "%s%s", i ? ", " : "", columns[i].key);
}

static bool has_sort(const struct layout *l, const struct column *c)
{
	for (unsigned i = 0; i < l->nr_sort; i++)
		if (l->sort[i] == c)
			return true;
	return false;
}

static bool has_field(const struct layout *l, const struct column *c)
{
	for (unsigned i = 0; i < l->nr_fields; i++)
		if (l->fields[i].column == c)
			return true;
	return false;
}

static void add_sort(struct layout *l, const struct column *c)
{
	if (has_sort(l, c))
		return;
	l->sort[l->nr_sort++] = c;
	l->needs |= c->needs;
	l->parts[c->end] |= c->part;
}

static void add_field(struct layout *l, const struct column *c)
{
	if (has_field(l, c))
		return;
	l->fields[l->nr_fields++] = (struct layout_field){.column = c, .header = c->header};
	l->needs |= c->needs;
}

static int add_list(struct layout *l, const char *list, const char *option,
		    void (*add)(struct layout *l, const struct column *c), struct vmprof_err *err)
{
	bool any = false;

	for (size_t len; *(list += strspn(list, ", {}")); list += len) {
		const struct column *c;
		char name[64];

		len = strcspn(list, ", {}");
		c = column_find(list, len);
		if (!c) {
			char *raw = xstrndup(list, len);

			escape_str(name, sizeof(name), raw);
			free(raw);
			return err_set(err, EINVAL,
				       "unknown %s key '%s'; 'vmprof report --help' lists the keys",
				       option, name);
		}
		add(l, c);
		any = true;
	}
	return any ? 0 : err_set(err, EINVAL, "%s needs at least one key", option);
}

/* A list that begins with '+' adds to the default one. */
static bool is_whole(const char *list)
{
	return list && *list != '+';
}

/* The default keys, of samples and of branches. */
static const enum column_id defaults[2][5] = {
	{COLUMN_COMM, COLUMN_DSO, COLUMN_SYMBOL, COLUMN_COUNT, COLUMN_COUNT},
	{COLUMN_COMM, COLUMN_DSO_FROM, COLUMN_SYMBOL_FROM, COLUMN_SYMBOL_TO, COLUMN_CYCLES},
};

static int setup_sort(struct layout *l, const struct layout_config *cfg, struct vmprof_err *err)
{
	const char *given = cfg->sort;

	if (!is_whole(cfg->fields)) {
		if (cfg->children && (!given || !strstr(given, columns[COLUMN_CHILDREN].key)))
			add_sort(l, &columns[COLUMN_CHILDREN]);
		if (!given || !strstr(given, columns[COLUMN_OVERHEAD].key))
			add_sort(l, &columns[COLUMN_OVERHEAD]);
	}
	if (is_whole(given))
		return add_list(l, given, "--sort", add_sort, err);
	if (!given && is_whole(cfg->fields))
		return 0;
	if (cfg->guests)
		add_sort(l, &columns[COLUMN_VM]);
	for (size_t i = 0; i < sizeof(defaults[0]) / sizeof(defaults[0][0]); i++)
		if (defaults[cfg->branches][i] != COLUMN_COUNT)
			add_sort(l, &columns[defaults[cfg->branches][i]]);
	return given ? add_list(l, given + 1, "--sort", add_sort, err) : 0;
}

static void add_default_fields(struct layout *l, const struct layout_config *cfg)
{
	if (cfg->children)
		add_field(l, &columns[COLUMN_CHILDREN]);
	add_field(l, &columns[COLUMN_OVERHEAD]);
	if (cfg->children)
		l->fields[1].header = "Self";
	if (cfg->cpu_utilization) {
		add_field(l, &columns[COLUMN_OVERHEAD_SYS]);
		add_field(l, &columns[COLUMN_OVERHEAD_US]);
	}
	if (cfg->cpu_utilization && cfg->guests) {
		add_field(l, &columns[COLUMN_OVERHEAD_GUEST_SYS]);
		add_field(l, &columns[COLUMN_OVERHEAD_GUEST_US]);
	}
	if (cfg->samples)
		add_field(l, &columns[COLUMN_SAMPLES]);
	if (cfg->period)
		add_field(l, &columns[COLUMN_PERIOD]);
}

int layout_setup(struct layout *l, const struct layout_config *cfg, struct vmprof_err *err)
{
	int ret;

	*l = (struct layout){0};
	ret = setup_sort(l, cfg, err);
	if (ret)
		return ret;
	if (!is_whole(cfg->fields))
		add_default_fields(l, cfg);
	if (cfg->fields) {
		ret = add_list(l, cfg->fields + !is_whole(cfg->fields), "--fields", add_field, err);
		if (ret)
			return ret;
	}
	for (unsigned i = 0; i < l->nr_sort; i++)
		add_field(l, l->sort[i]);
	for (unsigned i = 0; i < l->nr_fields; i++)
		add_sort(l, l->fields[i].column);
	for (unsigned i = 0; i < l->nr_sort && !cfg->memory; i++)
		if (l->sort[i]->needs & PROFILE_BY_ACCESS)
			return err_set(err, EINVAL,
				       "'%s' is of accesses to memory: it needs --mem-mode",
				       l->sort[i]->key);
	l->has_vm = has_sort(l, &columns[COLUMN_VM]);
	for (unsigned i = 0; i < l->nr_sort && !cfg->branches; i++)
		if (l->sort[i]->kind == COLUMN_BRANCH)
			return err_set(err, EINVAL,
				       "'%s' is of branches: it needs a file recorded with -b, "
				       "shown without --no-branch-stack",
				       l->sort[i]->key);
	l->symbol_first = !cfg->fields && cfg->sort && !strncmp(cfg->sort, "sym", 3);
	return 0;
}
