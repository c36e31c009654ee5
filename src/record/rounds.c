// SPDX-License-Identifier: GPL-2.0-only
#include "record/rounds.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "util/clock.h"

#define FLUSH_NS 500000000ull /* a killed recorder loses at most this */

int rounds_begin(struct rounds *r, const struct record_options *opts, struct vmprof_err *err)
{
	int rc;

	*r = (struct rounds){.opts = opts, .signals.fd = -1};
	sigprocmask(SIG_SETMASK, NULL, &r->signals.before);
	rc = signals_block(&r->signals, err);
	r->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!rc && r->end_fd < 0)
		rc = err_sys(err, errno, "cannot wait for the end of what is recorded");
	if (!rc && opts->command)
		rc = workload_prepare(&r->workload, opts->command, &r->signals.before, err);
	/* The command has its own of these by now. */
	signals_ignore_writes();
	raise_file_limit();
	return rc;
}

/* Reads what has come; returns true if it ends the record. */
static bool handle_signals(struct rounds *r, int *status)
{
	struct signalfd_siginfo si;

	while (read(r->signals.fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD) {
			if (workload_ended(&r->workload, status))
				return true;
			continue;
		}
		r->signal = (int)si.ssi_signo;
		return true;
	}
	return false;
}

static int run(struct rounds *r, const struct rounds_ops *ops, void *ctx, int *status,
	       struct vmprof_err *err)
{
	struct pollfd fds[] = {{r->signals.fd, POLLIN, 0}, {r->end_fd, POLLIN, 0}};
	uint64_t now = clock_now_ns(), next_flush = now + FLUSH_NS, end = UINT64_MAX;
	bool done = false;

	if (r->opts->duration_ns)
		end = now + r->opts->duration_ns;
	while (!done) {
		uint64_t until = next_flush < end ? next_flush : end, ended;

		now = clock_now_ns();
		if (until > now && poll(fds, 2, (int)((until - now + 999999) / 1000000)) < 0 &&
		    errno != EINTR)
			return err_sys(err, errno, "cannot wait for samples");
		if (read(r->end_fd, &ended, sizeof(ended)) == sizeof(ended) ||
		    clock_now_ns() >= end)
			done = !ops->running(ctx) || clock_now_ns() >= end;
		done = handle_signals(r, status) || done;
		if (clock_now_ns() >= next_flush) {
			int rc = ops->flush(ctx, err);

			if (rc)
				return rc;
			next_flush = clock_now_ns() + FLUSH_NS;
		}
	}
	return 0;
}

int rounds_run(struct rounds *r, const struct rounds_ops *ops, void *ctx, int *status,
	       struct vmprof_err *err)
{
	char **command = r->opts->command;
	int rc = command ? workload_start(&r->workload, command[0], err) : 0;

	return rc ? rc : run(r, ops, ctx, status, err);
}

void rounds_end(struct rounds *r)
{
	workload_stop(&r->workload);
	if (r->end_fd >= 0)
		close(r->end_fd);
	signals_restore(&r->signals);
}
