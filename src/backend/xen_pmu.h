/* SPDX-License-Identifier: GPL-2.0-only */
/* Inside the xen backend: why there are no hardware events, in the words of the hypervisor. */
#ifndef VMPROF_BACKEND_XEN_PMU_H
#define VMPROF_BACKEND_XEN_PMU_H

#include "vm/xenlib.h"

#if HAVE_XEN
#include <stdint.h>
#include <xen/xen.h>

#include <xen/xenoprof.h>

/* What the hypercalls said: 0 or errno, and what came with it. */
struct xen_pmu_answers {
	int mode_error;
	uint64_t mode; /* XENPMU_MODE_* */
	int feature_error;
	uint64_t features;
	int oprof_error;
	struct xenoprof_init oprof;
};

/* Asks. Nothing is taken or changed, but that Xen notes dom0 as the domain that may profile. */
void xen_pmu_ask(const struct xen *xen, struct xen_pmu_answers *a);

/* The sentence for the user. */
void xen_pmu_text(const struct xen_pmu_answers *a, char *text, size_t size);
#endif

#endif
