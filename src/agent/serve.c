// SPDX-License-Identifier: GPL-2.0-only
#include "agent/serve.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "record/signals.h"
#include "util/clock.h"
#include "vm/xen.h"

#if HAVE_XEN
#define END_NS 30000000000ull /* for records to save what they have, at the agent's end */

struct server {
	const struct records_options *options;
	bool verbose;
	struct signals signals;
	struct agent agent;
};

static int list_domains(struct vm_list *list, struct vmprof_err *err)
{
	int rc = vm_list_get(list, NULL, err);

	if (!rc && list->xen.code) {
		*err = list->xen;
		vm_list_free(list);
		rc = -err->code;
	}
	return rc;
}

static int each_domain(void *ctx, void (*add)(void *arg, uint32_t domid), void *arg,
		       struct vmprof_err *err)
{
	struct vm_list list;
	int rc = list_domains(&list, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < list.n; i++)
		if (list.vms[i]->hypervisor == VM_HYPERVISOR_XEN)
			add(arg, list.vms[i]->domid);
	vm_list_free(&list);
	return 0;
}

static int start_record(void *ctx, uint32_t domid, const struct agent_request *request, pid_t *pid,
			struct vmprof_err *err)
{
	const struct server *s = ctx;
	const struct vm *vm = NULL;
	struct vm_list list;
	int rc = list_domains(&list, err);

	if (rc)
		return rc;
	for (size_t i = 0; i < list.n && !vm; i++)
		if (list.vms[i]->hypervisor == VM_HYPERVISOR_XEN && list.vms[i]->domid == domid)
			vm = list.vms[i];
	if (vm)
		rc = records_start(s->options, &list, vm, request, pid, err);
	else
		rc = err_set(err, ESRCH, "the domain has ended");
	vm_list_free(&list);
	return rc;
}

static void stop_record(void *ctx, pid_t pid)
{
	kill(pid, SIGINT);
}

static void complain(void *ctx, uint32_t domid, const char *sentence)
{
	fprintf(stderr, "vmprof agent: domain %u: %s\n", domid, sentence);
}

static void say(void *ctx, uint32_t domid, const char *state)
{
	const struct server *s = ctx;

	if (s->verbose)
		complain(ctx, domid, state);
}

/* Returns true at one that ends the agent. */
static bool take_signals(const struct server *s)
{
	struct signalfd_siginfo si;
	bool end = false;

	while (read(s->signals.fd, &si, sizeof(si)) == sizeof(si))
		end |= si.ssi_signo != SIGCHLD;
	return end;
}

static void take_ended(struct server *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		agent_ended(&s->agent, pid, WIFEXITED(status) && !WEXITSTATUS(status));
}

static int wait_until(const struct server *s, nfds_t n, uint64_t until)
{
	struct pollfd fds[] = {{s->signals.fd, POLLIN, 0}, {-1, POLLIN, 0}};
	uint64_t now = clock_now_ns();
	int ms = -1;

	if (n > 1)
		fds[1].fd = agent_store_fd(&s->agent.store);
	if (until <= now)
		ms = 0;
	else if (until != UINT64_MAX)
		ms = (int)((until - now + 999999) / 1000000);
	return poll(fds, n, ms) < 0 && errno != EINTR ? -errno : 0;
}

static int serve(struct server *s, struct vmprof_err *err)
{
	bool end = false;
	int rc = 0;

	while (!rc && !end) {
		uint64_t next;

		rc = agent_work(&s->agent, clock_now_ns(), &next, err);
		if (!rc && wait_until(s, 2, next))
			rc = err_sys(err, errno, "cannot wait for XenStore");
		end = take_signals(s);
		take_ended(s);
	}
	return rc;
}

static void stop_all(struct server *s)
{
	uint64_t end = clock_now_ns() + END_NS;

	while (agent_stop(&s->agent) && clock_now_ns() < end) {
		wait_until(s, 1, end);
		take_signals(s);
		take_ended(s);
	}
}

static int run(struct server *s, const struct xen_calls *call, const struct agent_host *host,
	       struct vmprof_err *err)
{
	/* Before XenStore's library has a thread, which must not take the signals. */
	int rc = signals_block(&s->signals, err);

	if (!rc)
		rc = agent_open(&s->agent, call, host, err);
	if (!rc) {
		rc = serve(s, err);
		stop_all(s);
		agent_close(&s->agent);
	}
	signals_restore(&s->signals);
	return rc;
}

int agent_serve(const struct records_options *o, bool verbose, struct vmprof_err *err)
{
	struct server s = {.options = o, .verbose = verbose, .signals.fd = -1};
	const struct agent_host host = {&s, each_domain, start_record, stop_record, say, complain};
	struct xen xen;
	int rc;

	if (!xen_is_dom0(""))
		return err_set(err, ENOTSUP,
			       "this host is not Xen's dom0, where domains are recorded");
	if (mkdir(o->output, 0700) && errno != EEXIST)
		return err_sys(err, errno, "cannot make %s", o->output);
	rc = xen_open(&xen, false, err);
	if (rc)
		return rc;
	rc = run(&s, xen.call, &host, err);
	xen_close(&xen);
	return rc;
}
#else
int agent_serve(const struct records_options *o, bool verbose, struct vmprof_err *err)
{
	return err_set(err, ENOSYS,
		       "this vmprof was built without Xen's headers (Debian: libxen-dev)");
}
#endif
