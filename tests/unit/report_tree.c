// SPDX-License-Identifier: GPL-2.0-only
/*
 * Call trees as perf report --stdio draws them. The expected text is what perf prints for a file
 * with these chains (tests/cli/report.bats compares with perf itself).
 */
#include "report_make.h"

static void fill(struct world *w)
{
	struct thread *t;

	world_init(w, 0);
	t = world_thread(w, &w->host, "prog", 10, 10);
	world_sample(w, t, 50, 1, "main;a;b;leaf");
	world_sample(w, t, 30, 1, "main;a;c;leaf");
	world_sample(w, t, 15, 1, "main;d;leaf");
	world_sample(w, t, 5, 1, "main");
}

static void check_tree(const char *tree, bool children, const char *symbols, const char *expected)
{
	struct report_options opt = world_options();
	struct vmprof_err err = {0};
	struct world w;
	char *text;

	fill(&w);
	opt.children = children;
	opt.sort = "dso,sym";
	opt.filter.symbols = symbols;
	CHECK_EQ(callgraph_parse(&opt.callgraph, tree, &err), 0);
	text = world_print(&w, &opt, report_print);
	CHECK_STR(text, expected);
	free(text);
	world_free(&w);
}

static void test_caller(void)
{
	check_tree("graph,0.5,caller", false, "leaf",
		   "    95.00%  prog         \n"
		   "            |\n"
		   "            ---main\n"
		   "               |          \n"
		   "               |--80.00%--a\n"
		   "               |          |          \n"
		   "               |          |--50.00%--b\n"
		   "               |          |          leaf\n"
		   "               |          |          \n"
		   "               |           --30.00%--c\n"
		   "               |                     leaf\n"
		   "               |          \n"
		   "                --15.00%--d\n"
		   "                          leaf\n\n\n\n");
}

static void test_callee(void)
{
	check_tree("graph,0.5,callee", false, "leaf",
		   "    95.00%  prog         \n"
		   "            |\n"
		   "            ---leaf\n"
		   "               |          \n"
		   "               |--50.00%--b\n"
		   "               |          a\n"
		   "               |          main\n"
		   "               |          \n"
		   "               |--30.00%--c\n"
		   "               |          a\n"
		   "               |          main\n"
		   "               |          \n"
		   "                --15.00%--d\n"
		   "                          main\n\n\n\n");
}

static void test_fractal(void)
{
	check_tree("fractal,20,caller", false, "leaf",
		   "    95.00%  prog         \n"
		   "            |\n"
		   "            ---main\n"
		   "               |          \n"
		   "               |--84.21%--a\n"
		   "               |          |          \n"
		   "               |          |--62.50%--b\n"
		   "               |          |          leaf\n"
		   "               |          |          \n"
		   "               |           --37.50%--c\n"
		   "               |                     leaf\n"
		   "                --15.79%--[...]\n\n\n\n");
}

static void test_lists(void)
{
	check_tree("flat,0.5,caller", false, "leaf",
		   "    95.00%  prog         \n"
		   "           50.00%\n"
		   "                main\n"
		   "                a\n"
		   "                b\n"
		   "                leaf\n"
		   "\n"
		   "           30.00%\n"
		   "                main\n"
		   "                a\n"
		   "                c\n"
		   "                leaf\n"
		   "\n"
		   "           15.00%\n"
		   "                main\n"
		   "                d\n"
		   "                leaf\n"
		   "\n\n\n");
	check_tree("folded,20,caller,count", false, "leaf",
		   "    95.00%  prog         \n"
		   "50 main;a;b;leaf\n"
		   "30 main;a;c;leaf\n\n\n");
	check_tree("folded,0.5,2,callee,period", false, "leaf",
		   "    95.00%  prog         \n"
		   "50 leaf;b;a;main\n"
		   "30 leaf;c;a;main\n\n\n");
}

/* With children in caller order a frame's tree is what it has called. */
static void test_children(void)
{
	check_tree("graph,20", true, NULL,
		   "   100.00%     5.00%  prog           [.] main\n"
		   "            |\n"
		   "            ---main\n"
		   "               |          \n"
		   "                --80.00%--a\n"
		   "                          |          \n"
		   "                          |--50.00%--b\n"
		   "                          |          leaf\n"
		   "                          |          \n"
		   "                           --30.00%--c\n"
		   "                                     leaf\n"
		   "\n"
		   "    95.00%    95.00%  prog           [.] leaf\n"
		   "            |\n"
		   "            ---main\n"
		   "               |          \n"
		   "                --80.00%--a\n"
		   "                          |          \n"
		   "                          |--50.00%--b\n"
		   "                          |          leaf\n"
		   "                          |          \n"
		   "                           --30.00%--c\n"
		   "                                     leaf\n"
		   "\n"
		   "    80.00%     0.00%  prog           [.] a\n"
		   "            |\n"
		   "            ---a\n"
		   "               |          \n"
		   "               |--50.00%--b\n"
		   "               |          leaf\n"
		   "               |          \n"
		   "                --30.00%--c\n"
		   "                          leaf\n"
		   "\n"
		   "    50.00%     0.00%  prog           [.] b\n"
		   "            |\n"
		   "            ---b\n"
		   "               leaf\n"
		   "\n"
		   "    30.00%     0.00%  prog           [.] c\n"
		   "            |\n"
		   "            ---c\n"
		   "               leaf\n"
		   "\n"
		   "    15.00%     0.00%  prog           [.] d\n\n\n");
}

/* A chain far deeper than any bit mask, and one of nothing but recursion. */
static void test_deep(void)
{
	struct report_options opt = world_options();
	struct buf chain = {0};
	struct world w;
	char *text;

	world_init(&w, 0);
	for (unsigned i = 0; i < 3000; i++)
		buf_printf(&chain, "%s;", i % 2 ? "ping" : "pong");
	for (unsigned i = 0; i < 2; i++) {
		struct thread *t = world_thread(&w, &w.host, "deep", 10, 10);

		buf_add(&chain, i ? "x" : "y", 2);
		world_sample(&w, t, 1, 1, (const char *)chain.data);
		chain.len -= 2;
	}
	buf_free(&chain);
	opt.sort = "sym";
	opt.max_stack = 100000;
	opt.callgraph.mode = CALLGRAPH_GRAPH;
	text = world_print(&w, &opt, report_print);
	CHECK(strstr(text, "100.00%     0.00%  [.] ping"));
	free(text);
	opt.callgraph.mode = CALLGRAPH_FLAT;
	text = world_print(&w, &opt, report_print);
	CHECK(strlen(text) > 6000 * 16);
	free(text);
	opt.callgraph.mode = CALLGRAPH_GRAPH;
	opt.children = false;
	opt.max_stack = 3;
	opt.sort = "comm";
	opt.callgraph.caller = true;
	text = world_print(&w, &opt, report_print);
	CHECK_STR(text, "   100.00%  deep   \n"
			"            |\n"
			"            ---pong\n"
			"               ping\n"
			"               pong\n\n\n\n");
	free(text);
	world_free(&w);
}

int main(void)
{
	test_caller();
	test_callee();
	test_fractal();
	test_lists();
	test_children();
	test_deep();
	return test_done();
}
