// SPDX-License-Identifier: GPL-2.0-only
/*
 * Source lines of a function by their shares, of those instructions that have one worth a word.
 */
#ifndef VMPROF_ANNOTATE_LINESUM_H
#define VMPROF_ANNOTATE_LINESUM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define LINESUM_MIN 0.5 /* percent, of one event */

struct linesum {
	struct linesum_line {
		const char *text; /* escaped, interned */
		double *percent;  /* of each event */
	} * lines;
	size_t n, cap;
	size_t nr_events;
};

/* Adds an instruction of line @text: @percent is of each event. */
void linesum_add(struct linesum *s, const char *text, const double *percent);
/* The highest first; @file is the one that has the code, escaped when it is printed. */
void linesum_print(struct linesum *s, const char *file, FILE *f);
void linesum_free(struct linesum *s);

#endif
