// SPDX-License-Identifier: GPL-2.0-only
#include "agent/agent.h"

#if HAVE_XEN
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/xalloc.h"

#define SCAN_NS		   200000000ull /* from one list of all domains to the next */
#define EVENTS_MAX_AT_ONCE 4096 /* then it is the other domains' turn, whatever one writes */
#define STATE_SIZE	   512

struct agent_domain {
	uint32_t domid;
	bool seen;     /* by the scan that goes on */
	bool gone;     /* from Xen's list; its row is kept until its record has ended */
	bool dirty;    /* its request is to be looked at */
	bool stopping; /* its record was told to end */
	bool closing;  /* the agent ends */
	uint64_t next_look;
	char *request; /* as it was last seen, no longer than is needed to refuse it; or NULL */
	size_t len;
	pid_t pid; /* of its record, or 0 */
};

static void set_state(struct agent *a, const struct agent_domain *d, const char *state)
{
	/* One that cannot be told has gone, or will see that it is told nothing. */
	agent_store_set_state(&a->store, d->domid, state);
	a->host->say(a->host->ctx, d->domid, state);
}

static void refuse(struct agent *a, const struct agent_domain *d, const char *why)
{
	char state[STATE_SIZE];

	snprintf(state, sizeof(state), "refused: %s", why);
	set_state(a, d, state);
}

/* Makes true what the domain's request says; it has no record. */
static void begin(struct agent *a, struct agent_domain *d)
{
	struct agent_request request;
	struct vmprof_err err;
	int rc;

	if (d->closing || d->gone)
		return;
	if (!d->request) {
		set_state(a, d, "ready");
		return;
	}
	if (agent_request_parse(&request, d->request, d->len, &err)) {
		refuse(a, d, err.msg);
		return;
	}
	if (a->records == AGENT_RECORDS_MAX) {
		refuse(a, d, "as many domains are recorded as may be at one time");
		return;
	}
	rc = a->host->start(a->host->ctx, d->domid, &request, &d->pid, &err);
	if (rc) {
		d->pid = 0;
		if (rc != -EDQUOT)
			a->host->complain(a->host->ctx, d->domid, err.msg);
		refuse(a, d, rc == -EDQUOT ? err.msg : "dom0 cannot record; its log says why");
		return;
	}
	a->records++;
	set_state(a, d, "running");
}

static void stop(struct agent *a, struct agent_domain *d)
{
	if (d->pid && !d->stopping)
		a->host->stop(a->host->ctx, d->pid);
	d->stopping = true;
}

static void look(struct agent *a, struct agent_domain *d)
{
	size_t len, kept;
	char *text = agent_store_request(&a->store, d->domid, &len);
	bool same;

	/* An empty one is none: it is how a shell's user takes his back. */
	if (!len) {
		free(text);
		text = NULL;
	}
	kept = len > AGENT_REQUEST_MAX ? AGENT_REQUEST_MAX + 1 : len;
	same = !text == !d->request && kept == d->len && (!text || !memcmp(text, d->request, kept));
	if (same) {
		free(text);
		return;
	}
	free(d->request);
	d->request = text ? xrealloc(text, kept) : NULL;
	d->len = kept;
	if (d->pid)
		stop(a, d);
	else
		begin(a, d);
}

/* ---------- which domains there are ---------- */

static struct agent_domain *find(struct agent *a, uint32_t domid)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->domains[i].domid == domid)
			return &a->domains[i];
	return NULL;
}

static void drop(struct agent *a, struct agent_domain *d)
{
	free(d->request);
	*d = a->domains[--a->n];
}

static void add_domain(void *arg, uint32_t domid)
{
	struct agent *a = arg;
	struct agent_domain *d = find(a, domid);

	/* Another one with the number of one whose record still ends waits for that. */
	if (d) {
		d->seen = true;
		return;
	}
	a->domains = xgrow(a->domains, &a->cap, a->n + 1, sizeof(*a->domains));
	a->domains[a->n++] = (struct agent_domain){.domid = domid, .seen = true};
}

/* A domain that is not watched yet is new. */
static void welcome(struct agent *a, struct agent_domain *d)
{
	struct vmprof_err err;

	if (agent_store_watch(&a->store, d->domid, &err)) {
		a->host->complain(a->host->ctx, d->domid, err.msg);
		return;
	}
	d->dirty = true;
	set_state(a, d, "ready");
}

static int scan(struct agent *a, struct vmprof_err *err)
{
	size_t known = a->n;
	int rc;

	for (size_t i = 0; i < known; i++)
		a->domains[i].seen = false;
	rc = a->host->domains(a->host->ctx, add_domain, a, err);
	if (rc)
		return rc;
	for (size_t i = known; i < a->n; i++)
		welcome(a, &a->domains[i]);
	for (size_t i = known; i-- > 0;) {
		struct agent_domain *d = &a->domains[i];

		if (d->seen || d->gone)
			continue;
		agent_store_unwatch(&a->store, d->domid);
		d->gone = true;
		d->dirty = false;
		if (d->pid)
			stop(a, d); /* its row goes when its record does */
		else
			drop(a, d);
	}
	return 0;
}

/* ---------- for who runs it ---------- */

int agent_open(struct agent *a, const struct xen_calls *call, const struct agent_host *host,
	       struct vmprof_err *err)
{
	*a = (struct agent){.host = host, .rescan = true};
	return agent_store_open(&a->store, call, err);
}

/*
 * Takes what has come, as marks and no more: a domain that writes without end costs a flag, and its
 * request is read once a second.
 */
static bool take_events(struct agent *a)
{
	for (unsigned i = 0; i < EVENTS_MAX_AT_ONCE; i++) {
		struct agent_domain *d;
		uint32_t domid;

		switch (agent_store_next(&a->store, &domid)) {
		case AGENT_STORE_NONE:
			return false;
		case AGENT_STORE_DOMAINS:
			a->rescan = true;
			break;
		case AGENT_STORE_REQUEST:
			d = find(a, domid);
			if (d && !d->gone)
				d->dirty = true;
			break;
		case AGENT_STORE_OTHER:
			break;
		}
	}
	return true;
}

int agent_work(struct agent *a, uint64_t now, uint64_t *next, struct vmprof_err *err)
{
	bool more = take_events(a);

	*next = more ? now : UINT64_MAX;
	if (a->rescan && now >= a->next_scan) {
		int rc = scan(a, err);

		if (rc)
			return rc;
		a->rescan = false;
		a->next_scan = now + SCAN_NS;
	}
	if (a->rescan && a->next_scan < *next)
		*next = a->next_scan;
	for (size_t i = 0; i < a->n; i++) {
		struct agent_domain *d = &a->domains[i];

		if (d->dirty && now >= d->next_look) {
			d->dirty = false;
			d->next_look = now + AGENT_LOOK_NS;
			look(a, d);
		}
		if (d->dirty && d->next_look < *next)
			*next = d->next_look;
	}
	return 0;
}

void agent_ended(struct agent *a, pid_t pid, bool well)
{
	struct agent_domain *d = NULL;
	bool told;

	for (size_t i = 0; i < a->n && !d; i++)
		if (a->domains[i].pid == pid)
			d = &a->domains[i];
	if (!d)
		return;
	a->records--;
	d->pid = 0;
	told = d->stopping;
	d->stopping = false;
	if (d->gone) {
		drop(a, d);
		a->rescan = true; /* for another one that has got its number */
	} else if (told) {
		begin(a, d);
	} else {
		set_state(a, d,
			  well ? "ended: the record has come to its limit of time"
			       : "ended: the record has failed; dom0's log says why");
	}
}

unsigned agent_stop(struct agent *a)
{
	for (size_t i = 0; i < a->n; i++) {
		a->domains[i].closing = true;
		if (a->domains[i].pid)
			stop(a, &a->domains[i]);
	}
	return a->records;
}

void agent_close(struct agent *a)
{
	for (size_t i = 0; i < a->n; i++) {
		if (a->store.handle && !a->domains[i].gone)
			agent_store_set_state(&a->store, a->domains[i].domid, NULL);
		free(a->domains[i].request);
	}
	free(a->domains);
	agent_store_close(&a->store);
	*a = (struct agent){0};
}
#endif
