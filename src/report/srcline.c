// SPDX-License-Identifier: GPL-2.0-only
#include "report/srcline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/frametext.h"
#include "util/text.h"
#include "util/xalloc.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Of code without a file, be it a kernel's or made by a program, perf does not ask for lines. */
static bool has_file(const struct dso *dso)
{
	return dso && !dso->kernel && dso->long_name[0] == '/' &&
	       strncmp(dso->long_name, "/tmp/perf-", 10) != 0;
}

/* A PLT's slot: no table of the file has a function in that section, so that addr2line knows
 * nothing there, not even that the line is unknown. */
static bool is_slot(const struct symbol *sym)
{
	size_t len = strlen(sym->name);

	return len > 4 && strcmp(sym->name + len - 4, "@plt") == 0;
}

const char *srcline_text(struct session *s, struct strtab *texts, const struct location *loc,
			 const struct source_frame *frame, unsigned words)
{
	const char *out;
	char *text;

	if (frame && frame->file)
		text = xasprintf("%s:%" PRIu32,
				 words & SRCLINE_FULL ? frame->file : base_name(frame->file),
				 frame->line);
	else if (loc->sym && has_file(loc->dso) && !is_slot(loc->sym))
		text = xstrdup(SRCLINE_UNKNOWN);
	else if (loc->sym && words & SRCLINE_SYMBOL)
		text = xasprintf("%s+%" PRIu64, session_symbol_name(s, loc->sym), loc->offset);
	else
		text = xasprintf("%s[%" PRIx64 "]", loc->dso ? loc->dso->short_name : "",
				 frametext_address(loc));
	out = strtab_intern_escaped(texts, text);
	free(text);
	return out;
}

const char *srcfile_text(struct strtab *texts, const struct source_frame *frame)
{
	return strtab_intern_escaped(texts, frame && frame->file ? base_name(frame->file) : "");
}
