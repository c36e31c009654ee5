// SPDX-License-Identifier: GPL-2.0-only
/*
 * The inside of the reader, shared by its files only.
 *
 *   reader.c         open, close, the walk over the records, what is asked of the reader
 *   reader_dir.c     directories of perf record --threads
 *   reader_header.c  PERFILE2 header, attributes, ids, features; their records in a pipe
 *   source.c         bytes: chunks of the file or pipe, memory bound
 *   decompress.c     bytes: COMPRESSED bodies
 *   swap.c           records of the other byte order
 *   order.c          time order
 *   parse*.c         record to struct perfdata_record
 *   feature.c        feature sections; feature_print.c, feature_bpf.c, attr_print.c: as text
 *   event_name.c     names of events that have none in the file
 *   tracing.c        formats of tracepoints
 *
 * Records are walked once where they lie in a chunk. A stretch of them with rising times is a run;
 * runs are merged when a round is finished. Thus nothing is allocated for a record, and memory is
 * bounded by the chunks that hold runs.
 */
#ifndef VMPROF_PERFDATA_READER_IMPL_H
#define VMPROF_PERFDATA_READER_IMPL_H

#include "perfdata/reader.h"
#include "util/buf.h"
#include "util/hashmap.h"

#define RECORD_MAX 0xffffu

/* ------------------------------------------------------------------ chunks (source.c) */

struct chunk {
	uint8_t *buf;	 /* 8-byte aligned; NULL: given back, to be read again from the file */
	int fd;		 /* where it can be read again */
	uint64_t offset; /* in the file, of buf[0] */
	uint32_t len, cap;
	uint32_t refs;
	bool reloadable;
	bool pinned;		   /* being walked or delivered: not to be given back */
	struct chunk *prev, *next; /* in the list of those that have memory, oldest first */
};

/* A walk over chunks: the file itself, or what was decompressed. */
struct source {
	struct chunk *cur;
	uint32_t pos;
};

struct chunk_pool {
	struct chunk head; /* of the list of chunks with memory */
	uint8_t *spare[8]; /* buffers of the common size, to be used again */
	unsigned nr_spare;
	uint64_t bytes;	      /* in chunks that have memory */
	uint64_t pinned_down; /* of these: in chunks that cannot be read again */
};

/* ------------------------------------------------------------------ events */

#define NO_FIELD 0xff

/* Where a sample type has its fields, in words of 8 bytes. */
struct sample_layout {
	uint64_t type, read_format, branch_type;
	unsigned fixed_words; /* least size of a sample's body */
	uint8_t time, id;     /* in a sample, from the start of the body */
	uint8_t tail_words;   /* of a trailer */
	uint8_t tail_tid, tail_time, tail_id, tail_stream, tail_cpu; /* from the end, 1 the last */
	uint64_t regs_user, regs_intr;				     /* masks */
};

struct evsel {
	struct perfdata_evsel pub; /* first */
	struct sample_layout layout;
	bool named; /* by the file, not only by its attribute */
};

/* Counter values in a sample (PERF_SAMPLE_READ). */
struct read_values {
	const uint64_t *values; /* NULL: none, or none with ids */
	uint64_t nr;
	unsigned stride, id_at; /* words of an entry; where its id is */
};

struct id_entry {
	uint64_t id;
	uint64_t value; /* the last one read */
	struct evsel *evsel;
	int32_t machine_pid, vcpu;
};

/* ------------------------------------------------------------------ order (order.c) */

/* Records [pos, end) of a chunk, times not falling. */
struct run {
	uint64_t time; /* of the record at pos */
	uint64_t seq;  /* in the order of the file */
	struct chunk *chunk;
	uint32_t pos, end;
};

struct order {
	struct run *heap; /* by time, then seq */
	size_t nr, cap;
	uint64_t seq;
	struct run open; /* being extended; chunk NULL: none */
	uint64_t open_last;
	uint64_t max_time;   /* of all that was queued */
	uint64_t round_time; /* max_time at the end of the round before this one */
	uint64_t delivered;  /* time of the last record handed out */
};

/* ------------------------------------------------------------------ the reader */

struct feature {
	bool present;
	bool loaded;
	uint64_t offset, size; /* of the section; of a pipe only size */
	struct buf data;
};

#define NR_FEATURES 64

struct perfdata_reader {
	char *path; /* for messages */
	int fd;
	char *dir;  /* of perf record --threads: its other files are data.0, data.1 ... */
	char *part; /* the one of these that is being read, for messages */
	int *fds;   /* of all of them: chunks may be read again */
	size_t nr_fds, fds_cap;
	bool seekable;
	bool pipe; /* pipe form: no header sections */
	bool swap;
	uint64_t file_size; /* of a seekable file */
	uint64_t file_pos;  /* next byte to read from fd */
	uint64_t data_end;  /* where reading stops; UINT64_MAX of a pipe */
	struct perfdata_file_header header;
	int64_t mtime;

	struct feature features[NR_FEATURES];
	struct perfdata_reader_build_id *build_ids;
	size_t nr_build_ids, build_ids_cap;
	bool has_tracing;
	struct perfdata_tracing tracing;
	size_t points_cap;

	struct evsel **evsels;
	size_t nr_evsels, evsels_cap;
	uint64_t nr_ids;
	struct hashmap ids;		 /* id -> struct id_entry */
	struct id_entry *recent_ids[64]; /* by the lowest bits of the id */
	bool uniform;			 /* all events have one layout */
	bool any_raw;			 /* an event has RAW */
	bool raw_turned; /* RAW's size is still turned as a word: swap.c looks where it is */

	struct chunk_pool pool;
	struct source file, decomp;
	void *zstd;
	struct order order;

	int (*fn)(void *ctx, const struct perfdata_record *rec);
	void *ctx;
	uint64_t scratch[RECORD_MAX / 8 + 1]; /* a record that lies unaligned */
	struct read_values read;	      /* of the sample parsed last */
	struct perfdata_parts parts;	      /* of the same */
	char private_word[PERFDATA_PRIVATE_MAX];

	int stop;   /* what the caller's function returned to end the run */
	int damage; /* -errno of the first damage, */
	struct vmprof_err damage_err;
	bool ran;
	struct perfdata_reader_stats stats;
};

/* source.c */
struct chunk *chunk_new(struct perfdata_reader *r, uint32_t cap);
void chunk_put(struct perfdata_reader *r, struct chunk *c);
void chunk_ensure(struct perfdata_reader *r, struct chunk *c);
void chunk_pool_init(struct chunk_pool *p);
void chunk_pool_free(struct chunk_pool *p);
/* 1: a whole record of @size bytes at s->cur->buf + s->pos, 0: end, or -errno. */
int source_peek(struct perfdata_reader *r, struct source *s, struct perf_event_header *h);
/* Reads something behind what is there: 1, 0 at the end, or -errno. */
int source_fill(struct perfdata_reader *r, struct source *s);
int source_skip(struct perfdata_reader *r, uint64_t n, struct buf *keep);
int read_at(int fd, void *p, size_t n, uint64_t offset);
/* Too much that cannot be read again waits for the end of a round. */
bool source_overfull(const struct perfdata_reader *r);

/* decompress.c */
int decompress_record(struct perfdata_reader *r, const struct perf_event_header *h,
		      const uint8_t *record, uint64_t offset);
void decompress_free(struct perfdata_reader *r);
void source_add_room(struct perfdata_reader *r, struct source *s, uint32_t room);

/* reader.c */
/* Remembers damage (the first one), and returns its code. */
int damaged(struct perfdata_reader *r, uint64_t offset, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int walk_source(struct perfdata_reader *r, struct source *s);
int walk_file(struct perfdata_reader *r);
/* Parses the record at @pos; false: it is to be skipped, and that was counted. */
bool parse_in_chunk(struct perfdata_reader *r, const struct chunk *c, uint32_t pos,
		    struct perfdata_record *rec);
int deliver_record(struct perfdata_reader *r, const struct perfdata_record *rec);

/* reader_dir.c */
int dir_open(struct perfdata_reader *r, const char *path, struct vmprof_err *err);
int dir_walk(struct perfdata_reader *r);
void dir_free(struct perfdata_reader *r);

/* reader_header.c */
int header_open(struct perfdata_reader *r, struct vmprof_err *err);
/* Records that carry what a file has in its header. 1: it was one of these. */
int header_record(struct perfdata_reader *r, const struct perf_event_header *h,
		  const uint8_t *record, uint64_t offset);
bool is_header_record(uint32_t type);
int header_tracing_data(struct perfdata_reader *r, const struct perf_event_header *h,
			uint64_t offset);
bool layouts_agree(const struct perfdata_reader *r);
struct id_entry *id_find(struct perfdata_reader *r, uint64_t id);

/* swap.c */
void swap_header(struct perf_event_header *h);
void swap_attr(struct perf_event_attr *attr);
void swap_record(struct perfdata_reader *r, uint8_t *record);
void swap_words(void *p, size_t n);
uint32_t swap_half(const struct perfdata_reader *r, uint64_t word, unsigned half);

/* order.c */
int order_queue(struct perfdata_reader *r, struct chunk *c, uint32_t pos, uint32_t size,
		uint64_t time);
void order_close_run(struct perfdata_reader *r);
int order_round(struct perfdata_reader *r);
int order_flush(struct perfdata_reader *r);
void order_free(struct perfdata_reader *r);

/* parse.c */
void layout_init(struct sample_layout *l, const struct perf_event_attr *attr);
/* 0, or -EBADMSG: too short for it. ~0: the record has no time. */
int record_time(struct perfdata_reader *r, const struct perf_event_header *h, const uint8_t *record,
		uint64_t *time);
/* 0, -ENOENT: no event has its id, or -EBADMSG with @what. @record is aligned. */
int parse_record(struct perfdata_reader *r, const uint8_t *record, uint64_t offset,
		 struct perfdata_record *rec, const char **what);

/* feature.c */
struct feature_cursor {
	const uint8_t *p, *end;
	bool swap;
	bool bad; /* something was read beyond the end; all that follows is 0 or "" */
};
void feature_set(struct perfdata_reader *r, unsigned bit, const void *data, size_t n);
/* false: the file has no such feature, or it cannot be read. */
bool feature_open(const struct perfdata_reader *r, unsigned bit, struct feature_cursor *c);
uint32_t feature_u32(struct feature_cursor *c);
uint64_t feature_u64(struct feature_cursor *c);
const char *feature_string(struct feature_cursor *c); /* never NULL */
const uint8_t *feature_bytes(struct feature_cursor *c, size_t n);
/* One event of EVENT_DESC; false: there are no more, or it is damaged. */
struct feature_event {
	struct perf_event_attr attr;
	const char *name;
	uint32_t nr_ids;
	const uint8_t *ids;
};
struct feature_events {
	struct feature_cursor c;
	uint32_t left, attr_size;
};
bool feature_open_events(const struct perfdata_reader *r, struct feature_events *it);
bool feature_next_event(struct feature_events *it, struct feature_event *e);
void feature_name_events(struct perfdata_reader *r);
/* Of a BUILD_ID record, which is also what the section consists of. */
void feature_add_build_id(struct perfdata_reader *r, const uint8_t *record, size_t size);
void feature_load_build_ids(struct perfdata_reader *r);

/* feature_bpf.c */
void feature_print_bpf_prog_info(const struct perfdata_reader *r, struct feature_cursor *c,
				 FILE *f);
void feature_print_bpf_btf(const struct perfdata_reader *r, struct feature_cursor *c, FILE *f);

/* attr_print.c */
void attr_print(const struct perf_event_attr *attr, FILE *f);

/* event_name.c */
char *event_name(const struct perf_event_attr *attr);
void event_set_name(struct evsel *e, const char *name); /* what the file calls it */

/* tracing.c */
void tracing_load(struct perfdata_reader *r); /* once there are data: again does nothing */
/* Tracepoints that have no name in the file get the kernel's. */
void tracing_name_events(struct perfdata_reader *r);
void tracing_free(struct perfdata_reader *r);

#endif
