// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records to bytes. Each function appends one whole record to a buffer, which any thread may own;
 * perfdata_writer_append() later takes the buffer. The form is fixed: every event has
 * PERFDATA_SAMPLE_TYPE and sample_id_all, so that encoding needs no attribute.
 */
#ifndef VMPROF_PERFDATA_ENCODE_H
#define VMPROF_PERFDATA_ENCODE_H

#include "perfdata/format.h"
#include <stdbool.h>

#include "util/buf.h"

/*
 * CALLCHAIN is in as well; a sample without one has nr = 0. An event can do without it altogether
 * (perfdata_event.no_chains): its samples then end before nr.
 */
#define PERFDATA_SAMPLE_TYPE                                                                       \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)

/* What every record carries (sample, or trailer of sample_id_all). */
struct perfdata_id {
	uint64_t id; /* the event's id for this (VM, vCPU) */
	uint64_t time;
	uint32_t pid, tid, cpu;
	uint16_t cpumode; /* PERF_RECORD_MISC_* */
};

struct perfdata_map {
	uint64_t start, len, pgoff;
	uint32_t prot, flags;
	const char *filename;
	const uint8_t *build_id; /* NULL: maj, min, ino instead */
	uint8_t build_id_len;	 /* at most 20 */
	uint32_t maj, min;
	uint64_t ino, ino_generation;
};

#define PERFDATA_NO_CHAINS UINT32_MAX /* as @chain_len: the event has none */
void perfdata_encode_sample(struct buf *b, const struct perfdata_id *id, uint64_t ip,
			    uint64_t period, const uint64_t *chain, uint32_t chain_len);
/* A sample's copy of user registers and stack; all zero where it has none. */
struct perfdata_user_copy {
	uint64_t abi;	      /* PERF_SAMPLE_REGS_ABI_*; NONE: no registers */
	const uint64_t *regs; /* one for each bit of the event's mask */
	unsigned nr_regs;
	const void *stack;
	uint64_t stack_size;
};
/* Frames of a chain that leave half of a record for the copy. */
#define PERFDATA_CHAIN_BESIDE_COPY 4096
/*
 * Puts @c behind the sample that begins at @at and is the last in @b: each one of an event with
 * user_copies needs it. Of the stack so much is taken as a record has room for.
 */
void perfdata_encode_user_copy(struct buf *b, size_t at, const struct perfdata_user_copy *c);
void perfdata_encode_comm(struct buf *b, const struct perfdata_id *id, const char *comm, bool exec);
/* KSYMBOL of type BPF or OOL; no more than 4 GiB long. */
void perfdata_encode_ksymbol(struct buf *b, const struct perfdata_id *id, uint64_t start,
			     uint64_t len, uint16_t type, const char *name);
/* FORK or EXIT (@type) */
void perfdata_encode_task(struct buf *b, uint32_t type, const struct perfdata_id *id, uint32_t ppid,
			  uint32_t ptid);
void perfdata_encode_mmap2(struct buf *b, const struct perfdata_id *id,
			   const struct perfdata_map *map);
void perfdata_encode_lost_samples(struct buf *b, const struct perfdata_id *id, uint64_t lost);
/*
 * Any other record: @body as it is, @n bytes, filled up to 8, and the trailer. -E2BIG if that is
 * more than a record can be.
 */
int perfdata_encode_other(struct buf *b, uint32_t type, const struct perfdata_id *id,
			  const void *body, size_t n);
/* @word and JSON text, see PERFDATA_PRIVATE_PREFIX. -E2BIG if longer than PERFDATA_PRIVATE_MAX. */
int perfdata_encode_private(struct buf *b, const struct perfdata_id *id, const char *word,
			    const char *json);

struct perfdata_id_entry {
	uint64_t id, idx, cpu, tid; /* cpu, tid: (uint64_t)-1 for any */
	uint64_t machine_pid, vcpu; /* machine_pid 0: host */
};
void perfdata_encode_id_index(struct buf *b, const struct perfdata_id_entry *e, size_t n);

#endif
