// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel reads a clock and stores what it has read. If the old value was there at the host's
 * time h1 and the new one, g, at h2, g was read before h2: the host's clock less the guest's is at
 * most h2 - g. It is at least h1 - g if g was read behind h1 and not only stored then: a CPU may
 * stand still between the two, be it that the host runs something else. That is known of
 *
 * - struct rq.clock, which is sched_clock_cpu(): it is read and stored under the runqueue's lock,
 *   by whatever CPU. If the lock was free at h1, it was taken later.
 * - sched_clock_data.tick_gtod, which is CLOCK_MONOTONIC, stored by its CPU with interrupts off. If
 *   these were on at h1, the clock was read later.
 *
 * Of all stores that were seen, one bounds the difference best from above and one from below. No
 * look has to be quick; slow ones only leave more room.
 *
 * tick_gtod is written only where the TSC is not trusted and so sched_clock is corrected by
 * CLOCK_MONOTONIC at each tick, in each CPU for itself. Elsewhere both clocks are usually made of
 * the TSC, and one follows from the other (timekeeper.h).
 */
#include "guest/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guest/timekeeper.h"
#include "util/clock.h"
#include "util/xalloc.h"

enum { CPUS = 4, VCPUS_TRIED = 64 };

#define RFLAGS_IF (1u << 9)
#define CLOCK_MAX (1ll << 62)
#define SKEW_MAX  1000000000ll /* beyond what one look after the other can be off by */

/* The differences that two stores have shown: the one that bounds best from above, and from below.
 */
struct brackets {
	struct guest_clock_bounds upper, lower;
	unsigned n;
};

/* A word that the kernel stores times in, as the last look has found it. */
struct watched {
	uint64_t value;
	uint64_t since; /* a look: what is stored from then on is read from then on; 0: none was */
	bool seen;
	struct brackets brackets;
};

struct cpu {
	uint32_t vcpu;
	uint64_t percpu;
	struct watched sched, gtod;
};

struct guest_clocks {
	struct guest *g;
	uint32_t nr_vcpus, first_vcpu;
	uint64_t resets; /* of the guest's, at the begin */
	bool stable;	 /* sched_clock is one clock for all CPUs */
	uint64_t runqueues, sched_data;
	struct cpu cpu[CPUS];
	unsigned n;
};

struct guest_clocks *guest_clocks_new(struct guest *g, uint32_t nr_vcpus)
{
	struct guest_clocks *c = xcalloc(1, sizeof(*c));

	c->g = g;
	c->nr_vcpus = nr_vcpus;
	return c;
}

void guest_clocks_free(struct guest_clocks *c)
{
	free(c);
}

/* ---------- the begin ---------- */

static int find_words(struct guest_clocks *c)
{
	struct guest *g = c->g;
	int32_t stable;
	bool found;

	if (!g->kernel || g->no_types || g->km.lay.rq_clock < 0 || g->km.lay.rq_lock < 0)
		return -ENOENT;
	c->runqueues = guest_kernel_sym(g->kernel, "runqueues", &found);
	if (!found || guest_tk_word(g, "__sched_clock_stable", &stable, sizeof(stable)))
		return -ENOENT;
	c->stable = stable > 0;
	c->sched_data = guest_kernel_sym(g->kernel, "sched_clock_data", &found);
	if (c->stable || !found || g->km.lay.scd_tick_gtod < 0)
		c->sched_data = 0;
	return 0;
}

static bool peek(struct guest_clocks *c, uint32_t vcpu, struct guest_regs *regs)
{
	const struct guest_config *cfg = &c->g->cfg;

	return cfg->peek && !cfg->peek(cfg->peek_ctx, vcpu, regs);
}

static bool has_cpu(const struct guest_clocks *c, uint64_t percpu)
{
	for (unsigned i = 0; i < c->n; i++)
		if (c->cpu[i].percpu == percpu)
			return true;
	return false;
}

static void add_cpu(struct guest_clocks *c, uint32_t vcpu, const struct guest_regs *regs)
{
	int number = guest_kernel_cpu(c->g->kernel, regs);
	uint64_t percpu = number < 0 ? 0 : guest_kernel_percpu(c->g->kernel, (uint32_t)number);

	if (percpu && !has_cpu(c, percpu))
		c->cpu[c->n++] = (struct cpu){.vcpu = vcpu, .percpu = percpu};
}

/* CPUs that run, others each time; if there is none, some that may wake up. */
static void choose_cpus(struct guest_clocks *c)
{
	uint32_t tried = c->nr_vcpus < VCPUS_TRIED ? c->nr_vcpus : VCPUS_TRIED;
	struct guest_regs regs;

	c->n = 0;
	for (int halted = 0; halted < 2 && !c->n; halted++)
		for (uint32_t i = 0; i < tried && c->n < CPUS; i++) {
			uint32_t vcpu = (c->first_vcpu + i) % c->nr_vcpus;

			if (peek(c, vcpu, &regs) && regs.halted == halted)
				add_cpu(c, vcpu, &regs);
		}
	c->first_vcpu = c->nr_vcpus ? (c->first_vcpu + CPUS) % c->nr_vcpus : 0;
}

int guest_clocks_begin(struct guest_clocks *c)
{
	int rc = find_words(c);

	c->n = 0;
	c->resets = c->g->stats.resets;
	if (!rc)
		choose_cpus(c);
	return rc;
}

/* ---------- a look ---------- */

static void add_bounds(struct brackets *b, struct guest_clock_bounds d)
{
	if (!b->n++) {
		b->upper = b->lower = d;
		return;
	}
	if (d.high < b->upper.high)
		b->upper = d;
	if (d.low > b->lower.low)
		b->lower = d;
}

static void see(struct watched *w, uint64_t value, bool strict, uint64_t before, uint64_t after)
{
	if (w->seen && value != w->value && value && value < CLOCK_MAX) {
		struct guest_clock_bounds d = {
			.known = w->since,
			.low = w->since ? (int64_t)(w->since - value) : INT64_MIN,
			.high = (int64_t)(after - value),
		};

		add_bounds(&w->brackets, d);
	}
	w->value = value;
	w->seen = true;
	if (strict) /* a look that is not leaves the last one that was */
		w->since = before;
}

/* The lock first: what is stored behind that was read behind that. */
static int look_at_sched(struct guest_clocks *c, struct cpu *cpu)
{
	const struct guest_layout *l = &c->g->km.lay;
	uint64_t rq = c->runqueues + cpu->percpu, before = clock_now_ns(), clock;
	uint32_t lock = 1, core = 0;
	struct guest_virt_io io[] = {
		{.va = rq + (uint64_t)l->rq_lock, .buf = &lock, .len = sizeof(lock)},
		{.va = rq + (uint64_t)l->rq_core, .buf = &core, .len = l->rq_core < 0 ? 0 : 4},
	};
	int rc = guest_virt_readv(c->g->virt, c->g->km.as, io, 2);

	if (!rc)
		rc = guest_virt_read(c->g->virt, c->g->km.as, rq + (uint64_t)l->rq_clock, &clock,
				     sizeof(clock));
	if (rc)
		return rc;
	/* with core scheduling another runqueue's lock is taken */
	see(&cpu->sched, clock, io[0].ok && !lock && !core, before, clock_now_ns());
	return 0;
}

static int look_at_gtod(struct guest_clocks *c, struct cpu *cpu)
{
	uint64_t va = c->sched_data + cpu->percpu + (uint64_t)c->g->km.lay.scd_tick_gtod;
	uint64_t before = clock_now_ns(), gtod;
	struct guest_regs regs;
	bool open = peek(c, cpu->vcpu, &regs) && (regs.halted || regs.flags & RFLAGS_IF);
	int rc = guest_virt_read(c->g->virt, c->g->km.as, va, &gtod, sizeof(gtod));

	if (!rc)
		see(&cpu->gtod, gtod, open, before, clock_now_ns());
	return rc;
}

int guest_clocks_look(struct guest_clocks *c)
{
	if (c->g->stats.resets != c->resets)
		c->n = 0;
	for (unsigned i = 0; i < c->n; i++) {
		int rc = look_at_sched(c, &c->cpu[i]);

		if (rc != -ESRCH && c->sched_data)
			rc = look_at_gtod(c, &c->cpu[i]);
		if (rc == -ESRCH)
			return rc;
	}
	return 0;
}

unsigned guest_clocks_seen(const struct guest_clocks *c)
{
	unsigned sched = 0, gtod = 0;

	for (unsigned i = 0; i < c->n; i++) {
		sched += c->cpu[i].sched.brackets.n;
		gtod += c->cpu[i].gtod.brackets.n;
	}
	return c->sched_data && gtod < sched ? gtod : sched;
}

/* ---------- the end ---------- */

/*
 * Where the two contradict each other the difference itself has moved in between: it was in both
 * brackets, once in each.
 */
static struct guest_clock_bounds bounds_of(const struct brackets *b)
{
	struct guest_clock_bounds d = {.low = b->lower.low, .high = b->upper.high};

	if (!b->n)
		return (struct guest_clock_bounds){.known = false};
	if (d.low > d.high)
		d = (struct guest_clock_bounds){.low = b->upper.low, .high = b->lower.high};
	d.known = d.low > -CLOCK_MAX && d.high - d.low < SKEW_MAX;
	return d;
}

static void merge_brackets(struct brackets *to, const struct brackets *from)
{
	if (!from->n)
		return;
	add_bounds(to, from->upper);
	add_bounds(to, from->lower);
}

/* One clock for all CPUs: what they tell together. */
static struct guest_clock_bounds common(const struct guest_clocks *c, size_t watched)
{
	struct brackets all = {.n = 0};

	for (unsigned i = 0; i < c->n; i++)
		merge_brackets(
			&all,
			&((const struct watched *)((const char *)&c->cpu[i] + watched))->brackets);
	return bounds_of(&all);
}

/* Each CPU has a clock of its own: from the lowest to the highest. */
static struct guest_clock_bounds hull(const struct guest_clocks *c)
{
	struct guest_clock_bounds all = {.known = false};

	for (unsigned i = 0; i < c->n; i++) {
		struct guest_clock_bounds d = bounds_of(&c->cpu[i].sched.brackets);

		if (!d.known)
			continue;
		all.low = !all.known || d.low < all.low ? d.low : all.low;
		all.high = !all.known || d.high > all.high ? d.high : all.high;
		all.known = true;
	}
	return all;
}

/* Of a clock that is ahead of the one of @d by @ahead. */
static struct guest_clock_bounds moved(struct guest_clock_bounds d, int64_t ahead)
{
	if (__builtin_sub_overflow(d.low, ahead, &d.low) ||
	    __builtin_sub_overflow(d.high, ahead, &d.high))
		d.known = false;
	return d;
}

static struct guest_clock_bounds mono_of_sched(const struct guest_clocks *c,
					       struct guest_clock_bounds sched)
{
	const struct cpu *cpu = c->cpu;
	int64_t diff;

	while (cpu < c->cpu + c->n - 1 && !cpu->sched.brackets.n)
		cpu++;
	if (!sched.known || guest_tk_mono_less_sched(c->g, cpu->percpu, cpu->sched.value, &diff))
		return (struct guest_clock_bounds){.known = false};
	return moved(sched, diff);
}

void guest_clocks_end(struct guest_clocks *c, struct guest_clock_bounds out[GUEST_CLOCK_COUNT])
{
	struct guest_clock_bounds mono;
	struct guest_tk_offsets more;

	memset(out, 0, GUEST_CLOCK_COUNT * sizeof(*out));
	if (!c->n || c->g->stats.resets != c->resets)
		return;
	if (c->stable) {
		out[GUEST_CLOCK_SCHED] = common(c, offsetof(struct cpu, sched));
		mono = mono_of_sched(c, out[GUEST_CLOCK_SCHED]);
	} else {
		out[GUEST_CLOCK_SCHED] = hull(c);
		mono = common(c, offsetof(struct cpu, gtod));
	}
	out[GUEST_CLOCK_MONOTONIC] = mono;
	if (!mono.known || guest_tk_offsets(c->g, &more))
		return;
	out[GUEST_CLOCK_REALTIME] = moved(mono, more.real);
	out[GUEST_CLOCK_BOOTTIME] = moved(mono, more.boot);
	out[GUEST_CLOCK_TAI] = moved(mono, more.tai);
}
