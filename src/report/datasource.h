// SPDX-License-Identifier: GPL-2.0-only
#ifndef VMPROF_REPORT_DATASOURCE_H
#define VMPROF_REPORT_DATASOURCE_H

#include <stdint.h>

#include <linux/perf_event.h>

#include "util/buf.h"

/* Of samples that do not say. */
#define DATASOURCE_NONE                                                                            \
	(PERF_MEM_S(OP, NA) | PERF_MEM_S(LVL, NA) | PERF_MEM_S(SNOOP, NA) | PERF_MEM_S(LOCK, NA) | \
	 PERF_MEM_S(TLB, NA))

/* Where an access found its data (union perf_mem_data_src), in perf's words. */
void datasource_put(struct buf *b, uint64_t value);
/* Parts of that. */
void datasource_level(struct buf *b, uint64_t value);
void datasource_snoop(struct buf *b, uint64_t value);
void datasource_tlb(struct buf *b, uint64_t value);
void datasource_lock(struct buf *b, uint64_t value);
void datasource_blocked(struct buf *b, uint64_t value);
/* "4K", "2M", "N/A". */
void datasource_page_size(struct buf *b, uint64_t size);

#endif
