// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a domain asks for, as it stands in XenStore: events separated by ';', each of words
 * KEY=VALUE (vmprof-agent(1)). Whoever has the guest has written it: nothing of it is believed, and
 * no domain is named in it.
 */
#ifndef VMPROF_AGENT_REQUEST_H
#define VMPROF_AGENT_REQUEST_H

#include <stddef.h>

#include "util/err.h"

#define AGENT_REQUEST_MAX 512 /* bytes */
#define AGENT_EVENTS_MAX  4
#define AGENT_PERIOD_MIN  100000ull	 /* ns: 10000 samples a second, as record's -F has */
#define AGENT_PERIOD_MAX  10000000000ull /* ns */

struct agent_request {
	char event[AGENT_EVENTS_MAX][80]; /* as record's -e takes them, with their periods */
	unsigned n;
};

/*
 * Takes @len bytes of @text apart and asks the xen backend for each event. 0, or -errno with a
 * sentence that is for the guest's user: it says nothing of dom0 or of other domains.
 */
int agent_request_parse(struct agent_request *r, const char *text, size_t len,
			struct vmprof_err *err);

#endif
