/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sample ring: memory that one producer (a counter's interrupt handler) fills and one consumer
 * empties, each in its own time, neither waiting for the other. The two do not trust each other:
 * the producer may be a kernel and the consumer a program, or the producer a guest and the consumer
 * its host. Each keeps its own position and the sizes to itself, takes the other's from shared
 * memory as a claim, and stays inside the data whatever it is.
 *
 * Shared memory is a struct vmp_ring_page at the start of the first page, and data from data_offset
 * on. Records follow each other in the data, which is used as a circle: a record may go over its
 * end.
 *
 * What did not fit is counted in the page, and said in the data by a VMP_REC_LOST record as soon as
 * there is room: a consumer knows where in time samples are missing.
 */
#ifndef VMPROF_CORE_RING_H
#define VMPROF_CORE_RING_H

#include "core.h"

#define VMP_RING_MAGIC	 0x52504d56u /* "VMPR", little-endian */
#define VMP_RING_VERSION 1

struct vmp_ring_page {
	u32 magic;
	u32 version;
	u64 data_offset; /* bytes from the start of this page */
	u64 data_size;	 /* bytes; a power of 2 */
	u64 lost;	 /* records that did not fit, ever */
	u8 reserved1[32];
	/* Bytes ever written, ever read. Each has a cache line of its own, since each side writes
	 * one. */
	u64 head;
	u8 reserved2[56];
	u64 tail;
	u8 reserved3[56];
};

/* Every record starts with this. Types that a reader does not know are skipped by size. */
struct vmp_record {
	u32 size; /* bytes of the record with this header; a multiple of 8, at most VMP_RECORD_MAX
		   */
	u32 type; /* VMP_REC_... */
};

#define VMP_RECORD_MAX	      65536

#define VMP_REC_LOST	      1 /* struct vmp_lost */
#define VMP_REC_SAMPLE	      2 /* sample.h, as those that follow */
#define VMP_REC_GUEST_SAMPLE  3
#define VMP_REC_GUEST_TASK    4
#define VMP_REC_GUEST_PROCESS 5
#define VMP_REC_GUEST_MAP     6

struct vmp_lost {
	struct vmp_record header;
	u64 records; /* that are missing between the record before this one and the one behind it */
};

/* ------------------------------------------------------------------ producer */

struct vmp_ring {
	struct vmp_ring_page *page; /* shared */
	u8 *data;		    /* shared */
	u64 size;
	u64 head;
	u64 lost;   /* ever */
	u64 untold; /* of these, not yet in a VMP_REC_LOST */
};

/*
 * Prepares memory of page_size + size bytes: header in the first page_size bytes, data behind it.
 * size is a power of 2 and at least VMP_RECORD_MAX. 0 or -VMP_EINVAL.
 */
int vmp_ring_init(struct vmp_ring *ring, void *memory, u64 page_size, u64 size);

struct vmp_part {
	const void *data;
	u32 size;
};

/*
 * Appends one record that is made of the parts, the first of which starts with its struct
 * vmp_record. The sizes of the parts add up to header.size. 0 or -VMP_EFULL: it did not fit and is
 * counted as lost. Takes no lock: never called by two at a time, nor from an interrupt within
 * itself.
 */
int vmp_ring_write(struct vmp_ring *ring, const struct vmp_part *parts, u32 nr);

/* Bytes that wait to be read, as the consumer tells. One that claims to have read what was never
 * written, or to be further behind than there is room for, gets nothing more: the ring is full. */
static inline u64 vmp_ring_used(const struct vmp_ring *ring)
{
	u64 used = ring->head - vmp_load_acquire(&ring->page->tail);

	return used > ring->size ? ring->size : used;
}

/*
 * A shorter way for a record that lies whole in the data: where it is to be put, or null, and
 * vmp_ring_write() has to do it. It is in the ring after vmp_ring_commit() with the same size;
 * nothing else is written in between.
 */
static inline void *vmp_ring_place(const struct vmp_ring *ring, u32 size)
{
	u64 at = ring->head & (ring->size - 1);

	if (ring->untold || at + size > ring->size || size > ring->size - vmp_ring_used(ring))
		return 0;
	return ring->data + at;
}

static inline void vmp_ring_commit(struct vmp_ring *ring, u32 size)
{
	ring->head += size;
	vmp_store_release(&ring->page->head, ring->head);
}

/* Counts records as lost that never came as far as vmp_ring_write(). */
void vmp_ring_missed(struct vmp_ring *ring, u64 records);

/* ------------------------------------------------------------------ consumer */

struct vmp_reader {
	struct vmp_ring_page *page; /* shared */
	const u8 *data;		    /* shared */
	u64 size;
	u64 tail;
};

/* Starts to read the ring in these bytes of memory. 0 or -VMP_ECORRUPT: it is none, or leaves the
 * memory. */
int vmp_reader_init(struct vmp_reader *reader, void *memory, u64 bytes);

/*
 * Copies the next record into buf and frees its place. Returns its size; 0 if there is none;
 * -VMP_EFULL if it is larger than room bytes: it is skipped; -VMP_ECORRUPT if what is there cannot
 * be: all that waits is skipped. What is in buf cannot be changed by the producer any more.
 */
long vmp_ring_read(struct vmp_reader *reader, void *buf, u32 room);

#endif
