// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside the columns: columns.c has the table, and most of those of samples, columns_value.c those
 * of what a sample has besides, columns_source.c those of source lines, columns_branch.c those of
 * branches and what both print alike.
 */
#ifndef VMPROF_REPORT_COLUMNS_H
#define VMPROF_REPORT_COLUMNS_H

#include "report/hist.h"

#define ADDRESS_WIDTH 16 /* hex digits */

static inline int column_by_number(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/*
 * Like perf, by the sign of the difference: the kernel's come first. Where unwinding went astray
 * there are addresses so far apart that this is no order; rborder() has perf's all the same.
 */
static inline int column_by_address(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0 ? -1 : a != b;
}

/* @width 0: neither padded nor cut. */
void column_text(struct buf *b, const char *s, unsigned width);
/* "[k] name", or the address where it has none. */
void column_symbol(const struct hist *h, uint32_t frame, char level, uint64_t addr, unsigned width,
		   struct buf *b);
unsigned column_symbol_width(const struct hist *h, uint32_t frame);

/* Of some there are not all. */
#define COLUMN_FUNCTIONS(name)                                                                     \
	int column_##name##_sort(const struct hist *h, const struct hist_entry *x,                 \
				 const struct hist_entry *y);                                      \
	unsigned column_##name##_width(const struct hist *h, const struct hist_entry *e);          \
	void column_##name##_print(const struct hist *h, const struct hist_entry *e,               \
				   unsigned width, struct buf *b);
COLUMN_FUNCTIONS(dso_from)
COLUMN_FUNCTIONS(dso_to)
COLUMN_FUNCTIONS(symbol_from)
COLUMN_FUNCTIONS(symbol_to)
COLUMN_FUNCTIONS(mispredict)
COLUMN_FUNCTIONS(in_tx)
COLUMN_FUNCTIONS(abort)
COLUMN_FUNCTIONS(cycles)
COLUMN_FUNCTIONS(srcline)
COLUMN_FUNCTIONS(srcfile)
COLUMN_FUNCTIONS(srcline_from)
COLUMN_FUNCTIONS(srcline_to)
COLUMN_FUNCTIONS(symbol_size)
COLUMN_FUNCTIONS(parent)
COLUMN_FUNCTIONS(weight)
COLUMN_FUNCTIONS(local_weight)
COLUMN_FUNCTIONS(ins_lat)
COLUMN_FUNCTIONS(local_ins_lat)
COLUMN_FUNCTIONS(stage_cycles)
COLUMN_FUNCTIONS(local_stage_cycles)
COLUMN_FUNCTIONS(code_page_size)
COLUMN_FUNCTIONS(time)
COLUMN_FUNCTIONS(transaction)
COLUMN_FUNCTIONS(locked)
COLUMN_FUNCTIONS(tlb)
COLUMN_FUNCTIONS(mem)
COLUMN_FUNCTIONS(snoop)
COLUMN_FUNCTIONS(blocked)
COLUMN_FUNCTIONS(phys_daddr)
COLUMN_FUNCTIONS(data_page_size)
#undef COLUMN_FUNCTIONS

uint64_t column_parent_id(const struct hist *h, const struct context *ctx);
uint64_t column_weight_id(const struct hist *h, const struct context *ctx);
uint64_t column_ins_lat_id(const struct hist *h, const struct context *ctx);
uint64_t column_stage_cycles_id(const struct hist *h, const struct context *ctx);
uint64_t column_code_page_size_id(const struct hist *h, const struct context *ctx);
uint64_t column_time_id(const struct hist *h, const struct context *ctx);
uint64_t column_transaction_id(const struct hist *h, const struct context *ctx);
uint64_t column_locked_id(const struct hist *h, const struct context *ctx);
uint64_t column_tlb_id(const struct hist *h, const struct context *ctx);
uint64_t column_mem_id(const struct hist *h, const struct context *ctx);
uint64_t column_snoop_id(const struct hist *h, const struct context *ctx);
uint64_t column_blocked_id(const struct hist *h, const struct context *ctx);
uint64_t column_phys_daddr_id(const struct hist *h, const struct context *ctx);
uint64_t column_data_page_size_id(const struct hist *h, const struct context *ctx);

#endif
