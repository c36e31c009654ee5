// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whole call chains as a file has them, and what they came to: of samples most have a chain that
 * was there before. Bounded as addrcache.h is.
 */
#ifndef VMPROF_REPORT_CHAINCACHE_H
#define VMPROF_REPORT_CHAINCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All that the result depends on. */
struct chain_key {
	const uint64_t *words; /* addresses and markers */
	uint64_t n;
	uint32_t user_state, kernel_state; /* session_maps_state() */
	uint8_t cpumode;		   /* the sample's */
};

struct chaincache {
	struct chaincache_slot *slots; /* NULL at first */
};

bool chaincache_get(const struct chaincache *c, const struct chain_key *key, uint32_t *node);
/* Does nothing where the chain is very long: those are not worth their room. */
void chaincache_put(struct chaincache *c, const struct chain_key *key, uint32_t node);
void chaincache_free(struct chaincache *c);

#endif
