// SPDX-License-Identifier: GPL-2.0-only
#include "guest/page_scan.h"

#include <errno.h>
#include <time.h>

#define BATCH	   256 /* words that are read in one call */
#define CPU_MAX_NS 2000000000ull

static uint64_t cpu_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* Reads a batch of pages from @at on and shows them; @at becomes the next page's address. */
static int scan_batch(const struct page_scan *scan, uint64_t *at, uint64_t end)
{
	struct guest_mem_io io[BATCH];
	uint64_t words[BATCH], first = *at;
	unsigned per_page = scan->nr_words, n = 0;
	int rc;

	for (; n + per_page <= BATCH && *at + PAGE_SCAN_PAGE <= end; *at += PAGE_SCAN_PAGE)
		for (unsigned k = 0; k < per_page; k++, n++)
			io[n] = (struct guest_mem_io){
				.gpa = *at + scan->offset[k], .buf = &words[n], .len = 8};
	rc = scan->mem->ops->readv(scan->mem, io, n);
	for (unsigned i = 0; i < n; i++)
		if (!io[i].ok)
			words[i] = 0;
	for (unsigned i = 0; i < n && !rc; i += per_page)
		rc = scan->page(scan->ctx, first + (uint64_t)(i / per_page) * PAGE_SCAN_PAGE,
				&words[i]);
	return rc;
}

int page_scan(const struct page_scan *scan)
{
	uint64_t cpu_end = cpu_now() + CPU_MAX_NS, next = 0, start, len;
	int rc = 0;

	while (!rc && scan->mem->ops->next_range(scan->mem, next, &start, &len)) {
		if (start < next || !len)
			break;
		next = start + len;
		start = (start + PAGE_SCAN_PAGE - 1) & ~(uint64_t)(PAGE_SCAN_PAGE - 1);
		while (!rc && start + PAGE_SCAN_PAGE <= next) {
			rc = scan_batch(scan, &start, next);
			if (!rc && cpu_now() > cpu_end)
				rc = -ETIMEDOUT;
		}
	}
	return rc;
}
