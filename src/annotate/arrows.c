// SPDX-License-Identifier: GPL-2.0-only
#include "annotate/arrows.h"

#include <stdlib.h>

#include "util/xalloc.h"

enum { LANES = 6, MAX_SPAN = 512 }; /* lines that an arrow is long */

/* What a lane has on a line. */
enum part { NONE, BAR, TOP_FROM, TOP_TO, BOTTOM_FROM, BOTTOM_TO };

struct arrows {
	uint8_t (*lane)[LANES]; /* of each line; 0 is nearest to the code */
	unsigned used;
};

struct jump {
	size_t from, to; /* lines */
};

static size_t first(const struct jump *j)
{
	return j->from < j->to ? j->from : j->to;
}

static size_t last(const struct jump *j)
{
	return j->from < j->to ? j->to : j->from;
}

static int shortest_first(const void *x, const void *y)
{
	const struct jump *a = x, *b = y;
	size_t la = last(a) - first(a), lb = last(b) - first(b);

	return la != lb ? (la < lb ? -1 : 1) : a->from < b->from ? -1 : a->from > b->from;
}

/* The line at @addr; @n if there is none. */
static size_t line_at(const struct arrow_line *lines, size_t n, uint64_t addr)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (lines[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && lines[lo].addr == addr ? lo : n;
}

static bool is_free(const struct arrows *a, const struct jump *j, unsigned lane)
{
	for (size_t i = first(j); i <= last(j); i++)
		if (a->lane[i][lane])
			return false;
	return true;
}

static void draw(struct arrows *a, const struct jump *j)
{
	bool down = j->from < j->to;
	unsigned lane = 0;

	while (lane < LANES && !is_free(a, j, lane))
		lane++;
	if (lane == LANES)
		return;
	for (size_t i = first(j); i <= last(j); i++)
		a->lane[i][lane] = BAR;
	a->lane[first(j)][lane] = down ? TOP_FROM : TOP_TO;
	a->lane[last(j)][lane] = down ? BOTTOM_TO : BOTTOM_FROM;
	if (lane >= a->used)
		a->used = lane + 1;
}

struct arrows *arrows_new(const struct arrow_line *lines, size_t n)
{
	struct arrows *a = xcalloc(1, sizeof(*a));
	struct jump *jumps = xcalloc(n + 1, sizeof(*jumps));
	size_t nr = 0;

	a->lane = xcalloc(n + 1, sizeof(*a->lane));
	for (size_t i = 0; i < n; i++) {
		struct jump j = {i, lines[i].jumps ? line_at(lines, n, lines[i].target) : n};

		if (j.to < n && j.to != i && last(&j) - first(&j) <= MAX_SPAN)
			jumps[nr++] = j;
	}
	qsort(jumps, nr, sizeof(*jumps), shortest_first);
	for (size_t i = 0; i < nr; i++)
		draw(a, &jumps[i]);
	free(jumps);
	return a;
}

void arrows_free(struct arrows *a)
{
	if (!a)
		return;
	free(a->lane);
	free(a);
}

/* [1]: where a line from further out goes through. */
static const char *const signs[][2] = {
	[NONE] = {" ", "─"},   [BAR] = {"│", "┼"},	   [TOP_FROM] = {"┌", "┬"},
	[TOP_TO] = {"┌", "┬"}, [BOTTOM_FROM] = {"└", "┴"}, [BOTTOM_TO] = {"└", "┴"},
};

/* From the outermost lane to the code; behind a corner the line goes on to it. */
void arrows_print(const struct arrows *a, size_t i, FILE *f)
{
	bool in_row = false, arrives = false;

	if (!a->used)
		return;
	for (unsigned lane = a->used; lane-- > 0;) {
		enum part p = a->lane[i][lane];

		fputs(signs[p][in_row], f);
		in_row |= p > BAR;
		arrives |= p == TOP_TO || p == BOTTOM_TO;
	}
	fputs(arrives ? "→" : in_row ? "─" : " ", f);
}
