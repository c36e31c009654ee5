// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes a perf.data file or, to a pipe, its pipe form. At any moment after a flush the file on
 * disk is complete: the header's data size is brought up to date with each flush, so that a killed
 * recorder leaves a file that perf reads without a warning.
 */
#ifndef VMPROF_PERFDATA_WRITER_H
#define VMPROF_PERFDATA_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "perfdata/encode.h"
#include "util/err.h"

struct perfdata_writer;

struct perfdata_event {
	const char *name;	     /* for EVENT_DESC, "cpu-clock" */
	struct perf_event_attr attr; /* sample_type etc. are set by the writer */
	const uint64_t *ids;
	size_t nr_ids;
	bool no_chains;		/* its samples are encoded with PERFDATA_NO_CHAINS */
	bool user_copies;	/* and with perfdata_encode_user_copy(); attr says of what */
	uint32_t group_size;	/* from 2 on: it leads a group of so many, with those behind it */
	const char *group_name; /* NULL: it has none */
};

/* A feature's section as it is in another file. */
struct perfdata_raw_feature {
	enum perfdata_feature feature;
	const void *data;
	size_t size;
};

/*
 * What a file says that was not recorded here and now but made of others. What is not known (NULL,
 * 0, false) is left out.
 */
struct perfdata_origin {
	const char *hostname, *osrelease, *arch, *cpudesc;
	struct perfdata_host host;
	struct perfdata_clock clock;
	bool host_kernel; /* there is a map of the host's kernel among the records */
	/* of the machine, as they are; those that the fields above are about are not among them */
	const struct perfdata_raw_feature *raw;
	size_t nr_raw;
};

struct perfdata_writer_config {
	const char *path; /* "-" is standard output as a pipe */
	bool force; /* overwrite without keeping PATH.old; perf keeps it, and so is the default */
	const struct perfdata_event *events;
	size_t nr_events;
	const struct perfdata_id_entry *ids; /* ID_INDEX, written first */
	size_t nr_ids;
	char *const *argv;		      /* CMDLINE, NULL-terminated; may be NULL */
	const struct perfdata_origin *origin; /* NULL: this host, now, CLOCK_MONOTONIC */
};

/* A build id for the BUILD_ID feature, so that perf buildid-list and perf archive are complete. */
struct perfdata_build_id {
	int32_t machine_pid; /* -1 host */
	uint16_t cpumode;    /* PERF_RECORD_MISC_* of the mapping: GUEST_KERNEL, GUEST_USER ... */
	const uint8_t *id;
	uint8_t len;
	const char *filename;
};

int perfdata_writer_open(struct perfdata_writer **w, const struct perfdata_writer_config *cfg,
			 struct vmprof_err *err);
/* Takes over @b's bytes and resets it. Whole records only. 0 or -errno (-ENOSPC, -EPIPE). */
int perfdata_writer_append(struct perfdata_writer *w, struct buf *b, struct vmprof_err *err);
/* The map of this host's kernel, else made behind what comes first: costs some milliseconds. */
void perfdata_writer_add_host_kernel(struct perfdata_writer *w, uint64_t time);
/* All events up to now are in: FINISHED_ROUND. Then to disk, with the header's size. */
int perfdata_writer_flush(struct perfdata_writer *w, struct vmprof_err *err);
void perfdata_writer_add_build_id(struct perfdata_writer *w, const struct perfdata_build_id *id);
uint64_t perfdata_writer_bytes(const struct perfdata_writer *w);
/*
 * Feature sections (HOSTNAME OSRELEASE VERSION ARCH NRCPUS CPUDESC TOTAL_MEM CMDLINE EVENT_DESC
 * BUILD_ID GROUP_DESC SAMPLE_TIME CLOCKID CLOCK_DATA, the origin's others), final header, close.
 * Frees @w also on error.
 */
int perfdata_writer_close(struct perfdata_writer *w, struct vmprof_err *err);

#endif
