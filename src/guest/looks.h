// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: which task ran on a vCPU at some moment of the last few milliseconds, for
 * samples that come without registers and are looked at late.
 *
 * A look reads of each CPU its running task and how often it has switched tasks (struct rq,
 * nr_switches). If the count was the same in the look before a sample and in the one after it, the
 * task ran all the time in between: that is known, not guessed. vCPU n is taken for the guest's CPU
 * n, as every monitor starts them.
 */
#ifndef VMPROF_GUEST_LOOKS_H
#define VMPROF_GUEST_LOOKS_H

#include "guest/dso.h"

#define GUEST_LOOKS 32 /* that are remembered of each CPU */

struct guest_look {
	uint64_t begin, end; /* when it was made, ns */
	uint64_t task;	     /* address; 0: it could not be read */
	uint64_t switches;
	/* Whose task that is, once somebody asked: */
	bool resolved, known;
	int32_t pid, tgid;
};

struct guest_looks {
	struct guest_look look[GUEST_LOOKS]; /* a ring */
	uint64_t n;			     /* made so far */
};

/* Looks at CPUs 0 to @n - 1. 0 or -ESRCH */
int guest_looks_make(struct guest_looks *looks, uint32_t n, struct guest_kmem *km,
		     struct guest_kernel *k);

/* The last look before @time and the first one behind it; NULL: there is none, or not any more. */
struct guest_look *guest_look_before(struct guest_looks *l, uint64_t time);
struct guest_look *guest_look_after(struct guest_looks *l, uint64_t time);

/* Did one task run all the time between two looks? */
bool guest_looks_agree(const struct guest_look *before, const struct guest_look *after);

#endif
