// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: struct guest, shared by guest.c (the kernel's coming and going, the rest of the
 * interface) and complete.c (samples).
 */
#ifndef VMPROF_GUEST_INTERNAL_H
#define VMPROF_GUEST_INTERNAL_H

#include "guest/chain.h"
#include "guest/events.h"
#include "guest/looks.h"
#include "guest/process.h"
#include "guest/told.h"

struct guest_work;

/* What is remembered of a vCPU from one sample to the next. */
struct guest_vcpu {
	uint64_t gdt, idt; /* with which the following were found */
	uint64_t alive_at; /* time of the sample whose registers were seen to be this kernel's */
	uint64_t percpu;   /* start of the CPU's area; 0 unknown */
	uint64_t irq_stack;
	uint64_t task, mm; /* that ran last */
};

struct guest {
	struct guest_config cfg;
	struct guest_mem *mem;
	struct guest_virt *virt;
	struct guest_kernel *kernel; /* NULL: none is known */
	struct guest_kernel_info info;
	const char *no_types; /* why processes cannot be told; NULL: they can */

	struct guest_kmem km;
	struct guest_orc orc;
	struct guest_code *code;
	struct guest_procs procs;
	struct guest_told told;
	struct guest_dsos dsos;
	struct guest_events events;

	struct guest_work *work; /* the sample at hand; here as it is large */
	struct guest_vcpu *vcpu;
	size_t nr_vcpus, cap_vcpus;

	bool task_wanted;		 /* of the kernel that runs now; see guest_wanted() */
	uint64_t *areas;		 /* of cfg.nr_vcpus, for guest_wanted() */
	uint64_t retry_at, retry_after;	 /* when to look for a kernel again */
	uint32_t next_module, next_made; /* ids of the first ones not announced */
	struct guest_looks *looks;	 /* of cfg.nr_vcpus */
	uint64_t looked;		 /* when they were made last, ns */
	char why_not[256];
	struct guest_stats stats;
};

/*
 * Is there a kernel that these registers belong to? Looks for one now and then while there is none.
 * 0, -ENOENT, -ESRCH
 */
int guest_need_kernel(struct guest *g, struct guest_vcpu *vc, const struct guest_regs *regs,
		      uint64_t time);
/* The kernel's own word on itself may have changed since it was found, early in its boot. */
void guest_reread_kernel_info(struct guest *g);
/* Modules and made code that were not announced yet. */
void guest_announce_code(struct guest *g, uint64_t time);
/* The same as guest_need_kernel() for a guest whose registers are not to be had. */
int guest_need_kernel_in_memory(struct guest *g, uint64_t time);

/* Code outside the kernel's own: perhaps of what was loaded meanwhile. */
void guest_see_code(struct guest *g, const uint64_t *addr, unsigned n, uint64_t time);

/* ---------- address.c ---------- */

/* Finds out whose the sample is by its address and time, which are in @out with its mode. 0 or
 * -ESRCH */
int guest_from_address(struct guest *g, struct sample *out);

/* ---------- named.c ---------- */

/* The sample's source has named its process and thread; @out has its chain. 0 or -ESRCH */
int guest_from_name(struct guest *g, const struct raw_sample *raw, struct sample *out);

#endif
