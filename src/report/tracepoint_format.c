// SPDX-License-Identifier: GPL-2.0-only
/*
 * Is it the text that a kernel writes (kernel/trace/trace_events.c), line by line? libtraceevent's
 * parser crashes on much that is not.
 */
#if HAVE_LIBTRACEEVENT
#include <ctype.h>
#include <string.h>

#include "report/tracepoint_check.h"

#define FORMAT_MAX    (64u << 10) /* ten times the longest of Linux 6.18 */
#define NESTING_MAX   48
#define OPERATORS_MAX 400 /* in an expression */
#define FIELDS_MAX    1024

struct text {
	const char *p, *end;
};

static bool word(struct text *t, const char *s)
{
	size_t n = strlen(s);

	if ((size_t)(t->end - t->p) < n || memcmp(t->p, s, n))
		return false;
	t->p += n;
	return true;
}

static bool digits(struct text *t)
{
	const char *start = t->p;

	while (t->p < t->end && isdigit((unsigned char)*t->p))
		t->p++;
	return t->p > start && t->p - start < 10;
}

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool name(struct text *t)
{
	const char *start = t->p;

	while (t->p < t->end && (name_char(*t->p) || *t->p == '-' || *t->p == '.'))
		t->p++;
	return t->p > start;
}

/* "unsigned long args[6]": words, of which the last is the name, stars, and arrays. */
static bool declaration(struct text *t)
{
	unsigned words = 0;

	while (t->p < t->end && *t->p != ';') {
		if (name_char(*t->p)) {
			words++;
			while (t->p < t->end && name_char(*t->p))
				t->p++;
		} else if (*t->p == '[') {
			while (t->p + 1 < t->end && name_char(t->p[1]))
				t->p++;
			if (++t->p >= t->end || *t->p++ != ']')
				return false;
		} else if (*t->p++ != ' ' && t->p[-1] != '*') {
			return false;
		}
	}
	return words >= 2;
}

static bool field(struct text *t)
{
	if (!declaration(t) || !word(t, ";\toffset:") || !digits(t) || !word(t, ";\tsize:") ||
	    !digits(t) || !word(t, ";"))
		return false;
	if (word(t, "\tsigned:") && (!digits(t) || !word(t, ";")))
		return false;
	return word(t, "\n");
}

static bool quoted(struct text *t)
{
	char quote = *t->p++;

	for (; t->p < t->end && *t->p != quote; t->p++)
		if (*t->p == '\\')
			t->p++;
	return t->p < t->end;
}

/* The format and its arguments: C, as far as brackets and strings go. */
static bool arguments(struct text *t)
{
	static const char opening[] = "([{", closing[] = ")]}";
	char open[NESTING_MAX];
	unsigned nesting = 0, operators = 0;
	const char *at;

	if (t->p >= t->end || *t->p != '"')
		return false;
	for (; t->p < t->end; t->p++) {
		if (*t->p == '"' || *t->p == '\'') {
			if (!quoted(t))
				return false;
			continue;
		}
		if (!isprint((unsigned char)*t->p) && *t->p != '\n' && *t->p != '\t')
			return false;
		operators += ispunct((unsigned char)*t->p) && *t->p != '_';
		at = strchr(opening, *t->p);
		if (at && nesting == NESTING_MAX)
			return false;
		if (at)
			open[nesting++] = closing[at - opening];
		else if (strchr(closing, *t->p) && (!nesting || open[--nesting] != *t->p))
			return false;
		if (*t->p == ',')
			operators = 0;
		if (operators > OPERATORS_MAX)
			return false;
	}
	return !nesting;
}

bool tracepoint_format_ok(const char *text, size_t size)
{
	struct text t = {text, text + size};

	if (size > FORMAT_MAX || memchr(text, 0, size))
		return false;
	if (!word(&t, "name: ") || !name(&t) || !word(&t, "\nID: ") || !digits(&t) ||
	    !word(&t, "\nformat:\n"))
		return false;
	for (unsigned n = 0; !word(&t, "\nprint fmt: "); n++)
		if (n >= FIELDS_MAX || !(word(&t, "\tfield:") ? field(&t) : word(&t, "\n")))
			return false;
	return arguments(&t);
}
#endif
