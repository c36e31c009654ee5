// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's side-band of one VM, or of all that runs: processes with threads and maps, as perf
 * record writes it of a process, for samples of what the host does for the VM. Used by the VM's
 * thread.
 */
#ifndef VMPROF_RECORD_HOSTSIDE_H
#define VMPROF_RECORD_HOSTSIDE_H

#include "guest/sample.h"
#include "perfdata/encode.h"
#include "util/buf.h"
#include "vm/proc.h"

struct hostside {
	pid_t pid;
	uint64_t id; /* an event id of this VM */
	struct proc_maps maps;
	uint64_t looked; /* when they were read, ns */
};

/* Names of process and threads, executable maps; @modules: the kernel's modules too. */
void hostside_start(struct hostside *h, struct buf *out, bool modules, uint64_t time);
/* The same of all processes that there are, and the modules. */
void hostside_start_all(uint64_t id, struct buf *out, uint64_t time);
/* Maps that the process has made since, if the sample is in none that is known. */
void hostside_see(struct hostside *h, struct buf *out, const struct sample *s);
void hostside_free(struct hostside *h); /* what it owns */

#endif
