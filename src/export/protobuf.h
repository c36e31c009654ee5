// SPDX-License-Identifier: GPL-2.0-only
/*
 * As much of protobuf's encoding as a writer needs: numbers, and bytes (strings, messages, packed
 * numbers). What a library and its code generator would save is shorter than their use.
 * https://protobuf.dev/programming-guides/encoding/
 */
#ifndef VMPROF_EXPORT_PROTOBUF_H
#define VMPROF_EXPORT_PROTOBUF_H

#include "util/buf.h"

static inline void pb_varint(struct buf *b, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	buf_add(b, bytes, n);
}

/* Zero is what a field is that is not there. */
static inline void pb_number(struct buf *b, uint32_t field, uint64_t v)
{
	if (!v)
		return;
	pb_varint(b, field << 3);
	pb_varint(b, v);
}

static inline void pb_bytes(struct buf *b, uint32_t field, const void *data, size_t n)
{
	pb_varint(b, field << 3 | 2);
	pb_varint(b, n);
	if (n)
		buf_add(b, data, n);
}

static inline void pb_message(struct buf *b, uint32_t field, const struct buf *message)
{
	pb_bytes(b, field, message->data, message->len);
}

#endif
