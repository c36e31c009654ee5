// SPDX-License-Identifier: GPL-2.0-only
/*
 * All call chains of one event as one tree of names: VM (where there are guests), command, then
 * frames, outermost first. Folded lines and the flame graph are made from it.
 */
#ifndef VMPROF_REPORT_NAMETREE_H
#define VMPROF_REPORT_NAMETREE_H

#include "report/report.h"

enum name_kind {
	NAME_HOST_USER = FRAME_HOST_USER,
	NAME_HOST_KERNEL = FRAME_HOST_KERNEL,
	NAME_GUEST_USER = FRAME_GUEST_USER,
	NAME_GUEST_KERNEL = FRAME_GUEST_KERNEL,
	NAME_COMM,
	NAME_VM,
	NAME_ROOT,
};

struct name_node {
	const char *text; /* escaped; no ';' */
	enum name_kind kind;
	uint32_t child, sibling;	  /* 0: none; siblings are in order of their names */
	uint64_t period, samples;	  /* with all below it */
	uint64_t own_period, own_samples; /* that end here */
};

struct nametree {
	struct name_node *nodes; /* [0] is the root */
	uint32_t n;
	uint32_t depth; /* levels below the root */
};

/* @short_unknown: frames without a symbol that follow each other in one dso become one. */
void nametree_build(struct nametree *t, struct report *r, uint32_t event, bool short_unknown);
void nametree_free(struct nametree *t);

#endif
