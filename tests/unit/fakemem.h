// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guest-physical memory for tests: a block of the host's, with knobs for what can go wrong.
 */
#ifndef VMPROF_TESTS_UNIT_FAKEMEM_H
#define VMPROF_TESTS_UNIT_FAKEMEM_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guest/mem.h"

struct fakemem {
	struct guest_mem mem;
	uint8_t *ram; /* gpa 0 .. size - 1 */
	uint64_t size;
	/* knobs, all off at first */
	bool map;		   /* offer ops->map's work; else it says NULL for all */
	uint64_t hole, hole_len;   /* gpas that are no RAM */
	unsigned noise_every;	   /* each so-many-th range read comes back with a flipped bit */
	unsigned gone_after;	   /* this many calls of readv work, then -ESRCH; 0: for ever */
	void (*before)(void *ctx); /* called before each readv: to change memory under a reader */
	void *before_ctx;
	/* counters */
	unsigned readv_calls, ranges, maps;
};

static inline bool fakemem_has(struct fakemem *f, uint64_t gpa, uint64_t len)
{
	if (gpa >= f->size || len > f->size - gpa)
		return false;
	return !f->hole_len || gpa >= f->hole + f->hole_len || gpa + len <= f->hole;
}

static inline int fakemem_readv(struct guest_mem *m, struct guest_mem_io *io, int n)
{
	struct fakemem *f = (struct fakemem *)m;

	if (f->before)
		f->before(f->before_ctx);
	f->readv_calls++;
	if (f->gone_after && f->readv_calls > f->gone_after)
		return -ESRCH;
	for (int i = 0; i < n; i++) {
		f->ranges++;
		io[i].ok = fakemem_has(f, io[i].gpa, io[i].len);
		if (!io[i].ok)
			continue;
		memcpy(io[i].buf, f->ram + io[i].gpa, io[i].len);
		if (f->noise_every && io[i].len && f->ranges % f->noise_every == 0)
			((uint8_t *)io[i].buf)[f->ranges * 7 % io[i].len] ^=
				(uint8_t)(1u << (f->ranges & 7));
	}
	return 0;
}

static inline const void *fakemem_map(struct guest_mem *m, uint64_t gpa, size_t len)
{
	struct fakemem *f = (struct fakemem *)m;

	if (!f->map || !fakemem_has(f, gpa, len))
		return NULL;
	f->maps++;
	return f->ram + gpa;
}

static inline bool fakemem_next_range(struct guest_mem *m, uint64_t gpa, uint64_t *start,
				      uint64_t *len)
{
	struct fakemem *f = (struct fakemem *)m;

	if (f->hole_len && gpa >= f->hole && gpa < f->hole + f->hole_len)
		gpa = f->hole + f->hole_len;
	if (gpa >= f->size)
		return false;
	*start = gpa;
	*len = (f->hole_len && gpa < f->hole ? f->hole : f->size) - gpa;
	return true;
}

static inline void fakemem_init(struct fakemem *f, uint64_t size)
{
	static const struct guest_mem_ops ops = {
		.readv = fakemem_readv, .map = fakemem_map, .next_range = fakemem_next_range};

	*f = (struct fakemem){.mem = {.ops = &ops, .top = size}, .size = size};
	f->ram = calloc(1, size);
	if (!f->ram)
		abort();
}

static inline void fakemem_free(struct fakemem *f)
{
	free(f->ram);
	f->ram = NULL;
}

#endif
