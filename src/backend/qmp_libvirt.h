// SPDX-License-Identifier: GPL-2.0-only
/*
 * QEMU's monitor by way of libvirt, which has the only connection to it. libvirt's libraries are
 * loaded when a VM needs them, so that one program serves hosts that have none. A call of libvirt
 * has no time limit: each VM's calls have a thread of their own, and are waited for.
 */
#ifndef VMPROF_BACKEND_QMP_LIBVIRT_H
#define VMPROF_BACKEND_QMP_LIBVIRT_H

#include <stddef.h>

#include "util/err.h"
#include "vm/vm.h"

/* What is used of libvirt, with its types for what they are here. */
struct libvirt_calls {
	void *(*connect)(const char *uri);			 /* virConnectOpen */
	int (*disconnect)(void *conn);				 /* virConnectClose */
	void *(*find)(void *conn, const char *uuid);		 /* virDomainLookupByUUIDString */
	int (*put)(void *domain);				 /* virDomainFree */
	const char *(*last_error)(void);			 /* virGetLastErrorMessage */
	void (*on_error)(void *ctx, void (*fn)(void *, void *)); /* virSetErrorFunc */
	int (*ask)(void *domain, const char *command,
		   char **reply, /* virDomainQemuMonitorCommand */
		   unsigned flags);
};

/* Loads libvirt, once. NULL with a sentence: it is not here. */
const struct libvirt_calls *libvirt_load(struct vmprof_err *err);

struct qmp_libvirt;

/* Connects to the libvirt that has started @vm. 0 or -errno with a sentence. */
int qmp_libvirt_open(struct qmp_libvirt **out, const struct libvirt_calls *calls,
		     const struct vm *vm, int timeout_ms, struct vmprof_err *err);
/**
 * qmp_libvirt_ask - a command of QEMU's monitor for people
 *
 * A reply that comes too late (-ETIMEDOUT) is thrown away by the next call. -ECONNRESET: libvirt
 * refuses, or the VM is gone. -EMSGSIZE: more than @max bytes. @reply is to be freed.
 */
int qmp_libvirt_ask(struct qmp_libvirt *l, const char *command, size_t max, int timeout_ms,
		    char **reply, struct vmprof_err *err);
void qmp_libvirt_close(struct qmp_libvirt *l); /* NULL is fine */

#endif
