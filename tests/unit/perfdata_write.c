// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the writer puts on disk after open, flush, append, failure and close; limits of records.
 * With arguments it is a helper of tests/cli/perfdata.bats and writes the scenario:
 *   perfdata_write file PATH ROUNDS     a whole file, or a pipe ("-")
 *   perfdata_write hang PATH ROUNDS     the same, then data that is not flushed, then sleeps
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/perfdata_scenario.h"
#include "tests/unit/test.h"

static char dir[] = "/tmp/vmprof-perfdata-XXXXXX";

static const char *in_dir(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static struct perfdata_file_header header_of(const char *path)
{
	struct perfdata_file_header h = {0};
	int fd = open(path, O_RDONLY);

	CHECK(fd >= 0 && read(fd, &h, sizeof(h)) == sizeof(h));
	close(fd);
	return h;
}

static bool exists(const char *path)
{
	return !access(path, F_OK);
}

static uint64_t size_of(const char *path)
{
	struct stat st = {0};

	CHECK(!stat(path, &st));
	return (uint64_t)st.st_size;
}

/* At any moment the header tells what is whole. */
static void test_flush(void)
{
	const char *path = in_dir("flush.data");
	struct perfdata_writer *w;
	struct perfdata_file_header h;
	struct vmprof_err err = {0};
	struct buf b = {0};
	uint64_t size;

	CHECK_EQ(scenario_open(&w, path, &err), 0);
	h = header_of(path);
	CHECK_EQ(h.magic, PERFDATA_MAGIC);
	CHECK_EQ(h.size, 104);
	CHECK_EQ(h.attr_size, 144);
	CHECK_EQ(h.attrs.offset, 104 + 5 * 8);
	CHECK_EQ(h.attrs.size, 144);
	CHECK_EQ(h.data.offset, 104 + 5 * 8 + 144);
	CHECK_EQ(h.data.size, 0);
	CHECK_EQ(h.features[0], 0);

	CHECK_EQ(scenario_round(w, 0, &err), 0);
	h = header_of(path);
	CHECK_EQ(h.data.size, perfdata_writer_bytes(w));
	CHECK(h.features[0] & 1ull << PERFDATA_FEAT_EVENT_DESC);
	CHECK(h.features[0] & 1ull << PERFDATA_FEAT_BUILD_ID);
	CHECK(h.features[0] & 1ull << PERFDATA_FEAT_SAMPLE_TIME);
	CHECK_EQ(h.features[1] | h.features[2] | h.features[3], 0);

	/* much data without a flush: the sections are gone, and the header says so */
	size = h.data.size;
	for (int i = 0; i < 20000; i++)
		scenario_samples(&b, &scenario_vms[0], SCENARIO_START + 5000000, 0);
	CHECK_EQ(perfdata_writer_append(w, &b, &err), 0);
	CHECK_EQ(b.len, 0);
	h = header_of(path);
	CHECK_EQ(h.data.size, size);
	CHECK_EQ(h.features[0], 0);
	CHECK(size_of(path) > h.data.offset + size + 500000);

	CHECK_EQ(perfdata_writer_close(w, &err), 0);
	h = header_of(path);
	CHECK(h.features[0] & 1ull << PERFDATA_FEAT_CMDLINE);
	CHECK(h.data.size > size + 500000);
	CHECK_EQ(h.data.size % 8, 0);
	buf_free(&b);
}

static void test_old(void)
{
	struct vmprof_err err = {0};
	uint64_t size;

	CHECK_EQ(scenario_write(in_dir("old.data"), 3, &err), 0);
	CHECK(!exists(in_dir("old.data.old")));
	size = size_of(in_dir("old.data"));
	CHECK_EQ(scenario_write(in_dir("old.data"), 1, &err), 0);
	CHECK_EQ(size_of(in_dir("old.data.old")), size);
	CHECK(size_of(in_dir("old.data")) < size);
	/* an empty file is not worth keeping */
	CHECK_EQ(truncate(in_dir("old.data"), 0), 0);
	CHECK_EQ(scenario_write(in_dir("old.data"), 1, &err), 0);
	CHECK_EQ(size_of(in_dir("old.data.old")), size);
}

/* The disk fills up: said with place and reason, and the file is as it was at the last flush. */
static void test_full(void)
{
	struct rlimit old, lim;
	struct perfdata_writer *w;
	struct perfdata_file_header h;
	struct vmprof_err err = {0};
	uint64_t flushed;
	unsigned n = 0;
	int r = 0;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	lim = old;
	lim.rlim_cur = 20000;
	setrlimit(RLIMIT_FSIZE, &lim);
	CHECK_EQ(scenario_open(&w, in_dir("full.data"), &err), 0);
	do {
		flushed = perfdata_writer_bytes(w);
		r = scenario_round(w, n++, &err);
	} while (!r && n < 1000);
	CHECK_EQ(r, -EFBIG);
	CHECK(strstr(err.msg, "full.data: cannot write at offset "));
	CHECK(strstr(err.msg, strerror(EFBIG)));
	h = header_of(in_dir("full.data"));
	/* the last round may have got in whole, without its feature sections */
	CHECK(h.data.size == flushed || h.data.size == perfdata_writer_bytes(w));
	CHECK_EQ(scenario_round(w, n, &err), -EFBIG);
	CHECK_EQ(perfdata_writer_close(w, &err), -EFBIG);
	CHECK(size_of(in_dir("full.data")) >= h.data.offset + h.data.size);
	setrlimit(RLIMIT_FSIZE, &old);

	CHECK_EQ(scenario_write("/dev/full", 1, &err), -ENOSPC);
	CHECK(strstr(err.msg, "/dev/full: cannot write at offset "));
	CHECK_EQ(scenario_write("/dev/null", 1, &err), 0);
	CHECK_EQ(scenario_write(dir, 1, &err), -EISDIR);
	CHECK_EQ(scenario_write(in_dir("no/such"), 1, &err), -ENOENT);
}

/* It fills up between two flushes, with some data behind the last one written already. */
static void test_full_later(void)
{
	struct rlimit old, lim;
	struct perfdata_writer *w;
	struct perfdata_file_header h;
	struct vmprof_err err = {0};
	struct buf b = {0};
	uint64_t flushed;
	int r = 0;

	getrlimit(RLIMIT_FSIZE, &old);
	lim = old;
	lim.rlim_cur = 8u << 20;
	setrlimit(RLIMIT_FSIZE, &lim);
	CHECK_EQ(scenario_open(&w, in_dir("later.data"), &err), 0);
	CHECK_EQ(scenario_round(w, 0, &err), 0);
	flushed = perfdata_writer_bytes(w);
	for (int i = 0; i < 3 && !r; i++) {
		for (int k = 0; k < 20000; k++)
			scenario_samples(&b, &scenario_vms[0], SCENARIO_START + 5000000, 0);
		r = perfdata_writer_append(w, &b, &err);
	}
	CHECK_EQ(r, -EFBIG);
	h = header_of(in_dir("later.data"));
	CHECK_EQ(h.data.size, flushed);
	CHECK(h.features[0] & 1ull << PERFDATA_FEAT_CMDLINE);
	CHECK(size_of(in_dir("later.data")) < h.data.offset + flushed + 10000);
	CHECK_EQ(perfdata_writer_close(w, &err), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	buf_free(&b);
}

static void test_pipe(void)
{
	const char *path = in_dir("fifo");
	struct perfdata_writer *w;
	struct vmprof_err err = {0};
	uint8_t head[24] = {0};
	uint32_t type;
	int fd, r = 0;

	signal(SIGPIPE, SIG_IGN);
	CHECK_EQ(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	CHECK_EQ(scenario_open(&w, path, &err), 0);
	CHECK_EQ(read(fd, head, sizeof(head)), sizeof(head));
	CHECK(!memcmp(head, "PERFILE2\x10\0\0\0\0\0\0\0", 16));
	memcpy(&type, head + 16, 4);
	CHECK_EQ(type, PERFDATA_HEADER_ATTR);
	close(fd);
	for (unsigned n = 0; n < 5 && !r; n++)
		r = scenario_round(w, n, &err);
	CHECK_EQ(r, -EPIPE);
	CHECK(strstr(err.msg, "fifo: cannot write behind byte "));
	CHECK_EQ(perfdata_writer_close(w, &err), -EPIPE);
}

static uint16_t record_size(const struct buf *b, size_t at)
{
	struct perf_event_header h;

	memcpy(&h, b->data + at, sizeof(h));
	return h.size;
}

static void test_limits(void)
{
	static uint64_t chain[10000];
	static struct perfdata_id_entry ids[3000];
	struct perfdata_id id = {.id = 7};
	struct buf b = {0};
	char *big = xcalloc(1, 5001);

	memset(big, 'x', 5000);
	perfdata_encode_sample(&b, &id, 1, 1, chain, 10000);
	CHECK_EQ(record_size(&b, 0), b.len);
	buf_reset(&b);
	perfdata_encode_comm(&b, &id, big, false);
	CHECK_EQ(record_size(&b, 0), b.len);
	CHECK_EQ(b.len, 8 + 8 + 4096 + 32);
	buf_reset(&b);
	CHECK_EQ(perfdata_encode_private(&b, &id, "vm", big), -E2BIG);
	CHECK_EQ(b.len, 0);
	big[PERFDATA_PRIVATE_MAX - strlen("//vmprof vm ") - 1] = 0;
	CHECK_EQ(perfdata_encode_private(&b, &id, "vm", big), 0);
	buf_reset(&b);
	perfdata_encode_id_index(&b, ids, 3000);
	CHECK_EQ(record_size(&b, 0), 16 + 1364 * 48);
	CHECK_EQ(record_size(&b, 2 * (16 + 1364 * 48)), 16 + (3000 - 2 * 1364) * 48);
	CHECK_EQ(b.len, 3 * 16 + 3000 * 48);
	buf_free(&b);
	free(big);
}

/* ------------------------------------------------------------------ helper of the CLI test */

static int hang(const char *path, unsigned rounds, struct vmprof_err *err)
{
	struct perfdata_writer *w;
	struct buf b = {0};
	int r = scenario_open(&w, path, err);

	for (unsigned n = 0; n < rounds && !r; n++)
		r = scenario_round(w, n, err);
	for (int i = 0; i < 1000; i++)
		scenario_samples(&b, &scenario_vms[0], SCENARIO_START + 50000000, 0);
	if (!r)
		r = perfdata_writer_append(w, &b, err);
	if (r)
		return r;
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
}

static int helper(int argc, char **argv)
{
	struct vmprof_err err = {0};
	int r = -EINVAL;

	signal(SIGPIPE, SIG_IGN);
	if (argc == 4 && !strcmp(argv[1], "file"))
		r = scenario_write(argv[2], (unsigned)atoi(argv[3]), &err);
	else if (argc == 4 && !strcmp(argv[1], "hang"))
		r = hang(argv[2], (unsigned)atoi(argv[3]), &err);
	else
		snprintf(err.msg, sizeof(err.msg), "see the top of its source");
	if (r)
		fprintf(stderr, "perfdata_write: %s\n", err.msg);
	return r ? 1 : test_done();
}

int main(int argc, char **argv)
{
	char *rm;
	int r;

	if (argc > 1)
		return helper(argc, argv);
	if (!mkdtemp(dir))
		return 1;
	test_flush();
	test_old();
	test_full();
	test_full_later();
	test_pipe();
	test_limits();
	rm = xasprintf("rm -r %s", dir);
	r = system(rm);
	free(rm);
	CHECK_EQ(r, 0);
	return test_done();
}
