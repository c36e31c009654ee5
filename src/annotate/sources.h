// SPDX-License-Identifier: GPL-2.0-only
/*
 * The source between the instructions of a function: what objdump -l -S prints before each of them
 * (a line with the five before it, those that were printed already left out).
 */
#ifndef VMPROF_ANNOTATE_SOURCES_H
#define VMPROF_ANNOTATE_SOURCES_H

#include "symbolize/machine.h"

struct sources;

/*
 * @function: the name of the function, for its own parts. @text: with the text of the lines, not
 * just whose they are. All must outlive it.
 */
struct sources *sources_new(struct session *s, const struct dso *dso, const char *function,
			    bool text);
void sources_free(struct sources *src); /* NULL is fine */

/*
 * Gives all that is to stand before the instruction at @offset (session_source()) to @line: @number
 * in the file, 0: not of a file; @text of @len bytes as in the file, to be escaped.
 */
typedef void sources_line_fn(void *ctx, unsigned number, const char *text, size_t len);
void sources_before(struct sources *src, uint64_t offset, sources_line_fn *line, void *ctx);

#endif
