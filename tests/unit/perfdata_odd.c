// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files that are whole and odd: samples without attributes, records and features of a later perf,
 * losses that cannot be, indexes that name an id twice, files that grow. As a program for
 * tests/cli: perfdata_odd KIND FILE writes one.
 */
#include <errno.h>

#include "tests/unit/perfdata_build.h"
#include "tests/unit/test.h"

static struct vmprof_err err;

static void add_samples(struct build *b, unsigned n)
{
	simple_comm(b, 1, 100, "sh");
	for (unsigned i = 0; i < n; i++)
		simple_sample(b, 1, 1000 + i, 0x1000 + i);
}

static void add_lost(struct build *b, uint32_t type, uint64_t lost)
{
	begin_record(b, type, 0);
	if (type == PERF_RECORD_LOST)
		put64(b, 1);
	put64(b, lost);
	simple_trailer(b, 1, 2000);
	end_record(b);
}

static void add_unknown(struct build *b, uint32_t type)
{
	begin_record(b, type, 0);
	put64(b, 0);
	simple_trailer(b, 1, 3000);
	end_record(b);
}

/* What is compressed is nothing; the later type says so itself. */
static void add_empty(struct build *b, uint32_t type)
{
	begin_record(b, type, 0);
	if (type == PERFDATA_COMPRESSED2)
		put64(b, 0);
	end_record(b);
}

/* Both are of one id; the last one counts. */
static void add_index(struct build *b)
{
	begin_record(b, PERFDATA_ID_INDEX, 0);
	put64(b, 2);
	for (int i = 0; i < 2; i++) {
		put64(b, 1);
		buf_zero(&b->data, 24);
	}
	for (uint64_t i = 0; i < 2; i++) {
		put64(b, 70 + i);
		put64(b, i);
	}
	end_record(b);
}

static void no_attributes(struct buf *image)
{
	memset(image->data + 32, 0, 8);
}

/* Bits that no perf has yet, the sections of which lie over the data. */
static void unknown_features(struct buf *image)
{
	const uint64_t section[2] = {264, 8};

	image->data[72 + 7] |= 0xc0;
	for (int i = 0; i < 2; i++)
		buf_add(image, section, sizeof(section));
}

enum { NO_ATTRIBUTES, UNKNOWN, LOST, TWICE, STRAY, EMPTY, KINDS };
static const char *const kinds[] = {"no-attributes", "unknown", "lost", "twice", "stray", "empty"};

static void make(int kind, struct buf *image)
{
	struct build b = {.sample_type = SIMPLE_TYPE, .ids = {1, 2}, .nr_events = 2};

	if (kind == TWICE)
		add_index(&b);
	add_samples(&b, 6);
	if (kind == UNKNOWN) {
		add_unknown(&b, 40);
		add_unknown(&b, 200);
		add_unknown(&b, 200);
	}
	if (kind == LOST) {
		add_lost(&b, PERF_RECORD_LOST_SAMPLES, UINT64_MAX);
		add_lost(&b, PERF_RECORD_LOST_SAMPLES, 7);
		add_lost(&b, PERF_RECORD_LOST, UINT64_MAX);
	}
	for (int i = 0; kind == EMPTY && i < 2000; i++)
		add_empty(&b, i % 2 ? PERFDATA_COMPRESSED : PERFDATA_COMPRESSED2);
	if (kind == STRAY)
		simple_sample(&b, 99, 4000, 0x2000);
	build_image(&b, image);
	buf_free(&b.data);
	if (kind == NO_ATTRIBUTES)
		no_attributes(image);
	if (kind == UNKNOWN)
		unknown_features(image);
}

/* ---------- the tests ---------- */

struct seen {
	unsigned samples;
	int32_t machine;
	int fd; /* grows with each sample */
};

static int count(void *ctx, const struct perfdata_record *rec)
{
	struct seen *s = ctx;

	if (rec->type != PERF_RECORD_SAMPLE)
		return 0;
	s->samples++;
	s->machine = rec->machine_pid;
	return s->fd && write(s->fd, "more", 4) != 4 ? -EIO : 0;
}

static int read_kind(int kind, struct seen *s, struct perfdata_reader_stats *st)
{
	struct buf image;
	int ret;

	make(kind, &image);
	ret = read_image(&image, count, s, st, &err);
	buf_free(&image);
	return ret;
}

static void test_no_attributes(void)
{
	struct perfdata_reader_stats st;
	struct seen s = {0};

	CHECK_EQ(read_kind(NO_ATTRIBUTES, &s, &st), -EBADMSG);
	CHECK(strstr(err.msg, "a sample, and no attribute says what is in it"));
	CHECK_EQ(s.samples, 0);
	CHECK_EQ(st.broken, 6);
}

static void test_unknown(void)
{
	struct perfdata_reader_stats st;
	struct seen s = {0};

	CHECK_EQ(read_kind(UNKNOWN, &s, &st), 0);
	CHECK_EQ(s.samples, 6);
	CHECK_EQ(st.unknown, 3);
	CHECK_EQ(st.unknown_features, 2);
}

static void test_empty(void)
{
	struct perfdata_reader_stats st;
	struct seen s = {0};

	CHECK_EQ(read_kind(EMPTY, &s, &st), 0);
	CHECK_EQ(s.samples, 6);
	CHECK_EQ(st.empty_compressed, 2000);
}

static void test_lost(void)
{
	struct perfdata_reader_stats st;
	struct seen s = {0};

	CHECK_EQ(read_kind(LOST, &s, &st), 0);
	CHECK_EQ(s.samples, 6);
	CHECK_EQ(st.lost, UINT64_MAX);
}

static void test_twice(void)
{
	struct perfdata_reader_stats st;
	struct seen s = {0};

	CHECK_EQ(read_kind(TWICE, &s, &st), 0);
	CHECK_EQ(s.samples, 6);
	CHECK_EQ(s.machine, 71);
}

static void test_stray(void)
{
	struct perfdata_reader_stats st;
	struct seen s = {0};

	CHECK_EQ(read_kind(STRAY, &s, &st), 0);
	CHECK_EQ(s.samples, 6);
	CHECK_EQ(st.no_event, 1);
}

/* What comes behind the data while they are read is no part of them. */
static void test_growing(void)
{
	struct seen s = {0};
	struct perfdata_reader *r;
	struct buf image;

	make(TWICE, &image);
	s.fd = temp_fd(image.data, image.len);
	CHECK_EQ(open_fd(&r, s.fd, &err), 0);
	CHECK_EQ(perfdata_reader_run(r, count, &s, &err), 0);
	CHECK_EQ(s.samples, 6);
	perfdata_reader_close(r);
	close(s.fd);
	buf_free(&image);
}

static int write_kind(const char *kind, const char *path)
{
	struct buf image;
	FILE *f = fopen(path, "w");
	int i = 0;

	while (i < KINDS && strcmp(kinds[i], kind) != 0)
		i++;
	if (!f || i == KINDS)
		return 2;
	make(i, &image);
	fwrite(image.data, 1, image.len, f);
	buf_free(&image);
	return fclose(f) ? 1 : 0;
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return write_kind(argv[1], argv[2]);
	test_no_attributes();
	test_unknown();
	test_empty();
	test_lost();
	test_twice();
	test_stray();
	test_growing();
	return test_done();
}
