// SPDX-License-Identifier: GPL-2.0-only
/*
 * A directory instead of a file: "data" is a perf.data file, and with perf record --threads there
 * are data.0, data.1 and so on beside it, which are nothing but records, each with a zstd stream of
 * its own. Their records are merged by time at the end of all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perfdata/reader_impl.h"
#include "util/text.h"
#include "util/xalloc.h"

#define FILES_MAX 65536

static int open_regular(const char *path, uint64_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	*size = (uint64_t)st.st_size;
	return fd;
}

static int open_part(const char *dir, size_t i, uint64_t *size)
{
	char *path = xasprintf("%s/data.%zu", dir, i);
	int fd = open_regular(path, size);

	free(path);
	return fd;
}

int dir_open(struct perfdata_reader *r, const char *path, struct vmprof_err *err)
{
	char *data = xasprintf("%s/data", path);
	uint64_t size;
	int fd = open_regular(data, &size), part;

	free(data);
	if (fd < 0)
		return err_set(err, EISDIR, "%s: is a directory, and none that perf record wrote",
			       r->path);
	close(r->fd);
	r->fd = fd;
	part = open_part(path, 0, &size);
	if (part < 0)
		return 0;
	close(part);
	r->dir = xstrdup(path);
	return 0;
}

static void start_part(struct perfdata_reader *r, int fd, uint64_t size)
{
	order_close_run(r);
	if (r->file.cur)
		r->file.cur->pinned = false;
	if (r->decomp.cur)
		r->decomp.cur->pinned = false;
	chunk_put(r, r->file.cur);
	chunk_put(r, r->decomp.cur);
	r->file = r->decomp = (struct source){0};
	decompress_free(r);
	r->fds = xgrow(r->fds, &r->fds_cap, r->nr_fds + 1, sizeof(*r->fds));
	r->fds[r->nr_fds++] = r->fd;
	r->fd = fd;
	r->file_pos = 0;
	r->data_end = size;
}

int dir_walk(struct perfdata_reader *r)
{
	char shown[512];
	uint64_t size;
	int ret = 0, fd;

	escape_str(shown, sizeof(shown), r->dir);
	for (size_t i = 0; !ret && i < FILES_MAX; i++) {
		fd = open_part(r->dir, i, &size);
		if (fd == -ENOENT)
			break;
		free(r->part);
		r->part = xasprintf("%s/data.%zu", shown, i);
		if (fd < 0)
			return damaged(r, 0, "cannot be opened");
		start_part(r, fd, size);
		ret = walk_file(r);
	}
	return ret;
}

void dir_free(struct perfdata_reader *r)
{
	for (size_t i = 0; i < r->nr_fds; i++)
		close(r->fds[i]);
	free(r->fds);
	free(r->dir);
	free(r->part);
}
