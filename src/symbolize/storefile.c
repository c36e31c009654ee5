// SPDX-License-Identifier: GPL-2.0-only
#include "symbolize/storefile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/text.h"

enum {
	MAX_DEPTH = 24,	     /* components of a name; what is deeper is left out */
	MAX_COMPONENT = 100, /* bytes of one */
};

/* @name's components, made safe, below nothing: "web1/usr/lib/libc.so.6". */
static void safe_path(char *out, size_t size, const char *name)
{
	char part[MAX_COMPONENT + 1], safe[MAX_COMPONENT + 1];
	size_t o = 0;

	*out = 0;
	for (unsigned depth = 0; *name && depth < MAX_DEPTH;) {
		size_t len = strcspn(name, "/");

		if (len) {
			size_t used = len > MAX_COMPONENT ? MAX_COMPONENT : len;

			memcpy(part, name, used);
			part[used] = 0;
			file_safe_name(safe, sizeof(safe), part);
			o += (size_t)snprintf(out + o, size - o, "%s%s", o ? "/" : "", safe);
			depth++;
		}
		name += len + (name[len] == '/');
	}
	if (!*out)
		snprintf(out, size, "_");
}

int storefile_make_dirs(const char *dir, const char *below)
{
	char path[PATH_MAX];
	size_t base = strlen(dir);

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, below) >= sizeof(path))
		return -ENAMETOOLONG;
	for (size_t i = base; path[i]; i++) {
		if (path[i] != '/' || i == 0)
			continue;
		path[i] = 0;
		if (mkdir(path, 0777) && errno != EEXIST)
			return -errno;
		path[i] = '/';
	}
	return mkdir(path, 0777) && errno != EEXIST ? -errno : 0;
}

/* A reader sees the old file or the new one, and a full disk leaves neither a part. */
int storefile_write(const char *path, const struct buf *b)
{
	char tmp[PATH_MAX];
	int fd, ret;

	if ((size_t)snprintf(tmp, sizeof(tmp), "%s.XXXXXX", path) >= sizeof(tmp))
		return -ENAMETOOLONG;
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = write_all(fd, b->data, b->len);
	if (!ret && fchmod(fd, 0644))
		ret = -errno;
	if (close(fd) && !ret)
		ret = -errno;
	if (!ret && rename(tmp, path))
		ret = -errno;
	if (ret)
		unlink(tmp);
	return ret;
}

int storefile_path(char *path, size_t size, const char *dir, const char *name, const char *hex)
{
	char safe[MAX_DEPTH * (MAX_COMPONENT + 1) + 1];

	safe_path(safe, sizeof(safe), name);
	return (size_t)snprintf(path, size, "%s%s%s/%s", dir, *dir ? "/" : "", safe, hex) >= size
		       ? -ENAMETOOLONG
		       : 0;
}
