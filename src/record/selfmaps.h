// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where code is mapped in the processes of the machine that we run on, as records tell: for what
 * frame records do not say of a call chain, and for the build ids and symbols of files that samples
 * lay in. Used by one thread.
 */
#ifndef VMPROF_RECORD_SELFMAPS_H
#define VMPROF_RECORD_SELFMAPS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "perfdata/writer.h"

struct selfmaps;

struct selfmaps *selfmaps_new(void);
void selfmaps_free(struct selfmaps *m); /* NULL is fine */

/* A record of processes and maps: FORK, EXIT, COMM, MMAP2 with inodes; others are ignored. */
void selfmaps_record(struct selfmaps *m, const struct perf_event_header *record);

/* A sample lay there, or a caller: the file is worth its build id and symbols. */
void selfmaps_hit(struct selfmaps *m, pid_t pid, uint64_t addr);

/*
 * aarch64: is @link, x30 of user mode, the caller of the innermost function, which is at @ip? @next
 * is the return address in the innermost frame record, 0 none. False also where that is not known.
 */
bool selfmaps_is_caller(struct selfmaps *m, pid_t pid, uint64_t ip, uint64_t link, uint64_t next);

/*
 * At the end: build ids of the kernel and of the files that were hit, for the BUILD_ID feature, and
 * what those have of symbols into @store, if it is not NULL.
 */
void selfmaps_save(struct selfmaps *m, const char *store, struct perfdata_writer *w);

#endif
