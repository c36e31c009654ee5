// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls of libxenstore have no time limit: they wait for xenstored, which may be stopped or busy
 * with a flood. So a thread makes them, and is left behind if it never comes back.
 */
#include "vm/xen_names.h"

#if HAVE_XEN
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/deadline.h"
#include "util/xalloc.h"

struct question {
	const struct xen_calls *call;
	uint32_t *domid;
	size_t n;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	char **name;
	bool answered;
	bool late; /* nobody waits any more: the thread is to free it */
};

static void free_question(struct question *q)
{
	for (size_t i = 0; i < q->n; i++)
		free(q->name[i]);
	free(q->name);
	free(q->domid);
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
	free(q);
}

static void *ask(void *arg)
{
	struct question *q = arg;
	struct xs_handle *store = q->call->store_open(0);
	bool late;

	for (size_t i = 0; store && i < q->n; i++) {
		char path[64];
		unsigned len;

		snprintf(path, sizeof(path), "/local/domain/%u/name", q->domid[i]);
		q->name[i] = q->call->store_read(store, XBT_NULL, path, &len);
	}
	if (store)
		q->call->store_close(store);
	pthread_mutex_lock(&q->lock);
	q->answered = true;
	late = q->late;
	pthread_cond_signal(&q->changed);
	pthread_mutex_unlock(&q->lock);
	if (late)
		free_question(q);
	return NULL;
}

static struct question *new_question(const struct xen_calls *call, const uint32_t *domid, size_t n)
{
	struct question *q = xcalloc(1, sizeof(*q));

	q->call = call;
	q->n = n;
	q->domid = xcalloc(n + 1, sizeof(*q->domid));
	memcpy(q->domid, domid, n * sizeof(*domid));
	q->name = xcalloc(n + 1, sizeof(*q->name));
	pthread_mutex_init(&q->lock, NULL);
	deadline_cond_init(&q->changed);
	return q;
}

int xen_names_get(const struct xen_calls *call, const uint32_t *domid, size_t n, char **name,
		  int timeout_ms, struct vmprof_err *err)
{
	struct question *q = new_question(call, domid, n);
	const struct timespec end = deadline_after(timeout_ms);
	bool answered;
	pthread_t thread;
	int r;

	memset(name, 0, n * sizeof(*name));
	r = pthread_create(&thread, NULL, ask, q);
	if (r) {
		free_question(q);
		return err_sys(err, r, "cannot start a thread to ask XenStore for names");
	}
	pthread_detach(thread);
	pthread_mutex_lock(&q->lock);
	while (!q->answered && !pthread_cond_timedwait(&q->changed, &q->lock, &end))
		;
	answered = q->answered;
	q->late = !answered;
	pthread_mutex_unlock(&q->lock);
	if (!answered)
		return err_set(err, ETIMEDOUT,
			       "XenStore has not answered for %g s, so that the names of domains "
			       "are not known: does xenstored run?",
			       timeout_ms / 1000.0);
	memcpy(name, q->name, n * sizeof(*name));
	memset(q->name, 0, n * sizeof(*name));
	free_question(q);
	return 0;
}
#endif
