// SPDX-License-Identifier: GPL-2.0-only
/*
 * A whole record of the machine that we run on, by a backend that samples it from within: the file
 * is one of a whole system, as perf record -a writes it.
 */
#ifndef VMPROF_RECORD_SELF_H
#define VMPROF_RECORD_SELF_H

#include "backend/backend.h"
#include "record/recorder.h"

/*
 * Is that what is asked for? By the backend's name, or where no VM is named, none runs here, and
 * this machine can be sampled so. NULL: it is not.
 */
const struct vmprof_backend *self_wanted(const struct record_options *opts);

/* Like recorder_run(); @store: where symbols are saved, or NULL. */
int self_run(const struct vmprof_backend *backend, const struct record_options *opts,
	     const char *store, struct record_result *result, struct vmprof_err *err);

#endif
