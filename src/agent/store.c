// SPDX-License-Identifier: GPL-2.0-only
#include "agent/store.h"

#if HAVE_XEN
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOMAINS_TOKEN "domains"
#define PATH_SIZE     64
#define TRIES	      8 /* of a transaction: only the toolstack can come between */

static const char *const domain_watches[] = {"@introduceDomain", "@releaseDomain"};

static void request_path(char path[PATH_SIZE], uint32_t domid)
{
	snprintf(path, PATH_SIZE, "/local/domain/%u/data/vmprof/request", domid);
}

static void domain_token(char token[16], uint32_t domid)
{
	snprintf(token, 16, "%u", domid);
}

int agent_store_open(struct agent_store *s, const struct xen_calls *call, struct vmprof_err *err)
{
	*s = (struct agent_store){.call = call, .handle = call->store_open(0)};
	if (!s->handle)
		return err_sys(err, errno, "cannot connect to XenStore");
	for (size_t i = 0; i < sizeof(domain_watches) / sizeof(*domain_watches); i++)
		if (!call->store_watch(s->handle, domain_watches[i], DOMAINS_TOKEN)) {
			int rc = err_sys(err, errno, "cannot watch XenStore's %s",
					 domain_watches[i]);

			agent_store_close(s);
			return rc;
		}
	return 0;
}

void agent_store_close(struct agent_store *s)
{
	if (s->handle)
		s->call->store_close(s->handle);
	s->handle = NULL;
}

int agent_store_fd(const struct agent_store *s)
{
	return s->call->store_fileno(s->handle);
}

enum agent_store_event agent_store_next(const struct agent_store *s, uint32_t *domid)
{
	char **event = s->call->store_check_watch(s->handle);
	enum agent_store_event kind = AGENT_STORE_OTHER;
	const char *token;
	char *end;

	if (!event)
		return AGENT_STORE_NONE;
	token = event[XS_WATCH_TOKEN];
	if (!strcmp(token, DOMAINS_TOKEN)) {
		kind = AGENT_STORE_DOMAINS;
	} else if (*token) {
		*domid = (uint32_t)strtoul(token, &end, 10);
		if (!*end)
			kind = AGENT_STORE_REQUEST;
	}
	free(event);
	return kind;
}

int agent_store_watch(const struct agent_store *s, uint32_t domid, struct vmprof_err *err)
{
	char path[PATH_SIZE], token[16];

	request_path(path, domid);
	domain_token(token, domid);
	if (!s->call->store_watch(s->handle, path, token))
		return err_sys(err, errno, "cannot watch XenStore's %s", path);
	return 0;
}

void agent_store_unwatch(const struct agent_store *s, uint32_t domid)
{
	char path[PATH_SIZE], token[16];

	request_path(path, domid);
	domain_token(token, domid);
	s->call->store_unwatch(s->handle, path, token);
}

char *agent_store_request(const struct agent_store *s, uint32_t domid, size_t *len)
{
	char path[PATH_SIZE], *text;
	unsigned n = 0;

	request_path(path, domid);
	text = s->call->store_read(s->handle, XBT_NULL, path, &n);
	*len = text ? n : 0;
	return text;
}

/* In transaction @t: a write would make what is missing above it, too. */
static int write_state(const struct agent_store *s, xs_transaction_t t, uint32_t domid,
		       const char *state)
{
	char domain[PATH_SIZE], path[PATH_SIZE];
	unsigned len;
	void *there;

	snprintf(domain, sizeof(domain), "/local/domain/%u", domid);
	there = s->call->store_read(s->handle, t, domain, &len);
	if (!there)
		return errno ? -errno : -ENOENT;
	free(there);
	snprintf(path, sizeof(path), "/local/domain/%u/vmprof%s", domid, state ? "/state" : "");
	if (state ? !s->call->store_write(s->handle, t, path, state, (unsigned)strlen(state))
		  : !s->call->store_rm(s->handle, t, path))
		return errno ? -errno : -EIO;
	return 0;
}

int agent_store_set_state(const struct agent_store *s, uint32_t domid, const char *state)
{
	int rc = -EAGAIN;

	for (unsigned i = 0; i < TRIES && rc == -EAGAIN; i++) {
		xs_transaction_t t = s->call->transaction_start(s->handle);

		if (!t)
			return errno ? -errno : -EIO;
		rc = write_state(s, t, domid, state);
		if (!s->call->transaction_end(s->handle, t, rc != 0) && !rc)
			rc = errno ? -errno : -EIO;
	}
	return rc;
}
#endif
