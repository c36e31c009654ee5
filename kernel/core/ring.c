// SPDX-License-Identifier: GPL-2.0-only
#include "ring.h"

_Static_assert(sizeof(struct vmp_ring_page) == 192, "the layout is part of the interface");

int vmp_ring_init(struct vmp_ring *ring, void *memory, u64 page_size, u64 size)
{
	struct vmp_ring_page *page = memory;

	if (size < VMP_RECORD_MAX || (size & (size - 1)) || page_size < sizeof(*page))
		return -VMP_EINVAL;
	*page = (struct vmp_ring_page){
		.magic = VMP_RING_MAGIC,
		.version = VMP_RING_VERSION,
		.data_offset = page_size,
		.data_size = size,
	};
	*ring = (struct vmp_ring){.page = page, .data = (u8 *)memory + page_size, .size = size};
	return 0;
}

static void put(struct vmp_ring *ring, const void *from, u32 size)
{
	u64 at = ring->head & (ring->size - 1), first = ring->size - at;

	ring->head += size;
	if (first >= size) {
		__builtin_memcpy(ring->data + at, from, size);
		return;
	}
	__builtin_memcpy(ring->data + at, from, first);
	__builtin_memcpy(ring->data, (const u8 *)from + first, size - first);
}

void vmp_ring_missed(struct vmp_ring *ring, u64 records)
{
	ring->lost += records;
	ring->untold += records;
	vmp_store(&ring->page->lost, ring->lost);
}

/* Seldom needed, and apart: a record of its own on the stack would cost all others something. */
static __attribute__((__noinline__)) void put_lost(struct vmp_ring *ring)
{
	struct vmp_lost lost = {{sizeof(lost), VMP_REC_LOST}, ring->untold};

	put(ring, &lost, sizeof(lost));
	ring->untold = 0;
}

int vmp_ring_write(struct vmp_ring *ring, const struct vmp_part *parts, u32 nr)
{
	u64 needed = ring->untold ? sizeof(struct vmp_lost) : 0;
	u32 i;

	for (i = 0; i < nr; i++)
		needed += parts[i].size;
	if (needed > ring->size - vmp_ring_used(ring))
		goto full;
	if (ring->untold)
		put_lost(ring);
	for (i = 0; i < nr; i++)
		put(ring, parts[i].data, parts[i].size);
	vmp_store_release(&ring->page->head, ring->head);
	return 0;
full:
	vmp_ring_missed(ring, 1);
	return -VMP_EFULL;
}

int vmp_reader_init(struct vmp_reader *reader, void *memory, u64 bytes)
{
	struct vmp_ring_page *page = memory;
	u64 offset, size;

	if (bytes < sizeof(*page) || vmp_load(&page->magic) != VMP_RING_MAGIC ||
	    vmp_load(&page->version) != VMP_RING_VERSION)
		return -VMP_ECORRUPT;
	offset = vmp_load(&page->data_offset);
	size = vmp_load(&page->data_size);
	if (offset < sizeof(*page) || offset > bytes || !size || (size & (size - 1)) ||
	    size > bytes - offset)
		return -VMP_ECORRUPT;
	*reader = (struct vmp_reader){
		.page = page,
		.data = (u8 *)memory + offset,
		.size = size,
		.tail = vmp_load(&page->tail),
	};
	return 0;
}

static void get(const struct vmp_reader *reader, u64 at, void *to, u32 size)
{
	u64 first;

	at &= reader->size - 1;
	first = reader->size - at;
	if (first > size)
		first = size;
	__builtin_memcpy(to, reader->data + at, first);
	__builtin_memcpy((u8 *)to + first, reader->data, size - first);
}

static long consume(struct vmp_reader *reader, u64 bytes, long result)
{
	reader->tail += bytes;
	vmp_store_release(&reader->page->tail, reader->tail);
	return result;
}

long vmp_ring_read(struct vmp_reader *reader, void *buf, u32 room)
{
	u64 waiting = vmp_load_acquire(&reader->page->head) - reader->tail;
	struct vmp_record header;

	if (!waiting)
		return 0;
	if (waiting > reader->size || waiting < sizeof(header))
		return consume(reader, waiting, -VMP_ECORRUPT);
	get(reader, reader->tail, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size % 8 || header.size > VMP_RECORD_MAX ||
	    header.size > waiting)
		return consume(reader, waiting, -VMP_ECORRUPT);
	if (header.size > room)
		return consume(reader, header.size, -VMP_EFULL);
	/* The header that was checked, not one that the producer may have put there meanwhile. */
	__builtin_memcpy(buf, &header, sizeof(header));
	get(reader, reader->tail + sizeof(header), (u8 *)buf + sizeof(header),
	    header.size - (u32)sizeof(header));
	return consume(reader, header.size, header.size);
}
