// SPDX-License-Identifier: GPL-2.0-only
/*
 * A VM's monitor for people ("info registers"), by whoever gives access to it: QEMU's own QMP
 * socket, or libvirt if that is who has the only connection to it.
 */
#ifndef VMPROF_BACKEND_QMP_MONITOR_H
#define VMPROF_BACKEND_QMP_MONITOR_H

#include "backend/qmp_client.h"
#include "backend/qmp_libvirt.h"

struct qmp_monitor {
	struct qmp_client client;
	struct qmp_libvirt *libvirt; /* asked instead; NULL: it is not */
	size_t max_reply;	     /* bytes */
};

/* Nothing is open: qmp_monitor_close() may be called. */
void qmp_monitor_init(struct qmp_monitor *m);

/**
 * qmp_monitor_open - to @vm's monitor, whose replies have at most @max_reply bytes
 *
 * Returns 0, or -errno with a sentence; qmp_monitor_close() may be called all the same.
 */
int qmp_monitor_open(struct qmp_monitor *m, const struct vm *vm, size_t max_reply, int libvirt_ms,
		     struct vmprof_err *err);

/**
 * qmp_monitor_ask - a command of the monitor, of at most 64 letters, digits, '-' and spaces
 *
 * 0 or -errno as of qmp_request() and qmp_libvirt_ask(). @text is to be freed.
 */
int qmp_monitor_ask(struct qmp_monitor *m, const char *command, int timeout_ms, char **text);
void qmp_monitor_close(struct qmp_monitor *m);

#endif
