// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ring in which a guest's kernel tells of its processes and their maps
 * (kernel/uapi/vmprof_log.h, side_offset). As with samples, nothing is believed but what can be.
 */
#ifndef VMPROF_BACKEND_DIRECT_SIDE_H
#define VMPROF_BACKEND_DIRECT_SIDE_H

#include "guest/sample.h"
#include "kernel/core/sample.h"

union direct_side_record {
	struct vmp_record header;
	struct vmp_guest_process process;
	struct vmp_guest_map map;
	struct vmp_lost lost;
	char bytes[sizeof(struct vmp_guest_map) + VMP_MAP_PATH_MAX];
};

struct direct_side {
	struct vmp_reader reader;
	union direct_side_record *next; /* the oldest record, if @has; NULL: there is no ring */
	bool has;
	struct raw_told told; /* what it says */
	uint64_t end;	      /* of what was there at the last look */
	uint64_t now;	      /* ticks of the guest, then */
	uint64_t lost;	      /* records that did not fit, or cannot be */
};

/* The ring is in this memory, which stays the caller's. 0 or -EPROTO: it is none. */
int direct_side_open(struct direct_side *s, void *memory, size_t bytes);
void direct_side_free(struct direct_side *s);

/* It is now @now, ticks of the guest: what comes later waits for the next look. Behind a look at
 * the samples, so that what they need is not missed. */
void direct_side_look(struct direct_side *s, uint64_t now);

/* The next that is not later than @until, with its time in ticks of the guest. */
bool direct_side_take(struct direct_side *s, uint64_t until, struct raw_told *out);

#endif
