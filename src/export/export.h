// SPDX-License-Identifier: GPL-2.0-only
/*
 * A profile in the formats of other programs. A format is one file and one entry of the table; it
 * gets what was collected and a stream, and knows nothing of files or options.
 *
 * Names in all of them: frames as in vmprof report --folded (profile_frame_text()), VMs as "host"
 * or their name, all of it escaped, so that it is valid UTF-8 without control characters.
 */
#ifndef VMPROF_EXPORT_EXPORT_H
#define VMPROF_EXPORT_EXPORT_H

#include <stdio.h>

#include "perfdata/reader.h"
#include "report/filter.h"
#include "report/profile.h"

/* One sample, for formats with a time line. */
struct export_sample {
	uint64_t time, period;
	uint32_t stack;	 /* of the profile */
	uint32_t number; /* in the file */
};

struct export_event {
	const char *name;
	bool wanted;	 /* it has samples that the filters leave */
	bool is_time;	 /* its count is in nanoseconds */
	bool no_times;	 /* its samples do not say when */
	uint64_t period; /* between two samples, if that is constant; else 0 */
	double interval_ms;
};

struct export
{
	struct profile *profile;
	struct export_event *events; /* as the profile's */
	uint32_t nr_events, nr_wanted_events;
	bool *wanted; /* by stack: the filters leave it */

	bool keep_samples; /* set before the first record */
	struct export_sample *samples;
	size_t nr_samples,
		cap_samples; /* after export_prepare(): in order of time, wanted ones only */

	uint64_t first_time, last_time; /* of samples */
	uint64_t clock_epoch;		/* since 1970, of time 0; 0 unknown */
	const char *title;		/* the file, escaped */
};

struct export_format {
	const char *name;
	unsigned needs;	  /* PROFILE_BY_* */
	bool has_samples; /* wants keep_samples */
	bool gzip;	  /* always: that is how its readers know it */
	/* 0, or -errno with a sentence before anything is written. Errors of @f are the caller's.
	 */
	int (*check)(const struct export *x, struct vmprof_err *err); /* or NULL */
	void (*write)(struct export *x, FILE *f);
};

/* NULL: there is no format of this name. */
const struct export_format *export_find_format(const char *name);

/* For collect_options.sample; @ctx is the export. */
void export_sample(void *ctx, const struct perfdata_record *rec, uint32_t stack);
/*
 * After the last record: applies the filters. @event: only this one, NULL all. -ENOENT with a
 * sentence if nothing is left.
 */
int export_prepare(struct export *x, const struct perfdata_reader *r,
		   const struct report_filter *filter, const char *event, struct vmprof_err *err);
void export_free(struct export *x);

/* Frames of a stack, innermost first, at least one; as profile_chain(). */
size_t export_chain(const struct profile *p, const struct stack *s, uint32_t **frames, size_t *cap);
/* "host" or the VM's name. */
const char *export_vm(struct profile *p, const struct machine *m);

/*
 * Samples that belong together: those of an event and a machine, and where asked for those of one
 * context. In order of machine, event, first sample.
 */
struct export_group {
	const struct machine *machine;
	uint32_t event, context;
	const uint32_t *samples; /* indexes of x->samples, in order of time */
	size_t n;
};

struct export_groups {
	struct export_group *groups;
	uint32_t n;
	uint32_t *samples; /* behind the groups' pointers */
};

void export_group(const struct export *x, bool by_context, struct export_groups *g);
void export_groups_free(struct export_groups *g);

/* A JSON string with its quotes. */
void export_json_string(const char *s, FILE *f);

/*
 * A stream whose bytes arrive in @fd compressed; it is closed with the stream. NULL with errno,
 * which is ENOSYS in a program without zlib.
 */
FILE *export_gzip(int fd);
bool export_has_gzip(void);

extern const struct export_format export_pprof, export_speedscope, export_firefox;

#endif
