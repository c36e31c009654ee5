// SPDX-License-Identifier: GPL-2.0-only
/* Columns of what a sample has besides: numbers of the hardware, and the parent of its chain. */
#include <inttypes.h>
#include <string.h>

#include "report/columns.h"
#include "util/text.h"

/* perf says the sum where a column is not called local. */
static uint64_t sum_of(const struct hist *h, const struct hist_entry *e, enum sample_value v)
{
	return hist_context_of(h, e)->values[v] * hist_weights(h, e, 0)->samples;
}

static uint64_t value_of(const struct hist *h, const struct hist_entry *e, enum sample_value v)
{
	return hist_context_of(h, e)->values[v];
}

#define NUMBER_MIN_WIDTH 12

#define ID_AND_ORDER(name, value)                                                                  \
	uint64_t column_##name##_id(const struct hist *h, const struct context *ctx)               \
	{                                                                                          \
		return ctx->values[value];                                                         \
	}                                                                                          \
	int column_##name##_sort(const struct hist *h, const struct hist_entry *x,                 \
				 const struct hist_entry *y)                                       \
	{                                                                                          \
		return column_by_number(value_of(h, y, value), value_of(h, x, value));             \
	}

#define PRINTED(name, value, function)                                                             \
	unsigned column_##name##_width(const struct hist *h, const struct hist_entry *e)           \
	{                                                                                          \
		return NUMBER_MIN_WIDTH;                                                           \
	}                                                                                          \
	void column_##name##_print(const struct hist *h, const struct hist_entry *e,               \
				   unsigned width, struct buf *b)                                  \
	{                                                                                          \
		buf_printf(b, "%-*" PRIu64, (int)width, function(h, e, value));                    \
	}

ID_AND_ORDER(weight, SAMPLE_WEIGHT)
PRINTED(local_weight, SAMPLE_WEIGHT, value_of)
PRINTED(weight, SAMPLE_WEIGHT, sum_of)
ID_AND_ORDER(ins_lat, SAMPLE_INS_LAT)
PRINTED(local_ins_lat, SAMPLE_INS_LAT, value_of)
PRINTED(ins_lat, SAMPLE_INS_LAT, sum_of)
ID_AND_ORDER(stage_cycles, SAMPLE_STAGE_CYCLES)
PRINTED(local_stage_cycles, SAMPLE_STAGE_CYCLES, value_of)
PRINTED(stage_cycles, SAMPLE_STAGE_CYCLES, sum_of)
ID_AND_ORDER(code_page_size, SAMPLE_CODE_PAGE_SIZE)

static const char *parent_text(const struct hist *h, const struct hist_entry *e)
{
	const char *parent = hist_context_of(h, e)->parent;

	return parent ? parent : "[other]";
}

uint64_t column_parent_id(const struct hist *h, const struct context *ctx)
{
	return (uintptr_t)ctx->parent;
}

/* What has none stands last. */
int column_parent_sort(const struct hist *h, const struct hist_entry *x, const struct hist_entry *y)
{
	const char *a = hist_context_of(h, x)->parent, *b = hist_context_of(h, y)->parent;

	return a && b ? strcmp(a, b) : !a - !b;
}

unsigned column_parent_width(const struct hist *h, const struct hist_entry *e)
{
	return (unsigned)strlen(parent_text(h, e));
}

void column_parent_print(const struct hist *h, const struct hist_entry *e, unsigned width,
			 struct buf *b)
{
	column_text(b, parent_text(h, e), width);
}
