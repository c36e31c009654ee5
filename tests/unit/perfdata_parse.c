// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records of all kinds in both byte orders, in files and pipes: samples with every sample_type bit,
 * groups of counter values, side-band, ID_INDEX, several events, and order by time with and without
 * rounds.
 */
#include <errno.h>

#include "tests/unit/perfdata_build.h"
#include "tests/unit/test.h"

static struct vmprof_err err;

/* ------------------------------------------------------------------ every bit of sample_type */

#define ALL_TYPES                                                                                  \
	(((PERF_SAMPLE_WEIGHT_STRUCT << 1) - 1) & ~(uint64_t)(PERF_SAMPLE_WEIGHT | 1ull << 63))

static void full_sample(struct build *b, uint64_t chain_len)
{
	begin_record(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_GUEST_KERNEL);
	put64(b, b->ids[0]); /* IDENTIFIER */
	put64(b, 0x1000);    /* IP */
	put32(b, 21);	     /* TID */
	put32(b, 22);
	put64(b, 5000);	     /* TIME */
	put64(b, 0xadd4);    /* ADDR */
	put64(b, b->ids[0]); /* ID */
	put64(b, 0x57);	     /* STREAM_ID */
	put32(b, 3);	     /* CPU */
	put32(b, 0);
	put64(b, 77); /* PERIOD */
	put64(b, 2);  /* READ: group of two with both times and lost */
	put64(b, 1);
	put64(b, 2);
	for (uint64_t i = 0; i < 2; i++) {
		put64(b, 100 + i);
		put64(b, b->ids[i]);
		put64(b, 0);
	}
	put64(b, chain_len); /* CALLCHAIN */
	put64(b, PERF_CONTEXT_KERNEL);
	put64(b, 0x1000);
	put64(b, 0x2000);
	put32(b, 12); /* RAW */
	buf_add(&b->data, "raw bytes!!!", 12);
	put64(b, 2); /* BRANCH_STACK with hw_idx */
	put64(b, 0);
	for (uint64_t i = 0; i < 2; i++) {
		put64(b, 0xb0 + i);
		put64(b, 0xc0 + i);
		/* 5 cycles, mispredicted; bit fields begin at the other end on the other byte order
		 */
		put64(b, b->swap ? 1ull << 63 | 5ull << 44 : 1 | 5 << 4);
	}
	put64(b, 2); /* REGS_USER, three of them */
	for (int i = 0; i < 3; i++)
		put64(b, 0x4e9);
	put64(b, 16); /* STACK_USER */
	put64(b, 0x57ac);
	put64(b, 0x57ac);
	put64(b, 8);
	put64(b, 17ull << 48 | 18ull << 32 | 19); /* WEIGHT_STRUCT, whose fields turn with it */
	put64(b, 31);				  /* DATA_SRC */
	put64(b, 9);				  /* TRANSACTION */
	put64(b, 0);				  /* REGS_INTR of no ABI */
	put64(b, 32);				  /* PHYS_ADDR */
	put64(b, 33);				  /* CGROUP */
	put64(b, 34);				  /* DATA_PAGE_SIZE */
	put64(b, 35);				  /* CODE_PAGE_SIZE */
	put64(b, 8);				  /* AUX */
	put64(b, 0xa);
	end_record(b);
}

struct seen {
	unsigned n;
	uint64_t period[4];
	uint32_t event[4];
};

static void check_parts(const struct perfdata_parts *p)
{
	CHECK(p && p->regs_user.words);
	if (!p || !p->regs_user.words)
		return;
	CHECK_EQ(p->regs_user.mask, 7);
	CHECK_EQ(p->regs_user.abi, 2);
	CHECK_EQ(p->regs_user.words[2], 0x4e9);
	CHECK(!p->regs_intr.words);
	CHECK_EQ(p->stack_size, 8);
	CHECK_EQ(p->data_src, 31);
	CHECK_EQ(p->phys_addr, 32);
	CHECK_EQ(p->cgroup, 33);
	CHECK_EQ(p->data_page_size, 34);
	CHECK_EQ(p->code_page_size, 35);
}

static int check_full(void *ctx, const struct perfdata_record *rec)
{
	struct seen *s = ctx;

	CHECK_EQ(rec->type, PERF_RECORD_SAMPLE);
	CHECK_EQ(rec->cpumode, PERF_RECORD_MISC_GUEST_KERNEL);
	CHECK_EQ(rec->ip, 0x1000);
	CHECK_EQ(rec->pid, 21);
	CHECK_EQ(rec->tid, 22);
	CHECK_EQ(rec->time, 5000);
	CHECK_EQ(rec->addr, 0xadd4);
	CHECK_EQ(rec->stream_id, 0x57);
	CHECK_EQ(rec->cpu, 3);
	CHECK_EQ(rec->chain_len, 3);
	CHECK_EQ(rec->chain[0], (uint64_t)PERF_CONTEXT_KERNEL);
	CHECK_EQ(rec->chain[2], 0x2000);
	CHECK_EQ(rec->raw_size, 12);
	CHECK_EQ(rec->nr_branches, 2);
	CHECK_EQ(rec->branches[1].from, 0xb1);
	CHECK_EQ(rec->branches[1].to, 0xc1);
	CHECK_EQ(perfdata_branch_bits(rec, &rec->branches[1], PERFDATA_BRANCH_CYCLES), 5);
	CHECK_EQ(perfdata_branch_bits(rec, &rec->branches[1], PERFDATA_BRANCH_MISPRED), 1);
	CHECK_EQ(perfdata_branch_bits(rec, &rec->branches[1], PERFDATA_BRANCH_PREDICTED), 0);
	CHECK_EQ(rec->weight, 19);
	CHECK_EQ(rec->weight2, 18);
	CHECK_EQ(rec->weight3, 17);
	check_parts(rec->parts);
	CHECK(rec->raw && !memcmp(rec->raw, "raw bytes!!!", 12));
	if (s->n < 4) {
		s->period[s->n] = rec->period;
		s->event[s->n] = rec->evsel->index;
	}
	s->n++;
	return 0;
}

static struct build full_build(bool swap, bool pipe)
{
	return (struct build){
		.swap = swap,
		.pipe = pipe,
		.sample_type = ALL_TYPES,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST |
			       PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.branch_sample_type = PERF_SAMPLE_BRANCH_HW_INDEX,
		.regs_user = 7,
		.regs_intr = 1,
		.ids = {501, 502},
		.nr_events = 2,
	};
}

static void test_full_sample(void)
{
	for (int form = 0; form < 4; form++) {
		struct build b = full_build(form & 1, form & 2);
		struct perfdata_reader_stats stats = {0};
		struct seen s = {0};

		full_sample(&b, 3);
		full_sample(&b, 3);
		CHECK_EQ(read_build(&b, check_full, &s, &stats, &err), 0);
		/* one for each event of the group; those of the second sample have not counted */
		CHECK_EQ(s.n, 2);
		CHECK_EQ(s.period[0], 100);
		CHECK_EQ(s.event[0], 0);
		CHECK_EQ(s.period[1], 101);
		CHECK_EQ(s.event[1], 1);
		CHECK_EQ(stats.records[PERF_RECORD_SAMPLE], 2);
		CHECK_EQ(stats.broken, 0);
		buf_free(&b.data);
	}
}

/* A body that makes no sense costs one record, not the rest of the file. */
static void test_broken_sample(void)
{
	static const uint64_t lens[] = {4000, 1ull << 32, 1ull << 61, UINT64_MAX};

	for (int form = 0; form < 8; form++) {
		struct build b = full_build(form & 1, false);
		struct perfdata_reader_stats stats = {0};
		struct seen s = {0};

		full_sample(&b, lens[form / 2]);
		full_sample(&b, 3);
		CHECK_EQ(read_build(&b, check_full, &s, &stats, &err), -EBADMSG);
		CHECK(strstr(err.msg, "offset 408: a sample whose parts are longer than itself"));
		CHECK_EQ(s.n, 2);
		CHECK_EQ(stats.broken, 1);
		buf_free(&b.data);
	}
}

static int check_chain(void *ctx, const struct perfdata_record *rec)
{
	CHECK_EQ(rec->chain_len, 2);
	CHECK_EQ(rec->chain[1], 0x20);
	++*(int *)ctx;
	return 0;
}

/* A chain may go up to the last word of its record, and not to the next one. */
static void test_chain_end(void)
{
	for (uint64_t len = 2; len <= 3; len++) {
		struct build b = {.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
				  .ids = {1},
				  .nr_events = 1};
		int n = 0;

		for (uint64_t time = 1; time <= 2; time++) {
			begin_record(&b, PERF_RECORD_SAMPLE, 0);
			put64(&b, time);
			put64(&b, time == 1 ? len : 2);
			put64(&b, 0x10);
			put64(&b, 0x20);
			end_record(&b);
		}
		CHECK_EQ(read_build(&b, check_chain, &n, NULL, &err), len == 2 ? 0 : -EBADMSG);
		CHECK_EQ(n, len == 2 ? 2 : 1);
		buf_free(&b.data);
	}
}

/* ------------------------------------------------------------------ side-band */

struct sideband {
	unsigned comm, task, mmap, mmap2, lost, other;
};

static int check_sideband(void *ctx, const struct perfdata_record *rec)
{
	struct sideband *s = ctx;

	CHECK_EQ(rec->time, 900);
	CHECK_EQ(rec->id, 501);
	CHECK_EQ(rec->machine_pid, 4000);
	CHECK_EQ(rec->vcpu, 1);
	switch (rec->type) {
	case PERF_RECORD_COMM:
		s->comm++;
		CHECK_EQ(rec->pid, 11);
		CHECK_EQ(rec->tid, 12);
		CHECK_STR(rec->comm.comm, "nginx: worker");
		break;
	case PERF_RECORD_FORK:
		s->task++;
		CHECK_EQ(rec->task.pid, 31);
		CHECK_EQ(rec->task.ppid, 30);
		CHECK_EQ(rec->task.tid, 32);
		CHECK_EQ(rec->task.ptid, 29);
		CHECK_EQ(rec->task.time, 899);
		break;
	case PERF_RECORD_MMAP:
		s->mmap++;
		CHECK_EQ(rec->mmap.start, 0x7000);
		CHECK_STR(rec->mmap.filename, "/lib/a");
		CHECK(!rec->mmap.is_data);
		break;
	case PERF_RECORD_MMAP2:
		s->mmap2++;
		CHECK_EQ(rec->mmap.pgoff, 0x10);
		CHECK_EQ(rec->mmap.prot, 5);
		CHECK_EQ(rec->mmap.flags, 2);
		CHECK_STR(rec->mmap.filename, "/lib/b");
		if (rec->misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
			CHECK_EQ(rec->mmap.build_id_len, 20);
			CHECK(!memcmp(rec->mmap.build_id, "0123456789abcdefghij", 20));
		} else {
			CHECK_EQ(rec->mmap.maj, 8);
			CHECK_EQ(rec->mmap.min, 1);
			CHECK_EQ(rec->mmap.ino, 0x1234567890);
			CHECK(!rec->mmap.build_id);
		}
		break;
	case PERF_RECORD_LOST:
		s->lost++;
		CHECK_EQ(rec->lost.lost, 17);
		break;
	default:
		s->other++;
	}
	return 0;
}

static void put_range(struct build *b)
{
	put32(b, 11);
	put32(b, 12);
	put64(b, 0x7000);
	put64(b, 0x1000);
	put64(b, 0x10);
}

static void sideband(struct build *b)
{
	begin_record(b, PERFDATA_ID_INDEX, 0);
	put64(b, 1);
	put64(b, 501);
	put64(b, 0);
	put64(b, 0);
	put64(b, 0);
	put64(b, 4000);
	put64(b, 1);
	end_record(b);
	simple_comm(b, 501, 900, "nginx: worker");
	begin_record(b, PERF_RECORD_FORK, 0);
	put32(b, 31);
	put32(b, 30);
	put32(b, 32);
	put32(b, 29);
	put64(b, 899);
	simple_trailer(b, 501, 900);
	end_record(b);
	begin_record(b, PERF_RECORD_MMAP, 0);
	put_range(b);
	put_str(b, "/lib/a");
	simple_trailer(b, 501, 900);
	end_record(b);
	for (int with_id = 0; with_id < 2; with_id++) {
		begin_record(b, PERF_RECORD_MMAP2, with_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0);
		put_range(b);
		if (with_id) {
			buf_add(&b->data,
				"\x14\0\0\0"
				"0123456789abcdefghij",
				24);
		} else {
			put32(b, 8);
			put32(b, 1);
			put64(b, 0x1234567890);
			put64(b, 0);
		}
		put32(b, 5);
		put32(b, 2);
		put_str(b, "/lib/b");
		simple_trailer(b, 501, 900);
		end_record(b);
	}
	begin_record(b, PERF_RECORD_LOST, 0);
	put64(b, 501);
	put64(b, 17);
	simple_trailer(b, 501, 900);
	end_record(b);
	begin_record(b, PERF_RECORD_SWITCH_CPU_WIDE, 0);
	put32(b, 1);
	put32(b, 2);
	simple_trailer(b, 501, 900);
	end_record(b);
	begin_record(b, 40, 0); /* a type that no kernel has */
	put64(b, 1);
	simple_trailer(b, 501, 900);
	end_record(b);
	begin_record(b, 200, 0); /* nor perf */
	end_record(b);
}

static void test_sideband(void)
{
	for (int form = 0; form < 4; form++) {
		struct build b = {.swap = form & 1,
				  .pipe = form & 2,
				  .sample_type = SIMPLE_TYPE,
				  .ids = {501, 502},
				  .nr_events = 2};
		struct perfdata_reader_stats stats = {0};
		struct sideband s = {0};

		sideband(&b);
		CHECK_EQ(read_build(&b, check_sideband, &s, &stats, &err), 0);
		CHECK_EQ(s.comm, 1);
		CHECK_EQ(s.task, 1);
		CHECK_EQ(s.mmap, 1);
		CHECK_EQ(s.mmap2, 2);
		CHECK_EQ(s.lost, 1);
		CHECK_EQ(s.other, 1);
		CHECK_EQ(stats.lost, 17);
		CHECK_EQ(stats.unknown, 2);
		buf_free(&b.data);
	}
}

static int check_old_map(void *ctx, const struct perfdata_record *rec)
{
	CHECK_STR(rec->mmap.filename, "/usr/lib/libold.so");
	CHECK(!rec->mmap.is_data);
	++*(int *)ctx;
	return 0;
}

/* MMAP2 of Linux before 3.16, which has neither protection nor flags. */
static void test_old_mmap2(void)
{
	struct build b = {.sample_type = SIMPLE_TYPE, .ids = {1}, .nr_events = 1};
	int n = 0;

	begin_record(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
	put_range(&b);
	buf_zero(&b.data, 24);
	put_str(&b, "/usr/lib/libold.so");
	simple_trailer(&b, 1, 5);
	end_record(&b);
	CHECK_EQ(read_build(&b, check_old_map, &n, NULL, &err), 0);
	CHECK_EQ(n, 1);
	buf_free(&b.data);
}

/* The bits of features are words of the recorder's unsigned long: of 64 bits, and of 32. */
static void test_swapped_features(void)
{
	for (int bits = 64; bits >= 32; bits -= 32) {
		struct build b = {
			.swap = true, .sample_type = SIMPLE_TYPE, .ids = {1}, .nr_events = 1};
		struct perfdata_reader *r;
		struct buf image;
		int fd;

		build_image(&b, &image);
		image.data[72 + (bits == 64 ? 7 : 3)] = 1 << PERFDATA_FEAT_HOSTNAME;
		put64(&b, image.len + 16);
		put64(&b, 12);
		put32(&b, 8);
		put_str(&b, "lab");
		buf_add(&image, b.data.data, b.data.len);
		fd = temp_fd(image.data, image.len);
		CHECK_EQ(open_fd(&r, fd, &err), 0);
		CHECK_STR(perfdata_reader_feature_str(r, PERFDATA_FEAT_HOSTNAME), "lab");
		perfdata_reader_close(r);
		close(fd);
		buf_free(&image);
		buf_free(&b.data);
	}
}

/* Records that perf makes up have times of 0, and samples of an id that no event has are counted.
 */
static void test_ids(void)
{
	struct build b = {.sample_type = SIMPLE_TYPE, .ids = {1, 2}, .nr_events = 2};
	struct perfdata_reader_stats stats = {0};
	struct seen s = {0};
	struct perfdata_reader *r;
	struct buf image;
	int fd;

	simple_sample(&b, 3, 10, 0x1000);
	CHECK_EQ(read_build(&b, check_full, &s, &stats, &err), 0);
	CHECK_EQ(s.n, 0);
	CHECK_EQ(stats.no_event, 1);
	build_image(&b, &image);
	fd = temp_fd(image.data, image.len);
	CHECK_EQ(open_fd(&r, fd, &err), 0);
	CHECK_EQ(perfdata_reader_nr_evsels(r), 2);
	CHECK_STR(perfdata_reader_evsel(r, 0)->name, "cpu-clock:HG");
	CHECK_EQ(perfdata_reader_evsel(r, 1)->ids[0], 2);
	CHECK(!perfdata_reader_evsel(r, 2));
	CHECK(!perfdata_reader_feature_str(r, PERFDATA_FEAT_HOSTNAME));
	perfdata_reader_close(r);
	close(fd);
	buf_free(&image);
	buf_free(&b.data);
}

/* ------------------------------------------------------------------ order */

struct times {
	unsigned n;
	uint64_t ip[32];
};

static int note(void *ctx, const struct perfdata_record *rec)
{
	struct times *t = ctx;

	if (t->n < 32)
		t->ip[t->n++] = rec->ip;
	return 0;
}

static void test_order(void)
{
	/* time of a sample, which is its ip as well; 0: the round is finished */
	static const uint64_t file[] = {30, 50, 20, 40, 0, 60, 35, 45, 0, 55, 10, 0, 70};
	/* after the second round up to 50 is out, so that 10 is late, but 55 is not */
	static const uint64_t want[] = {20, 30, 35, 40, 45, 50, 10, 55, 60, 70};

	for (int form = 0; form < 4; form++) {
		struct build b = {.swap = form & 1,
				  .pipe = form & 2,
				  .sample_type = SIMPLE_TYPE,
				  .ids = {1},
				  .nr_events = 1};
		struct perfdata_reader_stats stats = {0};
		struct times t = {0};

		for (size_t i = 0; i < sizeof(file) / sizeof(*file); i++) {
			if (file[i])
				simple_sample(&b, 1, file[i], file[i]);
			else
				finished_round(&b);
		}
		CHECK_EQ(read_build(&b, note, &t, &stats, &err), 0);
		CHECK_EQ(t.n, sizeof(want) / sizeof(*want));
		for (unsigned i = 0; i < t.n; i++)
			CHECK_EQ(t.ip[i], want[i]);
		CHECK_EQ(stats.out_of_order, 1);
		CHECK_EQ(stats.first_time, 10);
		CHECK_EQ(stats.last_time, 70);
		buf_free(&b.data);
	}
}

/* Equal times keep the order of the file, in runs and across them. */
static void test_stable(void)
{
	static const uint64_t times[] = {5, 5, 7, 5, 7, 7, 5, 6};
	static const uint64_t want[] = {0, 1, 3, 6, 7, 2, 4, 5};
	struct build b = {.sample_type = SIMPLE_TYPE, .ids = {1}, .nr_events = 1};
	struct times t = {0};

	for (size_t i = 0; i < 8; i++)
		simple_sample(&b, 1, times[i], i);
	CHECK_EQ(read_build(&b, note, &t, NULL, &err), 0);
	for (unsigned i = 0; i < 8; i++)
		CHECK_EQ(t.ip[i], want[i]);
	buf_free(&b.data);
}

struct sorted {
	uint64_t n, last, late;
};

static int check_sorted(void *ctx, const struct perfdata_record *rec)
{
	struct sorted *s = ctx;

	s->late += rec->time < s->last;
	s->last = rec->time;
	s->n++;
	return 0;
}

/* More than the reader keeps in memory, and not one round: still in order. */
static void test_no_rounds(void)
{
	enum { RUNS = 16, EACH = 85000 };
	struct build b = {.sample_type = SIMPLE_TYPE, .ids = {1}, .nr_events = 1};
	struct sorted s = {0};

	for (uint64_t run = 0; run < RUNS; run++)
		for (uint64_t i = 0; i < EACH; i++)
			simple_sample(&b, 1, 1 + i * RUNS + (run * 7) % RUNS, i);
	CHECK(b.data.len > 60u << 20);
	CHECK_EQ(read_build(&b, check_sorted, &s, NULL, &err), 0);
	CHECK_EQ(s.n, RUNS * EACH);
	CHECK_EQ(s.late, 0);
	buf_free(&b.data);
}

/* Times that fall from record to record, and not one round: each is a run, and they are bounded. */
static void test_falling(void)
{
	enum { N = 1200000 };
	struct build b = {.sample_type = SIMPLE_TYPE, .ids = {1}, .nr_events = 1};
	struct perfdata_reader_stats stats = {0};
	struct sorted s = {0};

	for (uint64_t i = 0; i < N; i++)
		simple_sample(&b, 1, N - i, i);
	CHECK_EQ(read_build(&b, check_sorted, &s, &stats, &err), 0);
	CHECK_EQ(s.n, N);
	CHECK(s.late > 0);
	CHECK(stats.out_of_order > 0);
	buf_free(&b.data);
}

/* The caller's function can end it. */
static int stop_at_two(void *ctx, const struct perfdata_record *rec)
{
	return ++*(int *)ctx == 2 ? -ECANCELED : 0;
}

static void test_stop(void)
{
	struct build b = {.sample_type = SIMPLE_TYPE, .ids = {1}, .nr_events = 1};
	int n = 0;

	for (uint64_t i = 0; i < 5; i++)
		simple_sample(&b, 1, i + 1, i);
	CHECK_EQ(read_build(&b, stop_at_two, &n, NULL, &err), -ECANCELED);
	CHECK_EQ(n, 2);
	buf_free(&b.data);
}

int main(void)
{
	test_full_sample();
	test_broken_sample();
	test_chain_end();
	test_sideband();
	test_old_mmap2();
	test_swapped_features();
	test_ids();
	test_order();
	test_stable();
	test_no_rounds();
	test_falling();
	test_stop();
	return test_done();
}
