// SPDX-License-Identifier: GPL-2.0-only
#include "stat/exits_format.h"

#include <errno.h>

int exits_format_init(struct exits_format *f, const char *text, struct vmprof_err *err)
{
	f->x86 = tracepoint_field(&f->reason, text, "exit_reason") &&
		 tracepoint_field(&f->isa, text, "isa");
	if (tracepoint_field(&f->type, text, "common_type") &&
	    (f->x86 || (tracepoint_field(&f->ret, text, "ret") &&
			tracepoint_field(&f->esr_ec, text, "esr_ec"))))
		return 0;
	return err_set(
		err, EINVAL,
		"the kernel's tracepoint kvm:kvm_exit has other fields than those of x86 and "
		"arm64 that are known: its reasons cannot be read");
}

bool exits_format_reason(const struct exits_format *f, const void *raw, size_t size,
			 enum exit_kind *kind, uint32_t *reason)
{
	uint64_t first, second;

	if (f->x86) {
		if (!tracepoint_value(&first, &f->isa, raw, size) ||
		    !tracepoint_value(&second, &f->reason, raw, size))
			return false;
		*kind = first == EXIT_VMX || first == EXIT_SVM ? (enum exit_kind)first
							       : EXIT_UNKNOWN;
		*reason = *kind == EXIT_UNKNOWN ? 0 : (uint32_t)second;
		return true;
	}
	if (!tracepoint_value(&first, &f->ret, raw, size) ||
	    !tracepoint_value(&second, &f->esr_ec, raw, size))
		return false;
	*kind = first == EXIT_ARM_TRAP ? EXIT_ARM_CLASS : EXIT_ARM_TYPE;
	*reason = (uint32_t)(first == EXIT_ARM_TRAP ? second : first);
	return true;
}
