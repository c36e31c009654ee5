// SPDX-License-Identifier: GPL-2.0-only
/*
 * The agent as it runs in dom0, until a signal.
 */
#ifndef VMPROF_AGENT_SERVE_H
#define VMPROF_AGENT_SERVE_H

#include "agent/records.h"

/* 0 at a signal's end, or -errno with a sentence. */
int agent_serve(const struct records_options *o, bool verbose, struct vmprof_err *err);

#endif
