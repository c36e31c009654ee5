// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/vmprof (kernel/uapi/vmprof.h) with errors in sentences: one device is one VM that vmprof.ko
 * counts and samples.
 */
#ifndef VMPROF_BACKEND_KMOD_DEV_H
#define VMPROF_BACKEND_KMOD_DEV_H

#include "events/event.h"
#include "guest/sample.h"
#include "kernel/uapi/vmprof.h"
#include "util/err.h"
#include "vm/vm.h"

struct kmod_dev {
	int fd;
	struct vmprof_info info;
	/* As the module has it: wanted, have, sharing, slices, ring_stride. .vm 0: not attached. */
	struct vmprof_attach attach;
	uint32_t nr_vcpus; /* of the VM, also those whose thread is not known */
	uint32_t *place;   /* of each vCPU in the module's list; KMOD_NO_PLACE: its thread is not
			      known */
	uint32_t *vcpu;	   /* of each place */
};

#define KMOD_NO_PLACE UINT32_MAX

struct kmod_config {
	const struct event *events; /* rate 0: it is only counted */
	unsigned nr_events;
	bool multiplex; /* more events than counters take turns */
	bool domain;	/* count also while the host works for the VM */
	/* Of samples; ring_size 0: the smallest. */
	bool registers; /* all general ones */
	uint32_t ring_size, stack_size, wakeup;
};

/*
 * Opens the device, if there is one that this program understands. 0, or -errno with a sentence:
 * -ENOENT the module is not loaded, -EPROTO it is another version, -EACCES, -EPERM.
 */
int kmod_open(struct kmod_dev *d, struct vmprof_err *err);
void kmod_close(struct kmod_dev *d); /* undoes all the rest */

/* -ENOENT, -EOPNOTSUPP, -EINVAL with a sentence: what vmprof.ko has not, whatever the host. */
int kmod_event(const struct event *e, struct vmprof_event *out, struct vmprof_err *err);

/*
 * Takes the VM; nothing counts yet. 0, or -errno with a sentence: -ENOSPC more events than
 * counters, -EBUSY another program has the VM, -ENOENT and -EOPNOTSUPP an event or the VM cannot be
 * had this way, -ESRCH it is gone.
 */
int kmod_attach(struct kmod_dev *d, const struct vm *vm, const struct kmod_config *cfg,
		struct vmprof_err *err);

struct kmod_direct {
	uint32_t delivery; /* enum vmp_delivery */
	const char *name;  /* of it */
	const struct vmprof_event *events;
	uint32_t nr_events;
	uint32_t flags;	  /* VMPROF_ATTACH_... */
	uint64_t handler; /* the guest's, as its row says */
	void *log;	  /* where it is mapped here */
};

/*
 * Takes the VM for delivery to that handler; as kmod_attach(). Also -EPERM this user may
 * not, -EFAULT the log is no memory to be held, -EOPNOTSUPP with the module's own sentence: not on
 * this host.
 */
int kmod_attach_direct(struct kmod_dev *d, const struct vm *vm, const struct kmod_direct *direct,
		       struct vmprof_err *err);
/* How that stands. 0 or -errno. */
int kmod_status(struct kmod_dev *d, struct vmprof_status *out);

/* What is to be copied with each sample; before kmod_start(). 0 or -errno with a sentence. */
int kmod_want(struct kmod_dev *d, const struct guest_wanted *wanted, struct vmprof_err *err);

int kmod_start(struct kmod_dev *d, struct vmprof_err *err); /* 0 or -errno with a sentence */
void kmod_stop(struct kmod_dev *d);

/* One event of one vCPU, counting or stopped. 0, -ENOENT (its thread is not known), -ENODATA
 * (others have the counters) or another -errno. */
int kmod_read(struct kmod_dev *d, uint32_t vcpu, unsigned event, struct vmprof_read *out);

/* Until samples have come, or @ms (< 0: for ever) are over. *@gone is set if all the VM's threads
 * have ended. 0 or -errno. */
int kmod_wait(struct kmod_dev *d, int ms, bool *gone);
/* Whether all the VM's threads have ended. */
bool kmod_ended(struct kmod_dev *d);

#endif
