// SPDX-License-Identifier: GPL-2.0-only
/*
 * The agent's part of XenStore:
 *
 *   /local/domain/N/data/vmprof/request   the domain writes, the agent reads
 *   /local/domain/N/vmprof/state          the agent writes, the domain reads
 *
 * "data" belongs to the domain, as the toolstack has made it; what is new directly below
 * /local/domain/N inherits that only dom0 writes and only this domain reads.
 */
#ifndef VMPROF_AGENT_STORE_H
#define VMPROF_AGENT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"
#include "vm/xenlib.h"

#if HAVE_XEN
struct agent_store {
	const struct xen_calls *call;
	struct xs_handle *handle;
};

enum agent_store_event {
	AGENT_STORE_NONE,    /* no more for now */
	AGENT_STORE_DOMAINS, /* domains have come or gone */
	AGENT_STORE_REQUEST, /* something has changed at a domain's request, or below it */
	AGENT_STORE_OTHER,   /* not ours */
};

/* 0 or -errno with a sentence; domains' coming and going is watched from then on. */
int agent_store_open(struct agent_store *s, const struct xen_calls *call, struct vmprof_err *err);
void agent_store_close(struct agent_store *s);	 /* of one that is all zero, too */
int agent_store_fd(const struct agent_store *s); /* readable when there are events */

/* Without waiting. @domid, of a request: from what the watch was set for, not from any content. */
enum agent_store_event agent_store_next(const struct agent_store *s, uint32_t *domid);

int agent_store_watch(const struct agent_store *s, uint32_t domid, struct vmprof_err *err);
void agent_store_unwatch(const struct agent_store *s, uint32_t domid);

/* To free; NULL: the domain asks for nothing. */
char *agent_store_request(const struct agent_store *s, uint32_t domid, size_t *len);

/*
 * Sets the domain's state; NULL removes it. Of a domain that has gone nothing is made again.
 * 0, or -errno.
 */
int agent_store_set_state(const struct agent_store *s, uint32_t domid, const char *state);
#endif

#endif
