// SPDX-License-Identifier: GPL-2.0-only
/* Inside parse*.c: a record being parsed, everything checked against its size. */
#ifndef VMPROF_PERFDATA_PARSE_IMPL_H
#define VMPROF_PERFDATA_PARSE_IMPL_H

#include "perfdata/reader_impl.h"

/* A record, word by word. Past the end all words are 0 and bad is set. */
struct words {
	const uint64_t *p, *end;
	bool bad;
};

static inline uint64_t next(struct words *w)
{
	if (w->p >= w->end) {
		w->bad = true;
		return 0;
	}
	return *w->p++;
}

/* @n words at once, @n hostile. */
static inline const uint64_t *next_array(struct words *w, uint64_t n)
{
	const uint64_t *p = w->p;

	if (n > (uint64_t)(w->end - w->p)) {
		w->bad = true;
		w->p = w->end;
		return NULL;
	}
	w->p += n;
	return p;
}

/* Parts of a sample that are a word each. */
#define ONE_WORD                                                                                   \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | \
	 PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_IDENTIFIER)

/* Do records other than samples end in a sample's id, time and so on? */
static inline bool has_trailer(const struct perfdata_reader *r)
{
	return r->nr_evsels && r->evsels[0]->pub.attr.sample_id_all;
}

/*
 * The body of a record, into what start_record() has set up. 0, or -EBADMSG: *what then says of
 * what kind the record is.
 */
int parse_sample(struct perfdata_reader *r, struct words *w, const struct evsel *e,
		 struct perfdata_record *rec, const char **what);
int parse_sideband(struct perfdata_reader *r, struct words *w, const struct evsel *e,
		   struct perfdata_record *rec, const char **what);

#endif
