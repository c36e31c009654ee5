// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exits out of a file, one that this test makes: two VMs of an x86 host, records that were lost,
 * and files that have no exits, are cut, or come from elsewhere.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "stat/reasons.h"
#include "stat/run.h"
#include "tests/unit/test.h"
#include "tests/unit/tracepoint_make.h"

#define EXIT_ID	 7
#define ENTRY_ID 8

#define COMMON	 "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
static const char exit_format[] =
	"name: kvm_exit\nID: 7\nformat:\n" COMMON
	"\tfield:unsigned int exit_reason;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:u32 isa;\toffset:12;\tsize:4;\tsigned:0;\n\nprint fmt: \"\"\n";
static const char entry_format[] = "name: kvm_entry\nID: 8\nformat:\n" COMMON
				   "\tfield:unsigned int vcpu_id;\toffset:8;\tsize:4;\tsigned:0;\n"
				   "\nprint fmt: \"\"\n";

static void put_attr(struct buf *b, uint64_t config)
{
	const struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
					     .size = sizeof(attr),
					     .config = config,
					     .sample_type = PERF_SAMPLE_IDENTIFIER |
							    PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
							    PERF_SAMPLE_RAW,
					     .sample_id_all = 1};
	const struct perf_event_header h = {.type = PERFDATA_HEADER_ATTR,
					    .size = sizeof(h) + sizeof(attr) + 8};

	buf_add(b, &h, sizeof(h));
	buf_add(b, &attr, sizeof(attr));
	buf_u64(b, 100 + config);
}

static void put_sample(struct buf *b, uint64_t config, uint32_t pid, uint32_t tid, uint64_t time,
		       uint32_t first, uint32_t second)
{
	const struct perf_event_header h = {.type = PERF_RECORD_SAMPLE,
					    .size = sizeof(h) + 24 + 24};

	buf_add(b, &h, sizeof(h));
	buf_u64(b, 100 + config);
	buf_u32(b, pid);
	buf_u32(b, tid);
	buf_u64(b, time);
	buf_u32(b, 20);
	buf_u64(b, config); /* common_type and what follows it */
	buf_u32(b, first);
	buf_u32(b, second);
	buf_zero(b, 4);
}

static void put_exit(struct buf *b, uint32_t pid, uint32_t tid, uint64_t time, uint32_t reason)
{
	put_sample(b, EXIT_ID, pid, tid, time, reason, EXIT_SVM);
}

static void put_entry(struct buf *b, uint32_t pid, uint32_t tid, uint64_t time, uint32_t vcpu)
{
	put_sample(b, ENTRY_ID, pid, tid, time, vcpu, 0);
}

/* What ends each record that is no sample. */
static void put_trailer(struct buf *b, uint64_t time)
{
	buf_u32(b, 0);
	buf_u32(b, 0);
	buf_u64(b, time);
	buf_u64(b, 100 + EXIT_ID);
}

static void put_comm(struct buf *b, uint32_t pid, uint32_t tid, const char *comm)
{
	const struct perf_event_header h = {.type = PERF_RECORD_COMM,
					    .size = sizeof(h) + 8 + 16 + 24};
	char name[16] = {0};

	snprintf(name, sizeof(name), "%s", comm);
	buf_add(b, &h, sizeof(h));
	buf_u32(b, pid);
	buf_u32(b, tid);
	buf_add(b, name, sizeof(name));
	put_trailer(b, 0);
}

static void put_lost(struct buf *b, uint64_t time, uint64_t n)
{
	const struct perf_event_header h = {.type = PERF_RECORD_LOST, .size = sizeof(h) + 16 + 24};

	buf_add(b, &h, sizeof(h));
	buf_u64(b, 100 + EXIT_ID);
	buf_u64(b, n);
	put_trailer(b, time);
}

static void start(struct buf *b, bool formats)
{
	const struct tracepoint_text texts[] = {{exit_format, sizeof(exit_format) - 1},
						{entry_format, sizeof(entry_format) - 1}};

	buf_add(b, "PERFILE2\x10\0\0\0\0\0\0", 16);
	put_attr(b, EXIT_ID);
	put_attr(b, ENTRY_ID);
	if (formats)
		tracepoint_formats(b, "kvm", texts, 2);
}

/* web's two vCPUs leave for 0x7c (msr) and 0x78 (hlt), db's one for 0x60 (interrupt). */
static void two_vms(struct buf *b)
{
	start(b, true);
	put_comm(b, 500, 500, "web\033");
	put_comm(b, 500, 501, "CPU 0/KVM");
	put_entry(b, 500, 501, 900, 0); /* its exit was before the record */
	put_exit(b, 500, 501, 1000, 0x7c);
	put_exit(b, 500, 502, 1500, 0x78);
	put_exit(b, 600, 601, 1600, 0x60);
	put_entry(b, 500, 501, 3000, 0);
	put_entry(b, 600, 601, 4600, 0);
	put_entry(b, 500, 502, 101500, 1);
	put_exit(b, 500, 501, 200000, 0x7c);
	put_entry(b, 500, 501, 204000, 0);
	put_exit(b, 500, 501, 300000, 0x7c); /* its entry is behind the record's end */
}

static char *text;
static size_t text_len;

/* What is printed of the file @b; @err: the sentence. Returns what stat_exits_file() has. */
static int print(const struct buf *b, const struct stat_options *options, struct vmprof_err *err)
{
	char path[] = "/tmp/vmprof-stat-XXXXXX";
	struct stat_options o = *options;
	int fd = mkstemp(path), rc;
	FILE *f;

	CHECK(fd >= 0 && write(fd, b->data, b->len) == (ssize_t)b->len);
	close(fd);
	free(text);
	f = open_memstream(&text, &text_len);
	o.input = path;
	*err = (struct vmprof_err){0};
	rc = stat_exits_file(&o, f, err);
	fclose(f);
	unlink(path);
	CHECK_EQ(-rc, err->code);
	return rc;
}

/* The reasons have names where this is built for x86. */
#if defined(__x86_64__)
#define MSR "msr"
#define HLT "hlt"
#define INT "interrupt"
#else
#define MSR "0x7c"
#define HLT "0x78"
#define INT "0x60"
#endif

static const struct stat_options rows = {
	.vcpu = -1, .format = STAT_SEPARATED, .sep = ",", .sort = EXITS_BY_TIME};

static void test_two_vms(void)
{
	struct stat_options o = rows;
	struct wanted_vm one = {.spec = "600"};
	struct vmprof_err err;
	struct buf b = {0};

	two_vms(&b);
	CHECK_EQ(print(&b, &o, &err), 0);
	CHECK_STR(text, "web\\x1b-500," HLT ",1,33.33,94.34,100.00,100.00,100.00,0.00%\n"
			"web\\x1b-500," MSR ",2,66.67,5.66,2.00,4.00,3.00,33.33%\n"
			"pid-600," INT ",1,100.00,100.00,3.00,3.00,3.00,0.00%\n");
	o.vcpu = 1;
	CHECK_EQ(print(&b, &o, &err), 0);
	CHECK_STR(text, "web\\x1b-500," HLT ",1,100.00,100.00,100.00,100.00,100.00,0.00%\n");
	o.vcpu = -1;
	o.wanted = (struct wanted){.vms = &one, .nr_vms = 1};
	CHECK_EQ(print(&b, &o, &err), 0);
	CHECK_STR(text, "pid-600," INT ",1,100.00,100.00,3.00,3.00,3.00,0.00%\n");
	one.spec = "web1";
	CHECK_EQ(print(&b, &o, &err), -ENOENT);
	CHECK(strstr(err.msg, "no exits of such a VM"));
	CHECK_STR(text, "");
	buf_free(&b);
}

/* An exit before the loss and an entry behind it do not belong together. */
static void test_lost(void)
{
	struct vmprof_err err;
	struct buf b = {0};

	start(&b, true);
	put_exit(&b, 500, 501, 1000, 0x7c);
	put_lost(&b, 5000, 17);
	put_entry(&b, 500, 501, 9000, 0);
	put_exit(&b, 500, 501, 10000, 0x78);
	put_entry(&b, 500, 501, 12000, 0);
	CHECK_EQ(print(&b, &rows, &err), 0);
	CHECK_STR(text, "pid-500," HLT ",1,100.00,100.00,2.00,2.00,2.00,0.00%\n");
	buf_free(&b);
}

static void test_other_files(void)
{
	struct vmprof_err err;
	struct buf b = {0};
	size_t whole;

	start(&b, false); /* nothing tells what the events are */
	put_exit(&b, 500, 501, 1000, 0x7c);
	CHECK_EQ(print(&b, &rows, &err), -ENOENT);
	CHECK(strstr(err.msg, "perf kvm stat record"));
	buf_free(&b);

	b = (struct buf){0};
	two_vms(&b);
	whole = b.len;
	for (b.len = whole - 1; b.len > 8; b.len--) /* cut: no crash, and what is whole is shown */
		print(&b, &rows, &err);
	b.len = whole - 8;
	CHECK_EQ(print(&b, &rows, &err), -EBADMSG);
	CHECK(strstr(text, "pid-600,"));
	buf_free(&b);
}

/* A byte changed anywhere: a table or a sentence, and no more. */
static void test_changed(void)
{
	struct vmprof_err err;
	struct buf b = {0};
	uint32_t random = 1;

	two_vms(&b);
	for (int i = 0; i < 3000; i++) {
		uint8_t *at, was;

		random = random * 1664525u + 1013904223u;
		at = &b.data[16 + (random >> 8) % (b.len - 16)];
		was = *at;
		*at ^= (uint8_t)(1 + i % 255);
		print(&b, &rows, &err);
		*at = was;
	}
	CHECK_EQ(print(&b, &rows, &err), 0);
	buf_free(&b);
}

int main(void)
{
	test_two_vms();
	test_lost();
	test_other_files();
	test_changed();
	free(text);
	return test_done();
}
