// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's side of a VM's shared log (kernel/uapi/vmprof_log.h): requests to the guest's module
 * and its answers.
 */
#ifndef VMPROF_BACKEND_DIRECT_LOG_H
#define VMPROF_BACKEND_DIRECT_LOG_H

#include "events/event.h"
#include "kernel/core/log.h"
#include "vm/shared.h"

struct direct_log {
	const struct vm *vm;
	struct vm_shared shared;
	/* Ours, and not what the guest may have made of it: */
	uint32_t request;
	uint64_t ring_offset, ring_stride, side_offset;
	uint32_t rings, ring_size, side_size;
	struct vmprof_log_guest row; /* the last answer */
};

/*
 * Finds the VM's log, and makes one of memory that is empty. 0, or -errno with a sentence: those of
 * vm_shared_open(), -ENOSPC it is too small for the VM's CPUs, -EINVAL there is something else in
 * it.
 */
int direct_log_open(struct direct_log *l, const struct vm *vm, struct vmprof_err *err);
void direct_log_close(struct direct_log *l); /* also if it was not opened */

/*
 * Asks the guest to serve these events from this enum vmprof_source; its handler is in place then.
 * 0, or -errno with a sentence: -ENOLINK the guest's module does not answer, is of another version,
 * makes no sense or refuses; -ESRCH the VM is gone.
 */
int direct_log_ask(struct direct_log *l, uint32_t source, uint32_t chain,
		   const struct vmprof_log_event *events, uint32_t nr, struct vmprof_err *err);
/* The same without waiting for the answer. */
void direct_log_post(struct direct_log *l, uint32_t source, uint32_t chain,
		     const struct vmprof_log_event *events, uint32_t nr);
/* Whether the guest's row is still what it has answered. */
bool direct_log_stands(const struct direct_log *l);
/* The guest may forget its handler. Waits for that a moment. */
void direct_log_withdraw(struct direct_log *l);

/* The ring of a CPU of the guest. NULL: there was no room for it. */
void *direct_log_ring(const struct direct_log *l, uint32_t cpu);
/* The ring in which the guest tells of its processes, of side_size bytes and a page before them.
 * NULL: it does not. */
void *direct_log_side(const struct direct_log *l);

/*
 * @e as it is delivered to a guest of @arch: a counter's, or the timer's of x86. 0, or -EOPNOTSUPP,
 * -EINVAL with a sentence: delivery to the guest has it not.
 */
int direct_log_event(const struct event *e, enum guest_arch arch, struct vmprof_log_event *out,
		     struct vmprof_err *err);

#endif
