// SPDX-License-Identifier: GPL-2.0-only
#include "report/callgraph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"
#include "util/xalloc.h"

enum word_kind { WORD_MODE, WORD_ORDER, WORD_KEY, WORD_VALUE };

/* In the order in which perf tries them: a shortened word is the first that fits. */
static const struct {
	const char *name;
	enum word_kind kind;
	int value;
} words[] = {
	{"none", WORD_MODE, CALLGRAPH_NONE},
	{"graph", WORD_MODE, CALLGRAPH_GRAPH},
	{"flat", WORD_MODE, CALLGRAPH_FLAT},
	{"fractal", WORD_MODE, CALLGRAPH_FRACTAL},
	{"folded", WORD_MODE, CALLGRAPH_FOLDED},
	{"caller", WORD_ORDER, true},
	{"callee", WORD_ORDER, false},
	{"function", WORD_KEY, 0},
	{"percent", WORD_VALUE, CALLGRAPH_PERCENT},
	{"period", WORD_VALUE, CALLGRAPH_PERIOD},
	{"count", WORD_VALUE, CALLGRAPH_COUNT},
};

static bool parse_word(struct callgraph_config *cfg, const char *s, size_t len)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strncmp(words[i].name, s, len))
			continue;
		switch (words[i].kind) {
		case WORD_MODE:
			cfg->mode = (enum callgraph_mode)words[i].value;
			break;
		case WORD_ORDER:
			cfg->caller = words[i].value;
			cfg->order_set = true;
			break;
		case WORD_VALUE:
			cfg->value = (enum callgraph_value)words[i].value;
			break;
		case WORD_KEY:
			break;
		}
		return true;
	}
	return false;
}

int callgraph_parse(struct callgraph_config *cfg, const char *arg, struct vmprof_err *err)
{
	bool have_percent = false;
	char text[128];

	for (size_t len; *(arg += strspn(arg, ",")); arg += len) {
		char *end;
		double v;

		len = strcspn(arg, ",");
		if (parse_word(cfg, arg, len)) {
			if (cfg->mode == CALLGRAPH_NONE)
				return 0;
			continue;
		}
		v = strtod(arg, &end);
		if (end != arg + len || !(v >= 0 && v <= 1e9))
			return err_set(err, EINVAL,
				       "--call-graph does not know '%s': it takes "
				       "graph|fractal|flat|folded|none, a threshold in percent, a "
				       "print limit, caller|callee, function, "
				       "percent|period|count",
				       escape_str(text, sizeof(text), arg));
		if (have_percent)
			cfg->print_limit = (unsigned)v;
		else
			cfg->min_percent = v;
		have_percent = true;
	}
	return 0;
}

static uint32_t child_of(struct callgraph *g, uint32_t parent, uint32_t frame)
{
	bool added;
	uint32_t id = trie_child(&g->index, parent, frame, &added);

	if (added) {
		g->nodes = xgrow(g->nodes, &g->cap, id + 1ull, sizeof(*g->nodes));
		g->n = id + 1ull;
		g->nodes[id] = (struct callgraph_node){
			.frame = frame,
			.sibling = g->nodes[parent].child,
		};
		g->nodes[parent].child = id;
		g->nodes[parent].nr_children++;
	}
	return id;
}

/* Functions are what is told apart, though the profile may know their lines. */
static void add_chain(struct callgraph *g, const struct profile *p, const uint32_t *frames,
		      size_t n, uint64_t period, uint64_t samples)
{
	uint32_t node = 0;

	for (size_t i = 0; i < n; i++) {
		g->nodes[node].children_hit += period;
		g->nodes[node].children_count += samples;
		node = child_of(g, node, p->frames[frames[i]].function);
	}
	g->nodes[node].hit += period;
	g->nodes[node].count += samples;
}

void callgraph_build(struct callgraph *g, const struct hist *h, const struct hist_entry *e)
{
	struct stack s;

	if (g->nodes)
		trie_clear(&g->index);
	else
		trie_init(&g->index);
	g->nodes = xgrow(g->nodes, &g->cap, 1, sizeof(*g->nodes));
	g->nodes[0] = (struct callgraph_node){0};
	g->n = 1;
	for (uint32_t i = 0; e->chains && i < e->nr_chains; i++) {
		size_t n = hist_chain_frames(h, &e->chains[i], &g->frames, &g->frames_cap);

		profile_stack(h->profile, e->chains[i].stack, &s);
		if (n)
			add_chain(g, h->profile, g->frames, n, s.period, s.samples);
	}
}

void callgraph_free(struct callgraph *g)
{
	free(g->nodes);
	free(g->frames);
	trie_free(&g->index);
	*g = (struct callgraph){0};
}

uint64_t callgraph_min_hit(const struct callgraph_config *cfg, const struct hist *h)
{
	if (cfg->mode == CALLGRAPH_FRACTAL)
		return 0;
	return (uint64_t)((double)hist_total(h, 0) * (cfg->min_percent / 100));
}
