// SPDX-License-Identifier: GPL-2.0-only
/*
 * vmprof script's lines, on a recording of two VMs that is made here: fields, filters, frames, what
 * is hostile, and that what is remembered of a frame does not outlive its mapping.
 */
#include <unistd.h>

#include "perfdata_scenario.h"
#include "report/script.h"
#include "test.h"

static char path[] = "/tmp/vmprof-script.XXXXXX";

/* What is printed of the file at @path, to be freed; NULL and @err for a failure. */
static char *print(const char *fields, struct script_options *opt, struct vmprof_err *err)
{
	struct perfdata_reader *r;
	struct session *session = session_new(NULL);
	struct script *s;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int ret;

	script_fields_init(&opt->fields);
	opt->max_stack = opt->max_stack ? opt->max_stack : 127;
	CHECK_EQ(perfdata_reader_open(&r, path, err), 0);
	ret = fields ? script_fields_parse(&opt->fields, fields, err) : 0;
	if (!ret)
		ret = script_new(&s, session, r, opt, f, err);
	if (!ret) {
		ret = perfdata_reader_run(r, script_record, s, err);
		script_flush(s);
		script_free(s);
	}
	fclose(f);
	perfdata_reader_close(r);
	session_free(session);
	if (!ret)
		return text;
	free(text);
	return NULL;
}

static void expect(int line, const char *fields, struct script_options opt, const char *want)
{
	struct vmprof_err err = {0};
	char *got = print(fields, &opt, &err);

	if (!got || strcmp(got, want)) {
		fprintf(stderr, "%s:%d: \"%s\" is\n%s%s\nexpected\n%s\n", __FILE__, line,
			fields ? fields : "", got ? got : "", err.msg, want);
		test_failures++;
	}
	free(got);
}
#define EXPECT(fields, want, ...)                                                                  \
	expect(__LINE__, fields, (struct script_options){__VA_ARGS__}, want)

#define TIMES(from, to) .times = {(struct time_range[]){{from, to}}, 1}

static void expect_refused(int line, const char *fields, const char *part)
{
	struct script_options opt = {0};
	struct vmprof_err err = {0};
	char *got = print(fields, &opt, &err);

	if (got || !strstr(err.msg, part)) {
		fprintf(stderr, "%s:%d: \"%s\" was %s, expected \"%s\"\n", __FILE__, line, fields,
			got ? "taken" : err.msg, part);
		test_failures++;
	}
	free(got);
}
#define REFUSED(fields, part) expect_refused(__LINE__, fields, part)

static void test_defaults(void)
{
	struct script_options opt = {0};
	struct vmprof_err err = {0};
	char *got;
	const char *want = "web1:nginx   100 [000]     1.001000:    1000000 cpu-clock: \n"
			   "\tffffffff81002010 [unknown] ([web1.kernel])\n"
			   "\tffffffff81003010 [unknown] ([web1.kernel])\n"
			   "\t            1010 [unknown] (/lib/libc.so.6)\n"
			   "\t            1110 [unknown] (/usr/sbin/nginx)\n"
			   "\t            1010 [unknown] (/usr/sbin/nginx)\n"
			   "\n"
			   "db1:postgres   100 [000]     1.001000:    1000000 cpu-clock: \n";

	got = print(NULL, &opt, &err);
	CHECK(got && !strncmp(got, want, strlen(want)));
	free(got);
}

static void test_fields(void)
{
	struct time_range first = {0, SCENARIO_START + 1000000};
#define FIRST .times = {&first, 1}

	EXPECT("time,event", "    1.001000: cpu-clock: \n", FIRST);
	EXPECT("time", "    1.001000000: \n", FIRST, .ns = true);
	EXPECT("comm,pid,tid", "      web1:nginx   100/100   \n", FIRST);
	EXPECT("machine_pid,vcpu,comm,pid", "VM:3000001 VCPU:000       web1:nginx   100 \n", FIRST);
	EXPECT("vm,comm,tid", "VM:web1            nginx   100 \n", FIRST);
	EXPECT("ip", "\n\tffffffff81002010\n\tffffffff81003010\n\t            1010\n\n", FIRST,
	       .max_stack = 3);
	EXPECT("ip,sym,dso", " ffffffff81002010 [unknown] ([web1.kernel])\n", FIRST,
	       .hide_chains = true);
	EXPECT("-ip,-time,-cpu", "      web1:nginx   100    1000000 cpu-clock: \n", FIRST);
	EXPECT("hw:comm,tid",
	       "web1:nginx   100 [000]     1.001000:    1000000 cpu-clock: \n"
	       "\tffffffff81002010 [unknown] ([web1.kernel])\n\n",
	       FIRST, .max_stack = 1);
	EXPECT("sw:", "", FIRST);
	EXPECT("trace", "", FIRST);
	REFUSED("", "without a field");
	REFUSED("bogus", "knows no 'bogus'");
	REFUSED("comm,,tid", "knows no ''");
	REFUSED("+comm,tid", "mixes");
	REFUSED("comm,-tid", "mixes");
	REFUSED("nope:comm", "no type of events");
	REFUSED("sw:trace", "only there for tracepoints");
	REFUSED("ip,symoff", "only there with 'sym'");
}

static void test_filters(void)
{
	EXPECT("comm,tid", "    db1:postgres   100 \n    db1:postgres   100 \n",
	       .filter.vms = "db1", TIMES(0, SCENARIO_START + 1000011));
	EXPECT("comm,tid", "      web1:nginx   100 \n", .filter.comms = "nginx",
	       TIMES(0, SCENARIO_START + 1000000));
	EXPECT("comm,tid", "      web1:nginx   100 \n", .filter.comms = "web1:nginx",
	       TIMES(0, SCENARIO_START + 1000000));
	EXPECT("time,tid", "  100     1.001000020: \n  100     1.001000021: \n", .ns = true,
	       .filter.dsos = "nginx,/usr/bin/postgres", TIMES(0, SCENARIO_START + 1100000));
	EXPECT("comm", "", .filter.pids = "101");
	EXPECT("cpu", "[001] \n[001] \n", .cpus = "1-7", .filter.vms = "web1",
	       TIMES(SCENARIO_START + 2000010, UINT64_MAX));
}

static void check_times(int line, const char *text, const char *want)
{
	struct time_ranges t;
	struct vmprof_err err;
	struct buf b = {0};

	if (time_ranges_parse(&t, text, 1000, 2000, &err))
		buf_printf(&b, "refused");
	for (size_t i = 0; i < t.n; i++)
		buf_printf(&b, "%s%lld-%lld", i ? " " : "", (long long)t.r[i].start,
			   (long long)t.r[i].stop);
	buf_add(&b, "", 1);
	if (strcmp((char *)b.data, want)) {
		fprintf(stderr, "%s:%d: '%s' is %s, expected %s\n", __FILE__, line, text,
			(char *)b.data, want);
		test_failures++;
	}
	buf_free(&b);
	time_ranges_free(&t);
}
#define TIME(text, want) check_times(__LINE__, text, want)

static void test_times(void)
{
	TIME("1.5,2", "1500000000-2000000000");
	TIME("1,", "1000000000--1");
	TIME(",0.000000001", "0-1");
	TIME("1,2 3,4", "1000000000-2000000000 3000000000-4000000000");
	TIME("0%-10%,50%-100%", "1000-1099 1500-2000");
	TIME("10%/2,10%/10", "1100-1199 1900-2000");
	TIME("25%", "1000-1249");
	TIME("3,2", "refused");
	TIME("1,3 2,4", "refused");
	TIME("yesterday", "refused");
	TIME("20%/6", "refused");
	TIME("10%-", "refused");
	TIME("nan%", "refused");
	TIME("99999999999999999999,", "refused");
	TIME("", "refused");
}

static void write_rounds(unsigned rounds)
{
	struct vmprof_err err;

	CHECK_EQ(scenario_write(path, rounds, &err), 0);
}

/* ---------- a process that changes ---------- */

static void add_map(struct buf *b, struct perfdata_id *id, uint64_t pgoff, const char *name)
{
	struct perfdata_map map = {.start = SCENARIO_EXE,
				   .len = 0x1000,
				   .pgoff = pgoff,
				   .prot = 5,
				   .flags = 2,
				   .filename = name};

	perfdata_encode_mmap2(b, id, &map);
	id->time += 10;
}

static void add_sample(struct buf *b, struct perfdata_id *id, const uint64_t *chain, uint32_t n)
{
	perfdata_encode_sample(b, id, SCENARIO_EXE + 0x10, 7, chain, n);
	id->time += 10;
}

static void write_changes(void)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, SCENARIO_EXE + 0x10},
		       unknown[] = {PERF_CONTEXT_USER, SCENARIO_EXE + 0x20, PERF_CONTEXT_GUEST,
				    SCENARIO_EXE + 0x30},
		       none[] = {PERF_CONTEXT_USER};
	struct perfdata_id id =
		scenario_id(&scenario_vms[0], SCENARIO_START, 0, PERF_RECORD_MISC_GUEST_USER);
	struct perfdata_writer *w;
	struct vmprof_err err;
	struct buf b = {0};

	CHECK_EQ(scenario_open(&w, path, &err), 0);
	add_map(&b, &id, 0, "/one");
	add_sample(&b, &id, chain, 2);
	add_map(&b, &id, 0x8000, "/two\n");
	add_sample(&b, &id, chain, 2);
	add_map(&b, &id, 0, "//anon");
	add_sample(&b, &id, chain, 2);
	add_sample(&b, &id, unknown, 4);
	add_sample(&b, &id, none, 1);
	perfdata_encode_comm(&b, &id, "web1:\033[31mred\xff", false);
	id.time += 10;
	id.cpu = (uint32_t)-1;
	add_sample(&b, &id, NULL, 0);
	CHECK_EQ(perfdata_writer_append(w, &b, &err), 0);
	buf_free(&b);
	CHECK_EQ(perfdata_writer_close(w, &err), 0);
}

static void test_changes(void)
{
	EXPECT("ip,dso",
	       "\n\t              10 (/one)\n"
	       "\n\n\t            8010 (/two\\x0a)\n"
	       "\n\n\t    555555554010 (//anon)\n"
	       /* a marker that nobody knows, no frames, no chain: the address remains */
	       "\n\n\t    555555554010 (//anon)\n"
	       "\n\n\t    555555554010 (//anon)\n"
	       "\n\n\t    555555554010 (//anon)\n\n", );
	EXPECT("comm,cpu,period", "web1:\\x1b[31mred\\xff [-01]          7 \n",
	       TIMES(SCENARIO_START + 85, UINT64_MAX));
}

/*
 * More frames than are remembered, and one in every chain: what was forgotten comes out the same.
 */
static void test_forgetting(void)
{
	enum { SAMPLES = 300, DEPTH = 1000 };
	struct perfdata_id id =
		scenario_id(&scenario_vms[0], SCENARIO_START, 0, PERF_RECORD_MISC_GUEST_USER);
	struct script_options opt = {.max_stack = DEPTH};
	struct vmprof_err err = {0};
	uint64_t chain[DEPTH + 1] = {PERF_CONTEXT_USER}, common = 0x123456789ab;
	struct perfdata_writer *w;
	struct buf b = {0};
	char *got, *line;

	CHECK_EQ(scenario_open(&w, path, &err), 0);
	for (unsigned i = 0; i < SAMPLES; i++) {
		chain[DEPTH] = common;
		for (unsigned j = 1; j < DEPTH; j++)
			chain[j] = (i % (SAMPLES / 2) * DEPTH + j) * 0x1001ull;
		add_sample(&b, &id, chain, DEPTH + 1);
	}
	CHECK_EQ(perfdata_writer_append(w, &b, &err), 0);
	buf_free(&b);
	CHECK_EQ(perfdata_writer_close(w, &err), 0);
	line = got = print("ip", &opt, &err);
	for (unsigned i = 0; got && i < SAMPLES; i++) {
		line += *line == '\n';
		for (unsigned j = 1; j <= DEPTH; j++) {
			uint64_t ip = (i % (SAMPLES / 2) * DEPTH + j) * 0x1001ull;

			ip = j == DEPTH ? common : ip;
			if (strtoull(line, &line, 16) != ip)
				j = DEPTH, i = SAMPLES, test_failures++;
		}
		CHECK(!strncmp(line, "\n\n", 2));
		line++;
	}
	CHECK(got && !strcmp(line, "\n"));
	free(got);
}

int main(void)
{
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	write_rounds(2);
	test_defaults();
	test_fields();
	test_filters();
	test_times();
	write_changes();
	test_changes();
	test_forgetting();
	unlink(path);
	return test_done();
}
