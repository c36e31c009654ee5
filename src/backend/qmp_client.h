// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client of a QMP monitor (docs/interop/qmp-spec of QEMU). One request is in flight at a time.
 * What answers is hostile: bytes, depth and time of an answer are bounded, and it may be no JSON.
 */
#ifndef VMPROF_BACKEND_QMP_CLIENT_H
#define VMPROF_BACKEND_QMP_CLIENT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "util/err.h"
#include "vm/vm.h"

struct qmp_client {
	int fd; /* -1: closed */
	struct json_tokener *tok;
	size_t max;   /* bytes of a reply */
	bool ready;   /* it is negotiated */
	bool waiting; /* a reply is still to come */
	size_t bytes; /* of what is not whole yet */
	size_t at, len;
	char in[16384]; /* received; up to ->at it is read */
};

/**
 * qmp_connect - to the VM's QMP socket (vm->qmp_path), and negotiate
 *
 * Returns 0, or -errno with a sentence: -EBUSY if another client has the monitor, -EPERM if the
 * socket is not this VM's.
 */
int qmp_connect(struct qmp_client *c, const struct vm *vm, size_t max_reply, int timeout_ms,
		struct vmprof_err *err);

/* The same over a connection that is there; @fd is the client's from now on. -EBUSY: no greeting.
 */
int qmp_attach(struct qmp_client *c, int fd, size_t max_reply, int timeout_ms,
	       struct vmprof_err *err);

/**
 * qmp_request - sends @json and waits for what it returns
 *
 * A reply that comes too late (-ETIMEDOUT) is waited for, and thrown away, by the next call. -EIO
 * with QEMU's words: it refuses. -ECONNRESET, -EPROTO, -EMSGSIZE: nothing more is to be had here.
 * @result is to be put.
 */
int qmp_request(struct qmp_client *c, const char *json, int timeout_ms, struct json_object **result,
		struct vmprof_err *err);
void qmp_close(struct qmp_client *c);

#endif
