// SPDX-License-Identifier: GPL-2.0-only
/*
 * BPF programs that ran when the file was made: BPF_PROG_INFO has the kernel's struct bpf_prog_info
 * of each (linux/bpf.h) with its arrays behind it, whose pointers are offsets there; BPF_BTF the
 * types of which the functions are. Source: perf's util/bpf-utils.h, and the kernel's
 * Documentation/bpf/btf.rst.
 */
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata/reader_impl.h"
#include "util/text.h"

#define STEPS_MAX 10000000u /* over types, for names of all programs: beyond, they have none */

/* Bits of what follows a program. */
enum { JITED_KSYMS = 3, JITED_FUNC_LENS = 4, FUNC_INFO = 5, PROG_TAGS = 8 };

struct program {
	struct bpf_prog_info info;
	uint64_t arrays; /* which of them there are */
	const uint8_t *data;
	uint32_t size;
};

struct btf {
	const uint8_t *types, *types_end;
	const char *strings;
	uint32_t strings_size;
};

/* ------------------------------------------------------------------ types */

/* Bytes behind a struct btf_type; more than there can be: no such kind. */
static uint64_t type_tail(const struct btf_type *t)
{
	static const struct {
		uint8_t each, fixed;
	} tails[] = {
		[BTF_KIND_INT] = {0, 4},      [BTF_KIND_ARRAY] = {0, 12},
		[BTF_KIND_STRUCT] = {12, 0},  [BTF_KIND_UNION] = {12, 0},
		[BTF_KIND_ENUM] = {8, 0},     [BTF_KIND_FUNC_PROTO] = {8, 0},
		[BTF_KIND_VAR] = {0, 4},      [BTF_KIND_DATASEC] = {12, 0},
		[BTF_KIND_DECL_TAG] = {0, 4}, [BTF_KIND_TYPE_TAG] = {0, 0},
		[BTF_KIND_ENUM64] = {12, 0},
	};
	uint32_t kind = BTF_INFO_KIND(t->info);

	if (kind >= sizeof(tails) / sizeof(*tails))
		return UINT64_MAX;
	return (uint64_t)BTF_INFO_VLEN(t->info) * tails[kind].each + tails[kind].fixed;
}

static bool btf_open(struct btf *b, const uint8_t *data, uint32_t size)
{
	struct btf_header h;
	const uint8_t *body;
	uint64_t left;

	if (size < sizeof(h))
		return false;
	memcpy(&h, data, sizeof(h));
	if (h.magic != BTF_MAGIC || h.hdr_len < sizeof(h) || h.hdr_len > size)
		return false;
	body = data + h.hdr_len;
	left = size - h.hdr_len;
	if ((uint64_t)h.type_off + h.type_len > left || (uint64_t)h.str_off + h.str_len > left)
		return false;
	*b = (struct btf){body + h.type_off, body + h.type_off + h.type_len,
			  (const char *)body + h.str_off, h.str_len};
	return b->strings_size && !b->strings[b->strings_size - 1];
}

/* The types have numbers from 1 on. NULL: there is none, or it has no name. */
static const char *type_name(const struct btf *b, uint32_t id, uint32_t *budget)
{
	struct btf_type t;

	for (const uint8_t *p = b->types; id && *budget; id--, (*budget)--) {
		uint64_t left = (uint64_t)(b->types_end - p), tail;

		if (left < sizeof(t))
			return NULL;
		memcpy(&t, p, sizeof(t));
		if (id == 1)
			return t.name_off < b->strings_size ? b->strings + t.name_off : NULL;
		tail = type_tail(&t);
		if (tail > left - sizeof(t))
			return NULL;
		p += sizeof(t) + tail;
	}
	return NULL;
}

/* One of BPF_BTF: 0 at the end. */
static bool next_btf(struct feature_cursor *c, uint32_t *id, const uint8_t **data, uint32_t *size)
{
	*id = feature_u32(c);
	*size = feature_u32(c);
	*data = feature_bytes(c, *size);
	return !c->bad;
}

static bool find_btf(const struct perfdata_reader *r, uint32_t wanted, uint32_t *budget,
		     struct btf *b)
{
	struct feature_cursor c;
	const uint8_t *data;
	uint32_t id, size;

	if (!wanted || !feature_open(r, PERFDATA_FEAT_BPF_BTF, &c))
		return false;
	for (uint32_t n = feature_u32(&c); n && *budget && next_btf(&c, &id, &data, &size);
	     n--, (*budget)--)
		if (id == wanted)
			return btf_open(b, data, size);
	return false;
}

/* ------------------------------------------------------------------ programs */

static bool next_program(struct feature_cursor *c, struct program *p)
{
	uint32_t info_size = feature_u32(c);
	const uint8_t *info;

	p->size = feature_u32(c);
	p->arrays = feature_u64(c);
	info = feature_bytes(c, info_size);
	p->data = feature_bytes(c, p->size);
	if (c->bad)
		return false;
	memset(&p->info, 0, sizeof(p->info));
	memcpy(&p->info, info, info_size < sizeof(p->info) ? info_size : sizeof(p->info));
	return true;
}

/* Element @i of an array, copied to @out; false: it is not there. */
static bool element(const struct program *p, int array, uint64_t offset, uint64_t each, uint32_t i,
		    void *out, size_t size)
{
	if (!(p->arrays >> array & 1) || each < size || offset > p->size ||
	    (i + 1ull) * each > p->size - offset)
		return false;
	memcpy(out, p->data + offset + i * each, size);
	return true;
}

/* As perf calls it where it is a symbol. */
static void print_name(const struct program *p, const struct btf *types, uint32_t i,
		       const uint8_t tag[BPF_TAG_SIZE], uint32_t *budget, FILE *f)
{
	char hex[2 * BPF_TAG_SIZE + 1], own[BPF_OBJ_NAME_LEN + 1] = "";
	struct bpf_func_info func;
	const char *name = NULL;

	hex_str(hex, tag, BPF_TAG_SIZE);
	memcpy(own, p->info.name, BPF_OBJ_NAME_LEN);
	if (types) {
		if (element(p, FUNC_INFO, p->info.func_info, p->info.func_info_rec_size, i, &func,
			    sizeof(func)))
			name = type_name(types, func.type_id, budget);
	} else if (p->info.nr_jited_ksyms == 1) {
		name = *own ? own : NULL;
	} else {
		name = "F";
	}
	fprintf(f, "bpf_prog_%s%s", hex, name ? "_" : "");
	escape_fputs(name ? name : "", f);
}

static bool print_function(const struct program *p, const struct btf *types, uint32_t i,
			   uint32_t *budget, FILE *f)
{
	const struct bpf_prog_info *info = &p->info;
	uint8_t tag[BPF_TAG_SIZE];
	uint64_t addr;
	uint32_t len;

	if (!element(p, JITED_KSYMS, info->jited_ksyms, sizeof(addr), i, &addr, sizeof(addr)) ||
	    !element(p, JITED_FUNC_LENS, info->jited_func_lens, sizeof(len), i, &len,
		     sizeof(len)) ||
	    !element(p, PROG_TAGS, info->prog_tags, sizeof(tag), i, tag, sizeof(tag)))
		return false;
	if (info->nr_jited_ksyms == 1)
		fprintf(f, "# bpf_prog_info %u: ", info->id);
	else
		fprintf(f, "# \tsub_prog %u: ", i);
	print_name(p, types, i, tag, budget, f);
	fprintf(f, " addr 0x%" PRIx64 " size %u\n", addr, len);
	return true;
}

static void print_program(const struct perfdata_reader *r, const struct program *p,
			  uint32_t *budget, FILE *f)
{
	uint32_t n = p->info.nr_jited_ksyms;
	struct btf types;
	bool typed;

	if (n != p->info.nr_prog_tags || n != p->info.nr_jited_func_lens)
		return;
	typed = find_btf(r, p->info.btf_id, budget, &types);
	if (n != 1)
		fprintf(f, "# bpf_prog_info %u:\n", p->info.id);
	for (uint32_t i = 0; i < n; i++)
		if (!print_function(p, typed ? &types : NULL, i, budget, f))
			break;
}

/* Like perf, nothing of a machine of the other byte order. */
void feature_print_bpf_prog_info(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	uint32_t n = feature_u32(c), budget = STEPS_MAX;
	struct program p;

	for (; !c->swap && n && next_program(c, &p); n--)
		print_program(r, &p, &budget, f);
}

void feature_print_bpf_btf(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f)
{
	uint32_t n = feature_u32(c), id, size;
	const uint8_t *data;

	for (; n && next_btf(c, &id, &data, &size); n--)
		fprintf(f, "# btf info of id %u\n", id);
}
