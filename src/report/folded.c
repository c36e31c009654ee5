// SPDX-License-Identifier: GPL-2.0-only
/* One line a call chain, as flamegraph.pl, speedscope and others read it. */
#include <inttypes.h>
#include <string.h>

#include "report/nametree.h"

static void print_below(const struct nametree *t, uint32_t node, struct buf *line, FILE *f)
{
	size_t len = line->len;

	for (uint32_t c = t->nodes[node].child; c; c = t->nodes[c].sibling) {
		const struct name_node *n = &t->nodes[c];

		line->len = len;
		if (len)
			buf_add(line, ";", 1);
		buf_add(line, n->text, strlen(n->text));
		if (n->own_samples) {
			fwrite(line->data, 1, line->len, f);
			fprintf(f, " %" PRIu64 "\n", n->own_samples);
		}
		print_below(t, c, line, f);
	}
	line->len = len;
}

void report_print_folded(struct report *r, FILE *f)
{
	struct buf line = {0};
	struct nametree t;

	nametree_build(&t, r, report_main_event(r), false);
	print_below(&t, 0, &line, f);
	buf_free(&line);
	nametree_free(&t);
}
