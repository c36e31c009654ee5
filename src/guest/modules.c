// SPDX-License-Identifier: GPL-2.0-only
/*
 * struct module is read as a whole, once, and its members are taken out of the copy. Members that
 * kernels have under different names are tried in turn: mem[] since 6.4, core_layout before;
 * build_id with CONFIG_STACKTRACE_BUILD_ID, else the note that notes_attrs leads to.
 */
#include "guest/modules.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "guest/notes.h"
#include "util/clock.h"
#include "util/hashmap.h"
#include "util/xalloc.h"

enum { MAX_MODULES = 4096, MAX_STRUCT = 16384, MAX_SYMBOLS = 262144, MAX_NOTES = 32 };
enum { NAME_LEN = sizeof(((struct guest_module *)0)->name) }; /* MODULE_NAME_LEN */
enum { STATE_UNFORMED = 3 }; /* enum module_state: not laid out yet */

#define MAX_STRINGS (16u << 20)
#define MAX_TEXT    (1ull << 30)

/* Offsets of members; -ENOENT where this kernel has none. */
struct layout {
	int size;
	int list, state, name, kallsyms, build_id, notes_attrs;
	int text, text_len; /* of the text inside struct module */
	int num_orcs, orc_ip, orc;
	int symtab, num_symtab, strtab, typetab;    /* of struct mod_kallsyms */
	int notes, attrs;			    /* of struct module_notes_attrs */
	int attr_size, attr_name, attr_len, attr_p; /* of struct bin_attribute */
};

struct module {
	struct guest_module pub;
	uint64_t addr; /* of struct module */
	uint64_t kallsyms;
	bool seen;
};

struct modules {
	struct guest_virt *v;
	struct guest_as as;
	uint64_t head, read_at;
	struct layout l;
	struct module **mods; /* by address of text */
	size_t n, cap;
	struct hashmap by_addr;
	uint32_t next_id;
	uint8_t buf[MAX_STRUCT];
};

/* Where members are; the alternative is another version's name. */
static const struct {
	size_t at; /* of the int in struct layout */
	const char *type, *member, *alternative;
} members[] = {
#define EITHER(type, member, alt, to)                                                              \
	{                                                                                          \
		offsetof(struct layout, to), type, member, alt                                     \
	}
#define MEMBER(type, member, to) EITHER(type, member, NULL, to)
	MEMBER("module", "list", list),
	MEMBER("module", "state", state),
	MEMBER("module", "name", name),
	MEMBER("module", "kallsyms", kallsyms),
	MEMBER("module", "build_id", build_id),
	MEMBER("module", "notes_attrs", notes_attrs),
	EITHER("module", "mem.base", "core_layout.base", text),
	EITHER("module", "mem.size", "core_layout.text_size", text_len),
	MEMBER("module", "arch.num_orcs", num_orcs),
	MEMBER("module", "arch.orc_unwind_ip", orc_ip),
	MEMBER("module", "arch.orc_unwind", orc),
	MEMBER("mod_kallsyms", "symtab", symtab),
	MEMBER("mod_kallsyms", "num_symtab", num_symtab),
	MEMBER("mod_kallsyms", "strtab", strtab),
	MEMBER("mod_kallsyms", "typetab", typetab),
	MEMBER("module_notes_attrs", "notes", notes),
	MEMBER("module_notes_attrs", "attrs", attrs),
	MEMBER("bin_attribute", "attr.name", attr_name),
	MEMBER("bin_attribute", "size", attr_len),
	MEMBER("bin_attribute", "private", attr_p),
};

static bool find_layout(struct layout *l, const struct btf *b)
{
	int64_t text_index = 0;
	int element = btf_sizeof(b, "module_memory");

	l->size = btf_sizeof(b, "module");
	l->attr_size = btf_sizeof(b, "bin_attribute");
	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
		int *to = (int *)((char *)l + members[i].at);

		*to = btf_member(b, members[i].type, members[i].member);
		if (*to < 0 && members[i].alternative)
			*to = btf_member(b, members[i].type, members[i].alternative);
	}
	/* Kernels before 4.5 have the text in struct module itself; they have no BTF either. */
	if (l->text >= 0 && element > 0 && element <= MAX_STRUCT &&
	    !btf_enum(b, "MOD_TEXT", &text_index) && text_index >= 0 && text_index < 16) {
		l->text += (int)text_index * element;
		l->text_len += (int)text_index * element;
	}
	return l->size >= NAME_LEN && l->size <= MAX_STRUCT && l->list >= 0 && l->name >= 0 &&
	       l->name <= l->size - NAME_LEN && l->text >= 0 && l->text_len >= 0;
}

struct modules *modules_new(struct guest_virt *v, struct guest_as as, const struct btf *b,
			    uint64_t list)
{
	struct modules *m = xcalloc(1, sizeof(*m));

	m->v = v;
	m->as = as;
	m->head = list;
	m->next_id = 1;
	if (!find_layout(&m->l, b)) {
		modules_free(m);
		return NULL;
	}
	return m;
}

void modules_free(struct modules *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++)
		free(m->mods[i]);
	free(m->mods);
	hashmap_free(&m->by_addr);
	free(m);
}

/* ---------- the list ---------- */

/* A member of the struct module in @m->buf, of @size bytes; 0 where there is none. */
static uint64_t field(const struct modules *m, int off, int size)
{
	uint64_t v = 0;

	if (off >= 0 && off <= m->l.size - size)
		memcpy(&v, m->buf + off, (size_t)size);
	return v;
}

static uint64_t read_u64(struct modules *m, uint64_t va)
{
	uint64_t v = 0;

	return guest_virt_read(m->v, m->as, va, &v, sizeof(v)) ? 0 : v;
}

/* The notes of a module are binary files in sysfs: each has its address in .private. */
static uint32_t build_id_from_notes(struct modules *m, uint64_t notes, uint8_t id[20])
{
	const struct layout *l = &m->l;
	uint32_t n = MAX_NOTES / 4; /* kernels since 6.14 do not count them */

	if (!notes || l->attrs < 0 || l->attr_size <= 0 || l->attr_name < 0 || l->attr_len < 0 ||
	    l->attr_p < 0)
		return 0;
	if (l->notes >= 0 &&
	    guest_virt_read(m->v, m->as, notes + (uint64_t)l->notes, &n, sizeof(n)))
		return 0;
	for (uint32_t i = 0; i < n && i < MAX_NOTES; i++) {
		uint64_t attr = notes + (uint64_t)l->attrs + (uint64_t)i * (uint64_t)l->attr_size;
		char name[32];

		if (guest_virt_read_str(m->v, m->as, read_u64(m, attr + (uint64_t)l->attr_name),
					name, sizeof(name)) ||
		    strcmp(name, ".note.gnu.build-id"))
			continue;
		return notes_build_id(m->v, m->as, read_u64(m, attr + (uint64_t)l->attr_p),
				      read_u64(m, attr + (uint64_t)l->attr_len), id);
	}
	return 0;
}

static bool has_bytes(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return true;
	return false;
}

static void read_build_id(struct modules *m, struct guest_module *pub)
{
	int off = m->l.build_id;

	if (off >= 0 && off <= m->l.size - 20 && has_bytes(m->buf + off, 20)) {
		memcpy(pub->build_id, m->buf + off, 20);
		pub->build_id_len = 20;
		return;
	}
	pub->build_id_len = build_id_from_notes(m, field(m, m->l.notes_attrs, 8), pub->build_id);
}

static struct module *find_same(struct modules *m, uint64_t addr, const struct guest_module *pub)
{
	struct module *mod = hashmap_get(&m->by_addr, addr);

	if (mod && mod->pub.text == pub->text && mod->pub.text_len == pub->text_len &&
	    !strcmp(mod->pub.name, pub->name))
		return mod;
	return NULL;
}

/* The struct module in @m->buf, which lies at @addr. */
static void take(struct modules *m, uint64_t addr)
{
	struct guest_module pub = {0};
	struct module *mod;

	if (field(m, m->l.state, 4) == STATE_UNFORMED)
		return;
	memcpy(pub.name, m->buf + m->l.name, NAME_LEN - 1);
	pub.text = field(m, m->l.text, 8);
	pub.text_len = field(m, m->l.text_len, 4);
	if (!pub.name[0] || !pub.text || !pub.text_len || pub.text_len > MAX_TEXT ||
	    pub.text + pub.text_len < pub.text)
		return;
	mod = find_same(m, addr, &pub);
	if (!mod) {
		mod = xcalloc(1, sizeof(*mod));
		read_build_id(m, &pub);
		pub.id = m->next_id++;
		mod->pub = pub;
		mod->addr = addr;
		m->mods = xgrow(m->mods, &m->cap, m->n + 1, sizeof(*m->mods));
		m->mods[m->n++] = mod;
		hashmap_set(&m->by_addr, addr, mod);
	}
	/* The tables of init code are dropped when a module has come up. */
	mod->pub.num_orcs = (uint32_t)field(m, m->l.num_orcs, 4);
	mod->pub.orc_ip = mod->pub.num_orcs ? field(m, m->l.orc_ip, 8) : 0;
	mod->pub.orc = mod->pub.num_orcs ? field(m, m->l.orc, 8) : 0;
	mod->kallsyms = field(m, m->l.kallsyms, 8);
	mod->seen = true;
}

static int by_text(const void *a, const void *b)
{
	const struct module *x = *(struct module *const *)a, *y = *(struct module *const *)b;

	if (x->pub.text != y->pub.text)
		return x->pub.text < y->pub.text ? -1 : 1;
	return x->pub.id < y->pub.id ? -1 : x->pub.id > y->pub.id;
}

static void drop_unseen(struct modules *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->n; i++) {
		struct module *mod = m->mods[i];

		if (mod->seen) {
			m->mods[kept++] = mod;
			continue;
		}
		if (hashmap_get(&m->by_addr, mod->addr) == mod)
			hashmap_del(&m->by_addr, mod->addr);
		free(mod);
	}
	m->n = kept;
}

/* False if the list broke off: it changed under the reader, or it is no list. */
static bool walk(struct modules *m)
{
	uint64_t pos = read_u64(m, m->head);

	for (int i = 0; i < MAX_MODULES; i++) {
		uint64_t addr = pos - (uint64_t)m->l.list;

		if (pos == m->head)
			return true;
		if (guest_virt_read(m->v, m->as, addr, m->buf, (size_t)m->l.size))
			return false;
		take(m, addr);
		pos = field(m, m->l.list, 8);
	}
	return false;
}

void modules_refresh(struct modules *m, uint64_t max_age_ns)
{
	uint64_t now = clock_now_ns();

	if (m->read_at && now - m->read_at < max_age_ns)
		return;
	m->read_at = now;
	for (size_t i = 0; i < m->n; i++)
		m->mods[i]->seen = false;
	if (walk(m) || m->n > MAX_MODULES)
		drop_unseen(m);
	if (m->n)
		qsort(m->mods, m->n, sizeof(*m->mods), by_text);
}

size_t modules_count(const struct modules *m)
{
	return m->n;
}

const struct guest_module *modules_nth(const struct modules *m, size_t i)
{
	return i < m->n ? &m->mods[i]->pub : NULL;
}

static const struct module *find_name(const struct modules *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(m->mods[i]->pub.name, name))
			return m->mods[i];
	return NULL;
}

const struct guest_module *modules_by_name(const struct modules *m, const char *name)
{
	const struct module *mod = find_name(m, name);

	return mod ? &mod->pub : NULL;
}

static bool has_addr(const struct module *mod, uint64_t addr)
{
	return addr - mod->pub.text < mod->pub.text_len;
}

const struct guest_module *modules_at(const struct modules *m, uint64_t addr)
{
	size_t lo = 0, hi = m->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->mods[mid]->pub.text <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && has_addr(m->mods[lo - 1], addr) ? &m->mods[lo - 1]->pub : NULL;
}

/* ---------- symbols ---------- */

struct sym_source {
	uint64_t symtab, strtab, typetab;
	uint32_t n;
};

static int read_source(struct modules *m, const struct module *mod, struct sym_source *src)
{
	const struct layout *l = &m->l;
	uint64_t k = mod->kallsyms;

	if (!k || l->symtab < 0 || l->num_symtab < 0 || l->strtab < 0)
		return -ENOENT;
	src->symtab = read_u64(m, k + (uint64_t)l->symtab);
	src->strtab = read_u64(m, k + (uint64_t)l->strtab);
	src->typetab = l->typetab < 0 ? 0 : read_u64(m, k + (uint64_t)l->typetab);
	if (guest_virt_read(m->v, m->as, k + (uint64_t)l->num_symtab, &src->n, sizeof(src->n)))
		return -ENOENT;
	return src->n && src->n <= MAX_SYMBOLS ? 0 : -ENOENT;
}

/* Without a table of types: what the kernel's elf_type() says of text and of other things. */
static char sym_type(const struct module *mod, const Elf64_Sym *s)
{
	char type = has_addr(mod, s->st_value) ? 't' : 'd';

	if (ELF64_ST_BIND(s->st_info) == STB_WEAK)
		return 'w';
	return ELF64_ST_BIND(s->st_info) == STB_GLOBAL ? (char)(type - 'a' + 'A') : type;
}

static void add_symbols(const struct module *mod, const Elf64_Sym *syms, const char *types,
			uint32_t n, const char *strs, size_t strs_len, struct ksyms *out)
{
	for (uint32_t i = 0; i < n; i++) {
		const Elf64_Sym *s = &syms[i];
		size_t room = s->st_name < strs_len ? strs_len - s->st_name : 0;
		size_t len = strnlen(strs + (room ? s->st_name : 0),
				     room < KSYMS_MAX_NAME ? room : KSYMS_MAX_NAME);
		char type = types ? types[i] : sym_type(mod, s);

		if (!room || !len || s->st_shndx == SHN_UNDEF || type == 'U')
			continue;
		if (ksyms_add(out, s->st_value, type, strs + s->st_name, len))
			return;
	}
}

static int load_symbols(struct modules *m, const struct module *mod, struct ksyms *out)
{
	struct sym_source src;
	Elf64_Sym *syms = NULL;
	char *types = NULL, *strs = NULL;
	size_t strs_len = 0;
	int rc = read_source(m, mod, &src);

	if (rc)
		return rc;
	syms = xcalloc(src.n, sizeof(*syms));
	rc = guest_virt_read(m->v, m->as, src.symtab, syms, src.n * sizeof(*syms));
	if (rc)
		goto out;
	if (src.typetab) {
		types = xmalloc(src.n);
		rc = guest_virt_read(m->v, m->as, src.typetab, types, src.n);
		if (rc)
			goto out;
	}
	for (uint32_t i = 0; i < src.n; i++)
		if (syms[i].st_name < MAX_STRINGS && syms[i].st_name >= strs_len)
			strs_len = syms[i].st_name + 1;
	strs_len += KSYMS_MAX_NAME;
	strs = xmalloc(strs_len);
	if (guest_virt_read_sparse(m->v, m->as, src.strtab, strs, strs_len) < 0)
		rc = -ESRCH;
	else
		add_symbols(mod, syms, types, src.n, strs, strs_len, out);
out:
	free(syms);
	free(types);
	free(strs);
	return rc == -EFAULT ? -ENOENT : rc;
}

int modules_symbols(struct modules *m, const char *name, struct ksyms *out)
{
	const struct module *mod = find_name(m, name);
	int rc = mod ? load_symbols(m, mod, out) : -ENOENT;

	if (!rc)
		ksyms_finish(out);
	return rc;
}
