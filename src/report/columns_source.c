// SPDX-License-Identifier: GPL-2.0-only
/* Columns of source lines and files, and of what else only functions have. */
#include <inttypes.h>
#include <string.h>

#include "report/columns.h"

/* Neither is padded: perf does so with what stands last. */
static void print_cut(struct buf *b, const char *s, unsigned width)
{
	size_t len = strlen(s);

	buf_add(b, s, width && len > width ? width : len);
}

#define SOURCE_COLUMN(name, member, frame_of)                                                      \
	static const char *name##_text(const struct hist *h, const struct hist_entry *e)           \
	{                                                                                          \
		return h->profile->frames[frame_of].member;                                        \
	}                                                                                          \
	int column_##name##_sort(const struct hist *h, const struct hist_entry *x,                 \
				 const struct hist_entry *y)                                       \
	{                                                                                          \
		return strcmp(name##_text(h, x), name##_text(h, y));                               \
	}                                                                                          \
	unsigned column_##name##_width(const struct hist *h, const struct hist_entry *e)           \
	{                                                                                          \
		return (unsigned)strlen(name##_text(h, e));                                        \
	}                                                                                          \
	void column_##name##_print(const struct hist *h, const struct hist_entry *e,               \
				   unsigned width, struct buf *b)                                  \
	{                                                                                          \
		print_cut(b, name##_text(h, e), width);                                            \
	}

SOURCE_COLUMN(srcline, srcline, e->frame)
SOURCE_COLUMN(srcfile, srcfile, e->frame)
SOURCE_COLUMN(srcline_from, srcline, profile_branch_nth(h->profile, e->branch).from)
SOURCE_COLUMN(srcline_to, srcline, profile_branch_nth(h->profile, e->branch).to)

static uint64_t size_of(const struct hist *h, const struct hist_entry *e)
{
	const struct symbol *sym = hist_frame_of(h, e)->sym;

	return sym ? sym->end - sym->start : 0;
}

int column_symbol_size_sort(const struct hist *h, const struct hist_entry *x,
			    const struct hist_entry *y)
{
	return column_by_number(size_of(h, y), size_of(h, x));
}

unsigned column_symbol_size_width(const struct hist *h, const struct hist_entry *e)
{
	return 0; /* the header's */
}

void column_symbol_size_print(const struct hist *h, const struct hist_entry *e, unsigned width,
			      struct buf *b)
{
	if (hist_frame_of(h, e)->sym)
		buf_printf(b, "%*" PRIu64, (int)width, size_of(h, e));
	else
		buf_printf(b, "%*s", (int)width, "unknown");
}
