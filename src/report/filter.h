// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which samples a report is about. Lists are comma-separated, as perf report takes them; NULL is
 * everything.
 */
#ifndef VMPROF_REPORT_FILTER_H
#define VMPROF_REPORT_FILTER_H

#include "report/profile.h"

struct report_filter {
	const char *vms; /* names; "host" or "[host]" is the host */
	const char *comms;
	const char *pids, *tids;
	const char *dsos;    /* short or long names */
	const char *symbols; /* whole names */
	const char *symbol_part;
};

/* PROFILE_BY_* that contexts must be told apart by for this filter. */
unsigned filter_needs(const struct report_filter *f);
bool filter_machine(const struct report_filter *f, const struct machine *m);
bool filter_context(const struct report_filter *f, const struct context *ctx);
/* @name: of the symbol, as shown; NULL: unresolved. */
bool filter_location(const struct report_filter *f, const struct dso *dso, const char *name);
bool filter_frame(const struct report_filter *f, struct profile *p, uint32_t frame);
bool filter_stack(const struct report_filter *f, struct profile *p, const struct stack *s);

/* "0,2-3" */
struct cpu_list {
	uint8_t *has; /* by number */
};
/* 0 or -EINVAL with a sentence. */
int cpu_list_parse(struct cpu_list *l, const char *text, struct vmprof_err *err);
bool cpu_list_has(const struct cpu_list *l, uint32_t cpu);
void cpu_list_free(struct cpu_list *l);

#endif
