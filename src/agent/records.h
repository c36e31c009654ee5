// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records of the agent: each is a "vmprof record" of its own, in a process of its own. What one
 * domain's memory may do to the program that reads it, it does to that domain's record.
 */
#ifndef VMPROF_AGENT_RECORDS_H
#define VMPROF_AGENT_RECORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/request.h"
#include "util/err.h"
#include "vm/vm.h"

#define RECORDS_KEPT 16 /* folders of one domain: then it is refused */

struct records_options {
	const char *program; /* vmprof */
	const char *output;  /* folder */
	uint64_t max_time_ns;
	uint64_t max_bytes; /* of each file */
	bool chains;
};

/*
 * Begins a record of @vm, which is one of @list, into a new folder OUTPUT/NAME.DOMID.N: perf.data,
 * its symbols, and what was said, in log. 0, or -errno with a sentence; -EDQUOT: there are as many
 * folders as there may be.
 */
int records_start(const struct records_options *o, const struct vm_list *list, const struct vm *vm,
		  const struct agent_request *request, pid_t *pid, struct vmprof_err *err);

#endif
