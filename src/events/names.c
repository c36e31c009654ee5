// SPDX-License-Identifier: GPL-2.0-only
#include "events/names.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "util/text.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof(*(a)))
#define NAME_MAX_LEN  63 /* longer ones are nobody's misspelling */

/* perf's names; of several names of one kind the first is the one that perf shows. */
static const struct {
	const char *name;
	uint32_t type;
	uint64_t config;
} known[] = {
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
	{"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"idle-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	{"idle-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	{"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
	{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
	{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
	{"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
	{"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
	{"dummy", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY},
	{"bpf-output", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT},
	{"cgroup-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CGROUP_SWITCHES},
};

/* Cache events: one of each of these, joined by dashes; perf_event.h has them in this order. */
static const char *const caches[][8] = {
	{"L1-dcache", "l1-d", "l1d", "L1-data"},
	{"L1-icache", "l1-i", "l1i", "L1-instruction"},
	{"LLC", "L2"},
	{"dTLB", "d-tlb", "Data-TLB"},
	{"iTLB", "i-tlb", "Instruction-TLB"},
	{"branch", "branches", "bpu", "btb", "bpc"},
	{"node"},
};

static const char *const operations[][6] = {
	{"load", "loads", "read"},
	{"store", "stores", "write"},
	{"prefetch", "prefetches", "speculative-read", "speculative-load"},
};

static const char *const results[][6] = {
	{"refs", "Reference", "ops", "access"},
	{"misses", "miss"},
};

/* What each cache can be asked for: bit n is operation n. Code is not stored, say. */
static const uint8_t possible[ARRAY_SIZE(caches)] = {7, 5, 7, 7, 1, 1, 7};

/* The longest of the names in @row that @s begins with, up to a dash or the end; 0: none. */
static size_t match_row(const char *const *row, size_t n, const char *s, size_t len)
{
	size_t best = 0;

	for (size_t i = 0; i < n && row[i]; i++) {
		size_t l = strlen(row[i]);

		if (l > best && l <= len && !strncasecmp(row[i], s, l) && (l == len || s[l] == '-'))
			best = l;
	}
	return best;
}

/* Takes a word of table @rows off the front of @s. Its row, or -1. */
static int take_word(const char *const *rows, size_t nr_rows, size_t width, const char **s,
		     size_t *len)
{
	size_t best = 0;
	int found = -1;

	for (size_t r = 0; r < nr_rows; r++) {
		size_t l = match_row(rows + r * width, width, *s, *len);

		if (l > best) {
			best = l;
			found = (int)r;
		}
	}
	if (found < 0)
		return -1;
	best += best < *len; /* the dash */
	*s += best;
	*len -= best;
	return found;
}

/*
 * "L1-dcache-load-misses", "LLC-loads", "branch-load-misses", "dTLB-misses": operation and result
 * in any order, a load if none is named.
 */
static bool find_cache(const char *s, size_t len, uint64_t *config)
{
	int cache = take_word(&caches[0][0], ARRAY_SIZE(caches), 8, &s, &len);
	int op = -1, result = -1;

	if (cache < 0)
		return false;
	while (len) {
		int o = op < 0 ? take_word(&operations[0][0], ARRAY_SIZE(operations), 6, &s, &len)
			       : -1;
		int r = o < 0 && result < 0
				? take_word(&results[0][0], ARRAY_SIZE(results), 6, &s, &len)
				: -1;

		if (o < 0 && r < 0)
			return false;
		op = o < 0 ? op : o;
		result = r < 0 ? result : r;
	}
	op = op < 0 ? 0 : op;
	result = result < 0 ? 0 : result;
	if (!(possible[cache] & 1u << op))
		return false;
	*config = (uint64_t)cache | (uint64_t)op << 8 | (uint64_t)result << 16;
	return true;
}

bool event_name_find(const char *name, size_t len, uint32_t *type, uint64_t *config)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (strlen(known[i].name) != len || strncmp(known[i].name, name, len) != 0)
			continue;
		*type = known[i].type;
		*config = known[i].config;
		return true;
	}
	*type = PERF_TYPE_HW_CACHE;
	return find_cache(name, len, config);
}

const char *event_name_symbol(const char *name)
{
	const char *symbol = NULL;
	uint32_t type;
	uint64_t config;

	if (!event_name_find(name, strlen(name), &type, &config) || type != PERF_TYPE_HARDWARE)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].type == type && known[i].config == config &&
		    strcmp(known[i].name, name) != 0)
			symbol = known[i].name;
	return symbol;
}

/* ---------- what may have been meant ---------- */

/* Letters to be put in, left out, replaced or exchanged with their neighbour. */
static unsigned edits(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b);
	unsigned row[3][NAME_MAX_LEN + 1];

	if (la > NAME_MAX_LEN || lb > NAME_MAX_LEN)
		return UINT32_MAX;
	for (size_t j = 0; j <= lb; j++)
		row[0][j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);

			best = last[j] + 1 < best ? last[j] + 1 : best;
			best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
	}
	return row[la % 3][lb];
}

void suggestion_init(struct suggestion *s, const char *wanted)
{
	*s = (struct suggestion){.wanted = wanted, .distance = (unsigned)strlen(wanted) / 3 + 1};
	if (s->distance > 4)
		s->distance = 4;
}

void suggestion_try(struct suggestion *s, const char *name)
{
	unsigned d = edits(s->wanted, name);

	if (d >= s->distance)
		return;
	s->distance = d;
	snprintf(s->name, sizeof(s->name), "%s", name);
}

void suggestion_try_names(struct suggestion *s)
{
	char name[64];

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		suggestion_try(s, known[i].name);
	for (size_t c = 0; c < ARRAY_SIZE(caches); c++)
		for (size_t o = 0; o < ARRAY_SIZE(operations); o++) {
			if (!(possible[c] & 1u << o))
				continue;
			snprintf(name, sizeof(name), "%s-%s", caches[c][0], operations[o][1]);
			suggestion_try(s, name);
			snprintf(name, sizeof(name), "%s-%s-misses", caches[c][0],
				 operations[o][0]);
			suggestion_try(s, name);
		}
}

const char *suggestion_text(const struct suggestion *s, char *out, size_t size)
{
	char name[128];

	*out = 0;
	if (s->name[0])
		snprintf(out, size, "; did you mean '%s'", escape_str(name, sizeof(name), s->name));
	return out;
}
