// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rings of a VM's vCPUs (kernel/core/ring.h), read as one stream in the order of time.
 */
#ifndef VMPROF_BACKEND_KMOD_RING_H
#define VMPROF_BACKEND_KMOD_RING_H

#include <stddef.h>

#include "guest/sample.h"
#include "kernel/core/sample.h"

union kmod_record {
	struct vmp_record header;
	struct vmp_sample sample;
	uint64_t word[VMP_RECORD_MAX / 8];
};

struct kmod_ring {
	struct vmp_reader reader;
	union kmod_record *next; /* the oldest sample that was not handed out, if @has */
	bool has;
};

struct kmod_rings {
	struct kmod_ring *ring;
	uint32_t n;
	struct kmod_ring *taken; /* whose sample was handed out last */
	uint64_t horizon;	 /* no older sample than this can come any more, ns */
	uint64_t bad;		 /* records that cannot be */
};

/* Room for @n rings. */
void kmod_rings_init(struct kmod_rings *r, uint32_t n);
/* The ring of place @i is in this memory, which stays the caller's. 0 or -EPROTO: it is none. */
int kmod_rings_set(struct kmod_rings *r, uint32_t i, void *memory, size_t bytes);
void kmod_rings_free(struct kmod_rings *r);

/* Looks what has come until @now; whether there is something to take. */
bool kmod_rings_look(struct kmod_rings *r, uint64_t now);
/*
 * The oldest sample, if none that is older can come; valid until the next call. NULL: look again,
 * later.
 */
const struct vmp_sample *kmod_rings_take(struct kmod_rings *r);
uint64_t kmod_rings_lost(const struct kmod_rings *r); /* samples that did not fit */

/*
 * @s as the guest layer wants it; all but event and vcpu, which are as the module numbers them.
 * @out's memory points into @s. false: it cannot be.
 */
bool kmod_decode(const struct vmp_sample *s, enum guest_arch arch, struct raw_sample *out);

#endif
