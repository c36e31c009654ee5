// SPDX-License-Identifier: GPL-2.0-only
#include "util/openfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

bool is_plain_file(const struct stat *st)
{
	return S_ISREG(st->st_mode) || (S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3));
}

int open_plain_file(const char *path)
{
	/* a FIFO would be waited for */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && is_plain_file(&st))
		return fd;
	close(fd);
	return -EINVAL;
}
