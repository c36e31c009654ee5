// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "annotate/annotate.h"
#include "annotate/arrows.h"
#include "annotate/disasm.h"
#include "annotate/linesum.h"
#include "annotate/sources.h"
#include "report/srcline.h"
#include "util/buf.h"
#include "util/text.h"
#include "util/xalloc.h"

enum { MAX_LINES = 1 << 20 };

/* One function on its way to the stream. */
struct view {
	const struct hits *h;
	const struct annotate_options *opt;
	FILE *f;
	uint32_t symbol;
	const struct hits_symbol *s;
	const uint32_t *events; /* a column each */
	size_t nr_events;
	struct dso_code code;
	uint64_t shift; /* a printed address less the DSO's own */
	struct disasm *d;
	struct strtab *texts; /* of source lines */
	int addr_width;
};

static const struct {
	const char *name;
	bool global, hits;
} types[] = {
	{"local-period", false, false},
	{"global-period", true, false},
	{"local-hits", false, true},
	{"global-hits", true, true},
};

static const struct {
	const char *title;
	int width;
} columns[] = {
	[ANNOTATE_PERCENT] = {"Percent", 8},
	[ANNOTATE_SAMPLES] = {"Samples", 8},
	[ANNOTATE_PERIOD] = {"Period", 12},
};

int annotate_parse_type(struct annotate_options *opt, const char *type, struct vmprof_err *err)
{
	char text[64];

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (strcmp(types[i].name, type) != 0)
			continue;
		opt->global = types[i].global;
		opt->hits = types[i].hits;
		return 0;
	}
	return err_set(err, EINVAL,
		       "--percent-type '%s' is none of local-period, global-period, local-hits, "
		       "global-hits",
		       escape_str(text, sizeof(text), type));
}

static uint64_t weight_of(const struct annotate_options *opt, const struct hits_weight *w)
{
	return opt->hits ? w->samples : w->period;
}

static struct hits_weight whole(const struct hits *h, uint32_t symbol, uint32_t event)
{
	return hits_range(h, symbol, event, 0, UINT64_MAX);
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

/* ---------- lines ---------- */

static int column_width(const struct view *v)
{
	return columns[v->opt->column].width * (int)v->nr_events;
}

static double share(const struct view *v, uint32_t event, uint64_t start, uint64_t end)
{
	struct hits_weight w = hits_range(v->h, v->symbol, event, start, end);
	struct hits_weight all =
		v->opt->global ? v->h->events[event].all : whole(v->h, v->symbol, event);

	return percent(weight_of(v->opt, &w), weight_of(v->opt, &all));
}

static void print_column(const struct view *v, uint32_t event, uint64_t start, uint64_t end)
{
	struct hits_weight w = hits_range(v->h, v->symbol, event, start, end);

	if (v->opt->column == ANNOTATE_PERCENT)
		fprintf(v->f, "%8.2f", share(v, event, start, end));
	else if (v->opt->column == ANNOTATE_SAMPLES)
		fprintf(v->f, "%8" PRIu64, w.samples);
	else
		fprintf(v->f, "%12" PRIu64, w.period);
}

/* A printed address as the DSO's symbols have it: data is in another segment than the code. */
static uint64_t own_address(const struct view *v, uint64_t addr)
{
	const struct symtab *t = v->s->dso->symtab;

	for (uint32_t i = 0; !v->s->dso->kernel && i < t->nr_loads; i++)
		if (addr - t->loads[i].vaddr < t->loads[i].size)
			return addr - t->loads[i].vaddr + t->loads[i].offset;
	return addr - v->shift;
}

/* "mix+0x18", or nothing where no symbol is. */
static void print_symbol_at(const struct view *v, const char *before, uint64_t addr)
{
	uint64_t own = own_address(v, addr);
	const struct symbol *sym = symtab_find(v->s->dso->symtab, own);

	if (!sym)
		return;
	fprintf(v->f, "%s<", before);
	escape_fputs(session_symbol_name(v->h->session, sym), v->f);
	if (own != sym->start)
		fprintf(v->f, "+0x%" PRIx64, own - sym->start);
	fputc('>', v->f);
}

/* The source line of an instruction, escaped and interned; NULL: its shares are not worth it. */
static const char *line_of(const struct view *v, const struct disasm_line *l, double *shares)
{
	struct location loc = {.dso = (struct dso *)v->s->dso, .sym = v->s->sym};
	const struct source *src;
	bool worth = false;

	for (size_t i = 0; i < v->nr_events; i++) {
		shares[i] = share(v, v->events[i], l->addr - v->shift, l->addr - v->shift + l->len);
		worth |= shares[i] > LINESUM_MIN;
	}
	if (!worth)
		return NULL;
	loc.offset = l->addr - v->shift - loc.sym->start;
	src = location_source(v->h->session, &loc, ADDRESS_EXACT);
	return srcline_text(v->h->session, v->texts, &loc, src->n ? src->frames : NULL,
			    v->opt->full_paths ? SRCLINE_FULL : 0);
}

/* @line: of the source, where it is to be said. */
static void print_instruction(const struct view *v, const struct disasm_line *l,
			      const struct arrows *arrows, size_t number, const char *line)
{
	uint64_t start = l->addr - v->shift;
	/* where objdump's tabulator leads to from the colon */
	int digits = snprintf(NULL, 0, "%" PRIx64 ":", l->addr);

	for (size_t i = 0; i < v->nr_events; i++)
		print_column(v, v->events[i], start, start + l->len);
	fprintf(v->f, " :   %*" PRIx64 ":%*s", v->addr_width, l->addr, 8 - digits % 8, "");
	if (arrows)
		arrows_print(arrows, number, v->f);
	fputs(l->text, v->f);
	if (l->has_target && (l->branch || l->call)) {
		fprintf(v->f, "%" PRIx64, l->target);
		print_symbol_at(v, " ", l->target);
	} else if (l->has_target) {
		fprintf(v->f, "        # %" PRIx64, l->target);
		print_symbol_at(v, " ", l->target);
	}
	if (line)
		fprintf(v->f, " // %s", line);
	fputc('\n', v->f);
}

/* For sources_before(). Tabs in it are as the file has them. */
static void print_source(void *ctx, unsigned number, const char *text, size_t len)
{
	const struct view *v = ctx;
	char *copy = xstrndup(text, len);

	fprintf(v->f, " %*s:", column_width(v), "");
	if (len && number)
		fprintf(v->f, " %-*u ", v->addr_width, number);
	else if (len)
		fprintf(v->f, " %*s ", v->addr_width, "");
	for (char *at = copy, *part; (part = strsep(&at, "\t"));) {
		escape_fputs(part, v->f);
		if (at)
			fputc('\t', v->f);
	}
	fputc('\n', v->f);
	free(copy);
}

static void print_text(const struct view *v, const char *text)
{
	fprintf(v->f, " %*s:", column_width(v), "");
	if (*text)
		fprintf(v->f, " %*s %s", v->addr_width, "", text);
	fputc('\n', v->f);
}

/* ---------- the header ---------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void add_escaped(struct buf *b, const char *s)
{
	char text[1024];

	buf_printf(b, "%s", escape_str(text, sizeof(text), s));
}

static void add_event_names(struct buf *b, const struct view *v)
{
	for (size_t i = 0; i < v->nr_events; i++) {
		buf_printf(b, "%s", i ? ", " : "");
		add_escaped(b, v->h->events[v->events[i]].name);
	}
}

/* A backend's word that its addresses are those of blocks. */
static bool has_block_starts(const struct machine *m)
{
	const char *at = m->vm_json ? strstr(m->vm_json, "\"exact_ip\"") : NULL;

	return at && strspn(at + 10, " :") && !strncmp(at + 10 + strspn(at + 10, " :"), "false", 5);
}

static void add_dso(struct buf *b, const struct view *v)
{
	const struct dso *dso = v->s->dso;

	if (!machine_is_host(v->s->machine)) {
		add_escaped(b, v->s->machine->name);
		buf_printf(b, ":");
	}
	add_escaped(b, v->opt->full_paths ? dso->long_name
		       : dso->kernel	  ? dso->short_name
					  : base_name(dso->long_name));
}

static void print_header(const struct view *v)
{
	int width = column_width(v), len;
	struct buf b = {0};
	struct hits_weight all = whole(v->h, v->symbol, v->events[0]);
	const char *type = "";

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (types[i].global == v->opt->global && types[i].hits == v->opt->hits)
			type = types[i].name;
	buf_printf(&b, " %-*.*s|\tSource code & Disassembly of ", width, width,
		   columns[v->opt->column].title);
	add_dso(&b, v);
	buf_printf(&b, " for ");
	add_event_names(&b, v);
	buf_printf(&b, " (%" PRIu64 " samples, percent: %.*s %s%s)", all.samples,
		   (int)strcspn(type, "-"), type, strchr(type, '-') + 1,
		   has_block_starts(v->s->machine) ? ", addresses are starts of blocks of code"
						   : "");
	buf_add(&b, "", 1);
	len = (int)b.len - 1;
	fprintf(v->f, "%s\n", (char *)b.data);
	buf_free(&b);
	for (int i = 0; i < len + 5; i++)
		fputc('-', v->f);
	fputc('\n', v->f);
}

static void print_title(const struct view *v)
{
	struct buf b = {0};

	print_text(v, "");
	if (v->code.from_memory)
		buf_printf(&b, "Disassembly of the guest's memory:");
	else if (*v->code.section)
		buf_printf(&b, "Disassembly of section %s:", v->code.section);
	else
		buf_printf(&b, "Disassembly:");
	buf_add(&b, "", 1);
	print_text(v, (char *)b.data);
	print_text(v, "");
	buf_reset(&b);
	buf_printf(&b, "%016" PRIx64 " <", v->code.addr);
	add_escaped(&b, v->s->name);
	buf_printf(&b, ">:");
	buf_add(&b, "", 1);
	print_text(v, (char *)b.data);
	buf_free(&b);
}

/* ---------- one function ---------- */

static struct arrows *find_arrows(const struct view *v)
{
	const struct dso_code *c = &v->code;
	struct arrow_line *lines = NULL;
	struct arrows *arrows;
	struct disasm_line l;
	size_t cap = 0, n = 0;

	for (size_t at = 0; at < c->len && n < MAX_LINES; at += l.len) {
		disasm_next(v->d, c->bytes + at, c->len - at, c->addr + at, &l);
		lines = xgrow(lines, &cap, n + 1, sizeof(*lines));
		lines[n++] = (struct arrow_line){l.addr, l.target, l.branch && l.has_target};
	}
	arrows = arrows_new(lines, n);
	free(lines);
	return arrows;
}

static void sum_lines(struct view *v)
{
	const struct dso_code *c = &v->code;
	struct linesum sum = {.nr_events = v->nr_events};
	double *shares = xcalloc(v->nr_events, sizeof(*shares));
	struct disasm_line l;
	const char *line;

	for (size_t at = 0; at < c->len; at += l.len) {
		disasm_next(v->d, c->bytes + at, c->len - at, c->addr + at, &l);
		line = line_of(v, &l, shares);
		if (line)
			linesum_add(&sum, line, shares);
	}
	linesum_print(&sum, v->s->dso->long_name, v->f);
	linesum_free(&sum);
	free(shares);
}

static void print_code(struct view *v, const struct arrows *arrows, struct sources *src)
{
	const struct dso_code *c = &v->code;
	double *shares = xcalloc(v->nr_events, sizeof(*shares));
	const char *last = NULL, *line;
	struct disasm_line l;

	for (size_t at = 0, n = 0; at < c->len && n < MAX_LINES; at += l.len, n++) {
		disasm_next(v->d, c->bytes + at, c->len - at, c->addr + at, &l);
		sources_before(src, l.addr - v->shift, print_source, v);
		line = v->opt->print_lines ? line_of(v, &l, shares) : NULL;
		print_instruction(v, &l, arrows, n, line != last ? line : NULL);
		last = line ? line : last;
	}
	free(shares);
}

static void print_function(struct view *v)
{
	const struct dso_code *c = &v->code;
	struct arrows *arrows = v->opt->no_jumps ? NULL : find_arrows(v);
	struct sources *src = sources_new(v->h->session, v->s->dso, v->s->name, !v->opt->no_source);

	v->addr_width = snprintf(NULL, 0, "%" PRIx64, c->addr + c->len);
	if (v->opt->print_lines)
		sum_lines(v);
	print_header(v);
	print_title(v);
	print_code(v, arrows, src);
	sources_free(src);
	arrows_free(arrows);
}

static void set_addresses(struct view *v)
{
	/* a kernel's code is shown where it ran */
	if (v->s->dso->kernel)
		v->code.addr += v->s->bias;
	v->shift = v->code.addr - v->s->sym->start;
}

static void fail(const struct view *v, const struct vmprof_err *err, struct annotate_result *r)
{
	char text[256];

	if (!r->failed++) {
		r->first = *err;
		err_prefix(&r->first, "%s", escape_str(text, sizeof(text), v->s->name));
	}
	r->failed_samples += whole(v->h, v->symbol, v->events[0]).samples;
}

static void annotate(struct view *v, struct annotate_result *r)
{
	struct vmprof_err err;
	int ret = session_read_code(v->h->session, v->s->dso, v->s->sym, &v->code, &err);

	if (!ret)
		ret = disasm_open(&v->d, v->code.machine, v->code.is64, &err);
	if (ret) {
		fail(v, &err, r);
	} else {
		set_addresses(v);
		print_function(v);
		r->shown++;
	}
	disasm_close(v->d);
	v->d = NULL;
	dso_code_free(&v->code);
}

/* ---------- all of them ---------- */

struct order {
	uint32_t symbol;
	uint64_t weight;
};

static int hottest_first(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->symbol < y->symbol ? -1 : x->symbol > y->symbol;
}

/* Functions with samples of the first of @v's events that has any, hottest first. */
static struct order *sort_functions(const struct view *v, size_t *n)
{
	struct order *o = xcalloc(hits_nr_symbols(v->h) + 1ull, sizeof(*o));
	uint64_t all = 0;

	*n = 0;
	for (size_t j = 0; j < v->nr_events; j++)
		all += weight_of(v->opt, &v->h->events[v->events[j]].all);
	for (uint32_t i = 0; i < hits_nr_symbols(v->h); i++) {
		struct order *at = &o[*n];

		*at = (struct order){.symbol = i};
		for (size_t j = 0; j < v->nr_events; j++) {
			struct hits_weight w = whole(v->h, i, v->events[j]);

			at->weight += weight_of(v->opt, &w);
		}
		*n += at->weight && percent(at->weight, all) >= v->opt->percent_limit;
	}
	qsort(o, *n, sizeof(*o), hottest_first);
	return o;
}

static void annotate_events(struct view *v, struct annotate_result *r)
{
	size_t n;
	struct order *o = sort_functions(v, &n);

	for (size_t i = 0; i < n; i++) {
		v->symbol = o[i].symbol;
		v->s = &v->h->symbols[v->symbol];
		annotate(v, r);
	}
	free(o);
}

void annotate_print(const struct hits *h, const struct annotate_options *opt, FILE *f,
		    struct annotate_result *r)
{
	uint32_t *events = xcalloc(h->nr_events + 1, sizeof(*events));
	struct view v = {.h = h, .opt = opt, .f = f, .events = events, .texts = strtab_new()};
	size_t n = 0;

	*r = (struct annotate_result){0};
	for (uint32_t i = 0; i < h->nr_events; i++)
		if (h->events[i].name && (!opt->event || !strcmp(opt->event, h->events[i].name)))
			events[n++] = i;
	v.nr_events = opt->group ? n : 1;
	for (size_t i = 0; i < n; i += v.nr_events, v.events += v.nr_events)
		annotate_events(&v, r);
	strtab_free(v.texts);
	free(events);
}
