// SPDX-License-Identifier: GPL-2.0-only
/*
 * Call chains of user space out of what perf record --call-graph dwarf leaves in each sample: the
 * registers and a copy of the stack.
 */
#ifndef VMPROF_SYMBOLIZE_USERSTACK_H
#define VMPROF_SYMBOLIZE_USERSTACK_H

#include "symbolize/machine.h"

/* How a chain ended. */
enum userstack_end {
	USERSTACK_OUTERMOST, /* reached the outermost frame */
	USERSTACK_DEPTH,     /* longer than was asked for */
	USERSTACK_CUT,	     /* the frame is above the copied part of the stack */
	USERSTACK_NO_FILE,   /* the code is of a file that is not here */
	USERSTACK_NO_RULE,   /* nothing says where the caller is, a frame pointer neither */
	USERSTACK_BAD_FRAME, /* the caller would be below, or what it returns to is no code */
	USERSTACK_NO_REGS,   /* registers of an architecture that is not known here */
	USERSTACK_END_COUNT
};

/*
 * Frames of @rec, a sample, innermost first, *@n of them and at most @max: addresses of the kind
 * that perf has, of callers that of the call's last byte. They are of mode PERF_RECORD_MISC_USER of
 * @t. None where the sample has no copy, as those of kernel threads, or is a guest's. The array is
 * valid until the next call.
 */
const uint64_t *session_user_stack(struct session *s, struct thread *t,
				   const struct perfdata_record *rec, size_t max, size_t *n);
/* How those that were asked for ended: an array of USERSTACK_END_COUNT. */
const uint64_t *session_user_stack_ends(const struct session *s);

#endif
