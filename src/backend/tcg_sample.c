// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ticks of vCPU threads made into samples, with the vCPU's state as of the tick or as it is now.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "backend/tcg_session.h"
#include "util/clock.h"

#define PERIOD_MIN   10000	  /* ns; the kernel's own limit for clock events */
#define MSR_INTERVAL 100000000ull /* ns between looks for what the guest may set up later */
#define STRANGE_MAX  8		  /* ticks with an unknown env before it is believed */

/* MSRs lie where some vCPU's values show it; until one has such values they are not known. */
static void complete_layout(struct tcg_session *s, uint64_t env)
{
	const struct tcg_layout *l = &s->cpus.layout;
	uint64_t now;

	if (tcg_layout_complete(l))
		return;
	now = clock_now_ns();
	if (now - s->msrs_looked < MSR_INTERVAL)
		return;
	s->msrs_looked = now;
	tcg_complete_layout(&s->cpus.layout, s->base.vm->pid, env);
}

static void behind_env(struct guest_regs *regs, const struct tcg_layout *l, uint64_t kernel_gs,
		       uint32_t halted)
{
	regs->halted = halted == 1;
	regs->kernel_gs_base = kernel_gs;
	regs->has_gs = l->kernel_gs != 0;
}

/* -EAGAIN: no such vCPU known; -ESRCH; -EIO: not the state of a CPU */
int tcg_read_regs(struct tcg_session *s, uint32_t vcpu, struct guest_regs *regs)
{
	const struct tcg_layout *l = &s->cpus.layout;
	uint64_t env = vcpu < s->cpus.n ? s->cpus.cpu[vcpu].env : 0, kernel_gs = 0;
	uint8_t head[TCG_ENV_HEAD];
	uint32_t halted = 0;
	/* Of x86 up to EFER, which is the last register but two. */
	struct iovec local[3] = {{head, l->efer ? l->efer + 8 : TCG_ENV_HEAD}}, remote[3];
	size_t n = 1, want;
	ssize_t got;
	int r;

	if (!env)
		return -EAGAIN;
	remote[0] = (struct iovec){(void *)(uintptr_t)env, local[0].iov_len};
	want = local[0].iov_len;
	if (l->kernel_gs) {
		local[n] = (struct iovec){&kernel_gs, 8};
		remote[n++] = (struct iovec){(void *)(uintptr_t)(env + l->kernel_gs), 8};
		want += 8;
	}
	if (l->halted) {
		local[n] = (struct iovec){&halted, 4};
		remote[n++] = (struct iovec){(void *)(uintptr_t)(env - l->halted), 4};
		want += 4;
	}
	got = process_vm_readv(s->base.vm->pid, local, n, remote, n, 0);
	if (got < 0)
		return errno == ESRCH ? -ESRCH : -EIO;
	if ((size_t)got != want)
		return -EIO;
	r = tcg_state_decode(regs, head, l);
	if (r)
		return r;
	behind_env(regs, l, kernel_gs, halted);
	complete_layout(s, env);
	return 0;
}

/* ---------- ticks ---------- */

uint64_t tcg_event_period(const struct event *e)
{
	uint64_t p = e->freq ? 1000000000ull / e->rate : e->rate;

	return p < PERIOD_MIN ? PERIOD_MIN : p;
}

static bool is_env(struct tcg_session *s, uint64_t env)
{
	uint8_t head[TCG_ENV_HEAD];

	return env % 16 == 0 && !proc_read_memory(s->base.vm->pid, env, head, sizeof(head)) &&
	       tcg_state_plausible(head, &s->cpus.layout);
}

/*
 * What generated code has in its register is the truth about which vCPU the thread runs. A thread
 * of several vCPUs changes them all the time; one that shows another env than was found for it
 * again and again is put right.
 */
static void learn(struct tcg_session *s, struct tcg_source *src, uint64_t env)
{
	if (!env || env == s->cpus.cpu[src->vcpu].env) {
		src->strange = 0;
		return;
	}
	for (uint32_t i = 0; i < s->cpus.n; i++)
		if (s->cpus.cpu[i].env == env) {
			src->vcpu = i;
			return;
		}
	if (++src->strange >= STRANGE_MAX && !s->shared_thread && is_env(s, env)) {
		s->cpus.cpu[src->vcpu].env = env;
		src->strange = 0;
	}
}

static void drain(struct tcg_session *s, struct tcg_source *src)
{
	const struct perf_event_header *h;
	struct tcg_tick t;

	while ((h = perf_ring_next(&src->ring))) {
		if (!tcg_tick_parse(&t, h))
			continue;
		src->pending = true;
		src->time = t.time;
		src->host_cpu = t.cpu;
		src->value = t.value;
		learn(s, src, tcg_tick_env(&t, &s->code));
	}
}

/* How many periods the waiting ticks stand for: those that the reader was too late for, or that the
 * kernel had no room for, are in the counter's value. */
static uint64_t take_ticks(struct tcg_source *src, uint64_t period)
{
	int64_t open = (int64_t)src->value - src->covered + (int64_t)(period / 2);
	uint64_t n = open > (int64_t)period ? (uint64_t)open / period : 1;

	src->covered += (int64_t)(n * period);
	src->pending = false;
	return n;
}

static void take_memory(const struct tcg_snapshot *snap, struct raw_sample *out)
{
	if (snap->task_error == 0) {
		out->has |= RAW_HAS_TASK;
		out->task = snap->task;
	}
	for (unsigned i = 0; i < TCG_SNAPSHOT_PAGES; i++)
		if (snap->page_va[i])
			out->memory[out->nr_memory++] = (struct raw_memory){
				.addr = snap->page_va[i],
				.len = TCG_SNAPSHOT_PAGE,
				.word = (const uint64_t *)snap->page[i],
			};
}

/*
 * The registers of a tick: as they were then, if there is a snapshot of it, else as they are now.
 * Memory goes with the former only.
 */
static int take_state(struct tcg_session *s, const struct tcg_source *src,
		      const struct tcg_snapshot *snap, struct raw_sample *out)
{
	int r;

	if (!snap || snap->env_error || src->env != s->cpus.cpu[src->vcpu].env)
		return tcg_read_regs(s, src->vcpu, &out->regs);
	r = tcg_state_decode(&out->regs, snap->env, &s->cpus.layout);
	if (r)
		return r;
	behind_env(&out->regs, &s->cpus.layout, snap->kernel_gs, snap->halted);
	complete_layout(s, src->env);
	take_memory(snap, out);
	s->stats.snapshots += out->nr_memory > 0;
	return 0;
}

/* Fills @out from a source's waiting ticks; false if there is no sample in them. */
static bool make_sample(struct tcg_session *s, struct tcg_source *src,
			const struct tcg_snapshot *snap, struct raw_sample *out)
{
	const struct event *e = &s->events[src->event];
	uint64_t period = tcg_event_period(e), n = take_ticks(src, period);
	int r;

	memset(out, 0, sizeof(*out));
	r = take_state(s, src, snap, out);
	if (r == -ESRCH)
		s->gone = true;
	s->stats.ticks += n;
	if (r) {
		s->stats.lost += n;
		s->stats.unreadable += r == -EIO ? n : 0;
		return false;
	}
	s->stats.samples++;
	s->stats.merged += n - 1;
	out->has |= RAW_HAS_IP | RAW_HAS_REGS | RAW_HAS_MODE | RAW_HAS_HOST_CPU;
	out->event = src->event;
	out->vcpu = src->vcpu;
	out->host_cpu = src->host_cpu;
	out->time = src->time;
	out->period = n * period;
	out->ip = out->regs.ip;
	out->mode = out->regs.cpl == 3 ? SAMPLE_MODE_GUEST_USER : SAMPLE_MODE_GUEST_KERNEL;
	return true;
}

/* One sample out of the snapshots: what it points to is valid until the next look. */
static bool from_snapshot(struct tcg_session *s, struct raw_sample *out)
{
	const struct tcg_snapshot *snap;

	while (s->snapshots && (snap = tcg_snapshots_next(s->snapshots))) {
		struct tcg_source *src = &s->sources[snap->source];
		const struct tcg_tick t = {.abi = snap->host_user,
					   .areg0 = snap->host_areg0,
					   .user_ip = snap->host_ip};

		src->time = snap->time;
		src->host_cpu = snap->cpu;
		src->value = snap->value;
		learn(s, src, tcg_tick_env(&t, &s->code));
		if (make_sample(s, src, snap, out))
			return true;
	}
	return false;
}

static int by_time(const void *a, const void *b)
{
	const struct raw_sample *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

unsigned tcg_hand_out(struct tcg_session *s, struct raw_sample *samples, unsigned n)
{
	unsigned got = n && from_snapshot(s, &samples[0]);

	for (unsigned i = 0; i < s->nr_sources && got < n && !s->gone; i++) {
		struct tcg_source *src = &s->sources[s->next];

		s->next = (s->next + 1) % s->nr_sources;
		drain(s, src);
		if (src->pending && make_sample(s, src, NULL, &samples[got]))
			got++;
	}
	if (got > 1)
		qsort(samples, got, sizeof(*samples), by_time);
	return got;
}
