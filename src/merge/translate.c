// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records of an input into those of the output: their time on its clock, their machine, ids and
 * names. What was recorded in a VM, where it was the system itself, becomes a guest's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "merge/impl.h"
#include "symbolize/perfmap.h"
#include "util/idhash.h"
#include "util/xalloc.h"

#define NO_PROCESS (-1) /* of samples of which only the VM is known, vmprof.data(5) */

static bool has_time(const struct perfdata_record *rec)
{
	return rec->time && rec->time != UINT64_MAX;
}

/*
 * perf's notes of how things stood when it began have no time. They get that of the beginning:
 * another input may be about the same machine, earlier.
 */
static uint64_t time_of(const struct merge_translator *t, const struct perfdata_record *rec)
{
	if (has_time(rec))
		return merge_time(t->in, rec->time);
	if (t->key)
		return t->key;
	return t->in->start ? merge_time(t->in, t->in->start) : t->m->start;
}

static bool is_kernel(uint8_t cpumode)
{
	return cpumode == PERF_RECORD_MISC_KERNEL || cpumode == PERF_RECORD_MISC_GUEST_KERNEL ||
	       cpumode == PERF_RECORD_MISC_HYPERVISOR;
}

static bool is_guest(uint8_t cpumode)
{
	return cpumode == PERF_RECORD_MISC_GUEST_KERNEL || cpumode == PERF_RECORD_MISC_GUEST_USER;
}

/*
 * The bits of misc in the output. Side-band of the kernel's says no mode: of a guest it must be a
 * guest's, since that alone ties it to its machine. A sample without one has its address.
 */
static uint16_t misc_of(const struct merge_source *src, const struct perfdata_record *rec)
{
	uint16_t flags = rec->misc & (uint16_t)~PERF_RECORD_MISC_CPUMODE_MASK;
	bool kernel = is_kernel(rec->cpumode);

	if (!src->vm->pid)
		return rec->misc;
	if (rec->cpumode == PERF_RECORD_MISC_CPUMODE_UNKNOWN)
		kernel = rec->type == PERF_RECORD_KSYMBOL ||
			 (rec->type == PERF_RECORD_SAMPLE && rec->ip >> 63);
	return flags | (kernel ? PERF_RECORD_MISC_GUEST_KERNEL : PERF_RECORD_MISC_GUEST_USER);
}

static struct perfdata_id id_of(const struct merge_translator *t, const struct merge_source *src,
				const struct perfdata_record *rec)
{
	return (struct perfdata_id){
		.id = src->vm->id,
		.time = time_of(t, rec),
		.pid = rec->pid,
		.tid = rec->tid,
		/* a guest's own CPU is a vCPU, which the id tells; which one of the host's it was
		 * nobody knows
		 */
		.cpu = src->own ? UINT32_MAX : rec->cpu,
		.cpumode = misc_of(src, rec),
	};
}

/* ------------------------------------------------------------------ samples */

static bool is_duplicate(const struct merge_combo *c, uint64_t time)
{
	for (size_t i = 0; i < c->nr_yield; i++)
		if (time >= c->yield[i].first && time <= c->yield[i].last)
			return true;
	return false;
}

/* perf drops chains with the markers for guests; 0: no marker is needed. */
static uint64_t marker_of(uint64_t marker)
{
	switch (marker) {
	case PERF_CONTEXT_GUEST_KERNEL:
		return PERF_CONTEXT_KERNEL;
	case PERF_CONTEXT_GUEST_USER:
		return PERF_CONTEXT_USER;
	case PERF_CONTEXT_GUEST:
		return 0;
	}
	return marker;
}

static void add_guest_chain(struct buf *b, const struct perfdata_record *rec)
{
	for (uint64_t i = 0; i < rec->chain_len; i++) {
		uint64_t v = rec->chain[i];

		if (v >= PERF_CONTEXT_MAX)
			v = marker_of(v);
		if (v)
			buf_u64(b, v);
	}
}

/*
 * A sample without a chain beside others that have one is its own outermost function. perf script
 * prints no address where the chain is empty.
 */
static void add_address(struct buf *b, const struct perfdata_id *id, uint64_t ip)
{
	uint8_t mode = id->cpumode & PERF_RECORD_MISC_CPUMODE_MASK;

	buf_u64(b, is_kernel(mode) ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER);
	buf_u64(b, ip);
}

/*
 * A copy is of user space where the sample was recorded: with a sample of a guest that its host
 * has recorded comes the stack of the process that is the VM, which tells nothing of the guest.
 */
static void encode_copy(const struct merge_translator *t, struct buf *out, size_t at,
			const struct perfdata_record *rec, const struct merge_combo *c)
{
	const struct perfdata_parts *parts = rec->parts;
	struct perfdata_user_copy copy = {0};

	if (parts && parts->regs_user.mask == c->regs && parts->regs_user.words &&
	    (t->in->merged || !is_guest(rec->cpumode)))
		copy = (struct perfdata_user_copy){
			.abi = parts->regs_user.abi,
			.regs = parts->regs_user.words,
			.nr_regs = (unsigned)__builtin_popcountll(parts->regs_user.mask),
			.stack = parts->stack,
			.stack_size = parts->stack_size,
		};
	perfdata_encode_user_copy(out, at, &copy);
}

static void encode_chain(struct merge_translator *t, struct buf *out,
			 const struct perfdata_record *rec, const struct merge_combo *c,
			 const struct perfdata_id *id)
{
	const uint64_t *chain = rec->chain;
	uint64_t n = rec->chain_len;
	size_t before = out->len;
	struct perf_event_header h;
	uint32_t max;

	if (c->flat) {
		perfdata_encode_sample(out, id, rec->ip, rec->period, NULL, PERFDATA_NO_CHAINS);
		return;
	}
	buf_reset(&t->chain);
	if (c->source->vm->pid && n)
		add_guest_chain(&t->chain, rec);
	else if (!(rec->evsel->attr.sample_type & PERF_SAMPLE_CALLCHAIN))
		add_address(&t->chain, id, rec->ip);
	if (t->chain.len) {
		chain = (const uint64_t *)(const void *)t->chain.data;
		n = t->chain.len / sizeof(uint64_t);
	}
	max = c->copies ? PERFDATA_CHAIN_BESIDE_COPY : UINT32_MAX - 1;
	perfdata_encode_sample(out, id, rec->ip, rec->period, chain, n < max ? (uint32_t)n : max);
	memcpy(&h, out->data + before, sizeof(h));
	t->in->chains_cut += h.size < n * sizeof(uint64_t);
}

static void encode_sample(struct merge_translator *t, struct buf *out,
			  const struct perfdata_record *rec, const struct merge_combo *c,
			  const struct perfdata_id *id)
{
	size_t at = out->len;

	encode_chain(t, out, rec, c, id);
	if (c->copies)
		encode_copy(t, out, at, rec, c);
}

static int translate_sample(struct merge_translator *t, struct merge_source *src,
			    const struct perfdata_record *rec, struct buf *out)
{
	struct perfdata_id id = id_of(t, src, rec);
	struct merge_combo *c;

	if (!rec->evsel)
		return -ENOENT;
	c = merge_combo_of(t->in, rec, src);
	if (!c)
		return -ENOENT;
	if (is_duplicate(c, id.time)) {
		src->duplicates++;
		return 0;
	}
	if (src->pid != MERGE_HOST && rec->machine_pid <= 0)
		id.pid = id.tid = (uint32_t)NO_PROCESS;
	id.id = c->out_id;
	encode_sample(t, out, rec, c, &id);
	return 0;
}

/* ------------------------------------------------------------------ maps */

static uint8_t build_id_of(const struct merge_translator *t, const struct merge_source *src,
			   const struct perfdata_record *rec, const char *name, uint8_t id[20])
{
	const struct perfdata_reader_build_id *known;
	struct id_hash h;

	if (rec->mmap.build_id) {
		memcpy(id, rec->mmap.build_id, rec->mmap.build_id_len);
		return rec->mmap.build_id_len;
	}
	known = merge_find_build_id(t->in, src, rec->mmap.filename);
	if (known) {
		memcpy(id, known->id, known->len);
		return known->len;
	}
	/* without one perf would open the host's file of that name */
	id_hash_init(&h);
	id_hash_str(&h, src->vm->name);
	id_hash_str(&h, name);
	id_hash_u64(&h, (uint64_t)rec->mmap.maj << 32 | rec->mmap.min);
	id_hash_u64(&h, rec->mmap.ino);
	return id_hash_end_unknown(&h, id);
}

/* perf's kernel mapping starts, or says in its offset where, the first symbol is. */
static void move_to_text(struct perfdata_map *map)
{
	if (map->pgoff > map->start && map->pgoff - map->start < map->len) {
		map->len -= map->pgoff - map->start;
		map->start = map->pgoff;
	}
	map->pgoff = 0;
}

static void encode_map(struct merge_translator *t, struct merge_source *src,
		       const struct perfdata_record *rec, struct buf *out)
{
	struct perfdata_id id = id_of(t, src, rec);
	bool kernel = (id.cpumode & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_GUEST_KERNEL;
	uint8_t build_id[20];
	char name[4096];
	struct perfdata_map map = {
		.start = rec->mmap.start,
		.len = rec->mmap.len,
		.pgoff = rec->mmap.pgoff,
		.prot = rec->mmap.prot,
		.flags = rec->mmap.flags ? rec->mmap.flags : MAP_PRIVATE,
		.filename = name,
		.build_id = build_id,
	};

	merge_dso_name(t->in, src, kernel, rec->mmap.filename, name, sizeof(name));
	if (!kernel && !strcmp(rec->mmap.filename, "//anon")) {
		jit_name(name, sizeof(name), (int32_t)rec->mmap.pid);
		map.pgoff = map.start;
	}
	map.build_id_len = build_id_of(t, src, rec, name, build_id);
	id.pid = rec->mmap.pid;
	id.tid = rec->mmap.tid;
	if (kernel) {
		id.pid = (uint32_t)src->vm->pid;
		id.tid = 0;
		if (merge_is_kernel_name(rec->mmap.filename)) {
			/* another input knows it better */
			if (src->vm->has_kernel && id_is_unknown(build_id, map.build_id_len))
				return;
			move_to_text(&map);
		}
	}
	perfdata_encode_mmap2(out, &id, &map);
}

/* The host's: nothing changes but id and time. */
static void encode_host_map(struct merge_translator *t, struct merge_source *src,
			    const struct perfdata_record *rec, struct buf *out)
{
	struct perfdata_id id = id_of(t, src, rec);
	struct perfdata_map map = {
		.start = rec->mmap.start,
		.len = rec->mmap.len,
		.pgoff = rec->mmap.pgoff,
		.prot = rec->mmap.prot,
		.flags = rec->mmap.flags,
		.filename = rec->mmap.filename,
		.build_id = rec->mmap.build_id,
		.build_id_len = rec->mmap.build_id_len,
		.maj = rec->mmap.maj,
		.min = rec->mmap.min,
		.ino = rec->mmap.ino,
		.ino_generation = rec->mmap.ino_generation,
	};

	id.pid = rec->mmap.pid;
	id.tid = rec->mmap.tid;
	id.cpumode &= (uint16_t)~PERF_RECORD_MISC_MMAP_BUILD_ID; /* the encoder sets it */
	perfdata_encode_mmap2(out, &id, &map);
}

static int translate_map(struct merge_translator *t, struct merge_source *src,
			 const struct perfdata_record *rec, struct buf *out)
{
	if (src->vm->pid)
		encode_map(t, src, rec, out);
	else
		encode_host_map(t, src, rec, out);
	return 0;
}

/* ------------------------------------------------------------------ the others */

static int translate_comm(struct merge_translator *t, struct merge_source *src,
			  const struct perfdata_record *rec, struct buf *out)
{
	struct perfdata_id id = id_of(t, src, rec);
	char comm[MERGE_NAME_MAX + 300];

	id.cpumode &= (uint16_t)~PERF_RECORD_MISC_COMM_EXEC; /* the encoder sets it */
	if (src->vm->pid)
		merge_comm(src, rec->comm.comm, comm, sizeof(comm));
	perfdata_encode_comm(out, &id, src->vm->pid ? comm : rec->comm.comm, rec->comm.exec);
	return 0;
}

static int translate_task(struct merge_translator *t, struct merge_source *src,
			  const struct perfdata_record *rec, struct buf *out)
{
	struct perfdata_id id = id_of(t, src, rec);

	id.pid = rec->task.pid;
	id.tid = rec->task.tid;
	perfdata_encode_task(out, rec->type, &id, rec->task.ppid, rec->task.ptid);
	return 0;
}

static int translate_lost(struct merge_translator *t, struct merge_source *src,
			  const struct perfdata_record *rec, struct buf *out)
{
	struct perfdata_id id = id_of(t, src, rec);
	uint64_t body[2] = {0, rec->lost.lost};

	if (rec->evsel)
		id.id = merge_event_id(t->m, t->in->events[rec->evsel->index], src->vm);
	body[0] = id.id;
	if (rec->type == PERF_RECORD_LOST_SAMPLES)
		return perfdata_encode_other(out, rec->type, &id, &rec->lost.lost, 8);
	return perfdata_encode_other(out, rec->type, &id, body, sizeof(body));
}

static int translate_throttle(struct merge_translator *t, struct merge_source *src,
			      const struct perfdata_record *rec, struct buf *out)
{
	struct perfdata_id id = id_of(t, src, rec);
	const uint64_t body[3] = {id.time, id.id, id.id};

	return perfdata_encode_other(out, rec->type, &id, body, sizeof(body));
}

/* Bytes of the trailer that sample_id_all puts behind a record. */
static size_t trailer_size(const struct merge_input *in, const struct perfdata_record *rec)
{
	static const uint64_t words = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
				      PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
				      PERF_SAMPLE_IDENTIFIER;
	const struct perfdata_evsel *first = perfdata_reader_evsel(in->header, 0),
				    *e = rec->evsel ? rec->evsel : first;

	if (!first || !first->attr.sample_id_all)
		return 0;
	return (size_t)__builtin_popcountll(e->attr.sample_type & words) * 8;
}

static int translate_as_is(struct merge_translator *t, struct merge_source *src,
			   const struct perfdata_record *rec, struct buf *out)
{
	struct perfdata_id id = id_of(t, src, rec);
	size_t n = rec->header->size - sizeof(*rec->header), trailer = trailer_size(t->in, rec);

	if (n >= trailer)
		n -= trailer;
	return perfdata_encode_other(out, rec->type, &id, rec->header + 1, n);
}

/* perf looks into the environment of its own host for these, and a guest has none. */
static int translate_as_is_of_host(struct merge_translator *t, struct merge_source *src,
				   const struct perfdata_record *rec, struct buf *out)
{
	return src->vm->pid ? -ENOENT : translate_as_is(t, src, rec, out);
}

/* ------------------------------------------------------------------ our own side-band */

static void set_machine(struct json_object *o, const struct merge_vm *vm, bool name)
{
	json_object_object_add(o, "machine", json_object_new_int64(vm->pid));
	if (name)
		json_object_object_add(o, "name", json_object_new_string(vm->name));
}

static void encode_json(struct merge_translator *t, const struct perfdata_record *rec,
			struct json_object *o, struct buf *out)
{
	struct perfdata_id id = id_of(t, t->in->sources[0], rec);

	id.id = t->m->vms[0]->id;
	perfdata_encode_private(out, &id, rec->private.word,
				json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
}

/* The sums of "stats" come at the end, the marks of a merge are written anew. */
static bool is_ours_to_write(const char *word)
{
	return !strcmp(word, "stats") || !strcmp(word, "merge");
}

/* "clock" says how a guest's clock stands to this file's. false: to the merged one's it does not.
 */
static bool move_clock(const struct merge_input *in, struct json_object *o)
{
	int64_t offset;

	if (in->align == MERGE_NONE || in->in_guest || !merge_json_int(o, "offset", &offset) ||
	    __builtin_add_overflow(offset, in->offset, &offset))
		return false;
	json_object_object_add(o, "offset", json_object_new_int64(offset));
	return true;
}

static int translate_private(struct merge_translator *t, const struct perfdata_record *rec,
			     struct buf *out)
{
	const char *word = rec->private.word;
	struct json_object *o = merge_json_parse(rec->private.json);
	struct merge_source *src = NULL;
	int64_t pid;

	if (!o || is_ours_to_write(word) || (!strcmp(word, "clock") && !move_clock(t->in, o))) {
		json_object_put(o);
		return 0;
	}
	if (merge_json_int(o, "machine", &pid))
		src = hashmap_get(&t->in->source_by_pid, (uint32_t)pid);
	if (src && src->vm)
		set_machine(o, src->vm, !strcmp(word, "vm"));
	if (!strcmp(word, "input") && !merge_json_str(o, "in"))
		json_object_object_add(o, "in", json_object_new_string(t->in->shown));
	encode_json(t, rec, o, out);
	json_object_put(o);
	return 0;
}

/* ------------------------------------------------------------------ */

/* Types that are not here are left out, and counted. */
static int (*const types[MERGE_TYPES])(struct merge_translator *t, struct merge_source *src,
				       const struct perfdata_record *rec, struct buf *out) = {
	[PERF_RECORD_SAMPLE] = translate_sample,
	[PERF_RECORD_MMAP] = translate_map,
	[PERF_RECORD_MMAP2] = translate_map,
	[PERF_RECORD_COMM] = translate_comm,
	[PERF_RECORD_FORK] = translate_task,
	[PERF_RECORD_EXIT] = translate_task,
	[PERF_RECORD_LOST] = translate_lost,
	[PERF_RECORD_LOST_SAMPLES] = translate_lost,
	[PERF_RECORD_THROTTLE] = translate_throttle,
	[PERF_RECORD_UNTHROTTLE] = translate_throttle,
	[PERF_RECORD_SWITCH] = translate_as_is,
	[PERF_RECORD_SWITCH_CPU_WIDE] = translate_as_is,
	[PERF_RECORD_NAMESPACES] = translate_as_is,
	[PERF_RECORD_KSYMBOL] = translate_as_is,
	[PERF_RECORD_BPF_EVENT] = translate_as_is_of_host,
	[PERF_RECORD_CGROUP] = translate_as_is_of_host,
	[PERF_RECORD_TEXT_POKE] = translate_as_is_of_host,
};

int merge_translate(struct merge_translator *t, const struct perfdata_record *rec, struct buf *out)
{
	struct merge_source *src;
	uint64_t time = time_of(t, rec);
	int ret;

	/* what its reader hands out late stands where it came */
	if (time > t->key)
		t->key = time;
	if (rec->is_private)
		return translate_private(t, rec, out);
	src = merge_source_of(t->in, rec);
	ret = src && src->vm && types[rec->type % MERGE_TYPES]
		      ? types[rec->type % MERGE_TYPES](t, src, rec, out)
		      : -ENOENT;
	if (ret)
		t->in->left_out[rec->type % MERGE_TYPES]++;
	return 0;
}
