// SPDX-License-Identifier: GPL-2.0-only
/*
 * The machine that we run on being recorded: a thread that takes samples from a backend, whose
 * samples say process and call chain, and encodes them as perf has those of a whole system. Where
 * they come from is the backend's matter. The recorder takes the bytes and writes them.
 */
#ifndef VMPROF_RECORD_SELFREC_H
#define VMPROF_RECORD_SELFREC_H

#include "backend/backend.h"
#include "perfdata/writer.h"

struct selfrec;

struct selfrec_config {
	const struct vmprof_backend *backend; /* of vmprof_self_backends */
	const struct event_list *events;      /* as it has them */
	bool chains;
	int realtime; /* priority of the sampling thread, see prompt.h */
	int end_fd;   /* eventfd that is written when there will be no more samples */
};

/* Opens the backend, and the kernel's side-band. 0 or -errno with a sentence. */
int selfrec_open(struct selfrec **out, const struct selfrec_config *cfg, struct vmprof_err *err);
uint32_t selfrec_nr_cpus(const struct selfrec *r);

/* @ids[event * nr_cpus + cpu]: the file's id for a sample. Starts sampling and the thread. */
int selfrec_start(struct selfrec *r, const uint64_t *ids, struct vmprof_err *err);

/* Moves the records encoded so far to @out (appends). */
void selfrec_take(struct selfrec *r, struct buf *out);

struct selfrec_stats {
	struct backend_stats backend;
	uint64_t written;  /* samples in the file */
	const char *ended; /* sentence why there are no more samples, or NULL */
};
/* Exact after selfrec_stop(). */
void selfrec_get_stats(struct selfrec *r, struct selfrec_stats *st);

/* Stops sampling, ends the thread. */
void selfrec_stop(struct selfrec *r);

/* After selfrec_stop(): build ids, and symbols to @store (NULL: none). */
void selfrec_save(struct selfrec *r, const char *store, struct perfdata_writer *w);
void selfrec_close(struct selfrec *r); /* NULL is fine */

#endif
