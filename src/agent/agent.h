// SPDX-License-Identifier: GPL-2.0-only
/*
 * Domains that ask by XenStore to be recorded: what each wants, what it gets, what it is told.
 *
 * All follows the level and not the edges: the agent makes true what a request says when it is
 * looked at, so that changes which nobody saw, or saw twice, do no harm.
 */
#ifndef VMPROF_AGENT_AGENT_H
#define VMPROF_AGENT_AGENT_H

#include <sys/types.h>

#include "agent/request.h"
#include "agent/store.h"

#if HAVE_XEN
#define AGENT_LOOK_NS	  1000000000ull /* from one look at a domain's request to the next */
#define AGENT_RECORDS_MAX 16		/* at one time */

/* What the agent needs of the host. */
struct agent_host {
	void *ctx;
	/* The domains that there are; 0 or -errno with a sentence. */
	int (*domains)(void *ctx, void (*add)(void *arg, uint32_t domid), void *arg,
		       struct vmprof_err *err);
	/*
	 * Begins a record, which ends by itself when its domain does. 0 or -errno with a sentence
	 * for dom0; that of -EDQUOT is for the guest's user as well.
	 */
	int (*start)(void *ctx, uint32_t domid, const struct agent_request *request, pid_t *pid,
		     struct vmprof_err *err);
	void (*stop)(void *ctx, pid_t pid); /* it ends soon, which agent_ended() tells */
	/* What a domain was told; of each one once a second if it likes. */
	void (*say)(void *ctx, uint32_t domid, const char *state);
	/* What dom0 could not do for it. */
	void (*complain)(void *ctx, uint32_t domid, const char *sentence);
};

struct agent_domain;

struct agent {
	struct agent_store store;
	const struct agent_host *host;
	struct agent_domain *domains;
	size_t n, cap;
	unsigned records; /* that run */
	bool rescan;
	uint64_t next_scan;
};

int agent_open(struct agent *a, const struct xen_calls *call, const struct agent_host *host,
	       struct vmprof_err *err);
/*
 * Does what is to be done at @now (CLOCK_MONOTONIC, ns) and does not wait. *@next: when to come
 * again though agent_store_fd() has not become readable; UINT64_MAX: only then.
 */
int agent_work(struct agent *a, uint64_t now, uint64_t *next, struct vmprof_err *err);
/* The record of this process has ended; @well: as it was meant to. */
void agent_ended(struct agent *a, pid_t pid, bool well);
/* Stops all records, and begins none any more. Returns how many are still to end. */
unsigned agent_stop(struct agent *a);
/* Takes all states out of XenStore. */
void agent_close(struct agent *a);
#endif

#endif
