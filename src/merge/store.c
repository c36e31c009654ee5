// SPDX-License-Identifier: GPL-2.0-only
/*
 * Symbols that recorders have saved beside the inputs go beside the output, under the VM's name
 * there. They are read and written anew, not copied: a store may come from anywhere, and the reader
 * of ELF files lets nothing else through.
 */
#include <ctype.h>
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "merge/impl.h"
#include "symbolize/codestore.h"
#include "symbolize/elfimage.h"
#include "util/text.h"
#include "util/xalloc.h"

#define FILES_MAX  100000
#define DEPTH_MAX  32
#define LOOK_EVERY 16

struct store {
	const struct merge *m;
	const struct merge_input *in;
	const char *from, *to;
	unsigned files, refused;
	struct vmprof_err first; /* why the first one was refused */
};

/* The hexadecimal name of a directory as a build id; 0: it is none. */
static uint32_t parse_build_id(const char *hex, size_t len, uint8_t id[20])
{
	if (len < 4 || len > 40 || len % 2)
		return 0;
	for (size_t i = 0; i < len; i += 2) {
		unsigned byte;

		if (!isxdigit((unsigned char)hex[i]) || !isxdigit((unsigned char)hex[i + 1]) ||
		    sscanf(hex + i, "%2x", &byte) != 1)
			return 0;
		id[i / 2] = (uint8_t)byte;
	}
	return (uint32_t)len / 2;
}

/* The VM whose directory it is has its name of the output there. */
static const char *vm_of(const struct store *st, const char *component)
{
	char safe[101]; /* as long as a component of the store can be */

	for (size_t i = 1; i < st->in->nr_sources; i++) {
		const struct merge_source *s = st->in->sources[i];

		if (s->name && s->vm &&
		    !strcmp(file_safe_name(safe, sizeof(safe), s->name), component))
			return s->vm->name;
	}
	return component;
}

/* A file of the store on its way: what it is read from, and the name in the other one. */
struct stored {
	const char *full, *name;
	const uint8_t *id;
	uint32_t id_len;
};

static int take_symbols(const struct store *st, const struct stored *f, struct vmprof_err *err)
{
	struct symtab *t;
	int ret = symtab_read_file(&t, f->full, f->id, f->id_len, err);

	if (ret)
		return ret;
	ret = elfstore_put(st->to, f->name, f->id, f->id_len, t, err);
	symtab_free(t);
	return ret;
}

static int take_code(const struct store *st, const struct stored *f, struct vmprof_err *err)
{
	struct code_runs r;
	uint16_t machine;
	int ret = codestore_read(&r, f->full, f->id, f->id_len, &machine, err);

	if (ret)
		return ret;
	ret = codestore_put(st->to, f->name, f->id, f->id_len, machine, &r, err);
	code_runs_free(&r);
	return ret;
}

/* @path: VM/PATH/BUILDID/elf or .../code below the store. */
static void take_file(struct store *st, const char *path, const char *full)
{
	char vm[NAME_MAX + 1], *name;
	const char *rest = strchr(path, '/'), *end = strrchr(path, '/'), *hex;
	struct vmprof_err err;
	uint8_t id[20];
	struct stored f;
	uint32_t len;
	int ret;

	if (!rest || rest == end || (size_t)(rest - path) >= sizeof(vm))
		return;
	for (hex = end; hex > rest && hex[-1] != '/'; hex--)
		;
	len = parse_build_id(hex, (size_t)(end - hex), id);
	if (!len || hex - 1 <= rest)
		return;
	snprintf(vm, sizeof(vm), "%.*s", (int)(rest - path), path);
	st->files++;
	name = xasprintf("%s%.*s", vm_of(st, vm), (int)(hex - 1 - rest), rest);
	f = (struct stored){full, name, id, len};
	ret = strcmp(end, "/code") ? take_symbols(st, &f, &err) : take_code(st, &f, &err);
	free(name);
	if (ret && !st->refused++)
		st->first = err;
}

static void walk(struct store *st, FTS *fts)
{
	size_t skip = strlen(st->from) + 1;
	FTSENT *e;

	while ((e = fts_read(fts)) && st->files < FILES_MAX) {
		if (e->fts_info == FTS_D &&
		    (e->fts_level > DEPTH_MAX || !strcmp(e->fts_name, ".build-id")))
			fts_set(fts, e, FTS_SKIP);
		if (e->fts_info == FTS_F &&
		    (!strcmp(e->fts_name, "elf") || !strcmp(e->fts_name, "code")))
			take_file(st, e->fts_path + skip, e->fts_path);
		if (st->files % LOOK_EVERY == 0 && merge_pending_signal())
			return;
	}
}

static void merge_store(const struct merge *m, const struct merge_input *in, const char *to)
{
	char *own = elfstore_beside(in->path), *pipes = elfstore_beside("-");
	bool is_pipe = perfdata_reader_is_pipe(in->header);
	struct stat st;
	/* a recorder that wrote to a pipe could not know what it would be saved as */
	char *from = is_pipe && stat(own, &st) ? pipes : own;
	struct store s = {.m = m, .in = in, .from = from, .to = to};
	char *roots[] = {from, NULL};
	FTS *fts = stat(from, &st) ? NULL : fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);

	if (fts) {
		walk(&s, fts);
		fts_close(fts);
	}
	if (s.refused)
		merge_warn("%s: %u files of symbols beside it were not taken over; the first: %s",
			   in->shown, s.refused, s.first.msg);
	free(own);
	free(pipes);
}

void merge_stores(struct merge *m)
{
	struct stat st;
	char *to;

	/* not in /dev beside a device */
	if (!stat(m->opts->output, &st) && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
		return;
	to = elfstore_beside(m->opts->output);
	for (size_t i = 0; i < m->nr_inputs; i++)
		if (!m->inputs[i].in_guest)
			merge_store(m, &m->inputs[i], to);
	free(to);
}
