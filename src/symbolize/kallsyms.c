// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/kallsyms, of this host or copied from a guest: "ADDRESS TYPE NAME", with "[MODULE]" behind
 * a tab where it is a module's.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/session.h"
#include "util/openfile.h"
#include "util/text.h"
#include "util/xalloc.h"

enum {
	MAX_SIZE = 256 << 20,  /* bytes of a file; a kernel's has 10 million */
	MAX_NAMES = 128 << 20, /* bytes of all names */
	CHUNK = 64 << 10,      /* read at once; a longer line is none of these */
};

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	free(k->entries);
	buf_free(&k->names);
	free(k);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A line of the file, in pieces. */
struct line {
	uint64_t addr;
	char type;
	const char *name, *module;
	size_t name_len, module_len;
};

/* What is behind the name of a module's function. */
static void parse_module(struct line *l, const char *p, const char *end)
{
	const char *bracket;

	while (p < end && (*p == '\t' || *p == ' '))
		p++;
	if (p == end || *p != '[')
		return;
	p++;
	bracket = memchr(p, ']', (size_t)(end - p));
	l->module = p;
	l->module_len = (size_t)((bracket ? bracket : end) - p);
}

/* Address and type; false if it is none of these lines. By hand: of lines there are 200,000. */
static bool parse_start(struct line *l, const char *p, const char *end)
{
	const char *start = p;
	int digit;

	for (l->addr = 0; p < end && (digit = hex_digit(*p)) >= 0; p++)
		l->addr = l->addr << 4 | (unsigned)digit;
	if (p == start || end - p < 4 || p[0] != ' ' || !isalpha((unsigned char)p[1]) ||
	    p[2] != ' ')
		return false;
	l->type = p[1];
	l->name = p + 3;
	return true;
}

static void parse_rest(struct line *l, const char *end)
{
	const char *p = l->name;

	while (p < end && *p != '\t' && *p != ' ')
		p++;
	l->name_len = (size_t)(p - l->name);
	l->module_len = 0;
	parse_module(l, p, end);
}

static uint32_t add_name(struct kallsyms *k, const char *name, size_t len)
{
	uint32_t at = (uint32_t)k->names.len;

	buf_add(&k->names, name, len);
	buf_add(&k->names, "", 1);
	return at;
}

/* Functions of one module come one after the other. */
static uint32_t add_module(struct kallsyms *k, const struct line *l)
{
	uint32_t last = k->n ? k->entries[k->n - 1].module : 0;

	if (!l->module_len)
		return 0;
	if (strlen(kallsyms_name(k, last)) == l->module_len &&
	    !memcmp(kallsyms_name(k, last), l->module, l->module_len))
		return last;
	return add_name(k, l->module, l->module_len);
}

static bool is(const struct line *l, const char *name)
{
	return l->name_len == strlen(name) && !memcmp(l->name, name, l->name_len);
}

static void add_entry(struct kallsyms *k, const struct line *l)
{
	struct kallsyms_entry e = {.addr = l->addr, .type = l->type};

	if (!l->name_len || k->names.len > MAX_NAMES)
		return;
	if (!l->module_len && (is(l, "_text") || (!k->text && is(l, "_stext"))))
		k->text = l->addr;
	e.module = add_module(k, l);
	e.name = add_name(k, l->name, l->name_len);
	k->entries = xgrow(k->entries, &k->cap, k->n + 1, sizeof(*k->entries));
	k->entries[k->n++] = e;
}

/* The whole lines of @text; returns how many bytes they are. */
static size_t parse_lines(struct kallsyms *k, const char *text, size_t size, bool *any_address)
{
	const char *p = text, *end;
	struct line l = {0};

	while (k->n < SYMTAB_MAX && (end = memchr(p, '\n', size - (size_t)(p - text)))) {
		if (parse_start(&l, p, end)) {
			*any_address |= l.addr != 0;
			if (strchr("tTwW", l.type)) {
				parse_rest(&l, end);
				add_entry(k, &l);
			}
		}
		p = end + 1;
	}
	return (size_t)(p - text);
}

/* In pieces, of which the names are kept: a file of /proc has no size, and most of it is data. */
static void read_lines(struct kallsyms *k, int fd, bool *any_address)
{
	char *chunk = xmalloc(CHUNK);
	size_t have = 0, all = 0, used;
	ssize_t got;

	while (all < MAX_SIZE && (got = read(fd, chunk + have, CHUNK - have - 1)) > 0) {
		have += (size_t)got;
		all += (size_t)got;
		used = parse_lines(k, chunk, have, any_address);
		have = used || have < CHUNK - 1 ? have - used : 0;
		memmove(chunk, chunk + used, have);
	}
	/* the last line need not end */
	chunk[have] = '\n';
	parse_lines(k, chunk, have + 1, any_address);
	free(chunk);
}

int kallsyms_read(struct kallsyms **out, const char *path, struct vmprof_err *err)
{
	bool any_address = false;
	char shown[512];
	struct kallsyms *k;
	int fd, ret;

	*out = NULL;
	escape_str(shown, sizeof(shown), path);
	fd = open_plain_file(path);
	if (fd < 0)
		return err_sys(err, fd, "cannot open %s", shown);
	k = xcalloc(1, sizeof(*k));
	add_name(k, "", 0);
	read_lines(k, fd, &any_address);
	close(fd);
	if (k->n && any_address) {
		*out = k;
		return 0;
	}
	if (k->n)
		ret = err_set(err, EPERM,
			      "%s has no addresses: the kernel hides them (sysctl "
			      "kernel.kptr_restrict), read it as root",
			      shown);
	else
		ret = err_set(err, EBADMSG, "%s has no symbols in the form of /proc/kallsyms",
			      shown);
	kallsyms_free(k);
	return ret;
}

struct symtab *kallsyms_symtab(const struct kallsyms *k, const char *module, uint64_t base)
{
	struct symtab *t = symtab_new();
	uint32_t yes = UINT32_MAX, no = UINT32_MAX; /* modules that were compared last */

	for (size_t i = 0; i < k->n; i++) {
		const struct kallsyms_entry *e = &k->entries[i];

		if (e->module != yes && e->module != no)
			*(strcmp(kallsyms_name(k, e->module), module) ? &no : &yes) = e->module;
		if (e->addr < base || e->module == no)
			continue;
		symtab_add_name(t, e->addr - base, e->addr - base, kallsyms_name(k, e->name),
				toupper((unsigned char)e->type) == 'W' ? 'w'
				: isupper((unsigned char)e->type)      ? 'g'
								       : 'l');
	}
	symtab_finish(t);
	return t;
}
