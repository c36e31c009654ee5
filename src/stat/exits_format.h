// SPDX-License-Identifier: GPL-2.0-only
/* Inside src/stat: where the tracepoint kvm:kvm_exit has the reason of an exit, x86's and arm64's.
 */
#ifndef VMPROF_STAT_EXITS_FORMAT_H
#define VMPROF_STAT_EXITS_FORMAT_H

#include "events/tracepoint.h"
#include "stat/reasons.h"

struct exits_format {
	struct tracepoint_field type;	     /* the id at the head of each record */
	struct tracepoint_field isa, reason; /* x86 */
	struct tracepoint_field ret, esr_ec; /* arm64 */
	bool x86;
};

/* @text: the format of kvm:kvm_exit. 0, or -EINVAL with a sentence. */
int exits_format_init(struct exits_format *f, const char *text, struct vmprof_err *err);
/* Of a record of it. false: it is not as its format says. */
bool exits_format_reason(const struct exits_format *f, const void *raw, size_t size,
			 enum exit_kind *kind, uint32_t *reason);

#endif
