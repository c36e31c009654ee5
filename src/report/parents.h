// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parent of a sample: the function of its call chain that a regular expression chooses.
 */
#ifndef VMPROF_REPORT_PARENTS_H
#define VMPROF_REPORT_PARENTS_H

#include "report/profile.h"

#define PARENTS_DEFAULT "^sys_|^do_page_fault" /* perf's */

struct parents;

/* @pattern: extended; NULL the default. @p may be NULL if nothing is to be found. 0, or -EINVAL
 * with a sentence. */
int parents_new(struct parents **out, struct profile *p, const char *pattern, bool outermost,
		struct vmprof_err *err);
void parents_free(struct parents *ps); /* NULL is fine */
/* Its name as profile_frame_name() has it, NULL: there is none in the chain of @node. */
const char *parents_find(struct parents *ps, uint32_t node);

#endif
