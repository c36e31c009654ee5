// SPDX-License-Identifier: GPL-2.0-only
/*
 * One VM being recorded: a thread that takes samples from a backend, has them completed by the
 * guest layer and encodes them. The recorder takes the bytes from it and writes them.
 */
#ifndef VMPROF_RECORD_VMREC_H
#define VMPROF_RECORD_VMREC_H

#include "backend/backend.h"
#include "guest/guest.h"
#include "perfdata/encode.h"
#include "perfdata/writer.h"
#include "record/symsave.h"
#include "util/buf.h"

struct vmrec;

struct vmrec_config {
	const struct vm *vm;
	const struct vmprof_backend *backend;
	struct backend_caps caps;	       /* of the backend for this VM */
	const struct event_list *events;       /* resolved for this VM */
	bool chains, multiplex, domain, pause; /* as in struct backend_config, these */
	bool experimental, force;	       /* too */
	uint32_t stack_size;
	bool host_modules; /* with samples of the host: this VM's records have its modules */
	int realtime;	   /* priority of the sampling thread, see prompt.h */
	const char *store; /* directory for symbols, or NULL */
	int end_fd;	   /* eventfd that is written when this VM has ended */
};

/* Opens backend and guest and identifies the guest's kernel; not a reason to fail if there is none.
 */
int vmrec_open(struct vmrec **out, const struct vmrec_config *cfg, struct vmprof_err *err);
uint32_t vmrec_nr_vcpus(const struct vmrec *r);
void vmrec_kernel_info(struct vmrec *r, struct guest_kernel_info *info); /* before vmrec_start() */

/* @ids[event * nr_vcpus + vcpu]: the file's id for a sample. Starts sampling and the thread. */
int vmrec_start(struct vmrec *r, const uint64_t *ids, struct vmprof_err *err);

/* Moves the records encoded so far to @out (appends). */
void vmrec_take(struct vmrec *r, struct buf *out);

struct vmrec_stats {
	struct backend_stats backend;
	struct guest_stats guest;
	struct symsave_stats symbols;
	uint64_t written;  /* samples in the file */
	uint64_t filtered; /* of a mode that the event excludes */
	const char *ended; /* sentence why the VM went away, or NULL */
};
/* As of the last housekeeping, a fraction of a second ago; exact after vmrec_stop(). */
void vmrec_get_stats(struct vmrec *r, struct vmrec_stats *st);
/* What was counted of one of its events; for good after vmrec_stop(). */
void vmrec_event_stats(struct vmrec *r, unsigned event, struct backend_event_stats *st);
/* Appends the stats record (perfdata/format.h). */
void vmrec_encode_stats(struct vmrec *r, struct buf *out);

/* Stops sampling, saves the symbols that are still to be saved, ends the thread. */
void vmrec_stop(struct vmrec *r);

/* After vmrec_stop(): build ids of the kernel and of what was hit, for the BUILD_ID feature. */
void vmrec_add_build_ids(struct vmrec *r, struct perfdata_writer *w);
void vmrec_close(struct vmrec *r); /* NULL is fine */

#endif
