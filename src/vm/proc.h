// SPDX-License-Identifier: GPL-2.0-only
/*
 * What /proc says of a process. All sizes are bounded: the owner of a process chooses its command
 * line, its thread names and the paths that it maps.
 */
#ifndef VMPROF_VM_PROC_H
#define VMPROF_VM_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Whole file /proc/PID/@name, NUL-terminated, at most @max bytes; NULL and errno if it fails. */
char *proc_read(pid_t pid, const char *name, size_t max, size_t *len);

/* Target of the link /proc/PID/@name into @buf; 0 or -errno. */
int proc_link(pid_t pid, const char *name, char *buf, size_t size);

struct proc_stat {
	char state; /* 'R', 'S', 'Z', ... */
	pid_t ppid;
	uint64_t start_time; /* clock ticks since boot */
	char comm[64];
};
int proc_stat(pid_t pid, struct proc_stat *st); /* 0 or -errno (-ESRCH: gone) */

/* Calls @fn for each number that names an entry of directory @path; stops where @fn is not 0. */
int proc_each_number(const char *path, int (*fn)(void *ctx, pid_t number), void *ctx);

/* Name of thread @tid of @pid, "" if it cannot be read. */
void proc_thread_name(pid_t pid, pid_t tid, char name[64]);

/* Has @pid an open descriptor whose link is @target? 1, 0, or -errno (-EACCES: cannot be told). */
int proc_has_fd(pid_t pid, const char *target);

/* One line of /proc/PID/maps. */
struct proc_map {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	uint64_t inode;	 /* 0: memory without a file */
	bool read, write, exec, shared;
	char path[512]; /* cut where it is longer; "[heap]", "" for anonymous memory */
};

struct proc_maps {
	struct proc_map *map;
	size_t n;
};

int proc_maps_read(struct proc_maps *maps, pid_t pid); /* 0 or -errno; -ESRCH: no memory, gone */
void proc_maps_free(struct proc_maps *maps);
/* The map that @addr lies in, or NULL. */
const struct proc_map *proc_maps_find(const struct proc_maps *maps, uint64_t addr);

/*
 * The regular file that is mapped at [start, end), a whole line of maps, and has this inode: by the
 * mapping itself, which wants a capability, or by the process's descriptors. A descriptor that was
 * opened anew, with @flags, or -1.
 */
int proc_open_mapped(pid_t pid, uint64_t start, uint64_t end, uint64_t inode, int flags);

/* Reads @len bytes of the process's memory. 0, -ESRCH, -EPERM, -EFAULT. */
int proc_read_memory(pid_t pid, uint64_t addr, void *buf, size_t len);

/*
 * Sees @len bytes of memory that lie at @addr; the first @fresh of them were not seen before, the
 * rest is there so that what starts in those is whole. Returns whether to stop.
 */
typedef bool (*proc_scan_fn)(void *ctx, uint64_t addr, const uint8_t *buf, size_t len,
			     size_t fresh);

enum proc_scan_where {
	PROC_SCAN_HEAP, /* what brk() made */
	PROC_SCAN_MMAP, /* other private memory without a file, but for what is as large as RAM */
};

/*
 * Calls @fn for the process's own data, piece by piece with up to @overlap bytes more; at most 1
 * GiB. 0, -ESRCH or -EPERM; memory that cannot be read is left out.
 */
int proc_scan(pid_t pid, const struct proc_maps *maps, enum proc_scan_where where, size_t overlap,
	      proc_scan_fn fn, void *ctx);

#endif
