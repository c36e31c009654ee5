// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the merged file says of its making, in records of our own (vmprof.data(5)): "merge" and an
 * "input" for each file at the start, and at the end the same with what was counted, and each VM's
 * "stats".
 */
#include <stdio.h>
#include <string.h>

#include "merge/impl.h"
#include "util/saturate.h"
#include "util/text.h"

static void put(const struct merge *m, struct buf *out, uint64_t time, const char *word,
		struct json_object *o)
{
	const struct perfdata_id id = {.id = m->vms[0]->id, .time = time};

	perfdata_encode_private(out, &id, word,
				json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
}

static void add_u64(struct json_object *o, const char *key, uint64_t v)
{
	json_object_object_add(o, key, json_object_new_uint64(v));
}

static void add_str(struct json_object *o, const char *key, const char *s)
{
	json_object_object_add(o, key, s ? json_object_new_string(s) : NULL);
}

static struct json_object *input_json(const struct merge_input *in)
{
	const char *host = perfdata_reader_feature_str(in->header, PERFDATA_FEAT_HOSTNAME);
	struct json_object *o = json_object_new_object();
	char text[256];

	add_str(o, "file", in->shown);
	add_str(o, "vm", in->in_guest ? in->sources[0]->vm->name : NULL);
	add_str(o, "hostname", host ? escape_str(text, sizeof(text), host) : NULL);
	add_str(o, "clock", merge_clock_name(&in->clock));
	add_str(o, "alignment", merge_align_name(in->align));
	json_object_object_add(o, "offset", json_object_new_int64(in->offset));
	if (in->align == MERGE_RECORDED)
		json_object_object_add(o, "error", json_object_new_int64(in->error));
	return o;
}

static void put_vm(const struct merge *m, const struct merge_vm *vm, struct buf *out)
{
	struct json_object *o = merge_json_parse(vm->vm_json);

	if (!o)
		o = json_object_new_object();
	json_object_object_add(o, "machine", json_object_new_int64(vm->pid));
	add_str(o, "name", vm->name);
	if (vm->uuid)
		add_str(o, "uuid", vm->uuid);
	put(m, out, m->start, "vm", o);
}

static void put_comm(const struct merge *m, const struct merge_vm *vm, uint32_t pid,
		     const char *name, struct buf *out)
{
	const struct perfdata_id id = {
		.id = vm->id,
		.time = m->start,
		.pid = pid,
		.tid = pid,
		.cpumode = PERF_RECORD_MISC_GUEST_USER,
	};
	char comm[MERGE_NAME_MAX + 32];

	snprintf(comm, sizeof(comm), "%s:%s", vm->name, name);
	perfdata_encode_comm(out, &id, comm, false);
}

void merge_encode_start(struct merge *m, struct buf *out)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "aligned", json_object_new_boolean(!m->no_align));
	add_str(o, "prefer", m->opts->prefer_host ? "host" : "guest");
	put(m, out, m->start, "merge", o);
	for (size_t i = 0; i < m->nr_inputs; i++)
		put(m, out, m->start, "input", input_json(&m->inputs[i]));
	for (size_t i = 1; i < m->nr_vms; i++) {
		put_vm(m, m->vms[i], out);
		/* as record does it for samples that no process is known for */
		if (m->vms[i]->nobody)
			put_comm(m, m->vms[i], UINT32_MAX, "[unattributed]", out);
	}
	/* perf says nothing of the idle tasks, which are called the same in all machines */
	for (size_t i = 0; i < m->nr_inputs; i++)
		if (m->inputs[i].in_guest)
			put_comm(m, m->inputs[i].sources[0]->vm, 0, "swapper", out);
}

/* What a perf does not count for itself, of one machine of an input. */
static void add_stats(struct merge_source *s)
{
	struct json_object *o = merge_json_parse(s->stats_json);
	int64_t n;

	if (!o) {
		o = json_object_new_object();
		add_u64(o, "samples", s->samples);
		add_u64(o, "lost", s->lost);
	}
	if (!merge_json_int(o, "samples", &n) || n < 0)
		n = (int64_t)s->samples;
	/* a file that was cut off has counted samples that are not there */
	if ((uint64_t)n > s->samples)
		n = (int64_t)s->samples;
	add_u64(o, "samples", (uint64_t)n < s->duplicates ? 0 : (uint64_t)n - s->duplicates);
	if (s->duplicates) {
		int64_t before = 0;

		merge_json_int(o, "duplicates", &before);
		add_u64(o, "duplicates", (uint64_t)before + s->duplicates);
	}
	if (!s->vm->stats)
		s->vm->stats = json_object_new_object();
	merge_json_add(s->vm->stats, o);
	json_object_put(o);
}

static uint64_t left_out(const struct merge_input *in)
{
	const struct perfdata_reader_stats *st = perfdata_reader_get_stats(in->header);
	uint64_t n = st->unknown + st->broken + st->no_event;

	for (size_t i = 0; i < MERGE_TYPES; i++)
		n += in->left_out[i];
	return n;
}

static struct json_object *counted_json(const struct merge_input *in)
{
	struct json_object *o = input_json(in);
	uint64_t duplicates = 0, lost = 0;

	for (size_t i = 0; i < in->nr_sources; i++) {
		duplicates += in->sources[i]->duplicates;
		add_saturated(&lost, in->sources[i]->lost);
	}
	add_u64(o, "samples", in->samples);
	add_u64(o, "duplicates", duplicates);
	add_u64(o, "lost", lost);
	add_u64(o, "left_out", left_out(in));
	json_object_object_add(o, "damaged", json_object_new_boolean(in->broken));
	return o;
}

void merge_encode_end(struct merge *m, struct buf *out, uint64_t time)
{
	for (size_t i = 0; i < m->nr_inputs; i++) {
		const struct merge_input *in = &m->inputs[i];

		put(m, out, time, "input", counted_json(in));
		for (size_t k = 0; k < in->nr_sources; k++)
			if (in->sources[k]->vm && in->sources[k]->vm->pid &&
			    (in->sources[k]->samples || in->sources[k]->stats_json))
				add_stats(in->sources[k]);
	}
	for (size_t i = 1; i < m->nr_vms; i++) {
		struct merge_vm *vm = m->vms[i];

		if (!vm->stats)
			continue;
		json_object_object_add(vm->stats, "machine", json_object_new_int64(vm->pid));
		put(m, out, time, "stats", json_object_get(vm->stats));
	}
}
