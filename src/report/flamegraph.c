// SPDX-License-Identifier: GPL-2.0-only
/*
 * A flame graph as one SVG that needs nothing else: callers below, what they call above, width by
 * event count. The same profile gives the same bytes.
 */
#include "report/flamegraph.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/nametree.h"
#include "report/summary.h"
#include "util/text.h"

#define SPAN	    (FLAME_WIDTH - 2 * FLAME_MARGIN)
#define TOP	    92 /* title, subtitle, legend */
#define BOTTOM	    34
#define TITLE_CHARS 52	/* beside the search field */
#define MIN_PIXELS  0.1 /* narrower frames are left out */
#define MAX_VMS	    6	/* named in the subtitle */

struct flame {
	const struct nametree *t;
	FILE *f;
	unsigned height;
	unsigned depth;	   /* rows drawn above the root */
	uint64_t left_out; /* frames */
};

/* Hues by kind; the name moves them a little, so that neighbours differ. */
static const struct palette {
	const char *legend; /* NULL: not in it */
	int hue, hue_spread, saturation, light, light_spread;
} palettes[] = {
	[NAME_HOST_USER] = {"host user", 168, 22, 48, 68, 9},
	[NAME_HOST_KERNEL] = {"host kernel", 214, 16, 62, 74, 8},
	[NAME_GUEST_USER] = {"guest user", 46, 12, 88, 66, 8},
	[NAME_GUEST_KERNEL] = {"guest kernel", 16, 14, 88, 70, 8},
	[NAME_COMM] = {NULL, 260, 8, 14, 82, 4},
	[NAME_VM] = {NULL, 230, 10, 18, 72, 4},
	[NAME_ROOT] = {NULL, 0, 1, 0, 84, 1},
};

/* FNV-1a: the same on every machine and in every run. */
static uint32_t name_hash(const char *s)
{
	uint32_t h = 2166136261u;

	while (*s)
		h = (h ^ (uint8_t)*s++) * 16777619u;
	return h ^ h >> 15;
}

static void print_colour(const struct palette *p, const char *name, FILE *f)
{
	uint32_t h = name_hash(name);
	int hue = p->hue - p->hue_spread + (int)(h % (2u * (unsigned)p->hue_spread + 1));
	int light =
		p->light - p->light_spread + (int)(h / 97 % (2u * (unsigned)p->light_spread + 1));

	fprintf(f, "hsl(%d,%d%%,%d%%)", hue, p->saturation, light);
}

/* The first @chars code points, ".." for what is cut. */
static void print_cut(const char *s, int chars, FILE *f)
{
	char text[512];
	int n = 0;
	size_t i = 0, cut = 0;

	if (chars < 3)
		return;
	for (; s[i] && n <= chars && i < sizeof(text) - 8; i++) {
		if (((uint8_t)s[i] & 0xc0) == 0x80)
			continue;
		if (n == chars - 2)
			cut = i;
		n++;
	}
	if (!s[i] && n <= chars) {
		xml_fputs(s, f);
		return;
	}
	memcpy(text, s, cut);
	text[cut] = 0;
	xml_fputs(text, f);
	fputs("..", f);
}

static double percent(uint64_t part, uint64_t total)
{
	return total ? 100.0 * (double)part / (double)total : 0;
}

/* A part may be more than the whole: the sum of a hostile file's periods overflows. */
static double scale(const struct flame *fl, uint64_t v)
{
	uint64_t total = fl->t->nodes[0].period;

	return total ? (double)(v < total ? v : total) / (double)total * SPAN : 0;
}

static void print_frame(const struct flame *fl, uint32_t node, uint64_t start, unsigned row)
{
	const struct name_node *n = &fl->t->nodes[node];
	double x = FLAME_MARGIN + scale(fl, start), w = scale(fl, n->period);
	unsigned y = fl->height - BOTTOM - (row + 1) * FLAME_ROW;

	fprintf(fl->f,
		"<g class=\"f\" data-a=\"%" PRIu64 "\" data-n=\"%" PRIu64
		"\" data-r=\"%u\"><title>",
		start, n->period, row);
	xml_fputs(n->text, fl->f);
	fprintf(fl->f, "\n%.2f%%, %" PRIu64 " sample%s, event count %" PRIu64,
		percent(n->period, fl->t->nodes[0].period), n->samples, n->samples == 1 ? "" : "s",
		n->period);
	if (n->own_samples && n->child)
		fprintf(fl->f, ", %.2f%% in itself",
			percent(n->own_period, fl->t->nodes[0].period));
	fprintf(fl->f,
		"</title><rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" rx=\"1.5\" fill=\"",
		x, y, w > 2 ? w - FLAME_GAP : w, FLAME_ROW - 1);
	print_colour(&palettes[n->kind], n->text, fl->f);
	fprintf(fl->f, "\"/><text x=\"%.2f\" y=\"%u\">", x + 3, y + 12);
	print_cut(n->text, (int)((w - 6) / FLAME_CHAR), fl->f);
	fputs("</text></g>\n", fl->f);
}

static void print_frames(struct flame *fl, uint32_t node, uint64_t start, unsigned row)
{
	print_frame(fl, node, start, row);
	for (uint32_t c = fl->t->nodes[node].child; c; c = fl->t->nodes[c].sibling) {
		if (scale(fl, fl->t->nodes[c].period) >= MIN_PIXELS)
			print_frames(fl, c, start, row + 1);
		start += fl->t->nodes[c].period;
	}
}

/* Rows that will be drawn, and how many frames will not. */
static void measure(struct flame *fl, uint32_t node, unsigned row)
{
	if (row > fl->depth)
		fl->depth = row;
	for (uint32_t c = fl->t->nodes[node].child; c; c = fl->t->nodes[c].sibling) {
		if (scale(fl, fl->t->nodes[c].period) >= MIN_PIXELS)
			measure(fl, c, row + 1);
		else
			fl->left_out++;
	}
}

static void print_subtitle(struct report *r, uint32_t event, const struct flame *fl)
{
	struct profile *p = r->profile;
	const struct name_node *root = &fl->t->nodes[0];
	bool weightless = !p->events[event].period;
	size_t n, named = 0;
	struct vm_summary *vms;

	fprintf(fl->f, "<text class=\"sub\" x=\"%d\" y=\"50\">", FLAME_MARGIN);
	xml_fputs(p->events[event].name, fl->f);
	fprintf(fl->f, ", %" PRIu64 " sample%s", root->samples, root->samples == 1 ? "" : "s");
	if (p->has_guests) {
		vms = summary_by_vm(p, event, &r->opt.filter, &n);
		for (size_t i = 0; i < n; i++) {
			if (!vms[i].samples || named++ >= MAX_VMS)
				continue;
			fputs(named > 1 ? ", " : ": ", fl->f);
			print_cut(vms[i].name, 24, fl->f);
			fprintf(fl->f, " %.1f%%",
				weightless ? percent(vms[i].samples, root->samples)
					   : percent(vms[i].period, root->period));
		}
		if (named > MAX_VMS)
			fprintf(fl->f, " and %zu more", named - MAX_VMS);
		free(vms);
	}
	if (fl->left_out)
		fprintf(fl->f, " (%" PRIu64 " frames are too narrow to show)", fl->left_out);
	fputs("</text>\n", fl->f);
}

static bool has_kind(const struct nametree *t, enum name_kind kind)
{
	for (uint32_t i = 0; i < t->n; i++)
		if (t->nodes[i].kind == kind)
			return true;
	return false;
}

static void print_legend(const struct flame *fl)
{
	FILE *f = fl->f;
	unsigned x = FLAME_MARGIN;

	for (size_t i = 0; i < sizeof(palettes) / sizeof(*palettes); i++) {
		const struct palette *c = &palettes[i];

		if (!c->legend || !has_kind(fl->t, (enum name_kind)i))
			continue;
		fprintf(f,
			"<rect x=\"%u\" y=\"64\" width=\"12\" height=\"12\" rx=\"2\" "
			"fill=\"hsl(%d,%d%%,%d%%)\"/><text class=\"sub\" x=\"%u\" "
			"y=\"74\">%s</text>\n",
			x, c->hue, c->saturation, c->light, x + 17, c->legend);
		x += 17 + 24 + (unsigned)((double)strlen(c->legend) * FLAME_CHAR);
	}
}

/* "perf.data: web1, db1": where the file is matters less than whom it is of. */
static void print_title(struct report *r, uint32_t event, FILE *f)
{
	struct profile *p = r->profile;
	const char *slash = strrchr(r->path_text, '/');
	const char *base = slash && slash[1] ? slash + 1 : r->path_text, *sep = ": ";
	struct buf b = {0};
	size_t n = 0;
	struct vm_summary *vms = p->has_guests ? summary_by_vm(p, event, &r->opt.filter, &n) : NULL;

	buf_printf(&b, "Flame graph of %s", strcmp(base, "-") ? base : "standard input");
	for (size_t i = 0; i < n; i++) {
		if (!vms[i].samples)
			continue;
		buf_printf(&b, "%s%s", sep, vms[i].name);
		sep = ", ";
	}
	free(vms);
	buf_add(&b, "", 1);
	fprintf(f, "<text class=\"title\" x=\"%d\" y=\"28\">", FLAME_MARGIN);
	print_cut((const char *)b.data, TITLE_CHARS, f);
	fputs("</text>\n", f);
	buf_free(&b);
}

/* What the page begins with: the script takes it from this size to the window's. */
static void print_head(const struct flame *fl)
{
	FILE *f = fl->f;

	fprintf(f,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" "
		"height=\"%u\" "
		"viewBox=\"0 0 %d %u\" data-margin=\"%d\" data-top=\"%d\" data-bottom=\"%d\" "
		"data-char=\"%.1f\" "
		"data-gap=\"%.1f\">\n",
		FLAME_WIDTH, fl->height, FLAME_WIDTH, fl->height, FLAME_MARGIN, TOP, BOTTOM,
		FLAME_CHAR, FLAME_GAP);
	fprintf(f, "<style><![CDATA[\n%s]]></style>\n", flamegraph_style);
}

/* Drawn over the frames: it stays where it is when they are scrolled. */
static void print_panel(struct report *r, uint32_t event, const struct flame *fl)
{
	FILE *f = fl->f;

	fprintf(f, "<g id=\"head\"><rect class=\"bg\" width=\"100%%\" height=\"%d\"/>\n", TOP - 8);
	print_title(r, event, f);
	print_subtitle(r, event, fl);
	print_legend(fl);
	fprintf(f,
		"<foreignObject id=\"find\" x=\"%d\" y=\"12\" width=\"220\" height=\"24\"><input "
		"xmlns=\"http://www.w3.org/1999/xhtml\" id=\"search\" type=\"text\" "
		"placeholder=\"Search (/)\" aria-label=\"Search\"/></foreignObject>\n",
		FLAME_WIDTH - FLAME_MARGIN - 220);
	fprintf(f,
		"<text id=\"matched\" class=\"sub\" x=\"%d\" y=\"74\" text-anchor=\"end\"></text>\n"
		"<text id=\"reset\" class=\"btn\" x=\"%d\" y=\"28\" text-anchor=\"end\" "
		"style=\"display:none\">Reset zoom</text>\n",
		FLAME_WIDTH - FLAME_MARGIN, FLAME_WIDTH - FLAME_MARGIN - 236);
	fprintf(f,
		"</g>\n<g id=\"foot\"><rect class=\"bg\" y=\"%u\" width=\"100%%\" height=\"%d\"/>"
		"<text id=\"details\" class=\"foot\" x=\"%d\" y=\"%u\"></text></g>\n",
		fl->height - BOTTOM + 6, BOTTOM - 6, FLAME_MARGIN, fl->height - 12);
}

void report_print_flamegraph(struct report *r, FILE *f)
{
	uint32_t event = report_main_event(r);
	struct nametree t;
	struct flame fl = {.t = &t, .f = f};

	nametree_build(&t, r, event, true);
	/* events that count nothing: samples are what there is */
	for (uint32_t i = t.n; !t.nodes[0].period && i--;) {
		t.nodes[i].period = t.nodes[i].samples;
		t.nodes[i].own_period = t.nodes[i].own_samples;
	}
	measure(&fl, 0, 0);
	fl.height = TOP + (fl.depth + 1) * FLAME_ROW + BOTTOM;
	print_head(&fl);
	fputs("<g id=\"frames\">\n", f);
	print_frames(&fl, 0, 0, 0);
	fputs("</g>\n", f);
	print_panel(r, event, &fl);
	fprintf(f, "<script><![CDATA[\n%s]]></script>\n</svg>\n", flamegraph_script);
	nametree_free(&t);
}
