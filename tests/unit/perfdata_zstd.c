// SPDX-License-Identifier: GPL-2.0-only
/*
 * COMPRESSED and COMPRESSED2 records: a record that goes on in the next body, damage, an end in the
 * middle, compressed data inside compressed data, and data that blows up.
 */
#include "tests/unit/perfdata_build.h"
#include "tests/unit/test.h"

#if HAVE_LIBZSTD
#include <errno.h>
#include <zstd.h>

static struct vmprof_err err;

struct seen {
	uint64_t n, wrong;
};

static int check(void *ctx, const struct perfdata_record *rec)
{
	struct seen *s = ctx;

	s->wrong += rec->ip != 0x1000 + s->n;
	s->n++;
	return 0;
}

static struct build new_build(void)
{
	return (struct build){.sample_type = SIMPLE_TYPE, .ids = {1}, .nr_events = 1};
}

/* @from's data as records of @type, the stream cut into bodies of @body bytes before compression.
 */
static void compress(struct build *to, const struct build *from, uint32_t type, size_t body)
{
	ZSTD_CCtx *z = ZSTD_createCCtx();
	uint8_t out[65000];

	for (size_t at = 0; at < from->data.len; at += body) {
		size_t n = from->data.len - at < body ? from->data.len - at : body;
		ZSTD_inBuffer in = {from->data.data + at, n, 0};
		ZSTD_outBuffer o = {out, sizeof(out), 0};

		CHECK_EQ(ZSTD_compressStream2(z, &o, &in, ZSTD_e_flush), 0);
		CHECK_EQ(in.pos, in.size);
		begin_record(to, type, 0);
		if (type == PERFDATA_COMPRESSED2)
			put64(to, o.pos);
		buf_add(&to->data, out, o.pos);
		if (type == PERFDATA_COMPRESSED2)
			buf_zero(&to->data, -o.pos % 8);
		end_record(to);
	}
	ZSTD_freeCCtx(z);
}

static void samples(struct build *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		simple_sample(b, 1, 100 + i, 0x1000 + i);
}

static void test_bodies(void)
{
	static const size_t bodies[] = {1, 7, 48, 100, 4000, 60000};

	for (size_t i = 0; i < 2 * sizeof(bodies) / sizeof(*bodies); i++) {
		struct build in = new_build(), b = new_build();
		struct perfdata_reader_stats stats = {0};
		struct seen s = {0};

		samples(&in, 1500);
		compress(&b, &in, i % 2 ? PERFDATA_COMPRESSED2 : PERFDATA_COMPRESSED,
			 bodies[i / 2]);
		CHECK_EQ(read_build(&b, check, &s, &stats, &err), 0);
		CHECK_EQ(s.n, 1500);
		CHECK_EQ(s.wrong, 0);
		CHECK_EQ(stats.records[PERF_RECORD_SAMPLE], 1500);
		buf_free(&b.data);
		buf_free(&in.data);
	}
}

static void expect_damage(struct build *b, uint64_t n, const char *msg)
{
	struct seen s = {0};

	CHECK_EQ(read_build(b, check, &s, NULL, &err), -EBADMSG);
	CHECK_EQ(s.n, n);
	CHECK_EQ(s.wrong, 0);
	if (!strstr(err.msg, msg)) {
		fprintf(stderr, "\"%s\" is not in \"%s\"\n", msg, err.msg);
		test_failures++;
	}
}

static void test_damage(void)
{
	struct build in = new_build(), b = new_build();

	samples(&in, 10);
	compress(&b, &in, PERFDATA_COMPRESSED, 480);
	b.data.data[b.data.len - 30] ^= 0xff;
	b.data.data[b.data.len - 31] ^= 0xff;
	memset(b.data.data + 8, 0xff, 4); /* the magic of zstd */
	expect_damage(&b, 0, "compressed data is damaged");

	/* the last record is cut */
	buf_reset(&b.data);
	in.data.len -= 8;
	compress(&b, &in, PERFDATA_COMPRESSED, 480);
	expect_damage(&b, 9, "compressed data ends in the middle of a record");

	/* compressed data in itself would be a bomb of many stages */
	buf_reset(&b.data);
	buf_reset(&in.data);
	samples(&in, 3);
	compress(&b, &in, PERFDATA_COMPRESSED, 480);
	buf_reset(&in.data);
	buf_add(&in.data, b.data.data, b.data.len);
	buf_reset(&b.data);
	compress(&b, &in, PERFDATA_COMPRESSED, 480);
	expect_damage(&b, 0, "compressed data inside of compressed data");

	/* a body that says it is longer than its record */
	buf_reset(&b.data);
	begin_record(&b, PERFDATA_COMPRESSED2, 0);
	put64(&b, UINT64_MAX);
	end_record(&b);
	expect_damage(&b, 0, "that claims to hold");
	buf_free(&b.data);
	buf_free(&in.data);
}

/* ------------------------------------------------------------------ a bomb */

static uint64_t resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long size, pages = 0;

	CHECK(f && fscanf(f, "%lu %lu", &size, &pages) == 2);
	fclose(f);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

struct watch {
	uint64_t n, peak;
};

static int watch(void *ctx, const struct perfdata_record *rec)
{
	struct watch *w = ctx;
	uint64_t now;

	if (w->n++ % 100000 == 0 && (now = resident()) > w->peak)
		w->peak = now;
	return 0;
}

/* 400 MB of records in a few hundred kilobytes, without a round: memory stays bounded. */
static void test_bomb(void)
{
	enum { BODIES = 800, EACH = 10922 };
	struct build in = new_build(), b = new_build();
	struct watch w = {0};
	ZSTD_CCtx *z = ZSTD_createCCtx();
	uint8_t out[65000];
	uint64_t before;

	for (unsigned i = 0; i < EACH; i++)
		simple_sample(&in, 1, 100, 0x1000);
	for (unsigned i = 0; i < BODIES; i++) {
		ZSTD_inBuffer from = {in.data.data, in.data.len, 0};
		ZSTD_outBuffer to = {out, sizeof(out), 0};

		CHECK_EQ(ZSTD_compressStream2(z, &to, &from, ZSTD_e_flush), 0);
		begin_record(&b, PERFDATA_COMPRESSED, 0);
		buf_add(&b.data, out, to.pos);
		end_record(&b);
	}
	ZSTD_freeCCtx(z);
	CHECK(b.data.len < 1u << 20);
	before = resident();
	CHECK_EQ(read_build(&b, watch, &w, NULL, &err), 0);
	CHECK_EQ(w.n, BODIES * EACH);
	CHECK(w.peak > before + (100u << 20)); /* or the bound was not met at all */
#ifndef __SANITIZE_ADDRESS__		       /* which keeps what was freed */
	CHECK(w.peak < before + (200u << 20));
#endif
	buf_free(&b.data);
	buf_free(&in.data);
}

int main(void)
{
	test_bodies();
	test_damage();
	test_bomb();
	return test_done();
}
#else
int main(void)
{
	test_skip("built without libzstd");
}
#endif
