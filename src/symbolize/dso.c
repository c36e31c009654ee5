// SPDX-License-Identifier: GPL-2.0-only
/*
 * DSOs: one a machine, path and build id, with perf's short names.
 */
#include <stdlib.h>
#include <string.h>

#include "symbolize/session.h"
#include "util/buf.h"
#include "util/idhash.h"
#include "util/xalloc.h"

/* A line of the BUILD_ID feature. */
struct header_build_id {
	struct header_build_id *next; /* same hash */
	int32_t machine_pid;	      /* -1 host */
	uint8_t id[20];
	uint32_t len;
	const char *name; /* interned */
};

static uint64_t name_hash(int32_t machine_pid, const char *name)
{
	return hash_u64(hash_bytes(name, strlen(name)) ^ (uint32_t)machine_pid);
}

static const struct header_build_id *find_build_id(struct session *s, int32_t machine_pid,
						   const char *name)
{
	struct header_build_id *b = hashmap_get(&s->build_ids, name_hash(machine_pid, name));

	while (b && (b->machine_pid != machine_pid || strcmp(b->name, name) != 0))
		b = b->next;
	return b;
}

static void set_build_id(struct dso *dso, const uint8_t *id, uint32_t len)
{
	dso->build_id_len = len < sizeof(dso->build_id) ? len : sizeof(dso->build_id);
	memcpy(dso->build_id, id, dso->build_id_len);
}

void session_add_build_id(struct session *s, const struct perfdata_reader_build_id *id)
{
	uint8_t mode = id->cpumode & PERF_RECORD_MISC_CPUMODE_MASK;
	bool is_guest =
		mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER;
	int32_t pid = is_guest ? id->pid : -1;
	struct header_build_id *b;
	uint64_t hash;

	if (!id->len || id_is_unknown(id->id, id->len) || !id->filename ||
	    find_build_id(s, pid, id->filename))
		return;
	b = xcalloc(1, sizeof(*b));
	b->machine_pid = pid;
	b->len = id->len < sizeof(b->id) ? id->len : sizeof(b->id);
	memcpy(b->id, id->id, b->len);
	b->name = strtab_intern(s->strings, id->filename);
	hash = name_hash(pid, b->name);
	b->next = hashmap_get(&s->build_ids, hash);
	hashmap_set(&s->build_ids, hash, b);
	for (size_t i = 0; i < s->nr_dsos; i++) {
		struct dso_priv *d = s->dsos[i];

		if (!d->dso.build_id_len && !d->dso.loaded && d->machine->m.pid == pid &&
		    !strcmp(d->dso.long_name, b->name))
			set_build_id(&d->dso, b->id, b->len);
	}
}

void session_free_build_ids(struct session *s)
{
	struct header_build_id *b, *next;

	for (size_t i = 0; (b = hashmap_next(&s->build_ids, &i, NULL));)
		for (; b; b = next) {
			next = b->next;
			free(b);
		}
	hashmap_free(&s->build_ids);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* "[kernel.kallsyms]_text" is known by what is in brackets. */
static const char *kernel_name(struct session *s, const char *name)
{
	const char *end = strchr(name, ']');

	return *name == '[' && end ? strtab_intern_n(s->strings, name, (size_t)(end - name) + 1)
				   : name;
}

/* "/lib/modules/.../virtio-net.ko.xz" is "[virtio_net]"; what is in brackets already stays. */
static const char *module_name(struct session *s, const char *long_name)
{
	const char *base = base_name(long_name), *ko = strstr(base, ".ko"), *shown;
	struct buf b = {0};

	if (*base == '[')
		return base;
	if (ko && ko > base)
		buf_printf(&b, "[%.*s]", (int)(ko - base), base);
	else
		buf_printf(&b, "%s", base);
	for (size_t i = 0; i < b.len; i++)
		if (b.data[i] == '-')
			b.data[i] = '_';
	shown = strtab_intern_n(s->strings, (const char *)b.data, b.len);
	buf_free(&b);
	return shown;
}

/* "//anon" and its like have no path to take the last part of. */
static const char *short_name(struct session *s, const char *long_name, bool kernel)
{
	char jit[32];

	if (kernel)
		return module_name(s, long_name);
	if (is_perf_map(long_name))
		return strtab_intern(s->strings, jit_name(jit, sizeof(jit), atoi(long_name + 10)));
	return !strncmp(long_name, "//", 2) ? long_name : base_name(long_name);
}

static uint64_t key_hash(const struct machine_priv *m, const struct dso_key *k)
{
	uint64_t h = name_hash(m->m.pid, k->name) + k->kernel;

	return k->build_id_len ? hash_u64(h ^ hash_bytes(k->build_id, k->build_id_len)) : h;
}

static bool is_key(const struct dso_priv *d, const struct machine_priv *m, const struct dso_key *k)
{
	return d->machine == m && d->dso.kernel == k->kernel &&
	       d->dso.build_id_len == k->build_id_len &&
	       !memcmp(d->dso.build_id, k->build_id, k->build_id_len) &&
	       !strcmp(d->dso.long_name, k->name);
}

struct dso_priv *session_dso(struct machine_priv *m, const struct dso_key *key)
{
	struct session *s = m->session;
	const struct header_build_id *b;
	struct dso_key k = *key;
	struct dso_priv *first, *d;
	uint64_t hash;

	if (k.kernel)
		k.name = kernel_name(s, k.name);
	b = find_build_id(s, m->m.pid, k.name);
	if (!k.build_id || !k.build_id_len || id_is_unknown(k.build_id, k.build_id_len)) {
		k.build_id = b ? b->id : (const uint8_t *)"";
		k.build_id_len = b ? b->len : 0;
	}
	if (k.build_id_len > sizeof(d->dso.build_id))
		k.build_id_len = sizeof(d->dso.build_id);
	hash = key_hash(m, &k);
	first = hashmap_get(&s->dso_by_key, hash);
	for (d = first; d; d = d->next)
		if (is_key(d, m, &k))
			return d;
	d = xcalloc(1, sizeof(*d));
	d->machine = m;
	d->next = first;
	d->dso.index = (uint32_t)s->nr_dsos;
	d->dso.long_name = strtab_intern(s->strings, k.name);
	d->dso.short_name = short_name(s, d->dso.long_name, k.kernel);
	/* perf knows modules by their paths only if the header has them */
	d->dso.name = k.kernel && !b ? d->dso.short_name : d->dso.long_name;
	d->dso.kernel = k.kernel;
	d->dso.symbol_source = "not looked for";
	set_build_id(&d->dso, k.build_id, k.build_id_len);
	hashmap_set(&s->dso_by_key, hash, d);
	s->dsos = xgrow(s->dsos, &s->cap_dsos, s->nr_dsos + 1, sizeof(*s->dsos));
	s->dsos[s->nr_dsos++] = d;
	return d;
}

struct dso *session_host_dso(struct session *s, const char *path)
{
	const struct dso_key key = {.name = path};

	return &session_dso(s->machines[0], &key)->dso;
}

const struct machine *session_dso_machine(const struct dso *dso)
{
	return &((const struct dso_priv *)dso)->machine->m;
}

void dso_set_symbol(struct dso_priv *d, uint64_t len)
{
	struct symtab *t = d->dso.symtab;

	if (!d->is_symbol) {
		if (d->dso.loaded) /* the name is another DSO's */
			return;
		d->is_symbol = d->dso.loaded = true;
		d->dso.symtab = t = symtab_new();
		symtab_add(t, 0, len, d->dso.long_name, 'g');
		symtab_finish(t);
		session_keep_table(d->machine->session, t);
		d->dso.symbol_source = "a record of the profile";
	}
	if (len > t->syms[0].end)
		t->syms[0].end = len;
}

void dso_free(struct dso_priv *d)
{
	free(d->cache);
	dso_cfi_free(d->cfi);
	dso_source_free(d->source);
	free(d);
}

const struct symbol *dso_find_symbol(struct dso_priv *d, uint64_t offset)
{
	struct symbol_cache *c;
	size_t i;

	if (!d->dso.loaded)
		dso_load(d);
	if (!d->dso.symtab)
		return NULL;
	if (!d->cache)
		d->cache = xcalloc(1, sizeof(*d->cache));
	c = d->cache;
	i = (offset ^ offset >> 10) & (SYMBOL_CACHE - 1);
	if (!c->used[i] || c->offset[i] != offset) {
		c->used[i] = true;
		c->offset[i] = offset;
		c->sym[i] = symtab_find(d->dso.symtab, offset);
	}
	return c->sym[i];
}
