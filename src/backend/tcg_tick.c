// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "backend/tcg.h"
#include "util/clock.h"
#include "util/xalloc.h"

/* The host register that has env in generated code (TCG_AREG0), and ip, as perf numbers them. */
#if defined(__x86_64__)
#define HOST_REGS (1ull << 6 | 1ull << 8) /* rbp, rip */
#elif defined(__aarch64__)
#define HOST_REGS (1ull << 19 | 1ull << 32) /* x19, pc */
#endif

#define PROLOGUE_MAX  4096 /* bytes; it starts the lowest range, and the register is not set yet */
#define WATCH_THREADS 256
#define WATCH_PERIOD  200000 /* ns */

/* Memory without a file, or a memfd where W^X splits it in a writable and an executable view. */
static bool is_code(const struct proc_map *m)
{
	return m->exec && (!m->path[0] || !strncmp(m->path, "/memfd:tcg-jit", 14));
}

void tcg_code_find(struct tcg_code *code, const struct proc_maps *maps)
{
	code->n = 0;
	for (size_t i = 0; i < maps->n; i++) {
		const struct proc_map *m = &maps->map[i];

		if (!is_code(m) || code->n == sizeof(code->range) / sizeof(*code->range))
			continue;
		code->range[code->n].start = m->start + (code->n ? 0 : PROLOGUE_MAX);
		code->range[code->n++].end = m->end;
	}
}

void tcg_attr(struct perf_event_attr *attr, uint64_t period)
{
	*attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(*attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_READ | PERF_SAMPLE_REGS_USER,
		.sample_regs_user = HOST_REGS,
		.disabled = 1,
		.wakeup_events = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

bool tcg_tick_parse(struct tcg_tick *t, const struct perf_event_header *h)
{
	if (h->type != PERF_RECORD_SAMPLE || h->size < offsetof(struct tcg_tick, areg0))
		return false;
	memset(t, 0, sizeof(*t));
	memcpy(t, h, h->size < sizeof(*t) ? h->size : sizeof(*t));
	if (h->size < sizeof(*t))
		t->abi = 0;
	return true;
}

uint64_t tcg_tick_env(const struct tcg_tick *t, const struct tcg_code *code)
{
	if (!t->abi)
		return 0;
	for (unsigned i = 0; i < code->n; i++)
		if (t->user_ip >= code->range[i].start && t->user_ip < code->range[i].end)
			return t->areg0;
	return 0;
}

/* ---------- watching all threads ---------- */

struct watch {
	struct perf_ring ring[WATCH_THREADS];
	unsigned n;
	int epoll, code;
	struct vmprof_err *err;
};

static int watch_thread(void *ctx, pid_t tid)
{
	struct watch *w = ctx;
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = w->n};
	struct perf_event_attr attr;

	if (w->n == WATCH_THREADS)
		return 1;
	tcg_attr(&attr, WATCH_PERIOD);
	attr.disabled = 0;
	w->code = perf_ring_open(&w->ring[w->n], &attr, tid, 0, w->err);
	if (w->code == -ESRCH)
		w->code = 0; /* it has ended */
	else if (!w->code && !epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->ring[w->n].fd, &ev))
		w->n++;
	return w->code != 0;
}

int tcg_watch(const struct vm *vm, const struct tcg_code *code, unsigned ms,
	      bool (*fn)(void *ctx, uint64_t env, pid_t tid), void *ctx, struct vmprof_err *err)
{
	struct watch *w = xcalloc(1, sizeof(*w));
	uint64_t end = clock_now_ns() + ms * 1000000ull, now;
	const struct perf_event_header *h;
	struct epoll_event ev;
	struct tcg_tick t;
	bool stop = false;
	char path[32];
	int code_out;

	w->err = err;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/task", vm->pid);
	proc_each_number(path, watch_thread, w);
	while (!w->code && !stop && (now = clock_now_ns()) < end) {
		if (epoll_wait(w->epoll, &ev, 1, (int)((end - now) / 1000000 + 1)) != 1)
			continue;
		if (ev.events & (EPOLLHUP | EPOLLERR))
			epoll_ctl(w->epoll, EPOLL_CTL_DEL, w->ring[ev.data.u32].fd, NULL);
		while (!stop && (h = perf_ring_next(&w->ring[ev.data.u32])))
			if (tcg_tick_parse(&t, h) && tcg_tick_env(&t, code))
				stop = fn(ctx, t.areg0, (pid_t)t.tid);
	}
	for (unsigned i = 0; i < w->n; i++)
		perf_ring_close(&w->ring[i]);
	if (w->epoll >= 0)
		close(w->epoll);
	code_out = w->code;
	free(w);
	return code_out;
}
