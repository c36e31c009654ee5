// SPDX-License-Identifier: GPL-2.0-only
/* A look at a few words of each page of a guest's RAM: how page tables are found without registers.
 */
#ifndef VMPROF_GUEST_PAGE_SCAN_H
#define VMPROF_GUEST_PAGE_SCAN_H

#include <stdint.h>

#include "guest/mem.h"

#define PAGE_SCAN_PAGE	4096u
#define PAGE_SCAN_WORDS 2

struct page_scan {
	struct guest_mem *mem;
	unsigned nr_words;		  /* at most PAGE_SCAN_WORDS */
	unsigned offset[PAGE_SCAN_WORDS]; /* of each word in its page, bytes */
	/* @words: 0 those that cannot be read. Not 0 ends the scan. */
	int (*page)(void *ctx, uint64_t gpa, const uint64_t *words);
	void *ctx;
};

/* 0 at the end of RAM, what page() or the guest's memory returned, or -ETIMEDOUT after 2 s of this
 * thread. */
int page_scan(const struct page_scan *scan);

#endif
