// SPDX-License-Identifier: GPL-2.0-only
#include "backend/qmp_monitor.h"

#include <errno.h>
#include <stdio.h>

#include "util/xalloc.h"

#define CONNECT_MS  500
#define COMMAND_MAX 64

void qmp_monitor_init(struct qmp_monitor *m)
{
	*m = (struct qmp_monitor){.client.fd = -1};
}

int qmp_monitor_open(struct qmp_monitor *m, const struct vm *vm, size_t max_reply, int libvirt_ms,
		     struct vmprof_err *err)
{
	const struct libvirt_calls *calls;
	int r = -EBUSY;

	qmp_monitor_init(m);
	m->max_reply = max_reply;
	if (vm->qmp_path)
		r = qmp_connect(&m->client, vm, max_reply, CONNECT_MS, err);
	if (r != -EBUSY || !vm->libvirt)
		return r;
	calls = libvirt_load(err);
	r = calls ? qmp_libvirt_open(&m->libvirt, calls, vm, libvirt_ms, err) : -err->code;
	return r ? err_prefix(err, "libvirt has the VM's QMP socket") : 0;
}

static int ask_socket(struct qmp_client *c, const char *command, int timeout_ms, char **text)
{
	char request[COMMAND_MAX + 128];
	struct json_object *o;
	int r;

	snprintf(request, sizeof(request),
		 "{\"execute\":\"human-monitor-command\",\"arguments\":"
		 "{\"command-line\":\"%.*s\"}}\n",
		 COMMAND_MAX, command);
	r = qmp_request(c, request, timeout_ms, &o, NULL);
	if (r)
		return r;
	r = json_object_is_type(o, json_type_string) ? 0 : -EPROTO;
	*text = r ? NULL : xstrdup(json_object_get_string(o));
	json_object_put(o);
	return r;
}

int qmp_monitor_ask(struct qmp_monitor *m, const char *command, int timeout_ms, char **text)
{
	if (m->libvirt)
		return qmp_libvirt_ask(m->libvirt, command, m->max_reply, timeout_ms, text, NULL);
	return ask_socket(&m->client, command, timeout_ms, text);
}

void qmp_monitor_close(struct qmp_monitor *m)
{
	if (m->libvirt)
		qmp_libvirt_close(m->libvirt);
	else
		qmp_close(&m->client);
}
