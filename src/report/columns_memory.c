// SPDX-License-Identifier: GPL-2.0-only
/* Columns of when a sample was taken, in which transaction, and what its access to memory found. */
#include <inttypes.h>
#include <string.h>

#include <linux/perf_event.h>

#include "report/columns.h"
#include "report/datasource.h"

static uint64_t value_of(const struct hist *h, const struct hist_entry *e, enum sample_value v)
{
	return hist_context_of(h, e)->values[v];
}

/* What differs from the others of its kind: @bits of it. */
#define ID(name, value, bits)                                                                      \
	static uint64_t name##_bits(uint64_t v)                                                    \
	{                                                                                          \
		return bits;                                                                       \
	}                                                                                          \
	uint64_t column_##name##_id(const struct hist *h, const struct context *ctx)               \
	{                                                                                          \
		return name##_bits(ctx->values[value]);                                            \
	}

/* The smallest first. */
#define RISING(name, value)                                                                        \
	int column_##name##_sort(const struct hist *h, const struct hist_entry *x,                 \
				 const struct hist_entry *y)                                       \
	{                                                                                          \
		return column_by_number(name##_bits(value_of(h, x, value)),                        \
					name##_bits(value_of(h, y, value)));                       \
	}

#define WIDTH(name, least)                                                                         \
	unsigned column_##name##_width(const struct hist *h, const struct hist_entry *e)           \
	{                                                                                          \
		return least;                                                                      \
	}

/* By @put; longer texts are cut where @cut, and stand over where perf lets them. */
#define PRINTED(name, value, put, cut)                                                             \
	void column_##name##_print(const struct hist *h, const struct hist_entry *e,               \
				   unsigned width, struct buf *b)                                  \
	{                                                                                          \
		size_t start = b->len;                                                             \
                                                                                                   \
		put(b, value_of(h, e, value));                                                     \
		finish(b, start, width, cut);                                                      \
	}

static void finish(struct buf *b, size_t start, unsigned width, bool cut)
{
	size_t len = b->len - start;

	if (width && cut && len > width)
		b->len = start + width;
	if (width && !cut && len < width)
		buf_printf(b, "%*s", (int)(width - len), "");
}

static void put_time(struct buf *b, uint64_t ns)
{
	buf_printf(b, "%" PRIu64 ".%06" PRIu64, ns / 1000000000, ns / 1000 % 1000000);
}

ID(time, SAMPLE_TIME, v)
RISING(time, SAMPLE_TIME)
WIDTH(time, 12)
PRINTED(time, SAMPLE_TIME, put_time, true)

static const struct {
	uint64_t bit;
	const char *name;
	bool excluded; /* by one of the others: it adds nothing to the width */
} transactions[] = {
	{PERF_TXN_ELISION, "EL ", false},
	{PERF_TXN_TRANSACTION, "TX ", true},
	{PERF_TXN_SYNC, "SYNC ", true},
	{PERF_TXN_ASYNC, "ASYNC ", false},
	{PERF_TXN_RETRY, "RETRY ", false},
	{PERF_TXN_CONFLICT, "CON ", false},
	{PERF_TXN_CAPACITY_WRITE, "CAP-WRITE ", true},
	{PERF_TXN_CAPACITY_READ, "CAP-READ ", false},
};
enum { NR_TRANSACTION_BITS = sizeof(transactions) / sizeof(*transactions) };

static void put_transaction(struct buf *b, uint64_t v)
{
	for (unsigned i = 0; i < NR_TRANSACTION_BITS; i++)
		if (v & transactions[i].bit)
			buf_printf(b, "%s", transactions[i].name);
	if (v && !(v & (PERF_TXN_SYNC | PERF_TXN_ASYNC)))
		buf_printf(b, "NEITHER ");
	if (v & PERF_TXN_ABORT_MASK)
		buf_printf(b, ":%" PRIx64, (v & PERF_TXN_ABORT_MASK) >> PERF_TXN_ABORT_SHIFT);
}

ID(transaction, SAMPLE_TRANSACTION, v)
PRINTED(transaction, SAMPLE_TRANSACTION, put_transaction, false)

int column_transaction_sort(const struct hist *h, const struct hist_entry *x,
			    const struct hist_entry *y)
{
	return column_by_number(value_of(h, y, SAMPLE_TRANSACTION),
				value_of(h, x, SAMPLE_TRANSACTION));
}

/* All names that can be together, and 4 for the abort's code. */
unsigned column_transaction_width(const struct hist *h, const struct hist_entry *e)
{
	unsigned width = 4;

	for (unsigned i = 0; i < NR_TRANSACTION_BITS; i++)
		width += transactions[i].excluded ? 0 : (unsigned)strlen(transactions[i].name);
	return value_of(h, e, SAMPLE_TRANSACTION) ? width : 0;
}

#define SOURCE_BITS(member) ((union perf_mem_data_src){.val = v}.member)
#define SOURCE_COLUMN(name, member, width, put, cut)                                               \
	ID(name, SAMPLE_DATA_SOURCE, SOURCE_BITS(member))                                          \
	RISING(name, SAMPLE_DATA_SOURCE)                                                           \
	WIDTH(name, width)                                                                         \
	PRINTED(name, SAMPLE_DATA_SOURCE, put, cut)

SOURCE_COLUMN(mem, mem_lvl, 24, datasource_level, false)
SOURCE_COLUMN(snoop, mem_snoop, 12, datasource_snoop, false)
SOURCE_COLUMN(tlb, mem_dtlb, 22, datasource_tlb, false)
SOURCE_COLUMN(locked, mem_lock, 6, datasource_lock, true)
SOURCE_COLUMN(blocked, mem_blk, 10, datasource_blocked, true)

ID(phys_daddr, SAMPLE_PHYS_ADDR, v)
RISING(phys_daddr, SAMPLE_PHYS_ADDR)
WIDTH(phys_daddr, 22)

void column_phys_daddr_print(const struct hist *h, const struct hist_entry *e, unsigned width,
			     struct buf *b)
{
	size_t start = b->len;

	buf_printf(b, "[%c] %#.16" PRIx64, e->level, value_of(h, e, SAMPLE_PHYS_ADDR));
	finish(b, start, width, false);
}

ID(data_page_size, SAMPLE_DATA_PAGE_SIZE, v)
RISING(data_page_size, SAMPLE_DATA_PAGE_SIZE)
WIDTH(data_page_size, 22)
PRINTED(data_page_size, SAMPLE_DATA_PAGE_SIZE, datasource_page_size, false)

WIDTH(code_page_size, 12)
PRINTED(code_page_size, SAMPLE_CODE_PAGE_SIZE, datasource_page_size, false)
