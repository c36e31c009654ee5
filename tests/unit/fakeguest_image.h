// SPDX-License-Identifier: GPL-2.0-only
/*
 * A part of fakeguest.h: symbols and types as the kernel's build puts them into its image.
 */
#ifndef VMPROF_TESTS_UNIT_FAKEGUEST_IMAGE_H
#define VMPROF_TESTS_UNIT_FAKEGUEST_IMAGE_H

/* ---------- kallsyms ---------- */

FG_FUNC int fg_sym_cmp(const void *a, const void *b)
{
	const struct fg_sym *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

FG_FUNC void fg_pad(const struct fakeguest *g, struct buf *b)
{
	buf_zero(b, -b->len & (g->opt.align4 ? 3 : 7));
}

/* Byte 1 stands for "func_"; the others for themselves, if they are printable. */
FG_FUNC void fg_tokens(const struct fakeguest *g, struct buf *b)
{
	uint16_t index[256];
	size_t start;

	fg_pad(g, b);
	start = b->len;
	for (int c = 0; c < 256; c++) {
		index[c] = (uint16_t)(b->len - start);
		if (c == 1)
			buf_add(b, "func_", 5);
		else if (c > ' ' && c < 127)
			buf_add(b, (char[]){(char)c}, 1);
		buf_zero(b, 1);
	}
	fg_pad(g, b);
	buf_add(b, index, sizeof(index));
	fg_pad(g, b);
}

FG_FUNC void fg_name(struct buf *b, const struct fg_sym *s, bool narrow)
{
	char c[300];
	size_t n = 0;

	c[n++] = s->type;
	for (const char *p = s->name; *p; n++) {
		bool token = !strncmp(p, "func_", 5);

		c[n] = token ? 1 : *p;
		p += token ? 5 : 1;
	}
	if (n < 128 || narrow) {
		buf_add(b, (uint8_t[]){(uint8_t)n}, 1);
	} else {
		buf_add(b, (uint8_t[]){(uint8_t)((n & 0x7f) | 0x80), (uint8_t)(n >> 7)}, 2);
	}
	buf_add(b, c, n);
}

FG_FUNC void fg_addresses(struct fakeguest *g, struct buf *b)
{
	fg_pad(g, b);
	for (size_t i = 0; i < g->nsyms; i++) {
		uint64_t addr = g->syms[i].addr;

		uint64_t place = FG_TEXT + g->image_pages * FG_PAGE + b->len;

		if (addr < FG_TEXT && addr > INT32_MAX && g->opt.addresses != FG_ABSOLUTE)
			abort(); /* kallsyms cannot tell that */
		if (g->opt.addresses == FG_ABSOLUTE)
			buf_u64(b, addr);
		else if (g->opt.addresses == FG_PLACE_RELATIVE)
			buf_u32(b, (uint32_t)(addr - place));
		else if (g->opt.addresses == FG_RELATIVE)
			buf_u32(b, (uint32_t)(addr - FG_TEXT));
		else
			buf_u32(b, (uint32_t)(addr < FG_TEXT ? addr : FG_TEXT - 1 - addr));
	}
	fg_pad(g, b);
	if (g->opt.addresses == FG_RELATIVE || g->opt.addresses == FG_RELATIVE_PERCPU)
		buf_u64(b, FG_TEXT);
}

FG_FUNC void fg_kallsyms(struct fakeguest *g, struct buf *b)
{
	uint32_t markers[FG_MAX_SYMS / 256 + 1];
	size_t names, n = 0;

	qsort(g->syms, g->nsyms, sizeof(*g->syms), fg_sym_cmp);
	if (g->opt.old_order)
		fg_addresses(g, b);
	buf_u32(b, (uint32_t)g->nsyms);
	fg_pad(g, b);
	names = b->len;
	for (size_t i = 0; i < g->nsyms; i++) {
		if (i % 256 == 0)
			markers[n++] = (uint32_t)(b->len - names);
		fg_name(b, &g->syms[i], g->opt.narrow);
	}
	fg_pad(g, b);
	for (size_t i = 0; i < n; i++) {
		buf_u32(b, markers[i]);
		if (g->opt.markers64)
			buf_u32(b, 0);
	}
	fg_pad(g, b);
	for (size_t i = 0; g->opt.seqs && i < g->nsyms; i++)
		buf_add(b, (uint8_t[]){0, (uint8_t)(i >> 8), (uint8_t)i}, 3);
	fg_tokens(g, b);
	if (!g->opt.old_order)
		fg_addresses(g, b);
}

/* ---------- BTF ---------- */

FG_FUNC uint32_t fg_str(struct buf *strs, const char *s)
{
	uint32_t off = (uint32_t)strs->len;

	if (!*s)
		return 0;
	buf_add(strs, s, strlen(s) + 1);
	return off;
}

FG_FUNC void fg_type(struct buf *b, uint32_t name, uint32_t kind, uint32_t vlen, uint32_t size)
{
	buf_u32(b, name);
	buf_u32(b, kind << 24 | vlen);
	buf_u32(b, size);
}

/* Ids: 1 long, 2 pointer, 3.. the structs, and behind them an array of each. */
FG_FUNC uint32_t fg_type_id(struct fakeguest *g, const char *type)
{
	size_t len = strcspn(type, "[");

	if (!*type)
		return 1;
	if (*type == '*')
		return 2;
	for (size_t i = 0; i < g->nstructs; i++)
		if (!strncmp(g->structs[i].name, type, len) && !g->structs[i].name[len])
			return (uint32_t)(3 + i + (type[len] ? g->nstructs : 0));
	fprintf(stderr, "fakeguest: unknown struct %s\n", type);
	abort();
}

FG_FUNC void fg_btf_struct(struct fakeguest *g, size_t i, struct buf *types, struct buf *strs)
{
	uint32_t n = 0;

	for (size_t m = 0; m < g->nmembers; m++)
		n += !strcmp(g->members[m].of, g->structs[i].name);
	fg_type(types, fg_str(strs, g->structs[i].name), 4, n, g->structs[i].size);
	for (size_t m = 0; m < g->nmembers; m++) {
		if (strcmp(g->members[m].of, g->structs[i].name))
			continue;
		buf_u32(types, fg_str(strs, g->members[m].name));
		buf_u32(types, fg_type_id(g, g->members[m].type));
		buf_u32(types, g->members[m].off * 8);
	}
}

FG_FUNC void fg_btf(struct fakeguest *g, struct buf *out)
{
	struct buf types = {0}, strs = {0};

	buf_zero(&strs, 1);
	fg_type(&types, fg_str(&strs, "long int"), 1, 0, 8);
	buf_u32(&types, 64);
	fg_type(&types, 0, 2, 0, 1);
	for (size_t i = 0; i < g->nstructs; i++)
		fg_btf_struct(g, i, &types, &strs);
	for (size_t i = 0; i < g->nstructs; i++) {
		fg_type(&types, 0, 3, 0, 0);
		buf_u32(&types, (uint32_t)(3 + i));
		buf_u32(&types, 1);
		buf_u32(&types, 7);
	}
	fg_type(&types, 0, 6, (uint32_t)g->nenums, 4);
	for (size_t i = 0; i < g->nenums; i++) {
		buf_u32(&types, fg_str(&strs, g->enums[i].name));
		buf_u32(&types, (uint32_t)g->enums[i].value);
	}
	buf_u32(out, 0x0001eb9f);
	buf_u32(out, 24);
	buf_u32(out, 0);
	buf_u32(out, (uint32_t)types.len);
	buf_u32(out, (uint32_t)types.len);
	buf_u32(out, (uint32_t)strs.len);
	buf_add(out, types.data, types.len);
	buf_add(out, strs.data, strs.len);
	buf_free(&types);
	buf_free(&strs);
}

#endif
