// SPDX-License-Identifier: GPL-2.0-only
/*
 * Private records (vmprof.data(5)): what perf has no records for. Their JSON is hostile.
 */
#include <string.h>
#include <json-c/json.h>

#include "symbolize/session.h"
#include "util/xalloc.h"

enum { MAX_VM_NAME = 200, MAX_JSON_DEPTH = 8, MAX_MARKS = 1024 };

static const char *json_string(struct json_object *o, const char *key, size_t max)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) || !json_object_is_type(v, json_type_string) ||
	    (size_t)json_object_get_string_len(v) > max || !json_object_get_string_len(v))
		return NULL;
	return json_object_get_string(v);
}

static bool json_int32(struct json_object *o, const char *key, int32_t *out)
{
	struct json_object *v;
	int64_t n;

	if (!json_object_object_get_ex(o, key, &v) || !json_object_is_type(v, json_type_int))
		return false;
	n = json_object_get_int64(v);
	if (n < 0 || n > INT32_MAX)
		return false;
	*out = (int32_t)n;
	return true;
}

static void private_vm(struct machine_priv *m, struct json_object *o, const char *text)
{
	struct session *s = m->session;
	const char *name = json_string(o, "name", MAX_VM_NAME);
	const char *uuid = json_string(o, "uuid", MAX_VM_NAME);

	m->m.vm_json = strtab_intern(s->strings, text);
	if (uuid)
		m->m.uuid = strtab_intern(s->strings, uuid);
	if (name) {
		m->m.name = strtab_intern(s->strings, name);
		m->named = true;
	}
}

static void private_stats(struct machine_priv *m, struct json_object *o, const char *text)
{
	m->m.stats_json = strtab_intern(m->session->strings, text);
}

static void private_cgroup(struct machine_priv *m, struct json_object *o, const char *text)
{
	const char *path = json_string(o, "path", PERFDATA_PRIVATE_MAX);
	int32_t pid;

	if (path && json_int32(o, "pid", &pid))
		machine_process(m, pid)->cgroup = strtab_intern(m->session->strings, path);
}

/* Of the file and not of a machine. */
static bool keep_mark(struct session *s, const struct perfdata_record *rec)
{
	const char *word = rec->private.word;

	if (strcmp(word, "merge") != 0 && strcmp(word, "input") != 0)
		return false;
	if (s->nr_marks == MAX_MARKS)
		return true;
	s->marks = xgrow(s->marks, &s->cap_marks, s->nr_marks + 1, sizeof(*s->marks));
	s->marks[s->nr_marks++] = (struct session_mark){
		strtab_intern(s->strings, word), strtab_intern(s->strings, rec->private.json)};
	return true;
}

size_t session_marks(const struct session *s, const struct session_mark **marks)
{
	*marks = s->marks;
	return s->nr_marks;
}

void session_private(struct session *s, const struct perfdata_record *rec)
{
	static const struct {
		const char *word;
		void (*fn)(struct machine_priv *m, struct json_object *o, const char *text);
	} words[] = {{"vm", private_vm}, {"stats", private_stats}, {"cgroup", private_cgroup}};
	struct json_tokener *tok;
	struct json_object *o;
	int32_t pid;

	if (!rec->private.word || !rec->private.json || keep_mark(s, rec))
		return;
	tok = json_tokener_new_ex(MAX_JSON_DEPTH);
	o = tok ? json_tokener_parse_ex(tok, rec->private.json, -1) : NULL;
	if (json_object_is_type(o, json_type_object) && json_int32(o, "machine", &pid) && pid)
		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
			if (!strcmp(rec->private.word, words[i].word))
				words[i].fn(session_guest(s, pid), o, rec->private.json);
	json_object_put(o);
	if (tok)
		json_tokener_free(tok);
}
