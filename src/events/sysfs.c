// SPDX-License-Identifier: GPL-2.0-only
#include "events/sysfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/xalloc.h"

#define NAMES_MAX 8192

bool sysfs_is_name(const char *name)
{
	if (!*name || *name == '.' || strlen(name) > NAME_MAX)
		return false;
	for (; *name; name++)
		if (*name == '/' || iscntrl((unsigned char)*name))
			return false;
	return true;
}

int sysfs_read(char text[SYSFS_TEXT_MAX], const char *root, const char *fmt, ...)
{
	char path[PATH_MAX];
	int at = snprintf(path, sizeof(path), "%s", root ? root : "");
	ssize_t n = 0, got = 0;
	va_list ap;
	int fd, code;

	text[0] = 0;
	if (at >= PATH_MAX)
		return -ENAMETOOLONG;
	va_start(ap, fmt);
	at += vsnprintf(path + at, sizeof(path) - (size_t)at, fmt, ap);
	va_end(ap);
	if (at >= PATH_MAX)
		return -ENAMETOOLONG;
	/* O_NONBLOCK: what is a FIFO there does not make us wait. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	while (got < SYSFS_TEXT_MAX &&
	       (n = read(fd, text + got, (size_t)(SYSFS_TEXT_MAX - got))) > 0)
		got += n;
	code = n < 0 ? -errno : got == SYSFS_TEXT_MAX ? -EFBIG : 0;
	close(fd);
	if (code)
		got = 0;
	while (got && isspace((unsigned char)text[got - 1]))
		got--;
	text[got] = 0;
	return code;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int sysfs_each(const char *root, const char *dir, int (*fn)(void *ctx, const char *name), void *ctx)
{
	char path[PATH_MAX];
	char **names = NULL;
	size_t n = 0, cap = 0;
	struct dirent *e;
	int rc = 0;
	DIR *d;

	if (snprintf(path, sizeof(path), "%s%s", root ? root : "", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	d = opendir(path);
	if (!d)
		return -errno;
	while (n < NAMES_MAX && (e = readdir(d))) {
		if (!sysfs_is_name(e->d_name))
			continue;
		names = xgrow(names, &cap, n + 1, sizeof(*names));
		names[n++] = xstrdup(e->d_name);
	}
	closedir(d);
	if (n)
		qsort(names, n, sizeof(*names), by_name);
	for (size_t i = 0; i < n; i++) {
		rc = rc ? rc : fn(ctx, names[i]);
		free(names[i]);
	}
	free(names);
	return rc;
}
