// SPDX-License-Identifier: GPL-2.0-only
#include "record/workload.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#define STOP_MS 2000 /* for a command to end on SIGTERM */

static void child(char **argv, int go, int status, const sigset_t *sigmask)
{
	char c;
	int e;

	/* No byte but the end of the pipe: the recorder gave up. */
	if (read(go, &c, 1) != 1)
		_exit(127);
	sigprocmask(SIG_SETMASK, sigmask, NULL);
	execvp(argv[0], argv);
	e = errno;
	if (write(status, &e, sizeof(e)) != sizeof(e))
		_exit(126);
	_exit(127);
}

int workload_prepare(struct workload *w, char **argv, const sigset_t *sigmask,
		     struct vmprof_err *err)
{
	int go[2], status[2];

	if (pipe2(go, O_CLOEXEC))
		return err_sys(err, errno, "cannot make a pipe for '%s'", argv[0]);
	if (pipe2(status, O_CLOEXEC)) {
		close(go[0]);
		close(go[1]);
		return err_sys(err, errno, "cannot make a pipe for '%s'", argv[0]);
	}
	w->pid = fork();
	if (w->pid == 0) {
		close(go[1]);
		close(status[0]);
		child(argv, go[0], status[1], sigmask);
	}
	close(go[0]);
	close(status[1]);
	w->go_fd = go[1];
	w->status_fd = status[0];
	if (w->pid < 0) {
		int e = errno;

		w->pid = 0;
		close(w->go_fd);
		close(w->status_fd);
		return err_sys(err, e, "cannot start '%s'", argv[0]);
	}
	return 0;
}

int workload_start(struct workload *w, const char *name, struct vmprof_err *err)
{
	int e = 0;
	ssize_t n = write(w->go_fd, "", 1);

	close(w->go_fd);
	w->go_fd = -1;
	if (n == 1)
		n = read(w->status_fd, &e, sizeof(e));
	close(w->status_fd);
	w->status_fd = -1;
	if (n == 0) /* closed by a successful exec */
		return 0;
	waitpid(w->pid, NULL, 0);
	w->pid = 0;
	return err_sys(err, e ? e : EIO, "cannot run '%s'", name);
}

static int exit_status(int wstatus)
{
	return WIFEXITED(wstatus) ? WEXITSTATUS(wstatus) : 128 + WTERMSIG(wstatus);
}

bool workload_ended(struct workload *w, int *status)
{
	int wstatus;

	if (!w->pid || waitpid(w->pid, &wstatus, WNOHANG) != w->pid)
		return false;
	w->pid = 0;
	*status = exit_status(wstatus);
	return true;
}

static bool ends_within(struct workload *w, unsigned ms)
{
	const struct timespec step = {.tv_nsec = 10 * 1000000l};
	int status;

	for (unsigned waited = 0; waited < ms; waited += 10) {
		if (workload_ended(w, &status))
			return true;
		nanosleep(&step, NULL);
	}
	return false;
}

void workload_stop(struct workload *w)
{
	if (!w->pid)
		return;
	if (w->go_fd >= 0) {
		close(w->go_fd);
		close(w->status_fd);
	} else {
		kill(w->pid, SIGTERM);
		kill(w->pid, SIGCONT); /* one that is stopped does not see the other */
		if (ends_within(w, STOP_MS))
			return;
		kill(w->pid, SIGKILL);
	}
	waitpid(w->pid, NULL, 0);
	w->pid = 0;
}
