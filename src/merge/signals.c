// SPDX-License-Identifier: GPL-2.0-only
/*
 * Signals that end a merge are blocked and looked for: what was begun is then taken away.
 */
#include <signal.h>
#include <stddef.h>

#include "merge/impl.h"

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};

/* As nohup leaves it. */
static bool is_ignored(int sig)
{
	struct sigaction sa;

	return !sigaction(sig, NULL, &sa) && sa.sa_handler == SIG_IGN;
}

void merge_block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++)
		if (!is_ignored(ending[i]))
			sigaddset(&set, ending[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* a reader that went away and a limit of the file's size are errors of write() */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

int merge_pending_signal(void)
{
	sigset_t set;

	if (sigpending(&set))
		return 0;
	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++)
		if (sigismember(&set, ending[i]) == 1)
			return ending[i];
	return 0;
}
