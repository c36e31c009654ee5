// SPDX-License-Identifier: GPL-2.0-only
/*
 * Not cryptographic: a guest can claim any build id anyway. Two different kernels or files get two
 * ids, the same one gets the same id in every run.
 */
#include "util/idhash.h"

#include <string.h>

/* What an id of the second kind begins with; a real one does so once in 2^64. */
static const uint8_t unknown_mark[8] = {0, 'v', 'm', 'p', 'r', 'o', 'f', 1};

void id_hash_init(struct id_hash *h)
{
	*h = (struct id_hash){
		{0x9ae16a3b2f90404full, 0xc949d7c7509e6557ull, 0x8ebc6af09c88c6e3ull}};
}

void id_hash_u64(struct id_hash *h, uint64_t v)
{
	static const uint64_t odd[3] = {0xa0761d6478bd642full, 0xe7037ed1a0b428dbull,
					0x589965cc75374cc3ull};

	for (int i = 0; i < 3; i++) {
		unsigned __int128 p = (unsigned __int128)(h->lane[i] ^ v) * odd[i];

		h->lane[i] = (uint64_t)p ^ (uint64_t)(p >> 64) ^ (h->lane[i] << 29 | v >> 35);
	}
}

void id_hash_str(struct id_hash *h, const char *s)
{
	size_t len = strlen(s);

	id_hash_u64(h, len);
	for (; len; s += len < 8 ? len : 8, len -= len < 8 ? len : 8) {
		uint64_t v = 0;

		memcpy(&v, s, len < 8 ? len : 8);
		id_hash_u64(h, v);
	}
}

uint8_t id_hash_end(struct id_hash *h, uint8_t id[20])
{
	for (int i = 0; i < 4; i++)
		id_hash_u64(h, 0);
	memcpy(id, h->lane, 20);
	return 20;
}

uint8_t id_hash_end_unknown(struct id_hash *h, uint8_t id[20])
{
	uint8_t len = id_hash_end(h, id);

	memcpy(id, unknown_mark, sizeof(unknown_mark));
	return len;
}

bool id_is_unknown(const uint8_t *id, size_t len)
{
	return len == 20 && !memcmp(id, unknown_mark, sizeof(unknown_mark));
}
