// SPDX-License-Identifier: GPL-2.0-only
/* The JSON texts of the private records "vm", "clock" and "stats" (perfdata/format.h). To be freed.
 */
#ifndef VMPROF_RECORD_VMJSON_H
#define VMPROF_RECORD_VMJSON_H

#include "guest/clock.h"
#include "record/vmrec.h"

/* @name: of the VM, as all of the file has it. */
char *vmjson_vm(const struct vmrec_config *cfg, const char *name, uint32_t nr_vcpus,
		const struct guest_kernel_info *kernel);
/* @clock stands to CLOCK_MONOTONIC as @b says, which is known. */
char *vmjson_clock(const struct vm *vm, enum guest_clock clock, const struct guest_clock_bounds *b);
/* @counts: of each of @events. */
char *vmjson_stats(const struct vm *vm, const struct vmrec_stats *st,
		   const struct event_list *events, const struct backend_event_stats *counts);

#endif
