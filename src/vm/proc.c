// SPDX-License-Identifier: GPL-2.0-only
#include "vm/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "util/buf.h"
#include "util/xalloc.h"

#define MAPS_MAX     (64u << 20) /* bytes of text: 65530 maps with long paths are well below */
#define SCAN_PIECE   (1u << 20)
#define SCAN_MAP_MAX (256ull << 20) /* a larger mapping is guest RAM or a cache, no heap */
#define SCAN_MAX     (1ull << 30)

char *proc_read(pid_t pid, const char *name, size_t max, size_t *len)
{
	struct buf b = {0};
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	do {
		size_t want = max - b.len < 65536 ? max - b.len : 65536;
		uint8_t *to = buf_grow(&b, want + 1);

		n = read(fd, to, want);
		b.len -= want + 1 - (n > 0 ? (size_t)n : 0);
	} while (n > 0 && b.len < max);
	if (n < 0) {
		int code = errno;

		close(fd);
		buf_free(&b);
		errno = code;
		return NULL;
	}
	close(fd);
	b.data[b.len] = 0;
	*len = b.len;
	return (char *)b.data;
}

int proc_link(pid_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	n = readlink(path, buf, size - 1);
	if (n < 0) {
		buf[0] = 0;
		return -errno;
	}
	buf[n] = 0;
	return 0;
}

int proc_stat(pid_t pid, struct proc_stat *st)
{
	size_t len;
	char *text = proc_read(pid, "stat", 4096, &len);
	char *open, *close;
	int n;

	if (!text)
		return errno == ENOENT ? -ESRCH : -errno;
	/* The name is in parentheses and may have some itself: the last one closes it. */
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || close < open) {
		free(text);
		return -ESRCH;
	}
	*close = 0;
	snprintf(st->comm, sizeof(st->comm), "%s", open + 1);
	n = sscanf(close + 1,
		   " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		   "%" SCNu64,
		   &st->state, &st->ppid, &st->start_time);
	free(text);
	return n == 3 ? 0 : -ESRCH;
}

int proc_each_number(const char *path, int (*fn)(void *ctx, pid_t number), void *ctx)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	int r = 0;

	if (!dir)
		return -errno;
	while (!r && (e = readdir(dir))) {
		char *end;
		long v = strtol(e->d_name, &end, 10);

		if (isdigit((unsigned char)e->d_name[0]) && !*end && v <= INT32_MAX)
			r = fn(ctx, (pid_t)v);
	}
	closedir(dir);
	return r;
}

void proc_thread_name(pid_t pid, pid_t tid, char name[64])
{
	char file[48];
	size_t len;
	char *text;

	snprintf(file, sizeof(file), "task/%d/comm", tid);
	text = proc_read(pid, file, 63, &len);
	snprintf(name, 64, "%.*s", text ? (int)strcspn(text, "\n") : 0, text ? text : "");
	free(text);
}

struct fd_search {
	pid_t pid;
	const char *target;
};

static int fd_is_target(void *ctx, pid_t fd)
{
	struct fd_search *s = ctx;
	char file[32], link[256];

	snprintf(file, sizeof(file), "fd/%d", fd);
	return !proc_link(s->pid, file, link, sizeof(link)) && !strcmp(link, s->target);
}

int proc_has_fd(pid_t pid, const char *target)
{
	struct fd_search s = {pid, target};
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	return proc_each_number(path, fd_is_target, &s);
}

struct mapped_search {
	pid_t pid;
	uint64_t inode;
	int flags;
	int found;
};

static int fd_is_mapped(void *ctx, pid_t fd)
{
	struct mapped_search *s = ctx;
	char path[48];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", s->pid, fd);
	if (stat(path, &st) || st.st_ino != s->inode || !S_ISREG(st.st_mode))
		return 0;
	s->found = open(path, s->flags | O_CLOEXEC);
	return s->found >= 0;
}

int proc_open_mapped(pid_t pid, uint64_t start, uint64_t end, uint64_t inode, int flags)
{
	struct mapped_search s = {pid, inode, flags, -1};
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, start, end);
	fd = open(path, flags | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	proc_each_number(path, fd_is_mapped, &s);
	return s.found;
}

static bool parse_map(const char *line, struct proc_map *m)
{
	char perm[5];
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*x:%*x %" SCNu64 " %n",
		   &m->start, &m->end, perm, &m->offset, &m->inode, &at) != 5 ||
	    !at || m->end <= m->start)
		return false;
	m->read = perm[0] == 'r';
	m->write = perm[1] == 'w';
	m->exec = perm[2] == 'x';
	m->shared = perm[3] == 's';
	snprintf(m->path, sizeof(m->path), "%s", line + at);
	return true;
}

int proc_maps_read(struct proc_maps *maps, pid_t pid)
{
	size_t len, cap = 0;
	char *text = proc_read(pid, "maps", MAPS_MAX, &len), *save = NULL;

	*maps = (struct proc_maps){0};
	if (!text)
		return errno == ENOENT ? -ESRCH : -errno;
	for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		struct proc_map m;

		if (!parse_map(l, &m))
			continue;
		maps->map = xgrow(maps->map, &cap, maps->n + 1, sizeof(m));
		maps->map[maps->n++] = m;
	}
	free(text);
	return maps->n ? 0 : -ESRCH;
}

void proc_maps_free(struct proc_maps *maps)
{
	free(maps->map);
	*maps = (struct proc_maps){0};
}

const struct proc_map *proc_maps_find(const struct proc_maps *maps, uint64_t addr)
{
	size_t lo = 0, hi = maps->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (maps->map[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < maps->n && maps->map[lo].start <= addr ? &maps->map[lo] : NULL;
}

int proc_read_memory(pid_t pid, uint64_t addr, void *buf, size_t len)
{
	struct iovec l = {buf, len}, r = {(void *)(uintptr_t)addr, len};
	ssize_t n = process_vm_readv(pid, &l, 1, &r, 1, 0);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

static bool is_scanned(const struct proc_map *m, enum proc_scan_where where)
{
	if (!m->read || !m->write || m->exec || m->shared || m->inode ||
	    m->end - m->start > SCAN_MAP_MAX)
		return false;
	if (where == PROC_SCAN_HEAP)
		return !strcmp(m->path, "[heap]");
	return m->path[0] != '[';
}

int proc_scan(pid_t pid, const struct proc_maps *maps, enum proc_scan_where where, size_t overlap,
	      proc_scan_fn fn, void *ctx)
{
	uint8_t *buf = xmalloc(SCAN_PIECE + overlap);
	uint64_t seen = 0;
	bool stop = false;
	int r = 0;

	for (size_t i = 0; i < maps->n && !r && !stop; i++) {
		const struct proc_map *m = &maps->map[i];

		for (uint64_t at = m->start; is_scanned(m, where) && at < m->end && !stop;
		     at += SCAN_PIECE) {
			uint64_t left = m->end - at;
			size_t len = left < SCAN_PIECE + overlap ? left : SCAN_PIECE + overlap;

			r = proc_read_memory(pid, at, buf, len);
			if (r || (seen += len) > SCAN_MAX)
				break;
			stop = fn(ctx, at, buf, len, len < SCAN_PIECE ? len : SCAN_PIECE);
		}
		if (r == -EFAULT)
			r = 0;
		stop = stop || seen > SCAN_MAX;
	}
	free(buf);
	return r;
}
