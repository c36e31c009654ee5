// SPDX-License-Identifier: GPL-2.0-only
/*
 * --time: ranges of time, as perf takes them (tools/perf/util/time-utils.c).
 */
#ifndef VMPROF_REPORT_TIMERANGE_H
#define VMPROF_REPORT_TIMERANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"

/* Nanoseconds, both ends included. */
struct time_range {
	uint64_t start, stop;
};

struct time_ranges {
	struct time_range *r; /* rising, without overlaps where they are given in seconds */
	size_t n;	      /* 0: all of the time */
};

/*
 * "1.5,2", "1.5,", ",2", more of them with blanks between; or parts of the time from @first to
 * @last: "10%", "10%/2" (the second tenth), "0%-10%", more of these with commas between. 0 or
 * -EINVAL with a sentence. @first and @last are 0 if they are not known.
 */
int time_ranges_parse(struct time_ranges *t, const char *text, uint64_t first, uint64_t last,
		      struct vmprof_err *err);
void time_ranges_free(struct time_ranges *t);
/* A record without a time (0) is in every range. */
bool time_ranges_have(const struct time_ranges *t, uint64_t time);

#endif
