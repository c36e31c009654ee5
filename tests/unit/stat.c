// SPDX-License-Identifier: GPL-2.0-only
/*
 * vmprof stat without a VM: counts and metrics printed as perf stat prints them where a PMU has
 * them, names that would break a line, exits put together and printed as perf kvm stat does, what
 * tracefs says of a tracepoint's fields, also if it is hostile.
 */
#include <linux/perf_event.h>

#include "events/tracepoint.h"
#include "stat/exits.h"
#include "stat/metric.h"
#include "stat/print.h"
#include "tests/unit/test.h"

static char *text;
static size_t text_len;

static FILE *begin(void)
{
	free(text);
	text = NULL;
	return open_memstream(&text, &text_len);
}

/* ---------- counts ---------- */

#define NR_EVENTS 8

static struct event_list list = {
	.n = NR_EVENTS,
	.events =
		{
			{.name = "task-clock",
			 .type = PERF_TYPE_SOFTWARE,
			 .config = PERF_COUNT_SW_TASK_CLOCK,
			 .guest = true},
			{.name = "cycles", .config = PERF_COUNT_HW_CPU_CYCLES, .guest = true},
			{.name = "instructions",
			 .config = PERF_COUNT_HW_INSTRUCTIONS,
			 .guest = true},
			{.name = "branches",
			 .config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
			 .guest = true},
			{.name = "branch-misses",
			 .config = PERF_COUNT_HW_BRANCH_MISSES,
			 .guest = true},
			{.name = "stalled-cycles-backend",
			 .config = PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
			 .guest = true},
			{.name = "instructions:u",
			 .config = PERF_COUNT_HW_INSTRUCTIONS,
			 .exclude_kernel = true,
			 .guest = true},
			{.name = "page-faults",
			 .type = PERF_TYPE_SOFTWARE,
			 .config = PERF_COUNT_SW_PAGE_FAULTS,
			 .host = true},
		},
};

static const bool supported[NR_EVENTS] = {true, true, true, true, true, true, true, false};

static const struct stat_value values[NR_EVENTS] = {
	{2e9, 0, 4000, 4000},	      {4e9, 1.5, 4000, 4000},
	{6e9, 0, 4000, 1000},	      {12345678, 0, 4000, 4000},
	{123456, 0, 4000, 4000},      {3e9, 0, 4000, 4000},
	{1e9, 0, 4000, 0 /* none */}, {0, 0, 0, 0},
};

static struct stat_block block(const char *name)
{
	return (struct stat_block){
		.name = name,
		.events = &list,
		.supported = supported,
		.values = values,
		.nr_columns = 1,
		.elapsed_ns = 4e9,
	};
}

static void test_text(void)
{
	struct stat_block b = block("web1");
	struct stat_print p = {.format = STAT_TEXT, .runs = 1};

	p.f = begin();
	stat_print_block(&p, &b);
	fclose(p.f);
	CHECK_STR(text, "\n"
			" Performance counter stats for VM 'web1':\n"
			"\n"
			"           2000.00 msec task-clock                       #    0.500 CPUs "
			"utilized          \n"
			"        4000000000      cycles                           #    2.000 GHz   "
			"                 \n"
			"        6000000000      instructions                     #    1.50  insn "
			"per cycle         \n"
			"                                                         #    0.50  "
			"stalled cycles per insn  (25.00%)\n"
			"          12345678      branches                         #    6.173 M/sec "
			"                 \n"
			"            123456      branch-misses                    #    1.00% of "
			"all branches        \n"
			"        3000000000      stalled-cycles-backend           #   75.00% "
			"backend cycles idle    \n"
			"     <not counted>      instructions:u                                    "
			"            (0.00%)\n"
			"   <not supported>      page-faults                                       "
			"          \n"
			"\n"
			"       4.000000000 seconds time elapsed\n"
			"\n");
}

static void test_programs(void)
{
	struct stat_block b = block("a,\"b");
	struct stat_print p = {.format = STAT_SEPARATED, .sep = ",", .runs = 2};
	const char *line;

	p.f = begin();
	stat_print_block(&p, &b);
	fclose(p.f);
	CHECK(!strncmp(text, "a\\x2c\\x22b,2000.00,msec,task-clock,0.00%,4000,100.00,0.500,CPUs ",
		       62));
	line = strchr(text, '\n') + 1;
	CHECK(!strncmp(line, "a\\x2c\\x22b,4000000000,,cycles,1.50%,4000,100.00,2.000,GHz\n", 58));
	CHECK(strstr(text, "b,6000000000,,instructions,0.00%,1000,25.00,1.50,insn per cycle\n"
			   "a\\x2c\\x22b,,,,,,,0.50,stalled cycles per insn\n"));
	CHECK(strstr(text, "b,<not counted>,,instructions:u,0.00%,0,0.00,,\n"));
	CHECK(strstr(text, "b,<not supported>,,page-faults,0.00%,0,100.00,,\n"));
	p = (struct stat_print){.format = STAT_JSON, .runs = 1, .f = begin()};
	b.per_vcpu = true;
	stat_print_interval(&p, &b, 1, 1234567890);
	fclose(p.f);
	CHECK(strstr(text, "{\"interval\" : 1.234567890, \"vm\" : \"a,\\\"b\", \"vcpu\" : \"0\", "
			   "\"counter-value\" : \"2000.000000\", \"unit\" : \"msec\", ") == text);
}

/* Rates by other modes' counts are none. */
static void test_metrics(void)
{
	const double v[NR_EVENTS] = {2e9, 4e9, 6e9, 0, 0, 0, 1e9, 500};
	bool known[NR_EVENTS] = {true, true, true, false, true, false, true, true};
	struct metric m[METRICS_MAX];

	CHECK_EQ(metrics_of(m, &list, v, known, 6, 4e9), 1); /* instructions:u, no cycles:u */
	CHECK(!m[0].fmt);
	CHECK_EQ(metrics_of(m, &list, v, known, 4, 4e9), 1); /* no branches */
	CHECK(!m[0].fmt);
	metrics_of(m, &list, v, known, 7, 4e9);
	CHECK_STR(m[0].unit, "/sec");
	CHECK(m[0].value == 250);
	metrics_of(m, &list, v, known, 0, 0); /* nothing is known of the time */
	CHECK(!m[0].fmt);
	known[0] = false;
	metrics_of(m, &list, v, known, 1, 4e9);
	CHECK(!m[0].fmt);
}

/* ---------- exits ---------- */

static void test_exits(void)
{
	struct stat_options o = {.vcpu = -1, .format = STAT_TEXT, .sort = EXITS_BY_TIME};
	struct exit_table t = {0};
	struct exit_vcpu a = {0}, b = {0};
	FILE *f;

	entry_seen(&t, &a, 50); /* its exit was before us */
	CHECK_EQ(t.count, 0);
	exit_seen(&a, EXIT_ARM_CLASS, 0x24, 1000);
	exit_seen(&b, EXIT_ARM_TYPE, 0x80000000, 1500); /* IRQ, with an SError pending */
	entry_seen(&t, &a, 3000);
	entry_seen(&t, &b, 101500);
	entry_seen(&t, &b, 101600); /* no exit between them */
	exit_seen(&a, EXIT_ARM_CLASS, 0x24, 5000);
	entry_seen(&t, &a, 9000);
	exit_seen(&a, EXIT_ARM_CLASS, 0x24, 10000);
	exits_lost(&t, &a, 17);
	entry_seen(&t, &a, 1000000);		      /* of which exit is not known */
	exit_seen(&a, EXIT_ARM_CLASS, 0x24, 2000000); /* never entered again */
	CHECK_EQ(t.count, 3);
	CHECK_EQ(t.time, 106000);
	CHECK_EQ(t.lost, 17);
	f = begin();
	exit_table_print(&t, &o, "web1", f);
	fclose(f);
	CHECK_STR(text,
		  "\n\nAnalyze events for VM 'web1', all VCPUs:\n\n"
		  "             VM-EXIT    Samples  Samples%     Time%    Min Time    Max Time   "
		  "      Avg time \n\n"
		  "                 IRQ          1    33.33%    94.34%    100.00us    100.00us    "
		  "100.00us ( +-   0.00% )\n"
		  "            DABT_LOW          2    66.67%     5.66%      2.00us      4.00us    "
		  "  3.00us ( +-  33.33% )\n"
		  "\nTotal Samples:3, Total events handled time:106.00us.\n\n"
		  "\nWARNING: Lost events: 17\n\n");
	exit_table_reset(&t);
}

static void test_many_reasons(void)
{
	struct stat_options o = {.vcpu = -1, .format = STAT_SEPARATED, .sep = ";"};
	struct exit_table t = {0};
	struct exit_vcpu v;
	FILE *f;

	for (uint32_t i = 0; i < 3 * EXIT_REASONS_MAX; i++) {
		exit_seen(&v, EXIT_ARM_CLASS, i, i);
		entry_seen(&t, &v, i + 1);
	}
	CHECK_EQ(t.count, 3 * EXIT_REASONS_MAX);
	CHECK(t.n <= EXIT_REASONS_MAX + 1);
	o.sort = EXITS_BY_COUNT;
	f = begin();
	exit_table_print(&t, &o, "a;b", f);
	fclose(f);
	CHECK(!strncmp(text, "a\\x3bb;(others);8192;66.67;66.67;0.00;0.00;0.00;0.00%\n", 52));
	exit_table_reset(&t);
}

static void test_reasons(void)
{
	char name[32];

	CHECK_STR(exit_reason_name(name, sizeof(name), EXIT_ARM_CLASS, 1), "WFx");
	CHECK_STR(exit_reason_name(name, sizeof(name), EXIT_ARM_TYPE, 1), "SERROR");
	CHECK_STR(exit_reason_name(name, sizeof(name), EXIT_SVM, 0xfffffff0), "0xfffffff0");
#if defined(__x86_64__)
	CHECK_STR(exit_reason_name(name, sizeof(name), EXIT_SVM, 0x400), "npf");
	CHECK_STR(exit_reason_name(name, sizeof(name), EXIT_SVM, 0x40), "DE excp");
	CHECK_STR(exit_reason_name(name, sizeof(name), EXIT_VMX, 0x80000030), "EPT_VIOLATION");
#endif
}

/* ---------- tracepoints ---------- */

static void test_fields(void)
{
	static const char format[] =
		"name: kvm_exit\nID: 7\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\n"
		"\tfield:unsigned int exit_reason;\toffset:8;\tsize:4;\tsigned:0;\n"
		"\tfield:u64 info1;\toffset:32;\tsize:8;\tsigned:0;\n"
		"\tfield:u8 small;\toffset:5;\tsize:1;\tsigned:0;\n"
		"\tfield:int three;\toffset:5;\tsize:3;\tsigned:0;\n"
		"\tfield:int far;\toffset:65534;\tsize:4;\tsigned:0;\n"
		"\tfield:int huge;\toffset:99999999999999999999;\tsize:4;\tsigned:0;\n"
		"\tfield:int minus;\toffset:-8;\tsize:4;\tsigned:0;\n"
		"\tfield:int bare\n"
		"\tfield:char a[8];\toffset:40;\tsize:8;\tsigned:0;\n"
		"print fmt: \"field:int in_text;\toffset:8;\tsize:4;\"";
	uint8_t record[40] = {1, 2, 0, 0, 0, 9, 0, 0, 0x78, 0x56, 0x34, 0x12};
	struct tracepoint_field f;
	uint64_t v;

	CHECK(tracepoint_field(&f, format, "exit_reason"));
	CHECK(tracepoint_value(&v, &f, record, sizeof(record)));
	CHECK_EQ(v, 0x12345678);
	CHECK(tracepoint_value(&v, &f, record, 12));
	CHECK(!tracepoint_value(&v, &f, record, 11));
	CHECK(!tracepoint_value(&v, &f, record, 4));
	CHECK(tracepoint_field(&f, format, "common_type"));
	CHECK(tracepoint_value(&v, &f, record, sizeof(record)));
	CHECK_EQ(v, 0x201);
	CHECK(tracepoint_field(&f, format, "small"));
	CHECK(tracepoint_value(&v, &f, record, sizeof(record)));
	CHECK_EQ(v, 9);
	CHECK(tracepoint_field(&f, format, "info1"));
	CHECK(tracepoint_value(&v, &f, record, sizeof(record)));
	CHECK(!tracepoint_field(&f, format, "reason")); /* the end of another one's name */
	CHECK(!tracepoint_field(&f, format, "three"));
	CHECK(!tracepoint_field(&f, format, "far"));
	CHECK(!tracepoint_field(&f, format, "huge"));
	CHECK(!tracepoint_field(&f, format, "minus"));
	CHECK(!tracepoint_field(&f, format, "bare"));
	CHECK(!tracepoint_field(&f, format, "a"));
	CHECK(!tracepoint_field(&f, format, "in_text"));
	CHECK(!tracepoint_field(&f, "", "x"));
	CHECK(!tracepoint_field(&f, "field:", ""));
}

int main(void)
{
	test_text();
	test_programs();
	test_metrics();
	test_exits();
	test_many_reasons();
	test_reasons();
	test_fields();
	free(text);
	return test_done();
}
