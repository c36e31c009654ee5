// SPDX-License-Identifier: GPL-2.0-only
#include "report/rawtext.h"

#include <stdlib.h>
#include <string.h>

#include "util/hashmap.h"
#include "util/xalloc.h"

enum { SLOTS = 1 << 12, MAX_RAW = 256, MAX_TEXT = 512 }; /* 3 MB at most */

struct rawtext_slot {
	uint64_t event;
	uint8_t *bytes; /* the record, then its text; NULL: empty */
	size_t size, len, cap;
};

static struct rawtext_slot *slot_of(const struct rawtext *c, uint64_t event, const uint8_t *raw,
				    size_t size)
{
	return &c->slots[hash_u64(hash_bytes(raw, size) ^ event) & (SLOTS - 1)];
}

bool rawtext_get(const struct rawtext *c, uint64_t event, const uint8_t *raw, size_t size,
		 struct buf *out)
{
	const struct rawtext_slot *s;

	if (!c->slots || size > MAX_RAW)
		return false;
	s = slot_of(c, event, raw, size);
	if (!s->bytes || s->event != event || s->size != size || memcmp(s->bytes, raw, size) != 0)
		return false;
	buf_add(out, s->bytes + size, s->len);
	return true;
}

void rawtext_put(struct rawtext *c, uint64_t event, const uint8_t *raw, size_t size,
		 const uint8_t *text, size_t len)
{
	struct rawtext_slot *s;

	if (size > MAX_RAW || len > MAX_TEXT)
		return;
	if (!c->slots)
		c->slots = xcalloc(SLOTS, sizeof(*c->slots));
	s = slot_of(c, event, raw, size);
	s->bytes = xgrow(s->bytes, &s->cap, size + len + 1, 1);
	memcpy(s->bytes, raw, size);
	memcpy(s->bytes + size, text, len);
	s->event = event;
	s->size = size;
	s->len = len;
}

void rawtext_free(struct rawtext *c)
{
	for (size_t i = 0; c->slots && i < SLOTS; i++)
		free(c->slots[i].bytes);
	free(c->slots);
	c->slots = NULL;
}
