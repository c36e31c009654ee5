// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples of a domain's vCPUs: Xen tells how much CPU time each has used; when a period of it is
 * over, its registers are read. A vCPU that Xen has taken off its CPU stands where it was taken
 * off, and has no more CPU time, so that no state is read twice.
 */
#include "backend/xen_session.h"

#if HAVE_XEN
#include <errno.h>
#include <string.h>

#include "util/clock.h"

#define CHECK_NS      100000000ull /* between looks at the domain as a whole */
#define TABLES_AGE_NS 100000000ull /* of an HVM guest's descriptor tables */
#define OFFLINE_NS    20000000ull  /* between looks at a vCPU that is offline */

static struct xen_session *xen_of(struct backend_session *s)
{
	return (struct xen_session *)s;
}

/* What a failed call for one vCPU means. */
static int call_failed(struct xen_session *s, int code)
{
	xc_domaininfo_t info;

	if (xen_domain_info(&s->xen, s->base.vm->domid, &info) == -ESRCH)
		s->mem.gone = true;
	return s->mem.gone ? -ESRCH : code == EPERM || code == EACCES ? -EPERM : -EAGAIN;
}

/* ---------- registers ---------- */

static int look(struct xen_session *s, uint32_t vcpu)
{
	struct xen_vcpu *v = &s->vcpu[vcpu];
	uint64_t before = v->info.cpu_time;

	if (s->xen.call->vcpu_getinfo(s->xen.xc, s->base.vm->domid, vcpu, &v->info)) {
		v->info.cpu_time = before;
		return call_failed(s, errno);
	}
	v->known = true;
	return 0;
}

static int read_pv(struct xen_session *s, uint32_t vcpu)
{
	int r = xen_context_get(&s->context, vcpu);

	if (r)
		return call_failed(s, -r);
	xen_regs_pv(&s->vcpu[vcpu].regs, &s->context.regs->c);
	return 0;
}

static int read_hvm(struct xen_session *s, uint32_t vcpu)
{
	struct xen_vcpu *v = &s->vcpu[vcpu];
	uint64_t now = clock_now_ns();
	HVM_SAVE_TYPE(CPU) full;

	if (v->tables_at && now - v->tables_at < TABLES_AGE_NS) {
		int r = xen_context_get(&s->context, vcpu);

		if (r)
			return call_failed(s, -r);
		xen_regs_hvm(&v->regs, &s->context.regs->c, &v->tables);
		return 0;
	}
	if (s->xen.call->hvm_getcontext_partial(s->xen.xc, s->base.vm->domid, HVM_SAVE_CODE(CPU),
						(uint16_t)vcpu, &full, sizeof(full)))
		return call_failed(s, errno);
	xen_regs_hvm_full(&v->regs, &full, &v->tables);
	v->tables_at = now;
	return 0;
}

/* After look(): the vCPU's registers are at least as new as that. */
static int read_regs(struct xen_session *s, uint32_t vcpu)
{
	struct xen_vcpu *v = &s->vcpu[vcpu];
	int r;

	if (v->has_regs && v->regs_cpu_time == v->info.cpu_time)
		return 0;
	r = s->pv ? read_pv(s, vcpu) : read_hvm(s, vcpu);
	v->has_regs = !r;
	v->regs_cpu_time = v->info.cpu_time;
	v->regs.halted = v->info.blocked;
	return r;
}

int xen_peek(struct backend_session *base, uint32_t vcpu, struct guest_regs *regs)
{
	struct xen_session *s = xen_of(base);
	int r;

	if (vcpu >= s->nr_vcpus)
		return -EAGAIN;
	/* While the domain is stopped for a sample, they are the sample's. */
	if (!s->paused || !s->vcpu[vcpu].has_regs) {
		r = look(s, vcpu);
		r = r ? r : !s->vcpu[vcpu].info.online ? -EAGAIN : read_regs(s, vcpu);
		if (r)
			return r;
	}
	*regs = s->vcpu[vcpu].regs;
	return 0;
}

/* ---------- pausing ---------- */

static int pause_domain(struct xen_session *s)
{
	if (!s->pause || s->paused)
		return 0;
	if (s->xen.call->domain_pause(s->xen.xc, s->base.vm->domid))
		return call_failed(s, errno);
	s->paused = true;
	return 0;
}

/* The sample that was handed out is complete: the domain may go on. */
void xen_complete(struct backend_session *base)
{
	struct xen_session *s = xen_of(base);

	if (s->paused)
		s->xen.call->domain_unpause(s->xen.xc, s->base.vm->domid);
	s->paused = false;
}

/* ---------- samples ---------- */

static uint64_t period_of(const struct event *e)
{
	return e->freq ? 1000000000ull / e->rate : e->rate;
}

static uint32_t next_random(struct xen_session *s)
{
	s->random = s->random * 1664525u + 1013904223u;
	return s->random >> 8;
}

/* When it is worth to look at this vCPU again. */
static void plan(struct xen_session *s, struct xen_vcpu *v, uint64_t now)
{
	uint64_t wait = OFFLINE_NS;

	v->idle = v->info.cpu_time == v->seen_cpu_time ? v->idle + 1 : 0;
	v->seen_cpu_time = v->info.cpu_time;
	for (unsigned e = 0; e < s->nr_events && v->info.online; e++) {
		uint64_t w = cputicks_wait(&v->ticks[e], v->info.cpu_time, v->idle, next_random(s));

		wait = w < wait ? w : wait;
	}
	v->look_at = now + wait;
}

static int make_sample(struct xen_session *s, uint32_t vcpu, unsigned event, uint64_t n,
		       uint64_t now, struct raw_sample *out)
{
	struct xen_vcpu *v = &s->vcpu[vcpu];
	int r = pause_domain(s);

	if (!r && s->paused)
		r = look(s, vcpu); /* it has run on until now */
	r = r ? r : read_regs(s, vcpu);
	s->stats.ticks += n;
	cputicks_take(&v->ticks[event], n);
	if (r) {
		s->stats.lost += n;
		xen_complete(&s->base);
		return r;
	}
	memset(out, 0, sizeof(*out));
	s->stats.samples++;
	s->stats.merged += n - 1;
	s->stats.snapshots += s->paused;
	out->has = RAW_HAS_IP | RAW_HAS_REGS | RAW_HAS_MODE | RAW_HAS_HOST_CPU;
	out->event = event;
	out->vcpu = vcpu;
	out->host_cpu = v->info.cpu;
	out->time = now;
	out->period = n * v->ticks[event].period;
	out->regs = v->regs;
	out->ip = v->regs.ip;
	out->mode = v->regs.cpl == 3 ? SAMPLE_MODE_GUEST_USER : SAMPLE_MODE_GUEST_KERNEL;
	return 1;
}

/* A sample of this vCPU, if it has one due. 1, 0 or -errno */
static int sample_vcpu(struct xen_session *s, uint32_t vcpu, uint64_t now, struct raw_sample *out)
{
	struct xen_vcpu *v = &s->vcpu[vcpu];

	for (unsigned e = 0; e < s->nr_events && v->known; e++) {
		uint64_t n = s->stopped ? cputicks_rest(&v->ticks[e], v->info.cpu_time)
					: cputicks_due(&v->ticks[e], v->info.cpu_time,
						       v->info.blocked, now);
		int r = n ? make_sample(s, vcpu, e, n, now, out) : 0;

		if (r == -EAGAIN)
			continue;
		if (r)
			return r;
	}
	return 0;
}

/* Has it ended, or given memory back? */
static void check_domain(struct xen_session *s, uint64_t now)
{
	xc_domaininfo_t info;

	if (now - s->checked < CHECK_NS)
		return;
	s->checked = now;
	frames_expire(&s->mem.frames, now);
	if (xen_domain_info(&s->xen, s->base.vm->domid, &info) == -ESRCH) {
		s->mem.gone = true;
		return;
	}
	if (info.tot_pages != s->tot_pages)
		frames_drop_all(&s->mem.frames);
	s->tot_pages = info.tot_pages;
}

/*
 * One round over the vCPUs whose time has come; 1 with a sample, 0 without, -ESRCH. It goes on
 * where the last one ended with a sample: when samples take longer than periods, all get fewer, and
 * not the last ones none.
 */
static int look_around(struct xen_session *s, struct raw_sample *out, uint64_t now, uint64_t *next)
{
	*next = UINT64_MAX;
	for (uint32_t n = 0; n < s->nr_vcpus && !s->mem.gone; n++) {
		uint32_t i = s->turn;
		struct xen_vcpu *v = &s->vcpu[i];
		int r = 0;

		s->turn = (i + 1) % s->nr_vcpus;
		if (now >= v->look_at) {
			if (look(s, i))
				v->look_at = now + OFFLINE_NS;
			else
				r = sample_vcpu(s, i, now, out);
			if (v->look_at <= now)
				plan(s, v, now);
		}
		if (r == 1)
			return 1;
		*next = v->look_at < *next ? v->look_at : *next;
	}
	return s->mem.gone ? -ESRCH : 0;
}

/* What was due when it was stopped. */
static int read_rest(struct xen_session *s, struct raw_sample *out)
{
	for (uint32_t i = 0; i < s->nr_vcpus && !s->mem.gone; i++) {
		int r = sample_vcpu(s, i, clock_now_ns(), out);

		if (r == 1)
			return 1;
	}
	return s->mem.gone ? -ESRCH : 0;
}

static void sleep_until(uint64_t when)
{
	const struct timespec ts = {.tv_sec = (time_t)(when / 1000000000ull),
				    .tv_nsec = (long)(when % 1000000000ull)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

int xen_read(struct backend_session *base, struct raw_sample *samples, unsigned n, int timeout_ms)
{
	struct xen_session *s = xen_of(base);
	uint64_t now = clock_now_ns(),
		 end = now + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * 1000000;

	xen_complete(base);
	if (!n)
		return 0;
	if (s->stopped)
		return read_rest(s, samples);
	for (;; now = clock_now_ns()) {
		uint64_t next;
		int r;

		check_domain(s, now);
		r = look_around(s, samples, now, &next);
		if (r < 0) { /* as long as its memory is mapped here a domain cannot go */
			frames_drop_all(&s->mem.frames);
			return r;
		}
		if (r || (timeout_ms >= 0 && now >= end))
			return r;
		if (timeout_ms >= 0 && next > end)
			next = end;
		if (next > s->checked + CHECK_NS)
			next = s->checked + CHECK_NS;
		sleep_until(next);
	}
}

int xen_start(struct backend_session *base, struct vmprof_err *err)
{
	struct xen_session *s = xen_of(base);
	uint64_t now = clock_now_ns();

	s->random = (uint32_t)now;
	for (uint32_t i = 0; i < s->nr_vcpus; i++) {
		struct xen_vcpu *v = &s->vcpu[i];

		if (look(s, i) == -ESRCH)
			return -ESRCH;
		for (unsigned e = 0; e < s->nr_events; e++)
			cputicks_start(&v->ticks[e], period_of(&s->events[e]), v->info.cpu_time);
		plan(s, v, now);
	}
	s->started = true;
	return 0;
}

int xen_stop(struct backend_session *base)
{
	struct xen_session *s = xen_of(base);

	xen_complete(base);
	for (uint32_t i = 0; i < s->nr_vcpus && s->started && !s->mem.gone; i++)
		look(s, i);
	s->stopped = true;
	return 0;
}
#endif
