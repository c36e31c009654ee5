// SPDX-License-Identifier: GPL-2.0-only
/*
 * A histogram over a profile: one entry for each distinct value of the sort keys, with its own
 * weight and, with children, that of all whose call chains it is in. Order, weights and call chains
 * are those of perf report (tools/perf/util/hist.c, sort.c).
 */
#ifndef VMPROF_REPORT_HIST_H
#define VMPROF_REPORT_HIST_H

#include "report/filter.h"
#include "report/layout.h"

/* A call chain that an entry owns: of @stack, from frame @depth on (0 is outermost). */
struct hist_chain {
	uint32_t stack, depth;
};

struct hist_weights {
	uint64_t period, samples; /* its own */
	uint64_t children_period, children_samples;
	uint64_t mode_period[8]; /* its own by cpumode */
};

struct hist_entry {
	uint32_t context; /* of the first sample */
	const struct thread *thread;
	uint32_t frame;
	uint32_t branch; /* of a profile of branches; frame is its target */
	uint64_t addr;	 /* what is shown and compared where the frame has no symbol */
	char level;
	bool filtered; /* stands for samples that nobody wants; it only has a place in the order */
	uint32_t max_depth; /* of its call chains, in frames */
	struct hist_chain *chains;
	uint32_t nr_chains;
};

struct hist_sum {
	uint64_t samples, period;		    /* of the event */
	uint64_t filtered_samples, filtered_period; /* what the filter leaves of it */
};

struct hist_config {
	uint32_t event;
	uint32_t nr_events; /* from that one on: a group, whose first one decides on the order */
	const struct machine *machine; /* only its samples; NULL: all */
	const struct report_filter *filter;
	bool children;
	bool chains;	    /* call chains are shown */
	bool caller_order;  /* chains run from the outermost frame to the sample */
	bool relative;	    /* percentages are of what the filter leaves */
	bool long_names;    /* tell dsos apart by their whole path */
	unsigned max_stack; /* frames of a chain that count */
};

struct hist {
	struct profile *profile;
	struct hist_config cfg;
	const struct layout *layout;

	struct hist_entry *entries;
	struct hist_weights *weights; /* of each entry those of each event of the group */
	uint32_t *last_stacks;	      /* of each the last one counted, + 1: recursion counts once */
	uint32_t nr_entries;
	size_t entries_cap, weights_cap, last_stacks_cap;
	uint32_t *order; /* entry numbers as they are printed */

	struct hist_sum *sums; /* of each event of the group */

	/* ids of the sort keys' values */
	struct keyset context_ids, frame_ids, entry_ids;
	struct hist_context *contexts;
	struct hist_frame *frames;
	struct hist_node *nodes;
	uint32_t *branches; /* + 1 */
};

void hist_build(struct hist *h, struct profile *p, const struct layout *l,
		const struct hist_config *cfg);
/* Gives every entry with at least @min of weight its chains. */
void hist_collect_chains(struct hist *h, uint64_t min);
void hist_free(struct hist *h);

/* What percentages are of, of event @i of the group. */
uint64_t hist_total(const struct hist *h, uint32_t i);

static inline const struct hist_weights *hist_weights(const struct hist *h,
						      const struct hist_entry *e, uint32_t i)
{
	return &h->weights[(size_t)(e - h->entries) * h->cfg.nr_events + i];
}

/* The weight that decides on order and limits: children's where they are counted. */
static inline uint64_t hist_weight(const struct hist *h, const struct hist_entry *e)
{
	const struct hist_weights *w = hist_weights(h, e, 0);

	return h->cfg.children ? w->children_period : w->period;
}

/* In the precision in which perf compares it with --percent-limit. */
float hist_percent(const struct hist *h, const struct hist_entry *e);

static inline const struct frame *hist_frame_of(const struct hist *h, const struct hist_entry *e)
{
	return &h->profile->frames[e->frame];
}

static inline const struct context *hist_context_of(const struct hist *h,
						    const struct hist_entry *e)
{
	return &h->profile->contexts[e->context];
}

const char *hist_dso_name(const struct hist *h, const struct hist_entry *e);

/*
 * Frames of a chain in the order of the report, those beyond max_stack cut off. @frames and @cap as
 * in profile_chain().
 */
size_t hist_chain_frames(const struct hist *h, const struct hist_chain *c, uint32_t **frames,
			 size_t *cap);

#endif
