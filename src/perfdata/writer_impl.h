// SPDX-License-Identifier: GPL-2.0-only
/* Shared by the writer's files only: writer.c (data), writer_file.c and
 * writer_pipe.c (what is around it), features_write.c (sections). */
#ifndef VMPROF_PERFDATA_WRITER_IMPL_H
#define VMPROF_PERFDATA_WRITER_IMPL_H

#include "perfdata/writer.h"
#include "util/hashmap.h"

struct writer_event {
	char *name;
	struct perf_event_attr attr;
	uint64_t *ids;
	size_t nr_ids;
	uint32_t group_size;
	char *group_name;
};

struct perfdata_writer {
	char *path; /* for messages: "standard output" for a pipe */
	int fd;
	bool pipe;
	int failed;	   /* -errno of the first failure; nothing is written after it */
	char failure[512]; /* its sentence */

	struct writer_event *events;
	size_t nr_events;
	char **argv;		       /* NULL-terminated */
	bool foreign;		       /* origin says what the features do; else this host does */
	struct perfdata_origin origin; /* its strings are owned */

	struct buf pending; /* whole records on their way to the file */
	uint64_t data_offset;
	uint64_t written;     /* bytes of data in the file */
	uint64_t flushed;     /* of these: up to the last flush */
	uint64_t total;	      /* bytes of data taken */
	bool host_kernel;     /* its map is written */
	bool features_valid;  /* the header on disk names the sections behind the data */
	uint64_t first_time;  /* of samples */
	uint64_t last_time;   /* 0: no sample yet */
	uint64_t start_ns;    /* CLOCK_MONOTONIC when it was opened */
	struct buf build_ids; /* BUILD_ID records */
	struct hashmap build_id_seen;
};

/*
 * Appends the sections of all features that there is something to say about to @body and their
 * numbers and sizes, in the order of the bits, to the arrays; returns how many.
 */
#define WRITER_FEATURES_MAX 32 /* all bits that perf 6.1 knows */
struct writer_section {
	enum perfdata_feature feature;
	uint64_t size;
};
size_t writer_features(const struct perfdata_writer *w, struct buf *body,
		       struct writer_section sections[WRITER_FEATURES_MAX]);

/* All of @n bytes to the file at @offset, or to the pipe. Remembers the failure for good. */
int writer_put(struct perfdata_writer *w, const void *p, size_t n, uint64_t offset,
	       struct vmprof_err *err);
/* Has one of the signals come that end a record, and wait to be read? */
bool writer_interrupted(void);
#define WRITER_PATIENCE_MS 100 /* between looks for one */
int writer_fail(struct perfdata_writer *w, int code, uint64_t offset, struct vmprof_err *err);

int writer_put_ids_and_attrs(struct perfdata_writer *w, struct vmprof_err *err);
/* With no feature bits if @n is 0. */
int writer_put_header(struct perfdata_writer *w, uint64_t data_size,
		      const struct writer_section *sections, size_t n, struct vmprof_err *err);
/* The features behind the data, then the header that names both. */
int writer_put_features(struct perfdata_writer *w, struct vmprof_err *err);

void writer_host_kernel(const struct perfdata_writer *w, struct buf *b, uint64_t time);

int writer_put_pipe_header(struct perfdata_writer *w, struct vmprof_err *err);
int writer_finish_pipe(struct perfdata_writer *w, struct vmprof_err *err);

#endif
