// SPDX-License-Identifier: GPL-2.0-only
#include "stat/loop.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/xalloc.h"

struct watched {
	struct pollfd *fds; /* of signals, ->fd, and each VM's process (-1: it has ended) */
	unsigned n;
	bool vms_known; /* all VMs' ends will be told */
};

static void watch(struct watched *w, const struct stat_loop *l)
{
	w->n = 2 + l->nr_vms;
	w->vms_known = true;
	w->fds = xcalloc(w->n, sizeof(*w->fds));
	w->fds[0] = (struct pollfd){l->signals->fd, POLLIN, 0};
	w->fds[1] = (struct pollfd){l->fd, POLLIN, 0};
	for (unsigned i = 0; i < l->nr_vms; i++) {
		int fd = (int)syscall(SYS_pidfd_open, l->vms[i]->pid, 0);

		/* one that has ended since it was opened for counting has its descriptor closed */
		w->vms_known = w->vms_known && (fd >= 0 || errno == ESRCH);
		w->fds[2 + i] = (struct pollfd){fd, POLLIN, 0};
	}
}

static void unwatch(struct watched *w)
{
	for (unsigned i = 2; i < w->n; i++)
		if (w->fds[i].fd >= 0)
			close(w->fds[i].fd);
	free(w->fds);
}

static bool all_ended(struct watched *w)
{
	bool ended = w->vms_known;

	for (unsigned i = 2; i < w->n; i++) {
		if (w->fds[i].fd >= 0 && w->fds[i].revents) {
			close(w->fds[i].fd);
			w->fds[i].fd = -1;
		}
		ended = ended && w->fds[i].fd < 0;
	}
	return ended;
}

/* Returns whether one of them is the end. */
static bool take_signals(struct stat_loop *l)
{
	struct signalfd_siginfo si;

	while (read(l->signals->fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo != SIGCHLD) {
			l->signal = (int)si.ssi_signo;
			return true;
		}
		if (l->command && workload_ended(l->command, &l->status))
			return true;
	}
	return false;
}

static int end_interval(struct stat_loop *l, uint64_t start, struct vmprof_err *err)
{
	if (l->ready)
		l->ready(l->ctx);
	return l->interval(l->ctx, clock_now_ns() - start, err);
}

static int run(struct stat_loop *l, struct watched *w, struct vmprof_err *err)
{
	uint64_t start = l->start, next = UINT64_MAX, end = UINT64_MAX;
	unsigned intervals = 0;
	bool done = false, fresh = false;
	int rc = 0;

	if (l->interval_ns)
		next = start + l->interval_ns;
	if (l->duration_ns)
		end = start + l->duration_ns;
	while (!done && !rc) {
		uint64_t now = clock_now_ns(), until = next < end ? next : end;
		int wait = until == UINT64_MAX ? -1 : 0;

		if (until != UINT64_MAX && until > now) {
			uint64_t ms = (until - now + 999999) / 1000000;

			wait = ms < 1000000 ? (int)ms : 1000000;
		}
		if (poll(w->fds, w->n, wait) < 0 && errno != EINTR)
			return err_sys(err, errno, "cannot wait");
		if (w->fds[1].revents && l->ready)
			l->ready(l->ctx);
		done = take_signals(l) || all_ended(w) || clock_now_ns() >= end;
		fresh = true;
		if (done || clock_now_ns() < next)
			continue;
		rc = end_interval(l, start, err);
		fresh = false;
		next += l->interval_ns;
		if (next <= clock_now_ns()) /* held up for longer than that */
			next = clock_now_ns() + l->interval_ns;
		done = l->interval_count && ++intervals == l->interval_count;
	}
	l->elapsed_ns = clock_now_ns() - start;
	if (rc || !l->interval_ns)
		return rc;
	return fresh ? end_interval(l, start, err) : 0;
}

int stat_loop_run(struct stat_loop *l, struct vmprof_err *err)
{
	struct watched w;
	int rc;

	watch(&w, l);
	rc = run(l, &w, err);
	unwatch(&w);
	return rc;
}
