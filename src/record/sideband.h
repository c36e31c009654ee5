// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest's side-band as records of the file: kernel, modules, processes, maps; in the encoding
 * that stock perf resolves (docs/man/vmprof.data.5). One a VM, used by its thread.
 */
#ifndef VMPROF_RECORD_SIDEBAND_H
#define VMPROF_RECORD_SIDEBAND_H

#include "guest/guest.h"
#include "record/symsave.h"
#include "util/buf.h"
#include "util/hashmap.h"

/* A mapping's build id, for the file's BUILD_ID feature. */
struct sideband_build_id {
	enum sample_mode mode;
	char *path;
	uint8_t id[20];
	uint8_t len;
};

struct sideband {
	int32_t machine_pid;
	const char *vm_name; /* escaped, and short enough for a record */
	uint64_t id;	     /* an event id of this VM: it ties the records to the machine */
	uint64_t start_time; /* for what was there before the first sample */
	struct symsave *symsave;
	struct hashmap pids; /* processes announced and not gone; value is not used */
	struct sideband_build_id *build_ids; /* kernels and modules at once; others when hit */
	size_t nr_build_ids, cap_build_ids;
};

void sideband_free(struct sideband *sb); /* what it owns, not @sb itself */

/* Appends the records that @ev makes. */
void sideband_encode(struct sideband *sb, struct buf *out, struct guest *g,
		     const struct guest_event *ev);

/* At the start: a name for samples that no process could be found for (pid -1). */
void sideband_encode_nobody(struct sideband *sb, struct buf *out);

/* A user DSO that samples lay in: remembers its build id, saves its symbols. */
void sideband_save_dso(struct sideband *sb, struct guest *g, const struct guest_dso *dso);

#endif
