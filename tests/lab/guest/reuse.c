// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs split and split_x in turn, a second each, all with the same process id: what was
 * known of one of them must not be believed of the next.
 */
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PID 5000

static void run(const char *program)
{
	pid_t want = PID;
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&want, .set_tid_size = 1};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (!pid) {
		execl(program, program, NULL);
		_exit(1);
	}
	if (pid < 0) {
		perror("clone3");
		exit(1);
	}
	sleep(1);
	kill((pid_t)pid, SIGKILL);
	waitpid((pid_t)pid, NULL, 0);
}

int main(void)
{
	for (;;) {
		run("/srv/lab/split");
		run("/srv/lab/split_x");
	}
}
