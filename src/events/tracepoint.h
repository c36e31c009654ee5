// SPDX-License-Identifier: GPL-2.0-only
/* The host's tracepoints, out of tracefs: their numbers, and where a record has which field. */
#ifndef VMPROF_EVENTS_TRACEPOINT_H
#define VMPROF_EVENTS_TRACEPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"

/* 0; -ENOENT (no such one), -EACCES (may not be looked at) or -EINVAL, with a sentence. */
int tracepoint_id(uint64_t *id, const char *root, const char *system, const char *name,
		  struct vmprof_err *err);

#define TRACEPOINT_FORMAT_MAX 16384 /* the fields come first, what follows is not needed */

/* The text that describes its records, cut after TRACEPOINT_FORMAT_MAX - 1 bytes. As
 * tracepoint_id().
 */
int tracepoint_format(char format[TRACEPOINT_FORMAT_MAX], const char *root, const char *system,
		      const char *name, struct vmprof_err *err);

struct tracepoint_field {
	uint32_t offset, size; /* bytes; size is 1, 2, 4 or 8 */
};

/* Whether @format has a number of this name; fields as they end behind 64 KiB are none. */
bool tracepoint_field(struct tracepoint_field *f, const char *format, const char *name);
/* Its value in a record of this host; false if it is not within @size bytes. */
bool tracepoint_value(uint64_t *v, const struct tracepoint_field *f, const void *data, size_t size);

#endif
