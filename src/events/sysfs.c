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

/* Up to @size bytes, with none behind them. How many there are, or -errno. */
static ssize_t read_file(char *text, size_t size, const char *path)
{
	/* O_NONBLOCK: what is a FIFO there does not make us wait. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code;
	ssize_t n = 0;
	size_t got = 0;

	if (fd < 0)
		return -errno;
	while (got < size && (n = read(fd, text + got, size - got)) > 0)
		got += (size_t)n;
	code = errno;
	close(fd);
	return n < 0 ? -code : (ssize_t)got;
}

int sysfs_read_start(char *text, size_t size, const char *root, const char *path)
{
	char full[PATH_MAX];
	ssize_t n = -ENAMETOOLONG;

	if (snprintf(full, sizeof(full), "%s%s", root ? root : "", path) < (int)sizeof(full))
		n = read_file(text, size - 1, full);
	text[n > 0 ? n : 0] = 0;
	return n < 0 ? (int)n : 0;
}

int sysfs_read(char text[SYSFS_TEXT_MAX], const char *root, const char *fmt, ...)
{
	char path[PATH_MAX];
	int at = snprintf(path, sizeof(path), "%s", root ? root : "");
	ssize_t got;
	va_list ap;
	int code;

	text[0] = 0;
	if (at >= PATH_MAX)
		return -ENAMETOOLONG;
	va_start(ap, fmt);
	at += vsnprintf(path + at, sizeof(path) - (size_t)at, fmt, ap);
	va_end(ap);
	if (at >= PATH_MAX)
		return -ENAMETOOLONG;
	got = read_file(text, SYSFS_TEXT_MAX, path);
	code = got < 0 ? (int)got : got == SYSFS_TEXT_MAX ? -EFBIG : 0;
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
