// SPDX-License-Identifier: GPL-2.0-only
#include "record/signals.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* As nohup leaves it. */
static bool is_ignored(int sig)
{
	struct sigaction sa;

	return !sigaction(sig, NULL, &sa) && sa.sa_handler == SIG_IGN;
}

int signals_block(struct signals *s, struct vmprof_err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (!is_ignored(SIGHUP))
		sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	signal(SIGCHLD,
	       SIG_DFL); /* ignored, as some callers leave it, the command's end is not told */
	/* Threads inherit the mask: only the descriptor sees these signals. */
	sigprocmask(SIG_BLOCK, &set, &s->before);
	s->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->fd < 0)
		return err_sys(err, errno, "cannot wait for signals");
	return 0;
}

void signals_restore(struct signals *s)
{
	struct signalfd_siginfo si;

	/* A signal that came while we ended has its answer: it need not cut off the last words. */
	while (s->fd >= 0 && read(s->fd, &si, sizeof(si)) == sizeof(si))
		;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	sigprocmask(SIG_SETMASK, &s->before, NULL);
}

void signals_ignore_writes(void)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}
