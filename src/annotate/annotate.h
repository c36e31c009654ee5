// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions with the share of samples that each of their instructions has, in the layout of perf
 * annotate --stdio. All goes to a FILE *; text from files and guests is escaped.
 */
#ifndef VMPROF_ANNOTATE_ANNOTATE_H
#define VMPROF_ANNOTATE_ANNOTATE_H

#include <stdio.h>

#include "annotate/hits.h"

enum annotate_column { ANNOTATE_PERCENT, ANNOTATE_SAMPLES, ANNOTATE_PERIOD };

struct annotate_options {
	bool global; /* shares of all samples that the filters leave, not of the function's */
	bool hits;   /* shares by number of samples, not by period */
	enum annotate_column column;
	bool no_jumps;	      /* no arrows from jumps to targets */
	bool group;	      /* all events side by side */
	bool full_paths;      /* of the DSO and of source files */
	bool no_source;	      /* no source between the instructions */
	bool print_lines;     /* source lines by their shares, and before instructions */
	double percent_limit; /* functions with a smaller share of all are left out */
	const char *event;    /* only this one; NULL: all */
};

/* What could not be shown. */
struct annotate_result {
	uint32_t shown, failed; /* functions; one of two events counts twice */
	uint64_t failed_samples;
	struct vmprof_err first; /* with the name of the function */
};

/* "local-period" and so on. 0 or -EINVAL with a sentence. */
int annotate_parse_type(struct annotate_options *opt, const char *type, struct vmprof_err *err);
/* Every function, hottest first, of one event after the other unless grouped; after hits_sort(). */
void annotate_print(const struct hits *h, const struct annotate_options *opt, FILE *f,
		    struct annotate_result *r);

#endif
