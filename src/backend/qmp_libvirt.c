// SPDX-License-Identifier: GPL-2.0-only
#include "backend/qmp_libvirt.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/deadline.h"
#include "util/text.h"
#include "util/xalloc.h"

#define CLOSE_MS   1000
#define HUMAN	   1u /* VIR_DOMAIN_QEMU_MONITOR_COMMAND_HMP */
#define LIBRARY	   "libvirt.so.0"
#define LIBRARY_QM "libvirt-qemu.so.0"

/* ---------- the library ---------- */

static struct libvirt_calls loaded_calls;
static struct vmprof_err load_error;
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

static const struct {
	const char *library, *name;
	size_t offset;
} wanted[] = {
	{LIBRARY, "virConnectOpen", offsetof(struct libvirt_calls, connect)},
	{LIBRARY, "virConnectClose", offsetof(struct libvirt_calls, disconnect)},
	{LIBRARY, "virDomainLookupByUUIDString", offsetof(struct libvirt_calls, find)},
	{LIBRARY, "virDomainFree", offsetof(struct libvirt_calls, put)},
	{LIBRARY, "virGetLastErrorMessage", offsetof(struct libvirt_calls, last_error)},
	{LIBRARY, "virSetErrorFunc", offsetof(struct libvirt_calls, on_error)},
	{LIBRARY_QM, "virDomainQemuMonitorCommand", offsetof(struct libvirt_calls, ask)},
};

/* What it would write to stderr is in its last error as well. */
static void no_message(void *ctx, void *error)
{
}

/* It stays loaded as long as the program runs. */
static void load(void)
{
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		void *handle = dlopen(wanted[i].library, RTLD_NOW | RTLD_LOCAL);
		void *symbol = handle ? dlsym(handle, wanted[i].name) : NULL;

		if (!symbol) {
			err_set(&load_error, ENOENT,
				"libvirt's library %s %s: it is in Debian's package libvirt0",
				wanted[i].library,
				handle ? "is not one that is known" : "cannot be loaded");
			return;
		}
		memcpy((char *)&loaded_calls + wanted[i].offset, &symbol, sizeof(symbol));
	}
	loaded_calls.on_error(NULL, no_message);
}

const struct libvirt_calls *libvirt_load(struct vmprof_err *err)
{
	pthread_once(&loaded, load);
	if (!load_error.code)
		return &loaded_calls;
	if (err)
		*err = load_error;
	return NULL;
}

/* ---------- the thread that calls ---------- */

enum state { IDLE, ASKED, ANSWERED };

struct qmp_libvirt {
	const struct libvirt_calls *calls;
	char uri[48], uuid[40];
	void *conn, *domain;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	enum state state;
	bool late;		   /* nobody wants the answer that is still to come */
	bool closing, gone, ended; /* gone: the thread is to free it */
	const char *command;	   /* NULL: to connect; a literal */
	char *reply;
	struct vmprof_err err;
};

static int failed(struct qmp_libvirt *l, const char *what, struct vmprof_err *err)
{
	char said[256];

	return err_set(err, ECONNRESET, "libvirt %s: %s", what,
		       escape_str(said, sizeof(said), l->calls->last_error()));
}

static int connect_domain(struct qmp_libvirt *l, struct vmprof_err *err)
{
	l->conn = l->calls->connect(l->uri);
	if (!l->conn)
		return failed(l, "cannot be asked", err);
	l->domain = l->calls->find(l->conn, l->uuid);
	return l->domain ? 0 : failed(l, "does not know the VM", err);
}

static void run_command(struct qmp_libvirt *l, const char *command)
{
	struct vmprof_err err = {0};
	char *reply = NULL;

	if (!command)
		connect_domain(l, &err);
	else if (l->calls->ask(l->domain, command, &reply, HUMAN) || !reply)
		failed(l, "does not hand the command to the VM's monitor", &err);
	pthread_mutex_lock(&l->lock);
	l->reply = reply;
	l->err = err;
	l->state = ANSWERED;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

static void free_all(struct qmp_libvirt *l)
{
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->lock);
	free(l->reply);
	free(l);
}

static void *worker(void *arg)
{
	struct qmp_libvirt *l = arg;
	bool mine;

	pthread_mutex_lock(&l->lock);
	while (!l->closing) {
		if (l->state == ASKED) {
			const char *command = l->command;

			pthread_mutex_unlock(&l->lock);
			run_command(l, command);
			pthread_mutex_lock(&l->lock);
		} else {
			pthread_cond_wait(&l->changed, &l->lock);
		}
	}
	pthread_mutex_unlock(&l->lock);
	if (l->domain)
		l->calls->put(l->domain);
	if (l->conn)
		l->calls->disconnect(l->conn);
	pthread_mutex_lock(&l->lock);
	l->ended = true;
	mine = l->gone;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	if (mine)
		free_all(l);
	return NULL;
}

/* ---------- those who ask ---------- */

/* Until the answer is there; with the lock. 0 or -ETIMEDOUT */
static int wait_answer(struct qmp_libvirt *l, const struct timespec *end)
{
	while (l->state == ASKED)
		if (pthread_cond_timedwait(&l->changed, &l->lock, end) == ETIMEDOUT)
			return l->state == ASKED ? -ETIMEDOUT : 0;
	return 0;
}

static char *take_answer(struct qmp_libvirt *l)
{
	char *reply = l->reply;

	l->reply = NULL;
	l->state = IDLE;
	l->late = false;
	return reply;
}

static int ask(struct qmp_libvirt *l, const char *command, int timeout_ms, char **reply,
	       struct vmprof_err *err)
{
	const struct timespec end = deadline_after(timeout_ms);
	int rc = 0;

	*reply = NULL;
	pthread_mutex_lock(&l->lock);
	if (l->late) {
		rc = wait_answer(l, &end);
		if (!rc)
			free(take_answer(l));
	}
	if (!rc) {
		l->command = command;
		l->state = ASKED;
		pthread_cond_broadcast(&l->changed);
		rc = wait_answer(l, &end);
	}
	if (rc) {
		l->late = true;
		err_set(err, ETIMEDOUT, "libvirt does not answer in time");
	} else {
		rc = -l->err.code;
		if (rc && err)
			*err = l->err;
		*reply = take_answer(l);
	}
	pthread_mutex_unlock(&l->lock);
	return rc;
}

int qmp_libvirt_ask(struct qmp_libvirt *l, const char *command, size_t max, int timeout_ms,
		    char **reply, struct vmprof_err *err)
{
	int rc = ask(l, command, timeout_ms, reply, err);

	if (rc || strnlen(*reply, max + 1) <= max)
		return rc;
	free(*reply);
	*reply = NULL;
	return err_set(err, EMSGSIZE, "QEMU's monitor answers more than %zu bytes", max);
}

static int where(struct qmp_libvirt *l, const struct vm *vm, struct vmprof_err *err)
{
	if (!vm->libvirt_state || !vm->uuid[0])
		return err_set(err, EACCES, "libvirt's state of it cannot be read");
	snprintf(l->uuid, sizeof(l->uuid), "%s", vm->uuid);
	if (vm->libvirt_user == 0)
		snprintf(l->uri, sizeof(l->uri), "qemu:///system");
	else if (vm->libvirt_user == geteuid())
		snprintf(l->uri, sizeof(l->uri), "qemu:///session");
	else
		return err_set(err, EPERM,
			       "it belongs to the libvirt of user %u (qemu:///session), which only "
			       "that user can ask",
			       vm->libvirt_user);
	return 0;
}

static int start_worker(struct qmp_libvirt *l, struct vmprof_err *err)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&thread, &attr, worker, l);
	pthread_attr_destroy(&attr);
	return rc ? err_sys(err, rc, "a thread for libvirt") : 0;
}

int qmp_libvirt_open(struct qmp_libvirt **out, const struct libvirt_calls *calls,
		     const struct vm *vm, int timeout_ms, struct vmprof_err *err)
{
	struct qmp_libvirt *l = xcalloc(1, sizeof(*l));
	char *none;
	int rc;

	*out = NULL;
	l->calls = calls;
	pthread_mutex_init(&l->lock, NULL);
	deadline_cond_init(&l->changed);
	rc = where(l, vm, err);
	rc = rc ? rc : start_worker(l, err);
	if (rc) {
		free_all(l);
		return rc;
	}
	rc = ask(l, NULL, timeout_ms, &none, err);
	if (rc)
		qmp_libvirt_close(l);
	else
		*out = l;
	return rc;
}

/* One whose thread hangs in libvirt is left to it. */
void qmp_libvirt_close(struct qmp_libvirt *l)
{
	const struct timespec end = deadline_after(CLOSE_MS);
	bool mine;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->closing = true;
	pthread_cond_broadcast(&l->changed);
	while (!l->ended && pthread_cond_timedwait(&l->changed, &l->lock, &end) != ETIMEDOUT)
		;
	mine = l->ended;
	l->gone = true;
	pthread_mutex_unlock(&l->lock);
	if (mine)
		free_all(l);
}
