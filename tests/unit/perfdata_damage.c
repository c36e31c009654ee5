// SPDX-License-Identifier: GPL-2.0-only
/*
 * Damaged files: cut at every byte, every byte changed, sizes that cannot be, sections that leave
 * the file, things that are no perf.data. Always a sentence, never a crash, and what is whole
 * before the damage is handed out.
 */
#include <errno.h>
#include <sys/stat.h>

#include "tests/unit/perfdata_build.h"
#include "tests/unit/perfdata_scenario.h"
#include "tests/unit/test.h"

static struct vmprof_err err;

struct prefix {
	unsigned n, bad;
};

/* The samples of small_build() in their order; none is made up. */
static int check_prefix(void *ctx, const struct perfdata_record *rec)
{
	struct prefix *p = ctx;

	if (rec->type != PERF_RECORD_SAMPLE)
		return 0;
	p->bad += rec->ip != 0x1000 + p->n;
	p->n++;
	return 0;
}

static int any(void *ctx, const struct perfdata_record *rec)
{
	uint64_t *sum = ctx;

	/* touch what is pointed to */
	for (uint64_t i = 0; i < rec->chain_len; i++)
		*sum += rec->chain[i];
	if (rec->type == PERF_RECORD_COMM)
		*sum += strlen(rec->comm.comm);
	if (rec->is_private)
		*sum += strlen(rec->private.word) + strlen(rec->private.json);
	else if (rec->type == PERF_RECORD_MMAP || rec->type == PERF_RECORD_MMAP2)
		*sum += strlen(rec->mmap.filename);
	for (uint32_t i = 0; i < rec->raw_size; i++)
		*sum += ((const uint8_t *)rec->raw)[i];
	return 0;
}

static struct build small_build(bool pipe)
{
	struct build b = {.pipe = pipe, .sample_type = SIMPLE_TYPE, .ids = {1, 2}, .nr_events = 2};

	simple_comm(&b, 1, 100, "sh");
	for (unsigned i = 0; i < 6; i++) {
		simple_sample(&b, 1 + i % 2, 1000 + i, 0x1000 + i);
		if (i % 2)
			finished_round(&b);
	}
	return b;
}

/* Every length from nothing to all. Samples never get fewer, and only all of them is no error. */
static void test_truncated(bool pipe)
{
	struct build b = small_build(pipe);
	struct buf image;
	unsigned most = 0;

	build_image(&b, &image);
	for (size_t n = 0; n <= image.len; n++) {
		struct buf cut = {.data = image.data, .len = n};
		struct perfdata_reader_stats stats = {0};
		struct prefix p = {0};
		bool clean;
		int ret;

		err.msg[0] = 0;
		ret = read_image(&cut, check_prefix, &p, &stats, &err);
		CHECK_EQ(p.bad, 0);
		CHECK(p.n >= most);
		most = p.n;
		/* a pipe may end behind any record */
		clean = n == image.len || (pipe && n >= 16 && ret == 0);
		CHECK_EQ(ret, clean ? 0 : -EBADMSG);
		CHECK(clean || strstr(err.msg, "/proc/self/fd/"));
	}
	CHECK_EQ(most, 6);
	buf_free(&image);
	buf_free(&b.data);
}

/* Each byte by turns all ones, zero, and with its lowest and highest bit turned. */
static void test_changed(const struct buf *image)
{
	uint64_t sum = 0;
	struct buf copy = {0};
	size_t end = image->len < 3000 ? image->len : 3000;

	buf_add(&copy, image->data, image->len);
	for (size_t i = 0; i < end; i++) {
		const uint8_t old = image->data[i];
		const uint8_t values[] = {0xff, 0, old ^ 1, old ^ 0x80};

		for (size_t k = 0; k < sizeof(values); k++) {
			int ret;

			copy.data[i] = values[k];
			err.msg[0] = 0;
			ret = read_image(&copy, any, &sum, NULL, &err);
			CHECK(ret == 0 || (ret == -EBADMSG && err.msg[0]));
		}
		copy.data[i] = old;
	}
	buf_free(&copy);
}

static void test_changes(void)
{
	for (int form = 0; form < 2; form++) {
		struct build b = small_build(form & 1);
		struct buf image;

		build_image(&b, &image);
		test_changed(&image);
		buf_free(&image);
		buf_free(&b.data);
	}
}

/* A file of the project's own writer, with all its features. */
static void test_own_changed(void)
{
	char path[] = "/tmp/vmprof-perfdata-XXXXXX";
	struct buf image = {0};
	int fd = mkstemp(path);
	struct stat st;

	CHECK_EQ(scenario_write(path, 1, &err), 0);
	close(fd);
	fd = open(path, O_RDONLY);
	CHECK(!fstat(fd, &st));
	CHECK_EQ(read(fd, buf_grow(&image, (size_t)st.st_size), (size_t)st.st_size), st.st_size);
	test_changed(&image);
	close(fd);
	unlink(path);
	buf_free(&image);
}

/* ------------------------------------------------------------------ single lies */

static void patch64(struct buf *image, size_t at, uint64_t v)
{
	memcpy(image->data + at, &v, 8);
}

static void test_lies(void)
{
	static const struct {
		size_t at;
		uint64_t value;
		const char *msg;
	} lies[] = {
		{8, 0, "offset 8: a header of a size"},
		{8, 1ull << 63, "offset 8: a header of a size"},
		{16, 0, "the size of an attribute is 0"},
		{16, 1ull << 63, "the size of an attribute is"},
		{24, 1ull << 63, "the attributes leave the file"},
		{32, 1ull << 63, "the attributes leave the file"},
		{40, 1ull << 63, "the data begins behind the end"},
		{40, 0, "the data lies over the header"},
		{40, 130, "the data lies over the header"},
		{48, 1ull << 63, "the file ends here, its data should go on"},
		{48, UINT64_MAX, "the file ends here, its data should go on"},
		{48, 0, "the size of the data is 0"},
		{72, 1ull << PERFDATA_FEAT_HOSTNAME, "the table of features leaves the file"},
		{120 + 128, 1ull << 63, "the ids of an event leave the file"},
		{120 + 136, 1ull << 63, "the ids of an event leave the file"},
		{120 + 24, 0, "its events have samples of different form"},
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		struct build b = small_build(false);
		struct buf image;
		uint64_t sum = 0;

		build_image(&b, &image);
		patch64(&image, lies[i].at, lies[i].value);
		err.msg[0] = 0;
		CHECK_EQ(read_image(&image, any, &sum, NULL, &err), -EBADMSG);
		if (!strstr(err.msg, lies[i].msg)) {
			fprintf(stderr, "\"%s\" is not in \"%s\"\n", lies[i].msg, err.msg);
			test_failures++;
		}
		buf_free(&image);
		buf_free(&b.data);
	}
}

/* A record of 0 bytes: the samples before it come out. */
static void test_zero_record(void)
{
	for (int form = 0; form < 2; form++) {
		struct build b = small_build(form & 1);
		struct prefix p = {0};

		buf_zero(&b.data, 64);
		CHECK_EQ(read_build(&b, check_prefix, &p, NULL, &err), -EBADMSG);
		CHECK(strstr(err.msg, "a record of 0 bytes"));
		CHECK_EQ(p.n, 6);
		buf_free(&b.data);
	}
}

/* An index that names more ids than it has room for, and AUX data that goes on for ever. */
static void test_long_records(void)
{
	static const struct {
		uint32_t type;
		uint64_t value;
		const char *msg;
	} cases[] = {
		{PERFDATA_ID_INDEX, 1ull << 60, "longer than its record"},
		{PERFDATA_ID_INDEX, 2, "longer than its record"},
		{PERFDATA_AUXTRACE, 1ull << 63, "in the middle of trace data"},
		{PERFDATA_TRACING_DATA, 0xffffffff, "in the middle of trace data"},
	};

	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		struct build b = small_build(i & 1);
		struct prefix p = {0};

		begin_record(&b, cases[i / 2].type, 0);
		put64(&b, cases[i / 2].value);
		buf_zero(&b.data, 40);
		end_record(&b);
		CHECK_EQ(read_build(&b, check_prefix, &p, NULL, &err), -EBADMSG);
		CHECK(strstr(err.msg, cases[i / 2].msg));
		CHECK_EQ(p.n, 6);
		buf_free(&b.data);
	}
}

struct change {
	int fd;
	bool cut;
	uint64_t n;
};

/* At the first record the file is cut, or overwritten with ones. */
static int change_file(void *ctx, const struct perfdata_record *rec)
{
	static uint8_t ones[1 << 20];
	struct change *c = ctx;

	if (c->n++)
		return 0;
	if (c->cut)
		return ftruncate(c->fd, 4096);
	memset(ones, 0xff, sizeof(ones));
	for (off_t at = 4096; at < 60 << 20; at += (off_t)sizeof(ones))
		if (pwrite(c->fd, ones, sizeof(ones), at) < 0)
			return -EIO;
	return 0;
}

/* What waited too long for the end of its round is read again, and is not there any more. */
static void test_changed_meanwhile(void)
{
	struct build b = {.sample_type = SIMPLE_TYPE, .ids = {1}, .nr_events = 1};
	struct buf image;

	for (uint64_t run = 0; run < 4; run++)
		for (uint64_t i = 0; i < 350000; i++)
			simple_sample(&b, 1, 1 + i * 4 + run, i);
	build_image(&b, &image);
	for (int cut = 0; cut < 2; cut++) {
		struct change c = {.fd = temp_fd(image.data, image.len), .cut = cut};
		struct perfdata_reader *r;

		CHECK_EQ(open_fd(&r, c.fd, &err), 0);
		CHECK_EQ(perfdata_reader_run(r, change_file, &c, &err), -EBADMSG);
		CHECK(strstr(err.msg, "the file has changed while it was read"));
		CHECK(c.n > 100000 && c.n < 4 * 350000);
		perfdata_reader_close(r);
		close(c.fd);
	}
	buf_free(&image);
	buf_free(&b.data);
}

/* ------------------------------------------------------------------ other things than perf.data */

static void test_not_perf(void)
{
	static const struct {
		const char *path, *msg;
		int ret;
	} cases[] = {
		{"/", "/: is a directory", -EISDIR},
		{"/dev/null", "/dev/null: is empty", -EBADMSG},
		{"/dev/zero", "/dev/zero: is not a perf.data file", -EBADMSG},
		{"/nonexistent", "/nonexistent: cannot be opened: No such file", -ENOENT},
		{"/proc/self/exe", "/proc/self/exe: is not a perf.data file", -EBADMSG},
		{"/proc/self/status", "/proc/self/status: is empty", -EBADMSG},
	};
	struct perfdata_reader *r;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CHECK_EQ(perfdata_reader_open(&r, cases[i].path, &err), cases[i].ret);
		CHECK(!r);
		if (!strstr(err.msg, cases[i].msg)) {
			fprintf(stderr, "\"%s\" is not in \"%s\"\n", cases[i].msg, err.msg);
			test_failures++;
		}
	}
	perfdata_reader_close(NULL);
}

int main(void)
{
	test_truncated(false);
	test_truncated(true);
	test_lies();
	test_zero_record();
	test_long_records();
	test_changed_meanwhile();
	test_not_perf();
	test_changes();
	test_own_changed();
	return test_done();
}
