// SPDX-License-Identifier: GPL-2.0-only
#include "annotate/sources.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "util/buf.h"
#include "util/hashmap.h"
#include "util/xalloc.h"

enum {
	CONTEXT = 5, /* lines */
	MAX_FILE = 16 << 20,
};

struct source_file {
	char *text;	/* NULL: it is not here */
	size_t *starts; /* of its lines in the text, and its end */
	size_t nr_lines, cap;
	unsigned last, max; /* the last line asked for, the highest one printed */
};

struct sources {
	struct session *session;
	const struct dso *dso;
	const char *function;
	bool text;
	const char *last_function; /* that was printed; session's */
	struct hashmap files;	   /* by the interned path */
};

struct sources *sources_new(struct session *s, const struct dso *dso, const char *function,
			    bool text)
{
	struct sources *src = xcalloc(1, sizeof(*src));

	src->session = s;
	src->dso = dso;
	src->function = function;
	src->text = text;
	return src;
}

void sources_free(struct sources *src)
{
	struct source_file *f;

	if (!src)
		return;
	for (size_t i = 0; (f = hashmap_next(&src->files, &i, NULL));) {
		free(f->text);
		free(f->starts);
		free(f);
	}
	hashmap_free(&src->files);
	free(src);
}

/* ---------- files ---------- */

static void split(struct source_file *f, size_t size)
{
	for (size_t at = 0; at < size;) {
		const char *end = memchr(f->text + at, '\n', size - at);

		f->starts = xgrow(f->starts, &f->cap, f->nr_lines + 2, sizeof(*f->starts));
		f->starts[f->nr_lines++] = at;
		at = end ? (size_t)(end - f->text) + 1 : size;
		f->starts[f->nr_lines] = at;
	}
}

static void read_file(struct source_file *f, int fd)
{
	struct stat st;
	ssize_t n;
	size_t size = 0;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > MAX_FILE)
		return;
	f->text = xmalloc((size_t)st.st_size + 1);
	while (size < (size_t)st.st_size &&
	       (n = read(fd, f->text + size, (size_t)st.st_size - size)) > 0)
		size += (size_t)n;
	split(f, size);
}

static struct source_file *file_of(struct sources *src, const char *path)
{
	struct source_file *f = hashmap_get(&src->files, (uintptr_t)path);
	int fd;

	if (f)
		return f;
	f = xcalloc(1, sizeof(*f));
	hashmap_set(&src->files, (uintptr_t)path, f);
	fd = session_open_source(src->session, src->dso, path);
	if (fd < 0)
		return f;
	read_file(f, fd);
	close(fd);
	return f;
}

/* ---------- lines ---------- */

static void put_function(struct sources *src, const char *name, sources_line_fn *line, void *ctx)
{
	struct buf b = {0};

	if (src->last_function && !strcmp(name, src->last_function))
		return;
	src->last_function = name;
	buf_printf(&b, "%s():", name);
	line(ctx, 0, (const char *)b.data, b.len);
	buf_free(&b);
}

static void put_line(const struct source_file *f, unsigned number, sources_line_fn *line, void *ctx)
{
	const char *text = f->text + f->starts[number - 1];
	size_t len = f->starts[number] - f->starts[number - 1];

	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	line(ctx, number, text, len);
}

static void put_lines(struct source_file *f, unsigned number, sources_line_fn *line, void *ctx)
{
	unsigned first = number > CONTEXT ? number - CONTEXT : 1;

	if (number == f->last)
		return;
	f->last = number;
	if (f->max >= first)
		first = f->max < number ? f->max + 1 : number;
	if (f->max < number)
		f->max = number;
	for (; first <= number && first <= f->nr_lines; first++)
		put_line(f, first, line, ctx);
}

void sources_before(struct sources *src, uint64_t offset, sources_line_fn *line, void *ctx)
{
	const struct source *at = session_source(src->session, src->dso, offset);
	const struct source_frame *inner = at->frames;

	if (!at->n || !inner->file)
		return;
	put_function(src,
		     inner->sym ? session_symbol_name(src->session, inner->sym) : src->function,
		     line, ctx);
	if (inner->line && src->text)
		put_lines(file_of(src, inner->file), inner->line, line, ctx);
}
