// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frame information of programs whose headers do not name it: static ones have .eh_frame, but no
 * index of it; a few have .debug_frame alone. Where these are, the file's section headers say, if
 * they are in the page cache.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guest/cfi.h"
#include "util/xalloc.h"

enum {
	MAX_SECTIONS = 256,
	MAX_NAMES = 8192,
	MAX_FRAMES = 8 << 20,
	PIECE = 4096, /* some pages may be in one place only, the others in another */
};

struct sections {
	Elf64_Shdr s[MAX_SECTIONS];
	unsigned n;
	char names[MAX_NAMES];
};

static int read_sections(struct sections *t, guest_image_read read, void *ctx)
{
	const Elf64_Shdr *names;
	Elf64_Ehdr e;
	size_t len;
	int rc = read(ctx, 0, &e, sizeof(e));

	if (rc)
		return rc;
	if (!e.e_shnum || e.e_shnum > MAX_SECTIONS || e.e_shstrndx >= e.e_shnum ||
	    e.e_shentsize != sizeof(*t->s))
		return -ENOEXEC;
	t->n = e.e_shnum;
	rc = read(ctx, e.e_shoff, t->s, t->n * sizeof(*t->s));
	if (rc)
		return rc;
	names = &t->s[e.e_shstrndx];
	len = names->sh_size < MAX_NAMES - 1 ? names->sh_size : MAX_NAMES - 1;
	return read(ctx, names->sh_offset, t->names, len);
}

static const Elf64_Shdr *find(const struct sections *t, const char *name)
{
	for (unsigned i = 0; i < t->n; i++)
		if (t->s[i].sh_name < MAX_NAMES && !strcmp(t->names + t->s[i].sh_name, name) &&
		    t->s[i].sh_type != SHT_NOBITS && !(t->s[i].sh_flags & SHF_COMPRESSED) &&
		    t->s[i].sh_size <= MAX_FRAMES)
			return &t->s[i];
	return NULL;
}

static int read_whole(struct cfi_section *out, const Elf64_Shdr *s, guest_image_read read,
		      void *ctx)
{
	uint64_t at = 0;
	int rc = 0;

	out->bytes = xmalloc(s->sh_size + 1);
	out->size = s->sh_size;
	while (!rc && at < out->size) {
		uint64_t n = PIECE - (s->sh_offset + at) % PIECE;

		n = n < out->size - at ? n : out->size - at;
		rc = read(ctx, s->sh_offset + at, out->bytes + at, n);
		at += n;
	}
	if (rc)
		free(out->bytes);
	return rc;
}

int guest_cfi_section(struct cfi_section *out, guest_image_read read, void *ctx)
{
	struct sections *t = xcalloc(1, sizeof(*t));
	const Elf64_Shdr *s = NULL;
	int rc = read_sections(t, read, ctx);

	*out = (struct cfi_section){0};
	if (!rc) {
		s = find(t, ".eh_frame");
		out->debug_frame = !s;
		s = s ? s : find(t, ".debug_frame");
		rc = s ? read_whole(out, s, read, ctx) : -ENOENT;
		out->vaddr = s && !out->debug_frame ? s->sh_addr : 0;
	}
	free(t);
	return rc;
}
