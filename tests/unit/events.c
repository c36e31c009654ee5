// SPDX-License-Identifier: GPL-2.0-only
/*
 * What -e takes, against a made-up sysfs and tracefs: names, raw events, PMUs' terms and events,
 * tracepoints, groups, modifiers; sentences that help; files in sysfs that are odd or hostile.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/stat.h>
#include <unistd.h>

#include "events/event.h"
#include "tests/unit/test.h"

#define PMUS	"sys/bus/event_source/devices"
#define TRACING "sys/kernel/tracing/events"

static char root[] = "/tmp/vmprof-events.XXXXXX";

/* Writes a file and the directories above it. */
static void put(const char *path, const char *text, size_t len)
{
	char full[512];
	int fd;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(full, 0755);
		*p = '/';
	}
	fd = open(full, O_CREAT | O_TRUNC | O_WRONLY, 0644);
	CHECK(fd >= 0 && write(fd, text, len) == (ssize_t)len);
	close(fd);
}

static void put_text(const char *path, const char *text)
{
	put(path, text, strlen(text));
}

static void make_tree(void)
{
	static char huge[8192];

	put_text(PMUS "/cpu/type", "4\n");
	put_text(PMUS "/cpu/format/event", "config:0-7,32-35\n");
	put_text(PMUS "/cpu/format/umask", "config:8-15\n");
	put_text(PMUS "/cpu/format/edge", "config:18\n");
	put_text(PMUS "/cpu/format/ldlat", "config1:0-15\n");
	put_text(PMUS "/cpu/format/top", "config2:63\n");
	put_text(PMUS "/cpu/format/all", "config:0-63\n");
	put_text(PMUS "/cpu/events/cpu-cycles", "event=0x3c\n");
	put_text(PMUS "/cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n");
	put_text(PMUS "/cpu/events/mem-loads.scale", "1.0\n");
	put_text(PMUS "/uncore_a/type", "12\n");
	put_text(PMUS "/uncore_a/format/event", "config:0-7\n");
	put_text(PMUS "/uncore_a/format/core", "config:8-9\n");
	put_text(PMUS "/uncore_a/events/both", "event=1\n");
	put_text(PMUS "/uncore_a/events/wants", "event=2,core=?\n");
	put_text(PMUS "/uncore_b/type", "13\n");
	put_text(PMUS "/uncore_b/format/event", "config:0-7\n");
	put_text(PMUS "/uncore_b/events/both", "event=1\n");
	/* what no kernel writes */
	put_text(PMUS "/odd/type", "-1\n");
	put_text(PMUS "/evil/type", "77");
	put_text(PMUS "/evil/format/wide", "config:0-64\n");
	put_text(PMUS "/evil/format/back", "config:7-0\n");
	put_text(PMUS "/evil/format/word", "config7:0-3\n");
	put_text(PMUS "/evil/format/none", "");
	put_text(PMUS "/evil/format/many", "config:0,0,0-3,2\n");
	put(PMUS "/evil/format/huge", huge, sizeof(huge));
	put_text(PMUS "/evil/events/loop", "loop\n");
	put_text(PMUS "/evil/events/name\033[31m", "event=1\n");
	put(PMUS "/evil/events/huge", huge, sizeof(huge));
	put_text(TRACING "/header_page", "");
	put_text(TRACING "/kvm/kvm_exit/id", "1234\n");
	put_text(TRACING "/kvm/kvm_odd/id", "12x\n");
}

static struct event parse(const char *spec)
{
	struct event_list l = {.root = root};
	struct vmprof_err err = {0};
	struct event e;

	if (event_list_add(&l, spec, &err) || l.n != 1) {
		fprintf(stderr, "'%s': %u events, %s\n", spec, l.n, err.msg);
		test_failures++;
		return (struct event){0};
	}
	e = l.events[0];
	e.name = NULL;
	event_list_free(&l);
	return e;
}

static void check(const char *spec, uint32_t type, uint64_t config, uint64_t config1,
		  uint64_t config2)
{
	struct event e = parse(spec);

	if (e.type != type || e.config != config || e.config1 != config1 || e.config2 != config2) {
		fprintf(stderr, "'%s' is type %u, config %#" PRIx64 ",%#" PRIx64 ",%#" PRIx64 "\n",
			spec, e.type, e.config, e.config1, e.config2);
		test_failures++;
	}
}

static void test_kinds(void)
{
	check("cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 0, 0);
	check("stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, 0,
	      0);
	check("branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 0, 0);
	check("branch-loads", PERF_TYPE_HW_CACHE, 5, 0, 0);
	check("L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000, 0, 0);
	check("LLC-store-misses", PERF_TYPE_HW_CACHE, 0x10102, 0, 0);
	check("dTLB-misses", PERF_TYPE_HW_CACHE, 0x10003, 0, 0);
	check("r1A8", PERF_TYPE_RAW, 0x1a8, 0, 0);
	check("rffffffffffffffff", PERF_TYPE_RAW, UINT64_MAX, 0, 0);
	check("ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, 0, 0);
	check("minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, 0, 0);
	check("kvm:kvm_exit", PERF_TYPE_TRACEPOINT, 1234, 0, 0);
}

static void test_terms(void)
{
	check("cpu/event=0x3c,umask=1/", 4, 0x13c, 0, 0);
	check("cpu/event=0xfff/", 4, 0xf000000ffull, 0, 0);
	check("cpu/edge,ldlat=0x1f,top/", 4, 1ull << 18, 0x1f, 1ull << 63);
	check("cpu/all=0xffffffffffffffff/", 4, UINT64_MAX, 0, 0);
	check("cpu/mem-loads/", 4, 0x1cd, 3, 0);
	check("cpu/mem-loads,ldlat=30/", 4, 0x1cd, 30, 0);
	check("cpu/cycles/", 4, 0x3c, 0, 0);
	check("cpu/config=7,config1=8,config2=9/", 4, 7, 8, 9);
	check("cpu//", 4, 0, 0, 0);
	check("mem-loads", 4, 0x1cd, 3, 0);
	check("uncore_a/wants,core=2/", 12, 0x202, 0, 0);
	check("evil/many=15/", 77, 15, 0, 0);
}

static void test_rates_and_names(void)
{
	struct event_list l = {.root = root};
	struct vmprof_err err;

	CHECK(!event_list_add(&l, "cycles/period=1000/u,cpu/event=1,freq=33,name=mine/,cs", &err));
	event_list_set_rate(&l, true, 4000);
	CHECK_EQ(l.n, 3);
	CHECK(!l.events[0].freq && l.events[0].rate == 1000 && l.events[0].exclude_kernel);
	CHECK_STR(l.events[0].name, "cycles/period=1000/u");
	CHECK(l.events[1].freq && l.events[1].rate == 33);
	CHECK_STR(l.events[1].name, "mine");
	CHECK(l.events[2].freq && l.events[2].rate == 4000);
	event_list_free(&l);
}

static void test_modifiers(void)
{
	struct event e = parse("cycles");

	CHECK(e.guest && !e.host && !e.exclude_user && !e.exclude_kernel && !e.precise);
	e = parse("cycles:u");
	CHECK(e.guest && !e.exclude_user && e.exclude_kernel);
	e = parse("cycles:ukGH");
	CHECK(e.guest && e.host && !e.exclude_user && !e.exclude_kernel);
	e = parse("instructions:Hk");
	CHECK(!e.guest && e.host && e.exclude_user);
	e = parse("cpu/event=1/ppp");
	CHECK_EQ(e.precise, 3);
	e = parse("cpu/event=1/:uP");
	CHECK(e.precise_max && e.exclude_kernel);
	e = parse("cycles:De");
	CHECK(e.pinned && e.exclusive);
	e = parse("kvm:kvm_exit:k");
	CHECK(e.host && !e.guest && e.exclude_user);
	e = parse("page-faults");
	CHECK(e.host && !e.guest);
	e = parse("cpu-clock");
	CHECK(!e.host && e.guest);
}

static void test_groups(void)
{
	struct event_list l = {.root = root};
	struct vmprof_err err;

	CHECK(!event_list_add(&l, "cs,{cycles:p,cpu/event=1,umask=2/,instructions:k}:u,faults",
			      &err));
	CHECK_EQ(l.n, 5);
	CHECK_EQ(l.events[0].leader, 0);
	for (unsigned i = 1; i < 4; i++)
		CHECK_EQ(l.events[i].leader, 1);
	CHECK_EQ(l.events[4].leader, 4);
	CHECK_STR(l.events[1].name, "cycles:pu");
	CHECK_STR(l.events[2].name, "cpu/event=1,umask=2/:u");
	CHECK(l.events[1].exclude_kernel && l.events[1].precise == 1);
	CHECK(!l.events[3].exclude_kernel && !l.events[3].exclude_user);
	CHECK(!l.events[4].exclude_kernel);
	CHECK(!event_list_add(&l, "{cycles}", &err));
	CHECK_EQ(l.events[5].leader, 5);
	event_list_free(&l);
}

static void test_sentences(void)
{
	static const struct {
		const char *spec, *says;
	} cases[] = {
		{"cyclez", "'cyclez': no such event; did you mean 'cycles'"},
		{"cylces:u", "did you mean 'cycles'"},
		{"LLC-laods", "did you mean 'LLC-loads'"},
		{"mem-load", "did you mean 'mem-loads'"},
		{"bogus", "'bogus': no such event; "},
		{"", "'': no such event"},
		{"cycles,", "'': no such event"},
		{"a\033[31m", "a\\x1b[31m"},
		{"cycles:z", "there is no modifier 'z'"},
		{"cycles:\033", "'\\x1b'"},
		{"cycles:h", "does not apply to a VM's event"},
		{"cycles:pppp", "as precise as it gets"},
		{"L1-icache-stores", "no such event"},
		{"r12345678901234567", "no such event"},
		{"cpuu/event=1/", "no PMU of that name; it has cpu, evil, odd, uncore_a, uncore_b; "
				  "did you mean 'cpu'"},
		{"../cpu/event=1/", "no PMU of that name"},
		{"odd/config=1/", "no PMU of that name"},
		{"cpu/event=1", "the '/' behind the terms is missing"},
		{"cpu/evnet=1/", "unknown term 'evnet' of PMU 'cpu'"},
		{"cpu/evnet=1/", "did you mean 'event'"},
		{"cpu/umask=0x100/", "umask=0x100 is too big: it has 8 bits"},
		{"cpu/umask=x/", "'x' is not a number"},
		{"cpu/umask=-1/", "'-1' is not a number"},
		{"cpu/umask=0x1ffffffffffffffff/", "is not a number"},
		{"cpu/mem-loads=3/", "unknown term 'mem-loads'"},
		{"cpu/../type=3/", "unknown term '../type'"},
		{"cpu/call-graph=fp/", "does not apply to VMs"},
		{"cycles/umask=1/", "unknown term 'umask'"},
		{"cycles/period=0/", "is no rate"},
		{"both", "several PMUs have one: write uncore_a/both/ or uncore_b/both/"},
		{"uncore_a/wants/", "add core=NUMBER"},
		{"evil/wide=1/", "the format of term wide in sysfs is none"},
		{"evil/back=1/", "is none"},
		{"evil/word=1/", "is none"},
		{"evil/none=1/", "is none"},
		{"evil/huge=1/", "unknown term 'huge'"},
		{"evil/loop/", "unknown term 'loop'"},
		{"evil/nope/", "huge, loop"},
		{"kvm:kvm_exti", "no such tracepoint; did you mean 'kvm_exit'"},
		{"kmv:kvm_exit", "no tracepoints of 'kmv'; did you mean 'kvm'"},
		{"kvm:kvm_odd", "its id in tracefs is no number"},
		{"kvm:../../x", "no such event"},
		{"{cycles", "the '}' is missing"},
		{"{cycles,{cs}}", "a group in a group"},
		{"{}", "'': no such event"},
		{"{cycles}:z", "no modifier 'z'"},
		{"{cycles}x,cs", "no modifier 'x'"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct event_list l = {.root = root};
		struct vmprof_err err = {0};
		int rc = event_list_add(&l, cases[i].spec, &err);

		if (!rc || !strstr(err.msg, cases[i].says)) {
			fprintf(stderr, "'%s' is %d and says: %s\n", cases[i].spec, rc, err.msg);
			test_failures++;
		}
		event_list_free(&l);
	}
}

static void test_no_tree(void)
{
	struct event_list l = {.root = "/nonexistent"};
	struct vmprof_err err;

	CHECK(!event_list_add(&l, "cycles,r1,cpu-clock:u", &err));
	CHECK(event_list_add(&l, "cpu/event=1/", &err) == -EINVAL &&
	      strstr(err.msg, "it has none"));
	CHECK(event_list_add(&l, "kvm:kvm_exit", &err) == -ENOENT &&
	      strstr(err.msg, "not mounted"));
	event_list_free(&l);
}

static void test_too_many(void)
{
	struct event_list l = {.n = 0};
	struct vmprof_err err;

	for (int i = 0; i < EVENTS_MAX; i++)
		CHECK(!event_list_add(&l, "cpu-clock", &err));
	CHECK_EQ(event_list_add(&l, "cpu-clock", &err), -EINVAL);
	CHECK_EQ(event_list_add(&l, "{cpu-clock,cs}", &err), -EINVAL);
	event_list_free(&l);
}

int main(void)
{
	char command[64];

	if (!mkdtemp(root))
		return 1;
	make_tree();
	test_kinds();
	test_terms();
	test_rates_and_names();
	test_modifiers();
	test_groups();
	test_sentences();
	test_no_tree();
	test_too_many();
	snprintf(command, sizeof(command), "rm -rf %s", root);
	CHECK(!system(command));
	return test_done();
}
