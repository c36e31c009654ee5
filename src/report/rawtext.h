// SPDX-License-Identifier: GPL-2.0-only
/*
 * The text that the bytes of a tracepoint's record came to, of some thousand records: tasks that
 * wake each other, and the locks and files of a loop, are in one record after the other. Bounded: a
 * record takes the place of another one.
 */
#ifndef VMPROF_REPORT_RAWTEXT_H
#define VMPROF_REPORT_RAWTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"

struct rawtext {
	struct rawtext_slot *slots; /* NULL at first */
};

/* Adds the text to @out; false: it is not known. @event tells formats apart. */
bool rawtext_get(const struct rawtext *c, uint64_t event, const uint8_t *raw, size_t size,
		 struct buf *out);
/* Does nothing where record or text are long. */
void rawtext_put(struct rawtext *c, uint64_t event, const uint8_t *raw, size_t size,
		 const uint8_t *text, size_t len);
void rawtext_free(struct rawtext *c);

#endif
