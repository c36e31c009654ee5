// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames of another machine's memory, mapped here and kept. To map one costs a system call and a
 * hypercall, a hundred times what reading a word of it does; so frames that are missing are mapped
 * together, and stay. Not for long: what is mapped stays what it was when the guest gives the frame
 * back or puts another one in its place, and cannot be freed as long. So nothing is older than a
 * bound, and the owner drops all when it sees such a change.
 */
#ifndef VMPROF_BACKEND_FRAMES_H
#define VMPROF_BACKEND_FRAMES_H

#include <stdint.h>

#include "util/hashmap.h"

#define FRAME_SIZE    4096u
#define FRAMES_BATCH  64	    /* that are mapped in one call at most */
#define FRAMES_MAX    16384	    /* that are kept */
#define FRAMES_AGE_NS 2000000000ull /* that one is kept */

struct frames_ops {
	/*
	 * Maps @n frames one behind the other, to be read; @failed[i] is set for those that cannot
	 * be had, whose memory is not touched then. NULL: none of them.
	 */
	const uint8_t *(*map)(void *ctx, const uint64_t *frame, unsigned n, bool *failed);
	void (*unmap)(void *ctx, const uint8_t *at, unsigned n);
};

struct frames {
	const struct frames_ops *ops;
	void *ctx;
	struct hashmap where; /* frame + 1 to its page */
	/* What one call has mapped, oldest first: a ring. */
	struct frames_piece {
		const uint8_t *at;
		uint64_t born;
		unsigned n;
		uint64_t frame[FRAMES_BATCH];
	} * piece;
	size_t first, nr, cap;
	size_t mapped;	     /* frames, of all pieces */
	uint64_t maps, hits; /* calls of map; frames that were there */
};

void frames_init(struct frames *f, const struct frames_ops *ops, void *ctx);
void frames_free(struct frames *f);

/* Drops what is too old at @now. */
void frames_expire(struct frames *f, uint64_t now);
void frames_drop_all(struct frames *f);

/*
 * Pages of @n frames (FRAMES_BATCH at most): @page[i] NULL if it cannot be had. Valid until the
 * next call of any of these functions. @now in ns, never less than before.
 */
void frames_get(struct frames *f, const uint64_t *frame, unsigned n, uint64_t now,
		const uint8_t **page);

#endif
