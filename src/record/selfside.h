// SPDX-License-Identifier: GPL-2.0-only
/*
 * The side-band of the machine that we run on, as perf record has it of a whole system: what runs
 * already, out of /proc, and what the kernel tells of processes and maps from then on, in perf's
 * own records, by a dummy event on each CPU. Used by one thread.
 */
#ifndef VMPROF_RECORD_SELFSIDE_H
#define VMPROF_RECORD_SELFSIDE_H

#include <linux/perf_event.h>
#include <stdint.h>

#include "util/buf.h"
#include "util/err.h"

struct selfside;

/* From here on the kernel tells. 0, or -errno with a sentence (permissions). */
int selfside_open(struct selfside **out, struct vmprof_err *err);
void selfside_free(struct selfside *s); /* NULL is fine */

typedef void selfside_fn(void *ctx, const struct perf_event_header *record);

/* Appends what is there already; @id: an event id of the file, which all records get. @see gets
 * each of them, too. */
void selfside_start(struct selfside *s, uint64_t id, struct buf *out, selfside_fn *see, void *ctx);
/* Appends what has been told since, in the order of time. */
void selfside_drain(struct selfside *s, struct buf *out, selfside_fn *see, void *ctx);

#endif
