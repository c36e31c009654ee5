// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events as perf itself understands them: the attributes that "perf stat -vv" prints before it
 * opens each event, which needs no PMU, have the same type, config and modes; those of "perf record
 * -vv" the same rates.
 */
#include <unistd.h>

#include "events/event.h"
#include "tests/unit/test.h"

#define ATTR_MAX 1024

static const char *const counted[] = {
	"cycles",
	"cpu-cycles:u",
	"instructions:k",
	"cache-misses:uk",
	"cycles:kpp",
	"cycles:upkp",
	"stalled-cycles-frontend",
	"idle-cycles-backend",
	"ref-cycles",
	"bus-cycles",
	"branches",
	"LLC-load-misses:u",
	"L1-dcache",
	"l1d-write-miss",
	"branch-loads",
	"bpu",
	"node-prefetch-misses",
	"dTLB-prefetches",
	"L1-icache-load-misses",
	"iTLB-misses",
	"r1a8",
	"rffff:p",
	"cpu-clock",
	"task-clock:u",
	"faults",
	"major-faults",
	"migrations",
	"alignment-faults",
	"emulation-faults",
	"dummy",
	"cgroup-switches",
	"cycles/config1=7,config2=0x9/u",
	"{cpu-clock:u}:k",
	"{cs}",
	/* the last one, which not every host has, and which perf tries to open twice */
	"msr/config=3/",
};

static const char *const sampled[] = {"cycles/period=1000/u", "context-switches/freq=33/"};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* Value of @key among what perf printed; 0 where it prints nothing. */
static uint64_t value_of(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	return p ? strtoull(p + strlen(key), NULL, 0) : 0;
}

/* The attributes that a command prints, each a text; at most @max. */
static size_t ask_perf(const char *command, char text[][ATTR_MAX], size_t max)
{
	FILE *f = popen(command, "r");
	char line[256];
	bool in = false;
	size_t n = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "perf_event_attr", 15) && n < max) {
			in = true;
			text[n++][0] = 0;
		} else if (line[0] == '-') {
			in = false;
		} else if (in) {
			size_t at = strlen(text[n - 1]);

			snprintf(text[n - 1] + at, ATTR_MAX - at, "%s", line);
		}
	}
	if (f)
		pclose(f);
	return n;
}

static bool same(const struct event *e, const char *text, bool rates)
{
	return e->type == value_of(text, "  type ") && e->config == value_of(text, "  config ") &&
	       e->config1 == value_of(text, "config1 }") &&
	       e->config2 == value_of(text, "config2 }") &&
	       e->exclude_user == value_of(text, "exclude_user") &&
	       e->exclude_kernel == value_of(text, "exclude_kernel") &&
	       e->precise == value_of(text, "precise_ip") &&
	       (!rates || (e->rate == value_of(text, "sample_freq }") &&
			   e->freq == value_of(text, "  freq ")));
}

static void compare(const char *spec, const char *text, bool rates)
{
	struct event_list l = {.n = 0};
	struct vmprof_err err = {0};
	const struct event *e = l.events;

	if (event_list_add(&l, spec, &err)) {
		fprintf(stderr, "'%s': %s\n", spec, err.msg);
		test_failures++;
	} else if (!same(e, text, rates)) {
		fprintf(stderr,
			"'%s': type %u config %#" PRIx64 " rate %" PRIu64
			" u%d k%d p%d; perf has\n%s\n",
			spec, e->type, e->config, e->rate, e->exclude_user, e->exclude_kernel,
			e->precise, text);
		test_failures++;
	}
	event_list_free(&l);
}

int main(void)
{
	static char text[COUNT(counted) + 1][ATTR_MAX], command[4096] = "perf stat -vv";
	size_t n;

	for (size_t i = 0; i < COUNT(counted); i++) {
		size_t at = strlen(command);

		snprintf(command + at, sizeof(command) - at, " -e '%s'", counted[i]);
	}
	strcat(command, " true 2>&1");
	n = ask_perf(command, text, COUNT(text));
	if (n < COUNT(counted) - 1) {
		puts("SKIP: no perf here that prints the attributes of its events");
		return 77;
	}
	for (size_t i = 0; i < n && i < COUNT(counted); i++)
		compare(counted[i], text[i], false);
	for (size_t i = 0; i < COUNT(sampled); i++) {
		snprintf(command, sizeof(command), "perf record -vv -e '%s' -o /dev/null true 2>&1",
			 sampled[i]);
		if (ask_perf(command, text, 1))
			compare(sampled[i], text[0], true);
	}
	return test_done();
}
