// SPDX-License-Identifier: GPL-2.0-only
/*
 * Source lines in words, as perf has them (tools/perf/util/srcline.c).
 */
#ifndef VMPROF_REPORT_SRCLINE_H
#define VMPROF_REPORT_SRCLINE_H

#include "report/inlines.h"

enum srcline_words {
	SRCLINE_FULL = 1 << 0,	 /* the path of the file as a whole, not its last component */
	SRCLINE_SYMBOL = 1 << 1, /* where the line is not known: symbol+offset, if there is one */
};

#define SRCLINE_UNKNOWN "??:0" /* of what has a symbol in a file that has no lines */

/*
 * "file:line" of @frame (NULL: unknown), else SRCLINE_UNKNOWN, "symbol+offset" in decimal or
 * "dso[address]". Escaped, interned in @texts.
 */
const char *srcline_text(struct session *s, struct strtab *texts, const struct location *loc,
			 const struct source_frame *frame, unsigned words);

/* The last component of the file's name; "" where it is not known. */
const char *srcfile_text(struct strtab *texts, const struct source_frame *frame);

#endif
