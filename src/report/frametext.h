// SPDX-License-Identifier: GPL-2.0-only
/*
 * Frames as they are printed. Each distinct address of each address space is resolved and put into
 * words once; what is remembered of that is bounded.
 */
#ifndef VMPROF_REPORT_FRAMETEXT_H
#define VMPROF_REPORT_FRAMETEXT_H

#include "report/filter.h"
#include "report/keyset.h"
#include "symbolize/machine.h"
#include "util/buf.h"

enum frametext_how {
	FRAMETEXT_IP = 1 << 0,
	FRAMETEXT_SYM = 1 << 1,
	FRAMETEXT_SYMOFF = 1 << 2,
	FRAMETEXT_DSO = 1 << 3,
	/* A line of its own, with a tab before and the address as the file has it. */
	FRAMETEXT_LINE = 1 << 4,
	FRAMETEXT_SRCLINE = 1 << 5,
	FRAMETEXT_FULL_PATH = 1 << 6, /* of the source file */
	/* Before the line one for each function that is inlined there. */
	FRAMETEXT_INLINED = 1 << 7,
	FRAMETEXT_BEHIND_CALL = 1 << 8, /* the address is a caller's: enum frame_address */
};

struct frametext_frame {
	uint32_t at, len; /* in the text */
	bool wanted;	  /* by the filter */
};

#define FRAMETEXT_RECENT 8192 /* power of two */

struct frametext {
	struct session *session;
	struct strtab *texts;
	const struct report_filter *filter;
	struct thread *thread; /* whose frames are asked for */

	struct keyset keys; /* state of its maps, how and cpumode; address */
	struct frametext_frame *frames;
	size_t cap;
	struct buf text;
	/* Found last in this place of the table: most frames are in one sample after the other. */
	struct {
		uint64_t key[2];
		uint32_t id; /* + 1 */
	} recent[FRAMETEXT_RECENT];
};

/* All must outlive @ft. */
void frametext_init(struct frametext *ft, struct session *session, struct strtab *texts,
		    const struct report_filter *filter);
void frametext_free(struct frametext *ft);
void frametext_thread(struct frametext *ft, struct thread *t);
/* A frame of that thread, valid until the next call. */
const struct frametext_frame *frametext_get(struct frametext *ft, uint8_t cpumode, uint64_t ip,
					    unsigned how);

/* The address of a frame as it is printed: in user space of its file. */
uint64_t frametext_address(const struct location *loc);

static inline void frametext_put(const struct frametext *ft, const struct frametext_frame *f,
				 struct buf *b)
{
	buf_add(b, ft->text.data + f->at, f->len);
}

#endif
