/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The host as a whole, beside its VMs: where no thread of the host runs a VM (Xen's dom0), what the
 * host does is sampled on each of its CPUs, whoever runs there. Used by the recorder's thread.
 */
#ifndef VMPROF_RECORD_WHOLEHOST_H
#define VMPROF_RECORD_WHOLEHOST_H

#include "events/event.h"
#include "util/buf.h"
#include "util/err.h"

struct wholehost;

struct wholehost_stats {
	uint64_t samples, lost;
	uint64_t misled; /* that the kernel takes for a guest's, without an address that is true */
};

/* Opens @events, which are clocks, on all CPUs that are online; they stand still. 0 or -errno with
 * a sentence. */
int wholehost_open(struct wholehost **out, const struct event *events, unsigned nr_events,
		   bool chains, struct vmprof_err *err);
void wholehost_free(struct wholehost *h); /* NULL is fine */

/* The CPUs, @n of them. */
const uint32_t *wholehost_cpus(const struct wholehost *h, unsigned *n);

/*
 * Starts them, and puts into @out which processes there are and what they have mapped. @ids: the
 * file's id of each event on each CPU, event by event.
 */
int wholehost_start(struct wholehost *h, const uint64_t *ids, struct buf *out,
		    struct vmprof_err *err);
/* Adds all records that have come since to @out. */
void wholehost_take(struct wholehost *h, struct buf *out);
void wholehost_stop(struct wholehost *h);
void wholehost_get_stats(const struct wholehost *h, struct wholehost_stats *st);

#endif
