// SPDX-License-Identifier: GPL-2.0-only
/*
 * The call chains of one histogram entry as a tree, and the ways perf report prints it
 * (tools/perf/util/callchain.c, ui/stdio/hist.c). One is built when its entry is printed and is
 * then used again for the next, so that memory is that of the largest.
 */
#ifndef VMPROF_REPORT_CALLGRAPH_H
#define VMPROF_REPORT_CALLGRAPH_H

#include <stdio.h>

#include "report/hist.h"

enum callgraph_mode {
	CALLGRAPH_NONE,
	CALLGRAPH_GRAPH,   /* percentages of the total */
	CALLGRAPH_FRACTAL, /* percentages of the parent */
	CALLGRAPH_FLAT,
	CALLGRAPH_FOLDED,
};

enum callgraph_value { CALLGRAPH_PERCENT, CALLGRAPH_PERIOD, CALLGRAPH_COUNT };

struct callgraph_config {
	enum callgraph_mode mode;
	enum callgraph_value value;
	double min_percent;
	unsigned print_limit; /* 0: none */
	bool caller, order_set;
};

/*
 * Parses --call-graph's argument (perf's words, each may be shortened). 0 or -EINVAL with a
 * sentence.
 */
int callgraph_parse(struct callgraph_config *cfg, const char *arg, struct vmprof_err *err);

struct callgraph_node {
	uint32_t frame;
	uint32_t child, sibling; /* 0: none */
	uint32_t nr_children;
	uint64_t hit, count;		       /* chains that end here */
	uint64_t children_hit, children_count; /* chains that go on */
};

struct callgraph {
	struct callgraph_node *nodes; /* [0] is the root */
	size_t n, cap;
	struct trie index; /* by frame */
	uint32_t *frames;
	size_t frames_cap;
};

void callgraph_build(struct callgraph *g, const struct hist *h, const struct hist_entry *e);
void callgraph_free(struct callgraph *g);

/* The weight below which a branch is not shown. */
uint64_t callgraph_min_hit(const struct callgraph_config *cfg, const struct hist *h);
void callgraph_print(struct callgraph *g, const struct callgraph_config *cfg, struct hist *h,
		     const struct hist_entry *e, FILE *f);

#endif
