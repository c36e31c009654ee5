// SPDX-License-Identifier: GPL-2.0-only
/*
 * libtraceevent believes what it is told: it divides by a field that is 0, takes a field as the
 * length of an array or as an index, and recurses as deep as an expression is nested. Formats and
 * records come from a file that anybody may have made, so this looks at both before it does.
 */
#ifndef VMPROF_REPORT_TRACEPOINT_CHECK_H
#define VMPROF_REPORT_TRACEPOINT_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <traceevent/event-parse.h>

/*
 * A record is at most 64 KiB, and so are the offset and the length of a dynamic array, which may be
 * relative to a field: with so many zeros behind it nothing that is asked of it is outside.
 */
#define TRACEPOINT_RECORD_MAX 0x10000u
#define TRACEPOINT_ROOM	      (5 * TRACEPOINT_RECORD_MAX)

struct tracepoint_check {
	const struct tep_event *event;
	uint32_t record_min; /* the fields of a record end here */
	uint64_t widths;     /* arguments that are widths ('*'), by position */
	bool look;	     /* into each record: its values are lengths, divisors, indexes */
};

/* May it be parsed? */
bool tracepoint_format_ok(const char *text, size_t size);
/* May records of the parsed @event be printed at all? */
bool tracepoint_event_ok(struct tracepoint_check *c, const struct tep_event *event);
/* May this one? @data has TRACEPOINT_ROOM bytes, @size of them the record's. */
bool tracepoint_record_ok(const struct tracepoint_check *c, const uint8_t *data, uint32_t size);

#endif
