// SPDX-License-Identifier: GPL-2.0-only
/*
 * Build ids for what has none: made of what is known of it, the same in every run.
 */
#ifndef VMPROF_UTIL_IDHASH_H
#define VMPROF_UTIL_IDHASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_hash {
	uint64_t lane[3];
};

void id_hash_init(struct id_hash *h);
void id_hash_u64(struct id_hash *h, uint64_t v);
void id_hash_str(struct id_hash *h, const char *s);
uint8_t id_hash_end(struct id_hash *h, uint8_t id[20]); /* returns the length, 20 */

/*
 * The same for a file that nobody has looked into: the id says so itself, and any file may have its
 * symbols.
 */
uint8_t id_hash_end_unknown(struct id_hash *h, uint8_t id[20]);
bool id_is_unknown(const uint8_t *id, size_t len);

#endif
