// SPDX-License-Identifier: GPL-2.0-only
#include "annotate/linesum.h"

#include <stdlib.h>
#include <string.h>

#include "util/text.h"
#include "util/xalloc.h"

void linesum_add(struct linesum *s, const char *text, const double *percent)
{
	struct linesum_line *line = NULL;

	for (size_t i = 0; i < s->n && !line; i++)
		if (s->lines[i].text == text)
			line = &s->lines[i];
	if (!line) {
		s->lines = xgrow(s->lines, &s->cap, s->n + 1, sizeof(*s->lines));
		line = &s->lines[s->n++];
		line->text = text;
		line->percent = xcalloc(s->nr_events, sizeof(*line->percent));
	}
	for (size_t i = 0; i < s->nr_events; i++)
		line->percent[i] += percent[i];
}

static int highest_first(const void *a, const void *b, void *ctx)
{
	const struct linesum *s = ctx;
	const struct linesum_line *x = a, *y = b;

	for (size_t i = 0; i < s->nr_events; i++)
		if (x->percent[i] != y->percent[i])
			return x->percent[i] > y->percent[i] ? -1 : 1;
	return strcmp(y->text, x->text); /* as in perf */
}

void linesum_print(struct linesum *s, const char *file, FILE *f)
{
	if (s->n)
		qsort_r(s->lines, s->n, sizeof(*s->lines), highest_first, s);
	fputs("\nSorted summary for file ", f);
	escape_fputs(file, f);
	fputs("\n----------------------------------------------\n\n", f);
	if (!s->n)
		fprintf(f, " Nothing higher than %1.1f%%\n", LINESUM_MIN);
	for (size_t i = 0; i < s->n; i++) {
		for (size_t e = 0; e < s->nr_events; e++)
			fprintf(f, " %7.2f", s->lines[i].percent[e]);
		fprintf(f, " %s\n", s->lines[i].text);
	}
}

void linesum_free(struct linesum *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->lines[i].percent);
	free(s->lines);
	*s = (struct linesum){0};
}
