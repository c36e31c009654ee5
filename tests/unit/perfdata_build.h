// SPDX-License-Identifier: GPL-2.0-only
/*
 * perf.data files put together byte by byte, in either byte order, right or wrong, for tests of the
 * reader. A file has one event or several with the same attribute, and the data that is added.
 */
#ifndef VMPROF_TESTS_UNIT_PERFDATA_BUILD_H
#define VMPROF_TESTS_UNIT_PERFDATA_BUILD_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perfdata/reader.h"
#include "util/buf.h"

struct build {
	bool swap; /* the other byte order */
	bool pipe;
	uint64_t sample_type, read_format, branch_sample_type, regs_user, regs_intr;
	uint64_t ids[8];
	size_t nr_events; /* event i has ids[i] */
	struct buf data;
	size_t record; /* where the record begun last starts */
};

static inline void put16(struct build *b, uint16_t v)
{
	buf_u16(&b->data, b->swap ? __builtin_bswap16(v) : v);
}

static inline void put32(struct build *b, uint32_t v)
{
	buf_u32(&b->data, b->swap ? __builtin_bswap32(v) : v);
}

static inline void put64(struct build *b, uint64_t v)
{
	buf_u64(&b->data, b->swap ? __builtin_bswap64(v) : v);
}

static inline void put_str(struct build *b, const char *s)
{
	buf_add(&b->data, s, strlen(s));
	buf_zero(&b->data, 8 - strlen(s) % 8);
}

static inline void begin_record(struct build *b, uint32_t type, uint16_t misc)
{
	b->record = b->data.len;
	put32(b, type);
	put16(b, misc);
	put16(b, 0);
}

static inline void end_record(struct build *b)
{
	uint16_t size = (uint16_t)(b->data.len - b->record);

	size = b->swap ? __builtin_bswap16(size) : size;
	memcpy(b->data.data + b->record + 6, &size, 2);
}

/* A sample of type IDENTIFIER IP TID TIME PERIOD, and the trailer of that type. */
#define SIMPLE_TYPE                                                                                \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_PERIOD)

static inline void simple_sample(struct build *b, uint64_t id, uint64_t time, uint64_t ip)
{
	begin_record(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put64(b, id);
	put64(b, ip);
	put32(b, 11);
	put32(b, 12);
	put64(b, time);
	put64(b, 1);
	end_record(b);
}

static inline void simple_trailer(struct build *b, uint64_t id, uint64_t time)
{
	put32(b, 11);
	put32(b, 12);
	put64(b, time);
	put64(b, id);
}

static inline void simple_comm(struct build *b, uint64_t id, uint64_t time, const char *comm)
{
	begin_record(b, PERF_RECORD_COMM, PERF_RECORD_MISC_USER);
	put32(b, 11);
	put32(b, 12);
	put_str(b, comm);
	simple_trailer(b, id, time);
	end_record(b);
}

static inline void finished_round(struct build *b)
{
	begin_record(b, PERFDATA_FINISHED_ROUND, 0);
	end_record(b);
}

/* 128 bytes: mmap, comm, freq off, task, sample_id_all. */
static inline void put_attr(struct build *b)
{
	size_t at = b->data.len;
	uint64_t flags = 1ull << 8 | 1ull << 9 | 1ull << 13 | 1ull << 18;

	put32(b, PERF_TYPE_SOFTWARE);
	put32(b, 128);
	put64(b, PERF_COUNT_SW_CPU_CLOCK);
	put64(b, 4000);
	put64(b, b->sample_type);
	put64(b, b->read_format);
	for (int i = 0; i < 8; i++) {
		uint8_t byte = (uint8_t)(flags >> 8 * i), turned = 0;

		for (int k = 0; k < 8; k++)
			turned = (uint8_t)(turned | (byte >> k & 1) << (7 - k));
		buf_add(&b->data, b->swap ? &turned : &byte, 1);
	}
	put64(b, 0);
	put64(b, 0);
	put64(b, 0);
	put64(b, b->branch_sample_type);
	put64(b, b->regs_user);
	put64(b, 0);
	put64(b, b->regs_intr);
	buf_zero(&b->data, at + 128 - b->data.len);
}

/* The whole file or pipe, with @b's data, into @out. */
static inline void build_image(const struct build *b, struct buf *out)
{
	struct build h = *b;
	uint64_t attrs = 104 + 8 * b->nr_events, data = attrs + 144 * b->nr_events;

	h.data = (struct buf){0};
	put64(&h, PERFDATA_MAGIC);
	put64(&h, b->pipe ? 16 : 104);
	for (size_t i = 0; b->pipe && i < b->nr_events; i++) {
		begin_record(&h, PERFDATA_HEADER_ATTR, 0);
		put_attr(&h);
		put64(&h, b->ids[i]);
		end_record(&h);
	}
	if (!b->pipe) {
		put64(&h, 144);
		put64(&h, attrs);
		put64(&h, 144 * b->nr_events);
		put64(&h, data);
		put64(&h, b->data.len);
		buf_zero(&h.data, 48);
		for (size_t i = 0; i < b->nr_events; i++)
			put64(&h, b->ids[i]);
		for (size_t i = 0; i < b->nr_events; i++) {
			put_attr(&h);
			put64(&h, 104 + 8 * i);
			put64(&h, 8);
		}
	}
	buf_add(&h.data, b->data.data, b->data.len);
	*out = h.data;
}

/* An unlinked file with these bytes. */
static inline int temp_fd(const void *p, size_t n)
{
	char path[] = "/tmp/vmprof-perfdata-XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	if (fd < 0 || write(fd, p, n) != (ssize_t)n)
		return -1;
	return fd;
}

static inline int open_fd(struct perfdata_reader **r, int fd, struct vmprof_err *err)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return perfdata_reader_open(r, path, err);
}

/* Opens an image, runs @fn over it and closes it. Returns what open or run returned. */
static inline int read_image(const struct buf *image,
			     int (*fn)(void *ctx, const struct perfdata_record *rec), void *ctx,
			     struct perfdata_reader_stats *stats, struct vmprof_err *err)
{
	int fd = temp_fd(image->data, image->len), ret;
	struct perfdata_reader *r;

	ret = open_fd(&r, fd, err);
	if (!ret) {
		ret = perfdata_reader_run(r, fn, ctx, err);
		if (stats)
			*stats = *perfdata_reader_get_stats(r);
	}
	perfdata_reader_close(r);
	close(fd);
	return ret;
}

static inline int read_build(struct build *b,
			     int (*fn)(void *ctx, const struct perfdata_record *rec), void *ctx,
			     struct perfdata_reader_stats *stats, struct vmprof_err *err)
{
	struct buf image;
	int ret;

	build_image(b, &image);
	ret = read_image(&image, fn, ctx, stats, err);
	buf_free(&image);
	return ret;
}

#endif
