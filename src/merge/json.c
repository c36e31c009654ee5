// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "merge/impl.h"
#include "util/saturate.h"

enum { MAX_DEPTH = 8 };

struct json_object *merge_json_parse(const char *text)
{
	struct json_tokener *tok = json_tokener_new_ex(MAX_DEPTH);
	struct json_object *o = tok && text ? json_tokener_parse_ex(tok, text, -1) : NULL;

	if (tok)
		json_tokener_free(tok);
	if (o && !json_object_is_type(o, json_type_object)) {
		json_object_put(o);
		return NULL;
	}
	return o;
}

bool merge_json_int(struct json_object *o, const char *key, int64_t *value)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) || !json_object_is_type(v, json_type_int))
		return false;
	*value = json_object_get_int64(v);
	return true;
}

const char *merge_json_str(struct json_object *o, const char *key)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) || !json_object_is_type(v, json_type_string) ||
	    !json_object_get_string_len(v))
		return NULL;
	return json_object_get_string(v);
}

/* Of bounds the widest holds for all. */
static uint64_t together(const char *key, uint64_t a, uint64_t b)
{
	if (!strcmp(key, "clock_error"))
		return a > b ? a : b;
	add_saturated(&a, b);
	return a;
}

static void add(struct json_object *to, struct json_object *from, bool nested)
{
	json_object_object_foreach(from, key, v)
	{
		struct json_object *old = json_object_object_get(to, key);

		if (json_object_is_type(v, json_type_int)) {
			uint64_t sum = json_object_get_uint64(v);

			if (json_object_is_type(old, json_type_int))
				sum = together(key, sum, json_object_get_uint64(old));
			json_object_object_add(to, key, json_object_new_uint64(sum));
		} else if (json_object_is_type(v, json_type_string)) {
			json_object_object_add(to, key, json_object_get(v));
		} else if (json_object_is_type(v, json_type_object) && !nested) {
			if (!json_object_is_type(old, json_type_object)) {
				old = json_object_new_object();
				json_object_object_add(to, key, old);
			}
			add(old, v, true);
		}
	}
}

void merge_json_add(struct json_object *to, struct json_object *from)
{
	add(to, from, false);
}
