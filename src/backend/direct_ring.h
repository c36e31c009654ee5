// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rings that a guest's handlers fill (kernel/uapi/vmprof_log.h), read as one stream in the
 * order of the guest's counter. The guest writes what it likes: nothing is believed but what can
 * be, and nothing later than now.
 */
#ifndef VMPROF_BACKEND_DIRECT_RING_H
#define VMPROF_BACKEND_DIRECT_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "guest/sample.h"
#include "kernel/core/sample.h"
#include "kernel/uapi/vmprof_log.h"

/* What is larger is none of a handler's, and not copied. */
struct direct_sample {
	struct vmp_guest_sample sample;
	uint64_t chain[VMPROF_LOG_CHAIN_MAX];
};

union direct_record {
	struct vmp_record header;
	struct vmp_guest_sample sample;
	struct vmp_guest_task task;
	struct direct_sample whole;
};

struct direct_ring {
	struct vmp_reader reader;
	union direct_record *next; /* the oldest sample that was not handed out, if @has */
	bool has;
	struct vmp_guest_task task; /* what was said last of who runs there */
	uint64_t end;		    /* of what is read, once it is stopped */
	uint64_t samples, records;  /* that may be read still */
};

struct direct_rings {
	struct direct_ring *ring; /* of each CPU of the guest */
	uint32_t n;
	uint32_t nr_events;
	struct direct_ring *taken; /* whose sample was handed out last */
	uint64_t first, now;	   /* ticks between which samples may be */
	uint64_t bad;		   /* records that cannot be */
	bool stopped;
	bool flooded; /* there was more than may be read */
	uint64_t chain[SAMPLE_MAX_CHAIN];
};

void direct_rings_init(struct direct_rings *r, uint32_t n, uint32_t nr_events);
/* The ring of CPU @i is in this memory, which stays the caller's. 0 or -EPROTO: it is none. */
int direct_rings_set(struct direct_rings *r, uint32_t i, void *memory, size_t bytes);
void direct_rings_free(struct direct_rings *r);
void direct_rings_start(struct direct_rings *r); /* throws away what has come */
/*
 * Of each ring so many samples more may be read, as the guest's counters can have made since the
 * last call, and a few records besides each: a guest that writes more than that costs no more.
 */
void direct_rings_allow(struct direct_rings *r, uint64_t samples);

/* What comes from now on is none of ours: a guest may write on for ever. */
void direct_rings_stop(struct direct_rings *r);

/*
 * Looks what has come. It is now @now, ticks of the guest, which the caller reads behind
 * direct_rings_fill(). Whether there is something to take.
 */
void direct_rings_fill(struct direct_rings *r);
bool direct_rings_look(struct direct_rings *r, uint64_t now);

/*
 * The oldest sample as the guest layer wants it, but for the time, which is in ticks of the guest;
 * valid until the next call. false: look again, later.
 */
bool direct_rings_take(struct direct_rings *r, struct raw_sample *out);
uint64_t direct_rings_lost(const struct direct_rings *r); /* that did not fit, as the guest says */

#endif
