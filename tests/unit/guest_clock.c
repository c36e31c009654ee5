// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest's clocks, measured out of a made-up guest whose clocks are behind the host's by known
 * amounts: the bounds have these amounts in them, whatever comes in between the guest's reading a
 * clock and its storing the time.
 */
#include <unistd.h>

#include "guest/clock.h"
#include "tests/unit/faketask.h"
#include "tests/unit/test.h"
#include "util/clock.h"

#define MS     1000000ull
#define SCHED  (5000 * (int64_t)MS) /* what the guest's clocks are behind by */
#define MONO   (7000 * (int64_t)MS)
#define REAL   (9000 * (int64_t)MS) /* what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC */
#define IF_SET 0x202ull

enum { RQ = 0, SCD = 0x40, CYC2NS = 0x80, PERCPU_SIZE = 0x100, TK = 8 };
enum { STABLE = 8, USE_TSC = 16, SCK = 24, OFFSET = 32, TSC = 40, TK_CORE = 64 }; /* in ->spare */

static const struct {
	const char *of, *name;
	uint32_t off;
	const char *type;
} members[] = {
	{"rq", "__lock", 0, ""},
	{"rq", "clock", 8, ""},
	{"sched_clock_data", "tick_gtod", 8, ""},
	{"cyc2ns_data", "cyc2ns_mul", 0, ""},
	{"cyc2ns_data", "cyc2ns_shift", 4, ""},
	{"cyc2ns_data", "cyc2ns_offset", 8, ""},
	{"cyc2ns", "data", 0, "cyc2ns_data"},
	{"cyc2ns", "seq", 32, ""},
	{"tk_read_base", "clock", 0, ""},
	{"tk_read_base", "cycle_last", 8, ""},
	{"tk_read_base", "mult", 16, ""},
	{"tk_read_base", "shift", 20, ""},
	{"tk_read_base", "xtime_nsec", 24, ""},
	{"tk_read_base", "base", 32, ""},
	{"timekeeper", "tkr_mono", 0, "tk_read_base"},
	{"timekeeper", "offs_real", 40, ""},
	{"timekeeper", "offs_boot", 48, ""},
	{"timekeeper", "offs_tai", 56, ""},
};

struct setup {
	struct fakeguest g;
	struct faketask t;
	struct guest *guest;
	struct guest_clocks *clocks;
	uint64_t area; /* of CPU 0, where RQ and the others begin */
	struct guest_regs now;
};

static int peek(void *ctx, uint32_t vcpu, struct guest_regs *regs)
{
	struct setup *s = ctx;

	*regs = s->now;
	return vcpu ? -EAGAIN : 0;
}

static void declare(struct setup *s)
{
	struct fakeguest *g = &s->g;
	uint64_t at;

	fg_struct(g, "rq", 16);
	fg_struct(g, "sched_clock_data", 24);
	fg_struct(g, "cyc2ns_data", 16);
	fg_struct(g, "cyc2ns", 40);
	fg_struct(g, "tk_read_base", 40);
	fg_struct(g, "timekeeper", 64);
	fg_struct(g, "seqcount_raw_spinlock", 4);
	for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++)
		fg_member(g, members[i].of, members[i].name, members[i].off, members[i].type);
	s->area = fg_data(g, 1);
	at = s->area - g->percpu;
	fg_sym(g, 'A', "runqueues", at + RQ);
	fg_sym(g, 'A', "sched_clock_data", at + SCD);
	fg_sym(g, 'A', "cyc2ns", at + CYC2NS);
	fg_sym(g, 'D', "__sched_clock_stable", g->spare + STABLE);
	fg_sym(g, 'D', "__use_tsc", g->spare + USE_TSC);
	fg_sym(g, 'D', "__SCK__pv_sched_clock", g->spare + SCK);
	fg_sym(g, 'D', "__sched_clock_offset", g->spare + OFFSET);
	fg_sym(g, 'D', "clocksource_tsc", g->spare + TSC);
	fg_sym(g, 'D', "tk_core", g->spare + TK_CORE);
	fg_sym(g, 'T', "native_sched_clock", FG_FUNC_0 + 4);
	fg_put64(g, g->spare + TK_CORE + TK + 40, REAL);
}

static void setup(struct setup *s, bool stable)
{
	struct guest_config cfg = {.arch = GUEST_ARCH_X86_64, .peek = peek, .peek_ctx = s};
	struct vmprof_err err;

	memset(s, 0, sizeof(*s));
	fakeguest_init(&s->g, &(struct fg_options){0});
	faketask_add(&s->g, &s->t);
	declare(s);
	fakeguest_finish(&s->g);
	fg_put32(&s->g, s->g.spare + STABLE, stable);
	s->now = s->g.regs;
	s->now.flags = IF_SET;
	CHECK_EQ(guest_open(&s->guest, &s->g.fm.mem, &cfg, &err), 0);
	CHECK_EQ(guest_identify(s->guest, &s->g.regs, &err), 0);
	s->clocks = guest_clocks_new(s->guest, 2);
}

static void teardown(struct setup *s)
{
	guest_clocks_free(s->clocks);
	guest_close(s->guest);
	fakemem_free(&s->g.fm);
}

static void look(struct setup *s)
{
	CHECK_EQ(guest_clocks_look(s->clocks), 0);
}

static void store(struct setup *s, uint64_t host_time)
{
	fg_put64(&s->g, s->area + RQ + 8, host_time - SCHED);
	fg_put64(&s->g, s->area + SCD + 8, host_time - MONO);
}

/* The guest reads its clocks, is held up, and stores; looks before, in between and behind that. */
static void tick(struct setup *s)
{
	uint64_t time;

	fg_put32(&s->g, s->area + RQ, 0);
	s->now.flags = IF_SET;
	look(s);
	fg_put32(&s->g, s->area + RQ, 1);
	s->now.flags = IF_SET & ~0x200ull;
	time = clock_now_ns();
	usleep(2000);
	look(s);
	store(s, time);
	usleep(500);
	look(s);
}

static void check_bounds(const struct guest_clock_bounds *b, int64_t right)
{
	CHECK(b->known);
	CHECK(b->low <= right);
	CHECK(b->high >= right);
	/* 2.5 ms between reading and the look that has seen it, at the least */
	CHECK(b->high - right >= 2500 * 1000);
}

/* The TSC is not trusted: each of the two clocks is seen as it is stored. */
static void test_apart(void)
{
	struct guest_clock_bounds out[GUEST_CLOCK_COUNT];
	struct setup s;

	setup(&s, false);
	CHECK_EQ(guest_clocks_begin(s.clocks), 0);
	for (int i = 0; i < 4; i++)
		tick(&s);
	CHECK_EQ(guest_clocks_seen(s.clocks), 4);
	guest_clocks_end(s.clocks, out);
	check_bounds(&out[GUEST_CLOCK_SCHED], SCHED);
	check_bounds(&out[GUEST_CLOCK_MONOTONIC], MONO);
	check_bounds(&out[GUEST_CLOCK_REALTIME], MONO - REAL);
	check_bounds(&out[GUEST_CLOCK_BOOTTIME], MONO);
	teardown(&s);
}

/* Both are made of the TSC, which counts 4 in a ns here and began with the host's clock. */
static void test_tsc(void)
{
	const uint64_t cyc = CYC2NS + 16, tk = TK_CORE + TK;
	struct guest_clock_bounds out[GUEST_CLOCK_COUNT];
	struct setup s;

	setup(&s, true);
	/* ns = cycles * 256 >> 10, from the second of the two; the first one is being written */
	fg_put32(&s.g, s.area + CYC2NS + 32, 1);
	fg_put32(&s.g, s.area + cyc, 256);
	fg_put32(&s.g, s.area + cyc + 4, 10);
	fg_put64(&s.g, s.area + cyc + 8, (uint64_t)-SCHED - 300);
	fg_put64(&s.g, s.g.spare + OFFSET, 300);
	fg_put32(&s.g, s.g.spare + USE_TSC, 1);
	fg_put64(&s.g, s.g.spare + SCK, FG_FUNC_0 + 4);
	/* at 8 s of the host's clock it was 8 s - MONO */
	fg_put64(&s.g, s.g.spare + tk, s.g.spare + TSC);
	fg_put64(&s.g, s.g.spare + tk + 8, 8000 * MS * 4);
	fg_put32(&s.g, s.g.spare + tk + 16, 64);
	fg_put32(&s.g, s.g.spare + tk + 20, 8);
	fg_put64(&s.g, s.g.spare + tk + 32, 8000 * MS - MONO);

	CHECK_EQ(guest_clocks_begin(s.clocks), 0);
	for (int i = 0; i < 2; i++)
		tick(&s);
	guest_clocks_end(s.clocks, out);
	check_bounds(&out[GUEST_CLOCK_SCHED], SCHED);
	check_bounds(&out[GUEST_CLOCK_MONOTONIC], MONO);
	CHECK_EQ(out[GUEST_CLOCK_MONOTONIC].low - out[GUEST_CLOCK_SCHED].low, MONO - SCHED);

	/* of a hypervisor's clock nothing follows for CLOCK_MONOTONIC; nor of another clocksource
	 */
	fg_put64(&s.g, s.g.spare + SCK, FG_FUNC_0);
	guest_clocks_end(s.clocks, out);
	CHECK(out[GUEST_CLOCK_SCHED].known);
	CHECK(!out[GUEST_CLOCK_MONOTONIC].known);
	CHECK(!out[GUEST_CLOCK_REALTIME].known);
	fg_put64(&s.g, s.g.spare + SCK, FG_FUNC_0 + 4);
	fg_put64(&s.g, s.g.spare + tk, s.g.spare);
	guest_clocks_end(s.clocks, out);
	CHECK(!out[GUEST_CLOCK_MONOTONIC].known);
	teardown(&s);
}

/* Nothing is known of what is not seen, and noise does no harm. */
static void test_unknown(void)
{
	struct guest_clock_bounds out[GUEST_CLOCK_COUNT];
	struct setup s;

	setup(&s, false);
	CHECK_EQ(guest_clocks_begin(s.clocks), 0);
	for (int i = 0; i < 3; i++)
		look(&s);
	guest_clocks_end(s.clocks, out);
	for (int i = 0; i < GUEST_CLOCK_COUNT; i++)
		CHECK(!out[i].known);

	/* the lock was never seen to be free: it is known to be at most so much, not at least */
	CHECK_EQ(guest_clocks_begin(s.clocks), 0);
	fg_put32(&s.g, s.area + RQ, 1);
	s.now.flags = 0;
	for (int i = 0; i < 3; i++) {
		store(&s, clock_now_ns());
		look(&s);
	}
	guest_clocks_end(s.clocks, out);
	CHECK(!out[GUEST_CLOCK_SCHED].known);
	CHECK(!out[GUEST_CLOCK_MONOTONIC].known);

	CHECK_EQ(guest_clocks_begin(s.clocks), 0);
	fg_put32(&s.g, s.area + RQ, 0);
	for (int i = 0; i < 64; i++) {
		store(&s, (uint64_t)i * 0x9e3779b97f4a7c15ull);
		look(&s);
	}
	guest_clocks_end(s.clocks, out);
	CHECK(!out[GUEST_CLOCK_SCHED].known);
	teardown(&s);
}

int main(void)
{
	test_apart();
	test_tsc();
	test_unknown();
	return test_done();
}
