// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/merge. Each input is read twice: once to learn what is in it (scan.c), from which the
 * plan follows (vms.c, clock.c, events.c, overlap.c), and once to translate its records
 * (translate.c) in a thread of its own (feed.c), whose outcome merge.c puts in order and writes.
 */
#ifndef VMPROF_MERGE_IMPL_H
#define VMPROF_MERGE_IMPL_H

#include <json-c/json.h>

#include "merge/merge.h"
#include "perfdata/reader.h"
#include "perfdata/writer.h"
#include "util/buf.h"
#include "util/hashmap.h"

#define MERGE_HOST	  (-1)	  /* pid of what is no guest, in an input */
#define MERGE_SOURCES_MAX 4096	  /* machines in one input */
#define MERGE_VCPUS_MAX	  4096	  /* higher numbers are no vCPUs */
#define MERGE_EVENTS_MAX  4096	  /* of the output */
#define MERGE_IDS_MAX	  200000  /* of the output: event, VM, vCPU */
#define MERGE_NAME_MAX	  200	  /* bytes of a VM's name, as in vmprof.data(5) */
#define MERGE_TYPES	  64	  /* of the kernel's records */
#define MERGE_FACTS_MAX	  200000  /* what was recorded of guests' clocks, in all inputs */
#define MERGE_FIRST_PID	  4194305 /* above all pids: for VMs of which no pid is known */

/* A machine of the output. The first one is the host. */
struct merge_vm {
	uint32_t index;
	int32_t pid; /* 0 the host */
	uint64_t id; /* of the output, for its side-band */
	char *name;  /* escaped */
	char *uuid;  /* or NULL */
	bool named;
	bool has_kernel; /* some input knows its kernel by a real build id */
	bool nobody;	 /* there are samples of it that no process is known for */
	char *vm_json;	 /* what a recorder said of it, or NULL */
	struct json_object *stats;
};

/* A machine of an input. */
struct merge_source {
	uint32_t index;
	int32_t pid;
	struct merge_vm *vm;
	bool own;   /* what is not a guest in this input is this VM: recorded in it */
	char *name; /* by a "vm" record, or NULL */
	char *uuid;
	char *vm_json, *stats_json;
	bool has_kernel;
	bool has_maps;
	char *kernel;	/* name of a mapping of it that has no build id of its own */
	bool host_pids; /* its samples have the pid of the process on the host that is the VM */
	uint64_t samples, duplicates;
	uint64_t lost, lost_records; /* by LOST_SAMPLES, by LOST */
};

/* A time in which another input's samples of the same VM and event are the ones that count. */
struct merge_interval {
	uint64_t first, last; /* of the output's clock */
};

/* Samples of one event, machine and vCPU of an input. */
struct merge_combo {
	uint32_t event; /* of the input */
	struct merge_source *source;
	int32_t vcpu;
	uint64_t out_id;
	bool flat;     /* no sample of the output's event has a chain */
	bool copies;   /* its samples have copies of registers and stack */
	uint64_t regs; /* of these registers: a copy of others is left out */
	struct merge_interval *yield;
	size_t nr_yield;
};

enum merge_align {
	MERGE_REFERENCE,
	MERGE_SAME_CLOCK,
	MERGE_WALL_CLOCK,
	MERGE_GIVEN,
	MERGE_RECORDED,
	MERGE_NONE,
};

struct merge_input {
	const char *path;
	char *shown;			/* of @path, for messages */
	char *label;			/* escaped, or NULL */
	int fd;				/* -1: a directory */
	struct perfdata_reader *header; /* of the first pass */
	bool in_guest;			/* recorded in the VM of its label */
	bool merged;			/* it is a merged file, */
	bool unaligned;			/* and has no common time line */
	struct merge_source **sources;	/* the first one is MERGE_HOST */
	size_t nr_sources, cap_sources;
	struct hashmap source_by_pid;
	struct hashmap build_ids; /* by a hash of machine and name */
	struct hashmap combos;	  /* by combo_key() */
	struct merge_combo *last_combo;
	uint64_t last_key;
	uint64_t start;	      /* time of its first record that has one */
	uint64_t first, last; /* of samples */
	uint64_t samples;
	struct perfdata_clock clock;
	enum merge_align align;
	int64_t offset;		    /* what is added to its times; MERGE_RECORDED: to its first */
	struct merge_point *points; /* MERGE_RECORDED: the offset as it changes */
	size_t nr_points;
	int64_t error;	  /* MERGE_RECORDED: the offset is within this of the right one */
	uint32_t *events; /* of the output, by the input's; UINT32_MAX: none */
	uint64_t left_out[MERGE_TYPES]; /* records by type */
	uint64_t chains_cut;
	int broken; /* -EBADMSG: it is damaged, */
	struct vmprof_err damage;
};

/* What is to be added to an input's times at @time, one of them; between points it is a line. */
struct merge_point {
	int64_t time, offset, error;
};

struct merge_event {
	char *name;
	struct perf_event_attr attr;
	bool chains;
	uint32_t group_size; /* it leads so many, itself among them; 0: it does not lead */
	char *group_name;    /* or NULL */
	bool in_group;
	uint64_t *ids;
	size_t nr_ids, cap_ids;
};

/* "clock" records: the clock of the file that has them, less a clock of the guest's. */
struct merge_clock_fact {
	struct merge_input *input;
	uint64_t time; /* when that was so, by the file's clock */
	struct merge_source *source;
	bool known; /* clockid, else sched_clock */
	int32_t id;
	int64_t offset, error;
};

struct merge {
	const struct merge_options *opts;
	struct merge_input *inputs;
	size_t nr_inputs;
	struct merge_vm **vms;
	size_t nr_vms, cap_vms;
	struct hashmap vm_pids; /* taken pids of the output */
	struct merge_event *events;
	size_t nr_events, cap_events;
	struct perfdata_id_entry *ids;
	size_t nr_ids, cap_ids;
	struct hashmap id_by_key;
	struct merge_clock_fact *facts;
	size_t nr_facts, cap_facts;
	struct merge_input *reference;
	uint64_t start; /* of the output's clock */
	bool no_align;
	char *tmp_dir; /* where inputs that cannot be read twice are kept */
};

/* ---------- signals.c ---------- */

void merge_block_signals(void);
int merge_pending_signal(void); /* 0: none has come */

/* ---------- input.c ---------- */

int merge_open_inputs(struct merge *m, struct vmprof_err *err);
/* A reader of its own of an input. */
int merge_open_reader(const struct merge_input *in, struct perfdata_reader **r,
		      struct vmprof_err *err);
void merge_free_inputs(struct merge *m);

/* ---------- scan.c ---------- */

int merge_scan(struct merge *m, struct merge_input *in, struct vmprof_err *err);
/* Whose record it is; NULL if the input has no such machine. */
struct merge_source *merge_source_of(const struct merge_input *in,
				     const struct perfdata_record *rec);
struct merge_combo *merge_combo_of(struct merge_input *in, const struct perfdata_record *rec,
				   const struct merge_source *source);
bool merge_is_guest_mode(uint8_t cpumode);

/* ---------- json.c ---------- */

/* An object, or NULL. json_object_put() it. */
struct json_object *merge_json_parse(const char *text);
bool merge_json_int(struct json_object *o, const char *key, int64_t *value);
const char *merge_json_str(struct json_object *o, const char *key); /* NULL: none, or "" */
/* @from's numbers are added to @to's, one level deep; of clock_error the larger one holds, of
 * sentences the last one. */
void merge_json_add(struct json_object *to, struct json_object *from);

/* ---------- vms.c ---------- */

int merge_plan_vms(struct merge *m, struct vmprof_err *err);
void merge_free_vms(struct merge *m);

/* ---------- clock.c ---------- */

int merge_plan_clocks(struct merge *m, struct vmprof_err *err);
uint64_t merge_time(const struct merge_input *in, uint64_t time);
const char *merge_align_name(enum merge_align a);
const char *merge_clock_name(const struct perfdata_clock *c);

/* ---------- recorded.c: a guest's clock as a recorder on the host has seen it ---------- */

/* The points of a guest's file. 0; -ENOENT: nothing was recorded; -ERANGE with a sentence. */
int merge_recorded_points(const struct merge *m, struct merge_input *in, struct vmprof_err *err);
int64_t merge_recorded_offset(const struct merge_input *in, int64_t time);

/* ---------- events.c ---------- */

int merge_plan_events(struct merge *m, struct vmprof_err *err);
void merge_free_events(struct merge *m);
/* An id for what is said of an event (UINT32_MAX: none in particular) as a whole. */
uint64_t merge_event_id(const struct merge *m, uint32_t event, const struct merge_vm *vm);
/* The parts of an event's samples that the output has no room for, as text; "" none. */
void merge_parts_left_out(const struct merge_event *o, const struct perfdata_evsel *e, char *out,
			  size_t size);

/* ---------- overlap.c ---------- */

void merge_plan_overlaps(struct merge *m);

/* ---------- translate.c, names.c ---------- */

struct merge_translator {
	struct merge *m;
	struct merge_input *in;
	struct buf chain;
	uint64_t key; /* time of the last record: those without one come behind it */
};
/* One record of the input into records of the output, appended to @out; t->key: their time. */
int merge_translate(struct merge_translator *t, const struct perfdata_record *rec, struct buf *out);

/* What a DSO of a guest is called in the output. */
void merge_dso_name(const struct merge_input *in, const struct merge_source *src, bool kernel,
		    const char *name, char *out, size_t size);
/* "VM:comm", whatever stands before it in the input. */
void merge_comm(const struct merge_source *src, const char *comm, char *out, size_t size);
bool merge_is_kernel_name(const char *name);
void merge_index_build_ids(struct merge_input *in); /* once its first pass is over */
/* The BUILD_ID feature's id of a DSO of the input, or NULL. */
const struct perfdata_reader_build_id *
merge_find_build_id(const struct merge_input *in, const struct merge_source *src, const char *name);
void merge_add_build_ids(struct merge *m, struct perfdata_writer *w);

/* ---------- marks.c: what the file says of its making ---------- */

void merge_encode_start(struct merge *m, struct buf *out);
void merge_encode_end(struct merge *m, struct buf *out, uint64_t time);

/* ---------- feed.c ---------- */

struct merge_feed;
/* Starts to read and translate @in in a thread. */
int merge_feed_start(struct merge_feed **f, struct merge *m, struct merge_input *in,
		     struct vmprof_err *err);
/* 1: the next record or records, valid until the next call; 0: there are no more. */
int merge_feed_next(struct merge_feed *f, uint64_t *time, const uint8_t **bytes, size_t *n);
/* Ends the thread. 0, or what reading has failed with. */
int merge_feed_end(struct merge_feed *f, struct vmprof_err *err);

/* ---------- store.c ---------- */

/* The symbols beside the inputs, beside the output. What could not be had is said. */
void merge_stores(struct merge *m);

/* ---------- say.c ---------- */

void merge_say(const struct merge *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void merge_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void merge_say_input(const struct merge *m, const struct merge_input *in);

#endif
