// SPDX-License-Identifier: GPL-2.0-only
#include "guest/btf.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/hashmap.h"
#include "util/xalloc.h"

#define BTF_MAGIC 0xeb9f

enum { MAX_NESTING = 16, MAX_ALIASES = 32, MAX_STEPS = 100000 };
enum { MAX_TYPES = 1 << 20, MAX_NAME = 512 };

enum kind {
	KIND_ARRAY = 3,
	KIND_STRUCT = 4,
	KIND_UNION = 5,
	KIND_ENUM = 6,
	KIND_TYPEDEF = 8,
	KIND_VOLATILE = 9,
	KIND_CONST = 10,
	KIND_RESTRICT = 11,
	KIND_TYPE_TAG = 18,
	KIND_ENUM64 = 19,
	KIND_COUNT
};

/* What follows the 12 bytes of a type: so much, and so much for each of vlen. */
static const struct {
	bool known;
	uint8_t fixed, each;
} kinds[KIND_COUNT] = {
	[1] = {true, 4, 0}, /* INT */
	[2] = {true, 0, 0}, /* PTR */
	[KIND_ARRAY] = {true, 12, 0},
	[KIND_STRUCT] = {true, 0, 12},
	[KIND_UNION] = {true, 0, 12},
	[KIND_ENUM] = {true, 0, 8},
	[7] = {true, 0, 0}, /* FWD */
	[KIND_TYPEDEF] = {true, 0, 0},
	[KIND_VOLATILE] = {true, 0, 0},
	[KIND_CONST] = {true, 0, 0},
	[KIND_RESTRICT] = {true, 0, 0},
	[12] = {true, 0, 0},  /* FUNC */
	[13] = {true, 0, 8},  /* FUNC_PROTO */
	[14] = {true, 4, 0},  /* VAR */
	[15] = {true, 0, 12}, /* DATASEC */
	[16] = {true, 0, 0},  /* FLOAT */
	[17] = {true, 4, 0},  /* DECL_TAG */
	[KIND_TYPE_TAG] = {true, 0, 0},
	[KIND_ENUM64] = {true, 0, 12},
};

struct header {
	uint16_t magic;
	uint8_t version, flags;
	uint32_t hdr_len, type_off, type_len, str_off, str_len;
};

struct type {
	uint32_t name, info, size_or_type;
};

struct member {
	uint32_t name, type, offset;
};

struct btf {
	uint8_t *data;
	const uint8_t *types;
	const char *strs; /* NUL-terminated as a whole */
	uint32_t types_len, strs_len;
	uint32_t *offs; /* of type ids 1.. in types, at [id - 1] */
	size_t n, cap;
	uint32_t *by_name; /* ids of structs, unions and typedefs; 0 empty */
	size_t mask;
};

static struct type get_type(const struct btf *b, uint32_t id)
{
	struct type t = {0};

	if (id && id <= b->n)
		memcpy(&t, b->types + b->offs[id - 1], sizeof(t));
	return t;
}

static uint32_t kind_of(struct type t)
{
	return t.info >> 24 & 0x1f;
}

static uint32_t vlen_of(struct type t)
{
	return t.info & 0xffff;
}

/* What stands behind the type: members, enumerators, array. All of it was checked to be there. */
static const uint8_t *body(const struct btf *b, uint32_t id)
{
	return b->types + b->offs[id - 1] + sizeof(struct type);
}

/* Names may overlap, so that without a limit a blob could make each as long as itself. */
static const char *str(const struct btf *b, uint32_t off)
{
	size_t room = off < b->strs_len ? b->strs_len - off : 0;

	room = room < MAX_NAME ? room : MAX_NAME;
	return room && memchr(b->strs + off, 0, room) ? b->strs + off : "";
}

static void index_types(struct btf *b)
{
	uint32_t off = 0;

	while (b->types_len - off >= sizeof(struct type) && b->n < MAX_TYPES) {
		struct type t;
		uint64_t size = sizeof(t);

		memcpy(&t, b->types + off, sizeof(t));
		if (kind_of(t) >= KIND_COUNT || !kinds[kind_of(t)].known)
			break;
		size += kinds[kind_of(t)].fixed + (uint64_t)kinds[kind_of(t)].each * vlen_of(t);
		if (size > b->types_len - off)
			break;
		b->offs = xgrow(b->offs, &b->cap, b->n + 1, sizeof(*b->offs));
		b->offs[b->n++] = off;
		off += (uint32_t)size;
	}
}

static bool is_compound(uint32_t kind)
{
	return kind == KIND_STRUCT || kind == KIND_UNION;
}

/* A struct or union comes before a typedef of the same name, and the first one before others. */
static uint32_t *slot(const struct btf *b, const char *name, bool compound)
{
	size_t i = hash_bytes(name, strlen(name)) & b->mask;

	for (; b->by_name[i]; i = (i + 1) & b->mask) {
		struct type t = get_type(b, b->by_name[i]);

		if (is_compound(kind_of(t)) == compound && !strcmp(str(b, t.name), name))
			break;
	}
	return &b->by_name[i];
}

static void index_names(struct btf *b)
{
	size_t named = 0, slots = 16;

	for (uint32_t id = 1; id <= b->n; id++) {
		uint32_t kind = kind_of(get_type(b, id));

		named += is_compound(kind) || kind == KIND_TYPEDEF;
	}
	while (slots < named * 2)
		slots *= 2;
	b->mask = slots - 1;
	b->by_name = xcalloc(slots, sizeof(*b->by_name));
	for (uint32_t id = 1; id <= b->n; id++) {
		struct type t = get_type(b, id);
		uint32_t *s;

		if ((!is_compound(kind_of(t)) && kind_of(t) != KIND_TYPEDEF) || !*str(b, t.name))
			continue;
		s = slot(b, str(b, t.name), is_compound(kind_of(t)));
		if (!*s)
			*s = id;
	}
}

size_t btf_length(const uint8_t *data)
{
	struct header h;
	uint64_t end;

	_Static_assert(sizeof(h) == BTF_HEADER_LEN, "as the format has it");
	memcpy(&h, data, sizeof(h));
	if (h.magic != BTF_MAGIC || h.version != 1 || h.hdr_len < sizeof(h) ||
	    h.str_off < h.type_len || !h.str_len)
		return 0;
	end = (uint64_t)h.hdr_len + h.str_off + h.str_len;
	return end <= BTF_MAX_SIZE ? end : 0;
}

struct btf *btf_new(uint8_t *data, size_t len)
{
	struct btf *b = xcalloc(1, sizeof(*b));
	struct header h;

	b->data = data;
	if (len < sizeof(h) || len > BTF_MAX_SIZE)
		goto bad;
	memcpy(&h, data, sizeof(h));
	if (h.magic != BTF_MAGIC || h.version != 1 || h.hdr_len < sizeof(h) || h.hdr_len > len)
		goto bad;
	len -= h.hdr_len;
	if (h.type_off > len || h.type_len > len - h.type_off || h.str_off > len || !h.str_len ||
	    h.str_len > len - h.str_off)
		goto bad;
	b->types = data + h.hdr_len + h.type_off;
	b->types_len = h.type_len;
	b->strs = (const char *)data + h.hdr_len + h.str_off;
	b->strs_len = h.str_len;
	if (b->strs[b->strs_len - 1])
		goto bad;
	index_types(b);
	index_names(b);
	return b;
bad:
	btf_free(b);
	return NULL;
}

void btf_free(struct btf *b)
{
	if (!b)
		return;
	free(b->data);
	free(b->offs);
	free(b->by_name);
	free(b);
}

/* Through typedefs, qualifiers, tags and (if @arrays) to the element; 0 if there is no end. */
static uint32_t strip(const struct btf *b, uint32_t id, bool arrays)
{
	for (int i = 0; i < MAX_ALIASES; i++) {
		struct type t = get_type(b, id);

		switch (kind_of(t)) {
		case KIND_TYPEDEF:
		case KIND_VOLATILE:
		case KIND_CONST:
		case KIND_RESTRICT:
		case KIND_TYPE_TAG:
			id = t.size_or_type;
			break;
		case KIND_ARRAY:
			if (!arrays)
				return id;
			memcpy(&id, body(b, id), sizeof(id));
			break;
		default:
			return id;
		}
	}
	return 0;
}

static uint32_t find_type(const struct btf *b, const char *name)
{
	uint32_t id = *slot(b, name, true);

	return id ? id : strip(b, *slot(b, name, false), false);
}

/*
 * Offset of the member in bytes, and its type; -ENOENT. @steps bounds what a blob can cost whose
 * unnamed members form a tree with many branches.
 */
static int64_t find_member(const struct btf *b, uint32_t id, const char *name, size_t len,
			   uint32_t *type, int depth, int *steps)
{
	struct type t;

	id = strip(b, id, true);
	t = get_type(b, id);
	if (!is_compound(kind_of(t)) || depth > MAX_NESTING)
		return -ENOENT;
	for (uint32_t i = 0; i < vlen_of(t); i++) {
		struct member m;
		const char *s;
		int64_t off;

		if (--*steps < 0)
			return -ENOENT;
		memcpy(&m, body(b, id) + i * sizeof(m), sizeof(m));
		if (t.info >> 31) /* bits 24..31 are the size of a bit field */
			m.offset &= 0xffffff;
		s = str(b, m.name);
		if (!strncmp(s, name, len) && !s[len]) {
			*type = m.type;
			return m.offset / 8;
		}
		if (*s)
			continue;
		off = find_member(b, m.type, name, len, type, depth + 1, steps);
		if (off >= 0)
			return off + m.offset / 8;
	}
	return -ENOENT;
}

int btf_member(const struct btf *b, const char *type, const char *member)
{
	uint32_t id = find_type(b, type);
	int steps = MAX_STEPS;
	int64_t off = 0;

	for (;;) {
		size_t len = strcspn(member, ".");
		int64_t o = len ? find_member(b, id, member, len, &id, 0, &steps) : -ENOENT;

		if (o < 0 || (off += o) > INT_MAX)
			return -ENOENT;
		if (!member[len])
			return (int)off;
		member += len + 1;
	}
}

int btf_sizeof(const struct btf *b, const char *type)
{
	struct type t = get_type(b, find_type(b, type));

	return is_compound(kind_of(t)) && t.size_or_type <= INT_MAX ? (int)t.size_or_type : -ENOENT;
}

int btf_enum(const struct btf *b, const char *enumerator, int64_t *value)
{
	for (uint32_t id = 1; id <= b->n; id++) {
		struct type t = get_type(b, id);
		uint32_t kind = kind_of(t);

		if (kind != KIND_ENUM && kind != KIND_ENUM64)
			continue;
		for (uint32_t i = 0; i < vlen_of(t); i++) {
			const uint8_t *p = body(b, id) + i * kinds[kind].each;
			uint32_t v[3] = {0};

			memcpy(v, p, kinds[kind].each);
			if (strcmp(str(b, v[0]), enumerator))
				continue;
			if (kind == KIND_ENUM64)
				*value = (int64_t)((uint64_t)v[2] << 32 | v[1]);
			else if (t.info >> 31) /* signed */
				*value = (int32_t)v[1];
			else
				*value = v[1];
			return 0;
		}
	}
	return -ENOENT;
}
