// SPDX-License-Identifier: GPL-2.0-only
/*
 * ELF files as a guest may supply them: by the section table, with pages that are not there, and as
 * a loaded image at some address. What is read is looked up in and demangled.
 *
 * The first byte chooses: bit 0 image, bit 1 holes by the bits of the second byte.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/demangle.h"
#include "symbolize/symtab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *data;
	size_t size;
	uint8_t holes;
};

static ssize_t read_input(void *ctx, uint64_t off, void *buf, size_t len)
{
	struct input *in = ctx;

	if (off >= in->size)
		return 0;
	for (uint64_t page = off / 256; page <= (off + len - 1) / 256 && page * 256 < in->size;
	     page++)
		if (in->holes >> page % 8 & 1)
			return -ENODATA;
	if (len > in->size - off)
		len = in->size - off;
	memcpy(buf, in->data + off, len);
	return (ssize_t)len;
}

static void use(struct symtab *t)
{
	uint64_t last = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct symbol *s = &t->syms[i];
		char *d;

		if (s->start < last || s->end < s->start)
			abort();
		last = s->start;
		if (s->end > s->start && !symtab_find(t, s->start))
			abort();
		if (i < 100) {
			d = demangle(s->name);
			free(d);
		}
	}
	symtab_find(t, 0);
	symtab_find(t, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symtab *t = NULL;
	struct input in = {0};
	struct vmprof_err err;
	int ret;

	if (size < 2)
		return 0;
	in.data = data + 2;
	in.size = size - 2;
	in.holes = data[0] & 2 ? data[1] : 0;
	ret = data[0] & 1 ? symtab_read_image(&t, read_input, &in, "image", &err)
			  : symtab_read_fn(&t, read_input, &in, in.size, "file", &err);
	if (!ret != !!t || (ret && (!err.code || !*err.msg)))
		abort();
	if (t)
		use(t);
	symtab_free(t);
	return 0;
}
