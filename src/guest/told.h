// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: processes and their maps as the guest's own kernel tells of them (raw_told).
 *
 * That comes in the order of time, whereas memory shows what is now, some milliseconds behind the
 * sample at hand: a short process is gone by then, or is another program. So what has been told of
 * a process is believed before its memory. Memory says what that leaves open, and has the files.
 * Where something of what was told is missing, memory is believed as if nothing had been told,
 * until the process execs.
 *
 * All of it is kept here, and a process's part becomes side-band when a sample is the process's:
 * most short ones never have one.
 */
#ifndef VMPROF_GUEST_TOLD_H
#define VMPROF_GUEST_TOLD_H

#include "guest/process.h"

struct guest_told {
	struct hashmap by_tgid; /* told_process */
	size_t nr_processes, nr_maps;
	uint32_t versions;
};

void guest_told_free(struct guest_told *t); /* forgets all */

/*
 * Makes known in g->procs what has been told of the process of @raw, if something has; announces
 * that. To be called before memory is asked for it.
 */
struct guest;
void guest_told_sync(struct guest *g, const struct raw_sample *raw);

#endif
