// SPDX-License-Identifier: GPL-2.0-only
/* What a record says on stderr, unless it was told to be quiet. */
#ifndef VMPROF_RECORD_SUMMARY_H
#define VMPROF_RECORD_SUMMARY_H

#include "record/targets.h"

void record_say(const struct record_options *opts, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The choice made for one VM, whose recorder is open. */
void summary_choice(const struct record_options *opts, const struct target *t);
/* That the host is sampled as a whole. */
void summary_host(const struct record_options *opts, const struct targets *ts);

/* Names of the events and the rate of the first. */
void summary_events(const struct event_list *l, char *text, size_t size);

/* perf's two closing lines. */
void summary_woken(const struct record_options *opts, unsigned wakeups);
void summary_written(const struct record_options *opts, uint64_t bytes, uint64_t samples);

/* Both, with what was lost, by VM, between them. */
void summary_closing(const struct record_options *opts, const struct targets *ts, unsigned wakeups,
		     uint64_t bytes);

#endif
