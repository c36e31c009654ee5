// SPDX-License-Identifier: GPL-2.0-only
#include "util/text.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "util/hashmap.h"
#include "util/xalloc.h"

/*
 * One UTF-8 character at @s (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
 * Returns its length and code point, 0 if there is none.
 */
static size_t utf8_next(const char *s, uint32_t *cp)
{
	const uint8_t *b = (const uint8_t *)s;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = b[0] < 0x80	     ? 1
		   : b[0] >> 5 == 6  ? 2
		   : b[0] >> 4 == 14 ? 3
		   : b[0] >> 3 == 30 ? 4
				     : 0;

	if (!n)
		return 0;
	*cp = n == 1 ? b[0] : b[0] & (0x7f >> n);
	for (size_t i = 1; i < n; i++) {
		if (b[i] >> 6 != 2)
			return 0;
		*cp = *cp << 6 | (b[i] & 0x3f);
	}
	if (*cp < least[n] || *cp > 0x10ffff || (*cp >= 0xd800 && *cp < 0xe000))
		return 0;
	return n;
}

/* Bidirectional controls reorder what stands around them: as bad as an escape sequence. */
static bool is_bidi_control(uint32_t cp)
{
	return cp == 0x61c || cp == 0x200e || cp == 0x200f || (cp >= 0x202a && cp <= 0x202e) ||
	       (cp >= 0x2066 && cp <= 0x2069);
}

/* The next piece of @s as it may be shown; returns bytes of @s used, *len bytes are in @piece. */
static size_t escape_piece(const char *s, char piece[8], size_t *len)
{
	uint32_t cp;
	size_t n = utf8_next(s, &cp);

	if (!n || cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || is_bidi_control(cp)) {
		*len = (size_t)snprintf(piece, 8, "\\x%02x", (uint8_t)*s);
		return 1;
	}
	memcpy(piece, s, n);
	*len = n;
	return n;
}

char *escape_str(char *out, size_t size, const char *s)
{
	char piece[8];
	size_t o = 0, len;

	while (*s && size) {
		s += escape_piece(s, piece, &len);
		if (len >= size - o)
			break;
		memcpy(out + o, piece, len);
		o += len;
	}
	if (size)
		out[o] = 0;
	return out;
}

const char *strtab_intern_escaped(struct strtab *t, const char *s)
{
	char small[512], *out = small;
	size_t size = xsize_mul(strlen(s), 4) + 1; /* "\\xNN" for each byte */
	const char *text;

	if (size > sizeof(small))
		out = xmalloc(size);
	text = strtab_intern(t, escape_str(out, size, s));
	if (out != small)
		free(out);
	return text;
}

size_t escape_fputs(const char *s, FILE *f)
{
	size_t cols = 0, len;
	char piece[8];

	while (*s) {
		size_t n = escape_piece(s, piece, &len);

		cols += piece[0] == '\\' && len == 4 && n == 1 ? 4 : 1;
		s += n;
		fwrite(piece, 1, len, f);
	}
	return cols;
}

void xml_fputs(const char *s, FILE *f)
{
	uint32_t cp;

	while (*s) {
		size_t n = utf8_next(s, &cp);

		if (!n || (cp < 0x20 && cp != '\t' && cp != '\n') || cp == 0x7f ||
		    (cp >= 0xfffe && cp <= 0xffff) || is_bidi_control(cp)) {
			fputs("\xef\xbf\xbd", f);
			s += n ? n : 1;
			continue;
		}
		switch (cp) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		case '\'':
			fputs("&#39;", f);
			break;
		default:
			fwrite(s, 1, n, f);
		}
		s += n;
	}
}

void json_fputs(const char *s, FILE *f)
{
	uint32_t cp;

	while (*s) {
		size_t n = utf8_next(s, &cp);

		if (!n)
			fputs("\xef\xbf\xbd", f);
		else if (cp == '"' || cp == '\\')
			fprintf(f, "\\%c", (char)cp);
		else if (cp < 0x20 || cp == 0x7f)
			fprintf(f, "\\u%04x", cp);
		else
			fwrite(s, 1, n, f);
		s += n ? n : 1;
	}
}

char *file_safe_name(char *out, size_t size, const char *s)
{
	size_t o = 0;

	for (; *s && o + 1 < size; s++) {
		unsigned char c = (unsigned char)*s;
		bool plain = c < 0x80 && (isalnum(c) || c == '_' || (o && strchr(".+-", c)));

		out[o++] = plain ? (char)c : '_';
	}
	if (!o && size > 1)
		out[o++] = '_';
	if (size)
		out[o] = 0;
	return out;
}

bool text_match(const char *pattern, const char *s)
{
	return strpbrk(pattern, "*?[") ? !fnmatch(pattern, s, 0) : !strcmp(pattern, s);
}

/* Is the element at *@p, up to a comma without a backslash, equal to @s? Leaves *@p at its end. */
static bool element_is(const char **p, const char *s)
{
	bool same = true;

	for (; **p && **p != ','; (*p)++) {
		if ((*p)[0] == '\\' && (*p)[1] == ',')
			(*p)++;
		same = same && **p == *s;
		s += same;
	}
	return same && !*s;
}

bool list_has(const char *list, const char *s)
{
	/* a name with a comma in it, alone */
	if (!strcmp(list, s))
		return true;
	for (const char *p = list;; p++) {
		if (element_is(&p, s))
			return true;
		if (!*p)
			return false;
	}
}

int parse_duration(const char *s, uint64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"m", 6e10}, {"h", 3.6e12}};
	char *end;
	double v;

	if (!isdigit((unsigned char)*s) && *s != '.')
		return -EINVAL;
	v = strtod(s, &end);
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		v *= units[i].ns;
		if (!(v >= 0 && v < 9e18))
			return -EINVAL;
		*ns = (uint64_t)v;
		return 0;
	}
	return -EINVAL;
}

int parse_size(const char *s, uint64_t unit, uint64_t *bytes)
{
	static const char letters[] = "BKMGTPE";
	uint64_t v, mul = unit;
	const char *l;
	char *end;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, 0);
	if (errno)
		return -EINVAL;
	if (*end) {
		l = strchr(letters, toupper((unsigned char)*end));
		if (!l || strcmp(end + 1, "") != 0)
			return -EINVAL;
		mul = 1ull << (10 * (l - letters));
	}
	return __builtin_mul_overflow(v, mul, bytes) ? -EINVAL : 0;
}

void hex_str(char *out, const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sprintf(out + 2 * i, "%02x", b[i]);
	out[2 * n] = 0;
}
