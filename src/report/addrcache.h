// SPDX-License-Identifier: GPL-2.0-only
/*
 * What addresses were resolved to: a table of a fixed size, in which an address takes the place of
 * another one, since address spaces come and go. One cache line is looked at for an address.
 */
#ifndef VMPROF_REPORT_ADDRCACHE_H
#define VMPROF_REPORT_ADDRCACHE_H

#include <stdbool.h>
#include <stdint.h>

enum { ADDRCACHE_BITS = 16 };

struct addrcache_slot {
	uint64_t space; /* 0: empty */
	uint64_t addr;
	uint32_t value;
};

struct addrcache {
	struct addrcache_slot *slots; /* NULL at first: all of them are made with the first one */
};

/*
 * The value for @addr in @space, which is not 0 and has all that the value depends on besides the
 * address. If it is not *found the place is @addr's from now on, and the value the caller's to set.
 */
uint32_t *addrcache_at(struct addrcache *c, uint64_t space, uint64_t addr, bool *found);
void addrcache_free(struct addrcache *c);

#endif
