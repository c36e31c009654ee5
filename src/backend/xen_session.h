// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside the xen backend: a domain being sampled.
 */
#ifndef VMPROF_BACKEND_XEN_SESSION_H
#define VMPROF_BACKEND_XEN_SESSION_H

#include "backend/backend.h"
#include "backend/cputicks.h"
#include "backend/frames.h"
#include "backend/xen_context.h"
#include "backend/xen_regs.h"

#if HAVE_XEN
/* The domain's memory. "Guest-physical" is what its page tables have: of a PV domain frames of the
 * machine. */
struct xen_mem {
	struct guest_mem mem;
	struct frames frames;
	const struct xen *xen;
	uint32_t domid;
	bool gone; /* the domain is */
};

void xen_mem_init(struct xen_mem *m, const struct xen *xen, uint32_t domid, bool pv);
void xen_mem_free(struct xen_mem *m);

struct xen_vcpu {
	uint64_t look_at;	/* when to look at it next, ns */
	uint64_t seen_cpu_time; /* at the last such look */
	unsigned idle;		/* looks in a row that found no CPU time used */
	xc_vcpuinfo_t info;
	bool known;		/* info is of some look */
	struct cputicks *ticks; /* one an event */
	struct guest_regs regs;
	uint64_t regs_cpu_time; /* that the vCPU had when they were read */
	bool has_regs;
	struct xen_hvm_tables tables;
	uint64_t tables_at; /* when they were read, ns; 0 never */
};

struct xen_session {
	struct backend_session base;
	struct xen xen;
	bool pv;
	struct xen_mem mem;
	struct xen_context context;
	struct event *events;
	unsigned nr_events;
	struct xen_vcpu *vcpu;
	uint32_t nr_vcpus, turn;     /* the vCPU to be looked at next */
	uint64_t tot_pages, checked; /* of the domain, and when that was last looked at */
	bool pause, paused;	     /* to stop the domain for each sample; it is stopped now */
	bool started, stopped;
	uint32_t random;
	struct backend_stats stats;
};

/* ---------- xen_sample.c ---------- */

/* Registers now, or as they were read before if the vCPU has not run since. As vmprof_backend.peek.
 */
int xen_peek(struct backend_session *base, uint32_t vcpu, struct guest_regs *regs);
int xen_start(struct backend_session *base, struct vmprof_err *err);
int xen_read(struct backend_session *base, struct raw_sample *samples, unsigned n, int timeout_ms);
void xen_complete(struct backend_session *base);
int xen_stop(struct backend_session *base);
#endif

#endif
