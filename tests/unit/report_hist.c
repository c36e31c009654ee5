// SPDX-License-Identifier: GPL-2.0-only
/* Histograms of report: what entries there are, what they weigh, and in which order they stand. */
#include "report/rborder.h"
#include "report_make.h"

static void check_report(struct world *w, const struct report_options *opt, const char *expected)
{
	char *text = world_print(w, opt, report_print);

	CHECK_STR(text, expected);
	free(text);
}

static void test_keyset(void)
{
	struct keyset ks = {.width = 2};
	uint64_t key[2] = {0};
	bool added;

	for (uint32_t i = 0; i < 10000; i++) {
		key[0] = i / 3;
		key[1] = i % 3;
		CHECK_EQ(keyset_add(&ks, key, &added), i);
		CHECK(added);
	}
	key[0] = 1234;
	key[1] = 2;
	CHECK_EQ(keyset_add(&ks, key, &added), 1234 * 3 + 2);
	CHECK(!added);
	CHECK_EQ(ks.n, 10000);
	keyset_clear(&ks);
	CHECK_EQ(keyset_add(&ks, key, &added), 0);
	CHECK(added);
	keyset_free(&ks);
}

static bool by_value(uint32_t a, uint32_t b, const void *ctx)
{
	return a / 10 < b / 10;
}

static bool counted(uint32_t a, uint32_t b, const void *ctx)
{
	++*(uint64_t *)ctx;
	return a < b;
}

static bool always(uint32_t a, uint32_t b, const void *ctx)
{
	return true;
}

/* With a true order it sorts, and equals stay as they came. */
static void test_rborder(void)
{
	uint32_t ids[500];

	for (uint32_t n = 0; n <= 500; n += n < 20 ? 1 : 160) {
		for (uint32_t i = 0; i < n; i++)
			ids[i] = (i * 7919 + 13) % n;
		rborder(ids, n, by_value, NULL);
		for (uint32_t i = 1; i < n; i++)
			CHECK(ids[i - 1] / 10 <= ids[i] / 10);
	}
	for (uint32_t i = 0; i < 10; i++)
		ids[i] = i ^ 5;
	rborder(ids, 8, by_value, NULL);
	for (uint32_t i = 0; i < 8; i++)
		CHECK_EQ(ids[i], i ^ 5);
	rborder(ids, 8, always, NULL);
	CHECK_EQ(ids[0], 7 ^ 5);
}

/* A tree that degenerates would take n * n / 2. */
static void test_rborder_balance(void)
{
	uint32_t n = 20000, *ids = calloc(n, sizeof(*ids));
	uint64_t compared = 0;

	for (uint32_t i = 0; i < n; i++)
		ids[i] = i;
	rborder(ids, n, counted, &compared);
	CHECK(compared < 30ull * n);
	CHECK_EQ(ids[n - 1], n - 1);
	free(ids);
}

static void test_flat(void)
{
	struct report_options opt = world_options();
	struct world w;
	struct thread *a, *b;

	world_init(&w, 0);
	a = world_thread(&w, &w.host, "alpha", 10, 10);
	b = world_thread(&w, &w.host, "beta", 20, 20);
	world_sample(&w, a, 6, 100, "main;work");
	world_sample(&w, a, 1, 100, "main;0x401234");
	world_sample(&w, b, 2, 100, "main;write@[k]");
	world_sample(&w, b, 1, 100, "start;work");
	opt.children = false;
	opt.callgraph.mode = CALLGRAPH_NONE;
	check_report(&w, &opt,
		     "    60.00%  alpha    prog              [.] work\n"
		     "    20.00%  beta     [k]               [k] write\n"
		     "    10.00%  alpha    prog              [.] 0x0000000000000234\n"
		     "    10.00%  beta     prog              [.] work\n\n\n");
	opt.sort = "sym";
	opt.show_samples = true;
	check_report(&w, &opt,
		     "    70.00%             7  [.] work\n"
		     "    20.00%             2  [k] write\n"
		     "    10.00%             1  [.] 0x0000000000000234\n\n\n");
	opt.sort = "comm";
	opt.percent_limit = 50;
	check_report(&w, &opt, "    70.00%             7  alpha  \n\n\n");
	world_free(&w);
}

/* A function in its own chain counts once; callers stand above what they call. */
/* perf's order of addresses whose differences overflow depends on which it met first. */
static void test_far_addresses(void)
{
	struct report_options opt = world_options();
	struct world w;
	struct thread *t;

	world_init(&w, 0);
	t = world_thread(&w, &w.host, "one", 5, 5);
	world_sample(&w, t, 1, 10, "0x6000000000000010@[kernel]");
	world_sample(&w, t, 1, 10, "0xb000000000000020@[kernel]");
	world_sample(&w, t, 1, 10, "0x10@[kernel]");
	opt.sort = "dso,sym";
	opt.children = false;
	opt.callgraph.mode = CALLGRAPH_NONE;
	check_report(&w, &opt,
		     "    33.33%  [kernel]          [.] 0x0000000000000010\n"
		     "    33.33%  [kernel]          [.] 0x6000000000000010\n"
		     "    33.33%  [kernel]          [.] 0xb000000000000020\n\n\n");
	world_free(&w);
}

static void test_children(void)
{
	struct report_options opt = world_options();
	struct world w;
	struct thread *t;

	world_init(&w, 0);
	t = world_thread(&w, &w.host, "prog", 10, 10);
	world_sample(&w, t, 3, 10, "main;rec;rec;rec");
	world_sample(&w, t, 1, 10, "main;rec;leaf");
	opt.callgraph.mode = CALLGRAPH_NONE;
	opt.sort = "sym";
	check_report(&w, &opt,
		     "   100.00%    75.00%  [.] rec\n"
		     "   100.00%     0.00%  [.] main\n"
		     "    25.00%    25.00%  [.] leaf\n\n\n");
	opt.callgraph.mode = CALLGRAPH_GRAPH;
	opt.callgraph.min_percent = 90; /* of nothing a tree */
	opt.callgraph.print_limit = 1;
	opt.fields = "overhead_children,sym";
	opt.percent_limit = 50;
	check_report(&w, &opt,
		     "   100.00%  [.] main\n"
		     "            |\n"
		     "            ---main\n"
		     "\n"
		     "   100.00%  [.] rec\n\n\n");
	world_free(&w);
}

/* Of equal weight, a caller stands above what it calls, whatever they are named. */
static void test_callers_first(void)
{
	struct report_options opt = world_options();
	struct world w;

	world_init(&w, 0);
	world_sample(&w, world_thread(&w, &w.host, "prog", 10, 10), 1, 10, "zero;one;a;leaf");
	opt.sort = "sym";
	opt.callgraph.min_percent = 200;
	check_report(&w, &opt,
		     "   100.00%   100.00%  [.] leaf\n"
		     "   100.00%     0.00%  [.] zero\n"
		     "   100.00%     0.00%  [.] one\n"
		     "   100.00%     0.00%  [.] a\n\n\n");
	world_free(&w);
}

static void test_filters(void)
{
	struct report_options opt = world_options();
	struct world w;
	struct thread *a, *b;

	world_init(&w, PROFILE_BY_THREAD);
	a = world_thread(&w, &w.host, "alpha", 10, 11);
	b = world_thread(&w, &w.vm, "beta", 20, 20);
	w.p.session = NULL;
	world_sample(&w, a, 3, 10, "main;work");
	world_sample(&w, b, 1, 10, "main;work");
	opt.children = false;
	opt.callgraph.mode = CALLGRAPH_NONE;
	opt.filter.comms = "alpha,gamma";
	opt.sort = "comm";
	check_report(&w, &opt, "    75.00%  alpha  \n\n\n");
	opt.relative = true;
	check_report(&w, &opt, "   100.00%  alpha  \n\n\n");
	opt.filter.comms = NULL;
	opt.filter.vms = "web1";
	check_report(&w, &opt, "   100.00%  beta   \n\n\n");
	opt.filter.vms = "u-1";
	opt.sort = "vm,comm";
	opt.relative = false;
	check_report(&w, &opt, "    25.00%  beta   \n\n\n");
	opt.filter.vms = "host,web1";
	check_report(&w, &opt, "    75.00%  [host]  alpha  \n    25.00%  web1    beta   \n\n\n");
	opt.filter.vms = NULL;
	opt.filter.tids = "11";
	opt.sort = "pid";
	check_report(&w, &opt, "    75.00%       11:alpha  \n\n\n");
	opt.filter.tids = NULL;
	opt.filter.dsos = "[k]";
	check_report(&w, &opt, "\n\n");
	world_free(&w);
}

/* The same pid and the same place in two machines are two things. */
static void test_machines_apart(void)
{
	struct report_options opt = world_options();
	struct world w;

	world_init(&w, PROFILE_BY_THREAD);
	world_sample(&w, world_thread(&w, &w.host, "one", 5, 5), 1, 10, "f@lib");
	world_sample(&w, world_thread(&w, &w.vm, "two", 5, 5), 3, 10, "g@lib");
	/* another symbol at the same place of a dso with the same name */
	w.symbols[1].start = w.symbols[0].start;
	w.symbols[1].end = w.symbols[0].end;
	opt.children = false;
	opt.callgraph.mode = CALLGRAPH_NONE;
	opt.sort = "pid";
	check_report(&w, &opt, "    75.00%        5:web1:two\n    25.00%        5:one     \n\n\n");
	opt.sort = "dso,sym";
	check_report(&w, &opt,
		     "    75.00%  lib            [u] g\n    25.00%  lib            [.] f\n\n\n");
	world_free(&w);
}

static void test_bad_options(void)
{
	struct report_options opt = world_options();
	struct vmprof_err err = {0};
	struct callgraph_config cg = {.mode = CALLGRAPH_GRAPH};
	struct world w;

	world_init(&w, 0);
	opt.sort = "comm,nonsense";
	check_report(&w, &opt,
		     "unknown --sort key 'nonsense'; 'vmprof report --help' lists the keys");
	opt.sort = "\x1b[31m";
	check_report(&w, &opt,
		     "unknown --sort key '\\x1b[31m'; 'vmprof report --help' lists the keys");
	opt.sort = "+";
	check_report(&w, &opt, "--sort needs at least one key");
	opt.sort = NULL;
	opt.fields = ",";
	check_report(&w, &opt, "--fields needs at least one key");
	CHECK_EQ(callgraph_parse(&cg, "fractal,5,caller,count,10", &err), 0);
	CHECK_EQ(cg.mode, CALLGRAPH_FRACTAL);
	CHECK_EQ(cg.value, CALLGRAPH_COUNT);
	CHECK_EQ(cg.print_limit, 10);
	CHECK(cg.min_percent == 5 && cg.caller && cg.order_set);
	CHECK(callgraph_parse(&cg, "graph,address", &err) < 0);
	CHECK(callgraph_parse(&cg, "graph,-3", &err) < 0);
	CHECK(callgraph_parse(&cg, "graph,nan", &err) < 0);
	world_free(&w);
}

int main(void)
{
	test_keyset();
	test_rborder();
	test_rborder_balance();
	test_flat();
	test_far_addresses();
	test_children();
	test_callers_first();
	test_filters();
	test_machines_apart();
	test_bad_options();
	return test_done();
}
