// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions that were compiled into others, as frames of their own.
 */
#ifndef VMPROF_REPORT_INLINES_H
#define VMPROF_REPORT_INLINES_H

#include "report/profile.h"

/*
 * In which frames of call chains they are looked for. perf does so in those that it unwinds itself,
 * out of a copy of the stack.
 */
enum inlines_mode { INLINES_UNWOUND, INLINES_ALL, INLINES_NONE };

/* Where the address of a frame is from: behind a call it can be another line's. */
enum frame_address { ADDRESS_EXACT, ADDRESS_BEHIND_CALL };

/* The source at @loc, never NULL; valid as session_source()'s. */
const struct source *location_source(struct session *s, const struct location *loc,
				     enum frame_address where);

/* What is inlined at each place that was asked for. */
struct inlines {
	struct inlined {
		uint32_t n, *frames; /* of the profile, outermost first */
	} * lists;
	size_t cap;
	struct keyset places; /* DSO, address in it */
};

void inlines_init(struct inlines *in);
void inlines_free(struct inlines *in);
/* The number of @loc's list. */
uint32_t inlines_at(struct inlines *in, struct profile *p, const struct location *loc,
		    enum frame_address where);

#endif
