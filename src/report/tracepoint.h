// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a tracepoint's record says, in the words of the kernel that wrote it: libtraceevent prints
 * it by the format that is in the file. Where it cannot be printed (no libtraceevent, no format, a
 * record that does not fit to it), its bytes are.
 */
#ifndef VMPROF_REPORT_TRACEPOINT_H
#define VMPROF_REPORT_TRACEPOINT_H

#include "symbolize/machine.h"
#include "util/buf.h"

struct tracepoints;

/* Both must outlive it. The reader may be a pipe that has no formats yet. */
struct tracepoints *tracepoints_new(const struct perfdata_reader *r, struct session *session);
void tracepoints_free(struct tracepoints *t); /* NULL is fine */

/* @rec's fields as text without control characters to the end of @out; nothing without RAW. */
void tracepoints_put(struct tracepoints *t, const struct perfdata_record *rec, struct buf *out);

/* Why samples were printed as bytes, a sentence; NULL: none was. */
const char *tracepoints_why_bytes(const struct tracepoints *t);

#endif
