// SPDX-License-Identifier: GPL-2.0-only
#include <ctype.h>
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "util/xalloc.h"
#include "vm/qemu.h"

/* -object and -device also come as JSON; libvirt writes them so. */
static char *json_get(const char *text, const char *key)
{
	struct json_tokener *tok = json_tokener_new_ex(16);
	struct json_object *obj = tok ? json_tokener_parse_ex(tok, text, (int)strlen(text)) : NULL;
	struct json_object *v;
	char *out = NULL;

	if (json_object_is_type(obj, json_type_object) && json_object_object_get_ex(obj, key, &v)) {
		if (json_object_is_type(v, json_type_boolean))
			out = xstrdup(json_object_get_boolean(v) ? "on" : "off");
		else if (json_object_get_string(v))
			out = xstrdup(json_object_get_string(v));
	}
	json_object_put(obj);
	if (tok)
		json_tokener_free(tok);
	return out;
}

/* Length of the element at @s: up to a comma that is not doubled. */
static size_t element_len(const char *s)
{
	size_t n = 0;

	while (s[n] && (s[n] != ',' || s[n + 1] == ','))
		n += s[n] == ',' ? 2 : 1;
	return n;
}

/* @n bytes at @s with doubled commas made single. */
static char *unescape(const char *s, size_t n)
{
	char *out = xmalloc(n + 1);
	size_t o = 0;

	for (size_t i = 0; i < n; i++) {
		out[o++] = s[i];
		if (s[i] == ',')
			i++;
	}
	out[o] = 0;
	return out;
}

static bool is_key(const char *s, size_t n, const char *key)
{
	return strlen(key) == n && !memcmp(s, key, n);
}

char *qemu_opts_get(const char *opts, const char *implied, const char *key)
{
	char *out = NULL;

	if (opts[0] == '{')
		return json_get(opts, key);
	for (const char *s = opts; *s;) {
		size_t n = element_len(s), k = strcspn(s, "=,");
		char *value = NULL;

		if (k < n && s[k] == '=') {
			if (is_key(s, k, key))
				value = unescape(s + k + 1, n - k - 1);
		} else if (s == opts && implied) {
			if (!strcmp(implied, key))
				value = unescape(s, n);
		} else if (is_key(s, n, key)) {
			value = xstrdup("on");
		} else if (n > 2 && !memcmp(s, "no", 2) && is_key(s + 2, n - 2, key)) {
			value = xstrdup("off");
		}
		if (value) {
			free(out);
			out = value;
		}
		s += n + (s[n] == ',');
	}
	return out;
}

int qemu_parse_size(const char *s, uint64_t unit, uint64_t *bytes)
{
	static const char letters[] = "BKMGTPE";
	const char *l;
	double v;
	char *end;

	if (!isdigit((unsigned char)*s))
		return -EINVAL;
	v = strtod(s, &end); /* hexadecimal and fractions too, as in QEMU */
	if (*end) {
		l = strchr(letters, toupper((unsigned char)*end));
		if (!l || end[1])
			return -EINVAL;
		unit = 1ull << (10 * (l - letters));
	}
	v *= (double)unit;
	if (!(v >= 0 && v < 0x1p52))
		return -EINVAL;
	*bytes = (uint64_t)v;
	return 0;
}
