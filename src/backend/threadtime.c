// SPDX-License-Identifier: GPL-2.0-only
#include "backend/threadtime.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "backend/perf_ring.h"

static int open_perf(pid_t tid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
	};
	int fd = perf_event_open_fd(&attr, tid, -1, -1, 0);

	if (fd == -EACCES) { /* it counts the same, but fewer may not have it */
		attr.exclude_kernel = 1;
		fd = perf_event_open_fd(&attr, tid, -1, -1, 0);
	}
	return fd;
}

int threadtime_open(struct threadtime *t, pid_t pid, pid_t tid, struct vmprof_err *err)
{
	char path[64];
	uint64_t ns;

	t->fd = open_perf(tid);
	t->perf = t->fd >= 0;
	if (t->perf)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	t->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (t->fd < 0)
		return err_sys(err, errno, "cannot read %s", path);
	if (!threadtime_read(t, &ns))
		return 0;
	threadtime_close(t);
	return err_set(err, EIO, "%s does not tell the thread's CPU time", path);
}

int threadtime_read(const struct threadtime *t, uint64_t *ns)
{
	char text[96];
	ssize_t n;

	if (t->perf) {
		n = read(t->fd, ns, sizeof(*ns));
		return n == sizeof(*ns) ? 0 : n < 0 ? -errno : -ESRCH;
	}
	n = pread(t->fd, text, sizeof(text) - 1, 0);
	if (n < 0)
		return -errno;
	text[n] = 0;
	return sscanf(text, "%" SCNu64, ns) == 1 ? 0 : -EIO;
}

void threadtime_close(struct threadtime *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}
