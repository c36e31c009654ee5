// SPDX-License-Identifier: GPL-2.0-only
/*
 * A recording into a pipe of tracepoints, put together byte by byte: their formats, records of one.
 */
#ifndef VMPROF_TESTS_UNIT_TRACEPOINT_MAKE_H
#define VMPROF_TESTS_UNIT_TRACEPOINT_MAKE_H

#include <string.h>

#include "perfdata/format.h"
#include "util/buf.h"

#define TRACEPOINT_ID 42

static inline void tracepoint_attr(struct buf *b)
{
	const struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
					     .size = sizeof(attr),
					     .config = TRACEPOINT_ID,
					     .sample_type = PERF_SAMPLE_RAW};
	const struct perf_event_header h = {.type = PERFDATA_HEADER_ATTR,
					    .size = sizeof(h) + sizeof(attr)};

	buf_add(b, &h, sizeof(h));
	buf_add(b, &attr, sizeof(attr));
}

struct tracepoint_text {
	const void *format;
	size_t size;
};

/* What trace data has of @n tracepoints of one system. */
static inline void tracepoint_formats(struct buf *b, const char *system,
				      const struct tracepoint_text *texts, uint32_t n_texts)
{
	static const char page[] = "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n";
	const struct perf_event_header h = {.type = PERFDATA_TRACING_DATA, .size = sizeof(h) + 4};
	size_t at, end;
	uint32_t n;

	buf_add(b, &h, sizeof(h));
	at = b->len;
	buf_u32(b, 0);
	buf_add(b, "\x17\x08\x44tracing0.6\0\0\x08", 16);
	buf_u32(b, 4096);
	buf_add(b, "header_page", 12);
	buf_u64(b, sizeof(page) - 1);
	buf_add(b, page, sizeof(page) - 1);
	buf_add(b, "header_event", 13);
	buf_u64(b, 0);
	buf_u32(b, 0); /* ftrace's own */
	buf_u32(b, 1);
	buf_add(b, system, strlen(system) + 1);
	buf_u32(b, n_texts);
	for (uint32_t i = 0; i < n_texts; i++) {
		buf_u64(b, texts[i].size);
		buf_add(b, texts[i].format, texts[i].size);
	}
	buf_zero(b, 16); /* no kallsyms, printk, command names */
	end = b->len;
	n = (uint32_t)(end - at - 4);
	memcpy(b->data + at, &n, sizeof(n));
	buf_zero(b, (8 - n % 8) % 8);
}

static inline void tracepoint_format(struct buf *b, const void *format, size_t size)
{
	tracepoint_formats(b, "fuzz", &(struct tracepoint_text){format, size}, 1);
}

static inline void tracepoint_sample(struct buf *b, const void *record, uint32_t size)
{
	size_t padded = (size + 4 + 7u) / 8 * 8;
	const struct perf_event_header h = {.type = PERF_RECORD_SAMPLE,
					    .size = (uint16_t)(sizeof(h) + padded)};

	buf_add(b, &h, sizeof(h));
	buf_u32(b, (uint32_t)(padded - 4));
	buf_add(b, record, size);
	buf_zero(b, padded - 4 - size);
}

static inline void tracepoint_start(struct buf *b, const void *format, size_t size)
{
	buf_add(b, "PERFILE2\x10\0\0\0\0\0\0", 16);
	tracepoint_attr(b);
	tracepoint_format(b, format, size);
}

#endif
