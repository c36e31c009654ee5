// SPDX-License-Identifier: GPL-2.0-only
/* What a merged file says of its making (vmprof.data(5)), as lines of its header. */
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

#include "report/report.h"
#include "util/text.h"

/* "" if there is none. */
static const char *text_of(struct json_object *o, const char *key, char *out, size_t size)
{
	struct json_object *v;

	*out = 0;
	if (json_object_object_get_ex(o, key, &v) && json_object_is_type(v, json_type_string))
		escape_str(out, size, json_object_get_string(v));
	return out;
}

static int64_t number_of(struct json_object *o, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) ? json_object_get_int64(v) : 0;
}

static void print_count(struct json_object *o, const char *key, const char *what, FILE *f)
{
	int64_t n = number_of(o, key);

	if (n > 0)
		fprintf(f, ", %" PRId64 " %s", n, what);
}

static void print_input(struct json_object *o, FILE *f)
{
	char text[256];

	fprintf(f, "# merged from : %s", text_of(o, "file", text, sizeof(text)));
	if (*text_of(o, "in", text, sizeof(text)))
		fprintf(f, " (in %s)", text);
	if (*text_of(o, "vm", text, sizeof(text)))
		fprintf(f, ", recorded in VM %s", text);
	if (*text_of(o, "hostname", text, sizeof(text)))
		fprintf(f, ", host %s", text);
	fprintf(f, ", %s", text_of(o, "clock", text, sizeof(text)));
	fprintf(f, ", %s (%+" PRId64 " ns", text_of(o, "alignment", text, sizeof(text)),
		number_of(o, "offset"));
	if (json_object_object_get_ex(o, "error", NULL))
		fprintf(f, ", within %" PRId64, number_of(o, "error"));
	fputc(')', f);
	print_count(o, "samples", "samples", f);
	print_count(o, "duplicates", "of them left out as duplicates", f);
	print_count(o, "lost", "lost when it was recorded", f);
	print_count(o, "left_out", "records left out", f);
	print_count(o, "damaged", "(damaged)", f);
	fputc('\n', f);
}

static void print_merge(struct json_object *o, FILE *f)
{
	struct json_object *v;
	bool aligned = !json_object_object_get_ex(o, "aligned", &v) || json_object_get_boolean(v);

	fprintf(f, "# merged : %s\n",
		aligned ? "on one clock"
			: "NOT ALIGNED: times of different files cannot be compared");
}

static bool same_text(struct json_object *a, struct json_object *b, const char *key)
{
	char x[256], y[256];

	return !strcmp(text_of(a, key, x, sizeof(x)), text_of(b, key, y, sizeof(y)));
}

/* An input is there at the start, and once more when all was counted. */
static bool comes_again(const struct session_mark *marks, size_t i, size_t n, struct json_object *o)
{
	bool again = false;

	for (size_t k = i + 1; k < n && !again; k++) {
		struct json_object *other =
			strcmp(marks[k].word, "input") ? NULL : json_tokener_parse(marks[k].json);

		again = json_object_is_type(other, json_type_object) &&
			same_text(o, other, "file") && same_text(o, other, "in") &&
			same_text(o, other, "vm");
		json_object_put(other);
	}
	return again;
}

void report_print_origin(const struct session *s, FILE *f)
{
	const struct session_mark *marks;
	size_t n = session_marks(s, &marks);

	for (size_t i = 0; i < n; i++) {
		struct json_object *o = json_tokener_parse(marks[i].json);

		if (json_object_is_type(o, json_type_object)) {
			if (!strcmp(marks[i].word, "merge"))
				print_merge(o, f);
			else if (!comes_again(marks, i, n, o))
				print_input(o, f);
		}
		json_object_put(o);
	}
	if (n)
		fputs("#\n", f);
}
