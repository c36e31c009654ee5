// SPDX-License-Identifier: GPL-2.0-only
#include "perfdata/encode.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* A record's size is 16 bits wide and a multiple of 8. */
#define RECORD_MAX 0xfff8u
/* perf keeps names in PATH_MAX bytes. */
#define NAME_MAX_BYTES 4095u
#define TRAILER_SIZE   32u /* pid tid, time, cpu res, identifier */
#define SAMPLE_FIXED   64u /* header to the number of chain entries */
#define CHAIN_MAX      ((RECORD_MAX - SAMPLE_FIXED) / 8)
#define ID_INDEX_MAX   1364u /* entries of 32 + 16 bytes that fit into one record */

static size_t begin(struct buf *b, uint32_t type, uint16_t misc)
{
	size_t at = b->len;
	struct perf_event_header h = {.type = type, .misc = misc};

	buf_add(b, &h, sizeof(h));
	return at;
}

static void end(struct buf *b, size_t at)
{
	uint16_t size = (uint16_t)(b->len - at);

	memcpy(b->data + at + offsetof(struct perf_event_header, size), &size, sizeof(size));
}

static void two_u32(struct buf *b, uint32_t x, uint32_t y)
{
	buf_u32(b, x);
	buf_u32(b, y);
}

/* @s with its NUL, padded to 8 bytes. */
static void string(struct buf *b, const char *s)
{
	size_t n = strnlen(s, NAME_MAX_BYTES);

	buf_add(b, s, n);
	buf_zero(b, 8 - n % 8);
}

/* The fields of PERFDATA_SAMPLE_TYPE in the order of sample_id_all. */
static void trailer(struct buf *b, const struct perfdata_id *id)
{
	two_u32(b, id->pid, id->tid);
	buf_u64(b, id->time);
	two_u32(b, id->cpu, 0);
	buf_u64(b, id->id);
}

void perfdata_encode_sample(struct buf *b, const struct perfdata_id *id, uint64_t ip,
			    uint64_t period, const uint64_t *chain, uint32_t chain_len)
{
	bool flat = chain_len == PERFDATA_NO_CHAINS;
	uint32_t n = flat ? 0 : chain_len < CHAIN_MAX ? chain_len : CHAIN_MAX;
	uint32_t fixed = SAMPLE_FIXED - (flat ? 8 : 0);
	struct {
		struct perf_event_header header;
		uint64_t id, ip;
		uint32_t pid, tid;
		uint64_t time;
		uint32_t cpu, res;
		uint64_t period, nr;
	} s = {
		.header = {.type = PERF_RECORD_SAMPLE,
			   .misc = id->cpumode,
			   .size = (uint16_t)(fixed + n * 8)},
		.id = id->id,
		.ip = ip,
		.pid = id->pid,
		.tid = id->tid,
		.time = id->time,
		.cpu = id->cpu,
		.period = period,
		.nr = n,
	};

	_Static_assert(sizeof(s) == SAMPLE_FIXED, "a sample has no holes");
	buf_add(b, &s, fixed);
	buf_add(b, chain, (size_t)n * 8);
}

void perfdata_encode_user_copy(struct buf *b, size_t at, const struct perfdata_user_copy *c)
{
	size_t room;
	uint64_t size;

	buf_u64(b, c->abi);
	if (c->abi)
		buf_add(b, c->regs, (size_t)c->nr_regs * 8);
	room = RECORD_MAX - (b->len - at) - 16; /* its size, and how much of it is valid */
	size = c->stack_size < room ? c->stack_size : room;
	size -= size % 8;
	buf_u64(b, size);
	if (size) {
		buf_add(b, c->stack, size);
		buf_u64(b, size);
	}
	end(b, at);
}

void perfdata_encode_comm(struct buf *b, const struct perfdata_id *id, const char *comm, bool exec)
{
	size_t at =
		begin(b, PERF_RECORD_COMM, id->cpumode | (exec ? PERF_RECORD_MISC_COMM_EXEC : 0));

	two_u32(b, id->pid, id->tid);
	string(b, comm);
	trailer(b, id);
	end(b, at);
}

void perfdata_encode_ksymbol(struct buf *b, const struct perfdata_id *id, uint64_t start,
			     uint64_t len, uint16_t type, const char *name)
{
	size_t at = begin(b, PERF_RECORD_KSYMBOL, id->cpumode);

	buf_u64(b, start);
	buf_u32(b, (uint32_t)len);
	buf_u16(b, type);
	buf_u16(b, 0);
	string(b, name);
	trailer(b, id);
	end(b, at);
}

void perfdata_encode_task(struct buf *b, uint32_t type, const struct perfdata_id *id, uint32_t ppid,
			  uint32_t ptid)
{
	size_t at = begin(b, type, id->cpumode);

	two_u32(b, id->pid, ppid);
	two_u32(b, id->tid, ptid);
	buf_u64(b, id->time);
	trailer(b, id);
	end(b, at);
}

static void map_identity(struct buf *b, const struct perfdata_map *map)
{
	uint8_t id[24] = {0};

	if (!map->build_id) {
		two_u32(b, map->maj, map->min);
		buf_u64(b, map->ino);
		buf_u64(b, map->ino_generation);
		return;
	}
	id[0] = map->build_id_len <= 20 ? map->build_id_len : 20;
	memcpy(id + 4, map->build_id, id[0]);
	buf_add(b, id, sizeof(id));
}

void perfdata_encode_mmap2(struct buf *b, const struct perfdata_id *id,
			   const struct perfdata_map *map)
{
	uint16_t misc = id->cpumode | (map->build_id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0);
	size_t at = begin(b, PERF_RECORD_MMAP2, misc);

	two_u32(b, id->pid, id->tid);
	buf_u64(b, map->start);
	buf_u64(b, map->len);
	buf_u64(b, map->pgoff);
	map_identity(b, map);
	two_u32(b, map->prot, map->flags);
	string(b, map->filename);
	trailer(b, id);
	end(b, at);
}

void perfdata_encode_lost_samples(struct buf *b, const struct perfdata_id *id, uint64_t lost)
{
	size_t at = begin(b, PERF_RECORD_LOST_SAMPLES, id->cpumode);

	buf_u64(b, lost);
	trailer(b, id);
	end(b, at);
}

int perfdata_encode_other(struct buf *b, uint32_t type, const struct perfdata_id *id,
			  const void *body, size_t n)
{
	size_t padded = (n + 7) / 8 * 8, at;

	if (padded > RECORD_MAX - sizeof(struct perf_event_header) - TRAILER_SIZE)
		return -E2BIG;
	at = begin(b, type, id->cpumode);
	buf_add(b, body, n);
	buf_zero(b, padded - n);
	trailer(b, id);
	end(b, at);
	return 0;
}

int perfdata_encode_private(struct buf *b, const struct perfdata_id *id, const char *word,
			    const char *json)
{
	struct perfdata_id own = *id;
	char name[PERFDATA_PRIVATE_MAX];
	struct perfdata_map map = {
		.len = 4096, .prot = PROT_READ, .flags = MAP_PRIVATE, .filename = name};
	int n = snprintf(name, sizeof(name), PERFDATA_PRIVATE_PREFIX "%s %s", word, json);

	if (n < 0 || (size_t)n >= sizeof(name))
		return -E2BIG;
	/* A host process that does not exist: no guest machine comes into being by it. */
	own.pid = own.tid = PERFDATA_PRIVATE_PID;
	own.cpumode = PERF_RECORD_MISC_USER;
	perfdata_encode_mmap2(b, &own, &map);
	return 0;
}

static void id_index(struct buf *b, const struct perfdata_id_entry *e, size_t n)
{
	size_t at = begin(b, PERFDATA_ID_INDEX, 0);

	buf_u64(b, n);
	for (size_t i = 0; i < n; i++) {
		buf_u64(b, e[i].id);
		buf_u64(b, e[i].idx);
		buf_u64(b, e[i].cpu);
		buf_u64(b, e[i].tid);
	}
	for (size_t i = 0; i < n; i++) {
		buf_u64(b, e[i].machine_pid);
		buf_u64(b, e[i].vcpu);
	}
	end(b, at);
}

void perfdata_encode_id_index(struct buf *b, const struct perfdata_id_entry *e, size_t n)
{
	for (size_t done = 0; done < n; done += ID_INDEX_MAX)
		id_index(b, e + done, n - done < ID_INDEX_MAX ? n - done : ID_INDEX_MAX);
}
