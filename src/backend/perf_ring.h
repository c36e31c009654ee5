// SPDX-License-Identifier: GPL-2.0-only
/*
 * A perf event of one thread and the buffer that the kernel writes its records to.
 */
#ifndef VMPROF_BACKEND_PERF_RING_H
#define VMPROF_BACKEND_PERF_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/err.h"

#define PERF_RECORD_SIZE_MAX 8192 /* larger records are skipped; a path or a chain of ours fits */

struct perf_ring {
	int fd;	    /* -1: closed */
	void *base; /* struct perf_event_mmap_page, then the data */
	size_t data_size;
	/* A record, copied out: it may go round the end. */
	union {
		struct perf_event_header header;
		uint8_t record[PERF_RECORD_SIZE_MAX];
	};
};

int perf_event_open_fd(struct perf_event_attr *attr, pid_t tid, int cpu, int group,
		       unsigned long flags);

/**
 * perf_ring_open - an event of thread @tid on any CPU with 2^@order pages of buffer
 *
 * Without permission to see the host's kernel the event is opened for user mode alone. Returns 0,
 * or -errno with a sentence that says which permission is missing.
 */
int perf_ring_open(struct perf_ring *r, const struct perf_event_attr *attr, pid_t tid,
		   unsigned order, struct vmprof_err *err);
/* The buffer alone, for the event r->fd. 0 or -errno (-EPERM: too much locked memory). */
int perf_ring_map(struct perf_ring *r, unsigned order, struct vmprof_err *err);
/* The sentence for EACCES and EPERM of an event: who may "@what". Returns -errno. */
int perf_permission_error(const char *what, int code, struct vmprof_err *err);
void perf_ring_close(struct perf_ring *r);

/* The next record, valid until the next call; NULL if there is none. */
const struct perf_event_header *perf_ring_next(struct perf_ring *r);

#endif
