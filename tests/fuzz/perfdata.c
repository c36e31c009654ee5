// SPDX-License-Identifier: GPL-2.0-only
/*
 * perf.data files and pipes, whole: header printed, events, build ids and all records touched. What
 * is handed out must be inside its record. An input of an odd size goes through a pipe.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perfdata/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PIPE_MAX 60000 /* fits into a pipe that nobody reads yet */

struct use {
	uint64_t sum;
};

static void touch(struct use *u, const struct perfdata_record *rec, const void *p, size_t n)
{
	const uint8_t *b = p, *start = (const uint8_t *)rec->header;

	if (b < start || b + n > start + rec->header->size)
		abort();
	for (size_t i = 0; i < n; i++)
		u->sum += b[i];
}

static void touch_string(struct use *u, const struct perfdata_record *rec, const char *s)
{
	touch(u, rec, s, strlen(s) + 1);
}

static void touch_map(struct use *u, const struct perfdata_record *rec)
{
	if (rec->is_private) {
		u->sum += strlen(rec->private.word);
		touch_string(u, rec, rec->private.json);
		return;
	}
	touch_string(u, rec, rec->mmap.filename);
	if (rec->mmap.build_id)
		touch(u, rec, rec->mmap.build_id, rec->mmap.build_id_len);
}

static void touch_parts(struct use *u, const struct perfdata_record *rec)
{
	const struct perfdata_parts *p = rec->parts;

	if (p->regs_user.words)
		touch(u, rec, p->regs_user.words,
		      (size_t)__builtin_popcountll(p->regs_user.mask) * 8);
	if (p->regs_intr.words)
		touch(u, rec, p->regs_intr.words,
		      (size_t)__builtin_popcountll(p->regs_intr.mask) * 8);
	if (p->stack_size)
		touch(u, rec, p->stack, p->stack_size);
}

static int use_record(void *ctx, const struct perfdata_record *rec)
{
	struct use *u = ctx;

	touch(u, rec, rec->header, rec->header->size);
	if (rec->chain_len)
		touch(u, rec, rec->chain, rec->chain_len * 8);
	if (rec->raw_size)
		touch(u, rec, rec->raw, rec->raw_size);
	if (rec->type == PERF_RECORD_SAMPLE && rec->parts && rec->evsel)
		touch_parts(u, rec);
	if (rec->type == PERF_RECORD_COMM)
		touch_string(u, rec, rec->comm.comm);
	if (rec->type == PERF_RECORD_MMAP || rec->type == PERF_RECORD_MMAP2)
		touch_map(u, rec);
	if (rec->type == PERF_RECORD_SAMPLE && !rec->evsel)
		abort();
	if (rec->evsel)
		u->sum += strlen(rec->evsel->name) + rec->evsel->nr_ids;
	return 0;
}

static void use_header(struct use *u, struct perfdata_reader *r, FILE *null)
{
	const struct perfdata_reader_build_id *ids;
	size_t n = perfdata_reader_build_ids(r, &ids);

	for (size_t i = 0; i < n; i++)
		for (uint8_t k = 0; k < ids[i].len; k++)
			u->sum += ids[i].id[k] + strlen(ids[i].filename);
	for (int i = 0; i < 64; i++) {
		const char *s = perfdata_reader_feature_str(r, (enum perfdata_feature)i);

		u->sum += s ? strlen(s) : 0;
	}
	perfdata_reader_print_header(r, null, true);
}

/* The input as something to open; -1 if there is no such thing. */
static int input_fd(const uint8_t *data, size_t size)
{
	int fds[2], fd;

	if (size % 2 == 0 || size > PIPE_MAX) {
		fd = memfd_create("perfdata", MFD_CLOEXEC);
		if (fd >= 0 && write(fd, data, size) != (ssize_t)size)
			abort();
		return fd;
	}
	if (pipe(fds))
		return -1;
	if (write(fds[1], data, size) != (ssize_t)size)
		abort();
	close(fds[1]);
	return fds[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *null;
	int fd = input_fd(data, size), ret;
	struct perfdata_reader *r = NULL;
	struct vmprof_err err = {0};
	struct use u = {0};
	char path[64];

	if (fd < 0)
		return 0;
	if (!null)
		null = fopen("/dev/null", "w");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = perfdata_reader_open(&r, path, &err);
	if (!ret != !!r)
		abort();
	if (r) {
		use_header(&u, r, null);
		ret = perfdata_reader_run(r, use_record, &u, &err);
		use_header(&u, r, null);
	}
	if (ret && (ret > 0 || !err.msg[0]))
		abort();
	perfdata_reader_close(r);
	close(fd);
	return 0;
}
