// SPDX-License-Identifier: GPL-2.0-only
/* Names for events that have none in the file, made from their attributes as perf makes them. */
#include <inttypes.h>
#include <linux/hw_breakpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata/reader_impl.h"
#include "util/xalloc.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof(*(a)))

static const char *const hardware[] = {
	"cycles",
	"instructions",
	"cache-references",
	"cache-misses",
	"branches",
	"branch-misses",
	"bus-cycles",
	"stalled-cycles-frontend",
	"stalled-cycles-backend",
	"ref-cycles",
};

static const char *const software[] = {
	"cpu-clock",	"task-clock",	"page-faults",	    "context-switches", "cpu-migrations",
	"minor-faults", "major-faults", "alignment-faults", "emulation-faults", "dummy",
};

static const char *const caches[] = {
	"L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node",
};

static const char *const operations[][2] = {
	{"load", "loads"}, {"store", "stores"}, {"prefetch", "prefetches"}};

static void cache_name(char *out, size_t size, uint64_t config)
{
	uint8_t cache = (uint8_t)config, op = (uint8_t)(config >> 8),
		result = (uint8_t)(config >> 16);

	if (cache >= ARRAY_SIZE(caches))
		snprintf(out, size, "unknown-ext-hardware-cache-type");
	else if (op >= ARRAY_SIZE(operations))
		snprintf(out, size, "unknown-ext-hardware-cache-op");
	else if (result > 1)
		snprintf(out, size, "unknown-ext-hardware-cache-result");
	else if (result)
		snprintf(out, size, "%s-%s-misses", caches[cache], operations[op][0]);
	else
		snprintf(out, size, "%s-%s", caches[cache], operations[op][1]);
}

static void breakpoint_name(char *out, size_t size, const struct perf_event_attr *attr)
{
	snprintf(out, size, "mem:0x%" PRIx64 ":%s%s%s", (uint64_t)attr->bp_addr,
		 attr->bp_type & HW_BREAKPOINT_R ? "r" : "",
		 attr->bp_type & HW_BREAKPOINT_W ? "w" : "",
		 attr->bp_type & HW_BREAKPOINT_X ? "x" : "");
}

static const char *listed(const char *const *names, size_t n, uint64_t i, const char *other)
{
	return i < n ? names[i] : other;
}

/* ":" and what is not excluded, where that is not perf record's default. */
static void add_modifiers(char *out, size_t size, const struct perf_event_attr *attr)
{
	bool modes = attr->exclude_kernel || attr->exclude_user || attr->exclude_hv;
	bool machines =
		attr->exclude_host || attr->exclude_guest == (modes || attr->precise_ip ? 1 : 0);
	char mods[16] = "";
	size_t n = strlen(out);

	snprintf(mods, sizeof(mods), "%s%s%s%.*s%s%s", modes && !attr->exclude_kernel ? "k" : "",
		 modes && !attr->exclude_user ? "u" : "", modes && !attr->exclude_hv ? "h" : "",
		 (int)attr->precise_ip, "ppp", machines && !attr->exclude_host ? "H" : "",
		 machines && !attr->exclude_guest ? "G" : "");
	if (mods[0])
		snprintf(out + n, size - n, ":%s", mods);
}

char *event_name(const struct perf_event_attr *attr)
{
	char out[128];

	switch (attr->type) {
	case PERF_TYPE_HARDWARE:
		snprintf(out, sizeof(out), "%s",
			 listed(hardware, ARRAY_SIZE(hardware), attr->config, "unknown-hardware"));
		break;
	case PERF_TYPE_SOFTWARE:
		snprintf(out, sizeof(out), "%s",
			 listed(software, ARRAY_SIZE(software), attr->config, "unknown-software"));
		break;
	case PERF_TYPE_HW_CACHE:
		cache_name(out, sizeof(out), attr->config);
		break;
	case PERF_TYPE_RAW:
		snprintf(out, sizeof(out), "raw 0x%" PRIx64, (uint64_t)attr->config);
		break;
	case PERF_TYPE_BREAKPOINT:
		breakpoint_name(out, sizeof(out), attr);
		break;
	case PERF_TYPE_TRACEPOINT:
		return xstrdup("unknown tracepoint");
	default:
		return xasprintf("unknown attr type: %u", attr->type);
	}
	add_modifiers(out, sizeof(out), attr);
	return xstrdup(out);
}

void event_set_name(struct evsel *e, const char *name)
{
	free(e->pub.name);
	e->pub.name = xstrdup(name);
	e->named = true;
}
