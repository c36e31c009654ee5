// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads perf.data: header, attributes, features, and all records in the order of their time stamps.
 * The file is hostile: everything handed out has been checked to lie inside its record.
 */
#ifndef VMPROF_PERFDATA_READER_H
#define VMPROF_PERFDATA_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "perfdata/format.h"
#include "util/err.h"

struct perfdata_reader;

/* One event (perf's evsel) of the file. */
struct perfdata_evsel {
	char *name; /* EVENT_DESC's, else made from type and config as perf names it */
	struct perf_event_attr attr; /* native byte order, missing fields 0 */
	uint32_t index;
	uint64_t *ids;
	size_t nr_ids;
};

/* An entry of a sample's branch stack, innermost (latest) first in it. */
struct perfdata_branch {
	uint64_t from, to;
	uint64_t flags; /* bit fields: perfdata_branch_bits() */
};

/* What few samples have. Absent values are 0, absent arrays NULL. */
struct perfdata_parts {
	struct perfdata_regs {
		uint64_t abi; /* PERF_SAMPLE_REGS_ABI_*; NONE: no registers */
		/* Which registers: of the event that was sampled, which may be another than
		 * the record's, whose count was read with it. */
		uint64_t mask;
		const uint64_t *words; /* one for each bit of mask */
	} regs_user, regs_intr;
	const void *stack; /* of user space, from its pointer on */
	uint64_t stack_size;
	uint64_t data_src;    /* union perf_mem_data_src, the same in either byte order */
	uint64_t transaction; /* PERF_TXN_* */
	uint64_t phys_addr, cgroup, data_page_size, code_page_size;
};

/*
 * A record, parsed. Pointers are into the reader's memory, valid during the callback only. Absent
 * values are 0 (cpu: (uint32_t)-1), absent arrays NULL.
 */
struct perfdata_record {
	const struct perf_event_header *header; /* native byte order */
	uint64_t offset;			/* of the record in the file, for messages */
	uint32_t type;
	uint16_t misc;
	uint8_t cpumode;	      /* misc & PERF_RECORD_MISC_CPUMODE_MASK */
	struct perfdata_evsel *evsel; /* NULL where no id tells and there is more than one */

	/* sample, or trailer of sample_id_all */
	uint64_t time, id, stream_id;
	uint32_t pid, tid, cpu;
	/* from ID_INDEX by id: 0 host. The record is about that machine if cpumode is a guest's. */
	int32_t machine_pid;
	int32_t vcpu; /* -1 unknown */

	/* PERF_RECORD_SAMPLE */
	uint64_t ip, addr;
	uint64_t period;       /* where samples have none: the event's sample_period */
	const uint64_t *chain; /* with markers; ip is not added */
	uint64_t chain_len;
	const struct perfdata_branch *branches;
	uint64_t nr_branches;
	bool branch_msb; /* the file's bit fields begin at the highest bit */
	uint64_t weight;
	uint16_t weight2, weight3; /* of WEIGHT_STRUCT: what they are depends on the processor */
	const void *raw;	   /* a tracer's bytes, in the file's byte order */
	uint32_t raw_size;
	const struct perfdata_parts *parts; /* NULL: it has none of these */

	/* COMM FORK EXIT MMAP MMAP2 LOST ...; of a sample undefined */
	union {
		struct {
			const char *comm;
			bool exec;
			uint32_t by_pid, by_tid; /* of the trailer: who has given that name */
		} comm;				 /* pid and tid are whose name it is */
		struct {
			uint32_t pid, ppid, tid, ptid;
			uint64_t time;
		} task; /* FORK and EXIT */
		struct {
			uint32_t pid, tid;
			uint64_t start, len, pgoff;
			uint32_t maj, min;
			uint64_t ino, ino_generation;
			uint32_t prot, flags;
			const uint8_t *build_id; /* or NULL */
			uint8_t build_id_len;
			bool is_data; /* PERF_RECORD_MISC_MMAP_DATA or no PROT_EXEC in an MMAP2 */
			const char *filename;
		} mmap; /* MMAP and MMAP2; pid and tid of COMM are in the record's own */
		struct {
			uint64_t start, len;
			uint16_t type;	 /* PERF_RECORD_KSYMBOL_TYPE_* */
			bool unregister; /* it is gone */
			const char *name;
		} ksymbol;
		struct {
			uint64_t id, lost;
		} lost; /* LOST and LOST_SAMPLES */
		struct {
			uint32_t pid, tid;
		} other; /* SWITCH_CPU_WIDE: who ran before, or runs next */
		struct {
			const char *word, *json;
		} private; /* MMAP2 of PERFDATA_PRIVATE_PID, type stays MMAP2: test is_private */
	};
	bool is_private;
};

/* Where struct perf_branch_entry has its fields, in bits. */
#define PERFDATA_BRANCH_MISPRED	  0, 1
#define PERFDATA_BRANCH_PREDICTED 1, 1
#define PERFDATA_BRANCH_IN_TX	  2, 1
#define PERFDATA_BRANCH_ABORT	  3, 1
#define PERFDATA_BRANCH_CYCLES	  4, 16
#define PERFDATA_BRANCH_TYPE	  20, 4
#define PERFDATA_BRANCH_NEW_TYPE  26, 4

static inline uint64_t perfdata_branch_bits(const struct perfdata_record *rec,
					    const struct perfdata_branch *b, unsigned at,
					    unsigned n)
{
	return b->flags >> (rec->branch_msb ? 64 - at - n : at) & ((UINT64_C(1) << n) - 1);
}

/* @path: NULL is "perf.data", "-" standard input. */
int perfdata_reader_open(struct perfdata_reader **r, const char *path, struct vmprof_err *err);
/*
 * The same of a file or pipe that is open: @fd is duplicated, its position is not used if it is a
 * file. @name is for messages.
 */
int perfdata_reader_open_fd(struct perfdata_reader **r, int fd, const char *name,
			    struct vmprof_err *err);
void perfdata_reader_close(struct perfdata_reader *r);

/*
 * Calls @fn for every record of the kernel's types in time order (records without a time come where
 * they stand); perf's own types (64 and above) are used up or counted by the reader. @fn's negative
 * return ends the run and is returned. A reader can be run once.
 *
 * Damage in the file: what is whole before it has been handed out, then -EBADMSG with a sentence
 * that has file, offset and cause. If only the body of a record is damaged, the others behind it
 * have been handed out as well (stats.broken).
 */
int perfdata_reader_run(struct perfdata_reader *r,
			int (*fn)(void *ctx, const struct perfdata_record *rec), void *ctx,
			struct vmprof_err *err);

/*
 * For those who do not run it: 0, or -EBADMSG with the sentence on the damage that opening the file
 * has met.
 */
int perfdata_reader_damage(const struct perfdata_reader *r, struct vmprof_err *err);

size_t perfdata_reader_nr_evsels(const struct perfdata_reader *r);
struct perfdata_evsel *perfdata_reader_evsel(const struct perfdata_reader *r, size_t i);
const char *perfdata_reader_path(const struct perfdata_reader *r);
/* It was recorded into a pipe, wherever it is now. */
bool perfdata_reader_is_pipe(const struct perfdata_reader *r);

/* Feature strings; NULL where the file has none. */
bool perfdata_reader_has_feature(const struct perfdata_reader *r, enum perfdata_feature feature);
const char *perfdata_reader_feature_str(const struct perfdata_reader *r,
					enum perfdata_feature feature);
/* The section's bytes, valid as long as @r; false: there are none, or of another byte order. */
bool perfdata_reader_feature_raw(const struct perfdata_reader *r, enum perfdata_feature feature,
				 const void **data, size_t *size);
void perfdata_reader_clock(const struct perfdata_reader *r, struct perfdata_clock *clock);
void perfdata_reader_host(const struct perfdata_reader *r, struct perfdata_host *host);
/* Times of the first and the last sample, as the recorder has noted them; false: it has not. */
bool perfdata_reader_sample_times(const struct perfdata_reader *r, uint64_t *first, uint64_t *last);
/* The features as perf report --header prints them, "# ..." lines; @full: as with -I. */
void perfdata_reader_print_header(const struct perfdata_reader *r, FILE *f, bool full);

/*
 * Events that were recorded as a group: @nr of them (two at least), from event @leader on, all of
 * which are there. The struct is the iterator as well: all 0 at first. Groups come in the order of
 * the events and have none in common.
 */
struct perfdata_group {
	const char *name; /* NULL: it has none */
	uint32_t leader, nr;
	size_t at; /* the reader's */
};
bool perfdata_reader_next_group(const struct perfdata_reader *r, struct perfdata_group *g);

/* Build ids of the BUILD_ID feature. */
struct perfdata_reader_build_id {
	int32_t pid;
	uint16_t cpumode;
	const uint8_t *id;
	uint8_t len;
	const char *filename;
};
size_t perfdata_reader_build_ids(const struct perfdata_reader *r,
				 const struct perfdata_reader_build_id **ids);

/* A tracepoint as the kernel described it when the file was made (TRACING_DATA). */
struct perfdata_tracepoint {
	uint64_t id;	    /* attr.config of its events */
	const char *system; /* "sched" */
	char *name;	    /* "sched:sched_switch" */
	const char *format; /* text of tracefs' file, in no way checked, not terminated */
	size_t size;
};
struct perfdata_tracing {
	bool big_endian;
	unsigned long_size; /* of the kernel's long; not checked */
	uint32_t page_size;
	struct perfdata_tracepoint *points; /* by id */
	size_t nr_points;
	const char *printk; /* lines "ADDRESS : \"TEXT\"", not terminated; NULL: none */
	size_t printk_size;
};
/* NULL: the file has none, or not yet, if it is a pipe that is being read. */
const struct perfdata_tracing *perfdata_reader_tracing(const struct perfdata_reader *r);
const struct perfdata_tracepoint *perfdata_reader_tracepoint(const struct perfdata_reader *r,
							     uint64_t id);

struct perfdata_reader_stats {
	uint64_t records[256]; /* by type; 255 counts 255 and above */
	uint64_t total;
	uint64_t unknown;	   /* records of a type that this reader does not know, skipped */
	uint64_t unknown_features; /* bits of the header that this reader does not know */
	uint64_t empty_compressed; /* records that hold no compressed data, skipped */
	uint64_t broken;	   /* records with a body that makes no sense, skipped */
	uint64_t no_event;	   /* samples whose id no event has */
	uint64_t out_of_order; /* handed out late: a round was not finished when it should have been
				*/
	uint64_t lost;	       /* sum of LOST and LOST_SAMPLES */
	uint64_t aux_bytes;    /* of AUX areas (traces of the processor), skipped */
	uint64_t first_time, last_time; /* of samples; 0 if there are none */
};
const struct perfdata_reader_stats *perfdata_reader_get_stats(const struct perfdata_reader *r);

#endif
