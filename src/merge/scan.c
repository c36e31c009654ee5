// SPDX-License-Identifier: GPL-2.0-only
/*
 * The first pass over an input: which machines, events and vCPUs it has samples of, and when.
 * Memory grows with these and not with the samples.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "merge/impl.h"
#include "util/idhash.h"
#include "util/saturate.h"
#include "util/text.h"
#include "util/xalloc.h"

#define LOOK_EVERY 4096 /* records, for a signal */

struct scan {
	struct merge *m;
	struct merge_input *in;
	uint64_t n;
	struct vmprof_err err;
};

bool merge_is_guest_mode(uint8_t cpumode)
{
	return cpumode == PERF_RECORD_MISC_GUEST_KERNEL || cpumode == PERF_RECORD_MISC_GUEST_USER;
}

static struct merge_source *source_by_pid(const struct merge_input *in, int32_t pid)
{
	return hashmap_get(&in->source_by_pid, (uint32_t)pid);
}

static struct merge_source *add_source(struct merge_input *in, int32_t pid)
{
	struct merge_source *s = source_by_pid(in, pid);

	if (s || in->nr_sources >= MERGE_SOURCES_MAX)
		return s;
	s = xcalloc(1, sizeof(*s));
	s->pid = pid;
	s->index = (uint32_t)in->nr_sources;
	in->sources =
		xgrow(in->sources, &in->cap_sources, in->nr_sources + 1, sizeof(*in->sources));
	in->sources[in->nr_sources++] = s;
	hashmap_set(&in->source_by_pid, (uint32_t)pid, s);
	return s;
}

/*
 * Where no id tells: the pid of a guest's mapping is its machine's, that of a sample the process on
 * the host that is the VM.
 */
static int32_t source_pid(const struct perfdata_record *rec)
{
	if (!merge_is_guest_mode(rec->cpumode))
		return MERGE_HOST;
	if (rec->machine_pid > 0)
		return rec->machine_pid;
	if (rec->type == PERF_RECORD_MMAP || rec->type == PERF_RECORD_MMAP2)
		return (int32_t)rec->mmap.pid > 0 ? (int32_t)rec->mmap.pid : 0;
	return (int32_t)rec->pid > 0 ? (int32_t)rec->pid : 0;
}

struct merge_source *merge_source_of(const struct merge_input *in,
				     const struct perfdata_record *rec)
{
	int32_t pid = source_pid(rec);

	return pid == MERGE_HOST ? in->sources[0] : source_by_pid(in, pid);
}

/* In a guest's own file its CPUs are the vCPUs. */
static int32_t vcpu_of(const struct merge_input *in, const struct perfdata_record *rec,
		       const struct merge_source *s)
{
	int32_t vcpu = rec->vcpu;

	if (s->pid == MERGE_HOST)
		vcpu = in->label ? (int32_t)rec->cpu : -1;
	return vcpu >= 0 && vcpu < MERGE_VCPUS_MAX ? vcpu : -1;
}

static uint64_t combo_key(uint32_t event, const struct merge_source *s, int32_t vcpu)
{
	return (uint64_t)event << 40 | (uint64_t)s->index << 20 | (uint32_t)(vcpu + 1);
}

struct merge_combo *merge_combo_of(struct merge_input *in, const struct perfdata_record *rec,
				   const struct merge_source *source)
{
	uint64_t key = combo_key(rec->evsel->index, source, vcpu_of(in, rec, source));

	if (!in->last_combo || in->last_key != key) {
		in->last_combo = hashmap_get(&in->combos, key);
		in->last_key = key;
	}
	return in->last_combo;
}

static int too_many(struct scan *sc, const char *what)
{
	return err_set(&sc->err, E2BIG, "%s: more %s than a merged profile can have", sc->in->shown,
		       what);
}

static int scan_sample(struct scan *sc, const struct perfdata_record *rec, struct merge_source *s)
{
	struct merge_input *in = sc->in;
	struct merge_combo *c;

	if (!rec->evsel)
		return 0;
	in->samples++;
	s->samples++;
	s->host_pids |= s->pid != MERGE_HOST && rec->machine_pid <= 0;
	if (rec->time && (!in->first || rec->time < in->first))
		in->first = rec->time;
	if (rec->time > in->last)
		in->last = rec->time;
	if (merge_combo_of(in, rec, s))
		return 0;
	if (in->combos.n >= MERGE_IDS_MAX || rec->evsel->index >= 1u << 24)
		return too_many(sc, "events, VMs and vCPUs");
	c = xcalloc(1, sizeof(*c));
	*c = (struct merge_combo){
		.event = rec->evsel->index, .source = s, .vcpu = vcpu_of(in, rec, s)};
	hashmap_set(&in->combos, combo_key(c->event, s, c->vcpu), c);
	in->last_combo = c;
	return 0;
}

static void replace(char **to, const char *text)
{
	free(*to);
	*to = xstrdup(text);
}

static void scan_map(const struct perfdata_record *rec, struct merge_source *s)
{
	bool kernel = rec->cpumode == PERF_RECORD_MISC_GUEST_KERNEL ||
		      rec->cpumode == PERF_RECORD_MISC_KERNEL;

	s->has_maps = true;
	if (!kernel || !merge_is_kernel_name(rec->mmap.filename))
		return;
	if (rec->mmap.build_id && !id_is_unknown(rec->mmap.build_id, rec->mmap.build_id_len))
		s->has_kernel = true;
	else
		replace(&s->kernel, rec->mmap.filename);
}

static void scan_vm(struct merge_source *s, struct json_object *o, const char *text)
{
	const char *name = merge_json_str(o, "name"), *uuid = merge_json_str(o, "uuid");
	char safe[MERGE_NAME_MAX + 1], nobody[32];

	snprintf(nobody, sizeof(nobody), "guest pid %d", s->pid);
	if (!s->vm_json)
		s->vm_json = xstrdup(text);
	/* an earlier merge had no name for it either */
	if (name && strcmp(name, nobody) != 0)
		replace(&s->name, escape_str(safe, sizeof(safe), name));
	if (uuid)
		replace(&s->uuid, escape_str(safe, sizeof(safe), uuid));
}

/* "clock": how a clock of the guest's stands to the one of this file. */
static void scan_clock(struct scan *sc, const struct perfdata_record *rec, struct merge_source *s,
		       struct json_object *o)
{
	struct merge *m = sc->m;
	struct merge_clock_fact f = {.input = sc->in, .source = s, .time = rec->time};
	int64_t id;

	if (m->nr_facts >= MERGE_FACTS_MAX || rec->time > INT64_MAX ||
	    !merge_json_int(o, "offset", &f.offset) || !merge_json_int(o, "error", &f.error) ||
	    f.error < 0)
		return;
	f.known = merge_json_int(o, "clockid", &id);
	if (f.known)
		f.id = (int32_t)id;
	m->facts = xgrow(m->facts, &m->cap_facts, m->nr_facts + 1, sizeof(*m->facts));
	m->facts[m->nr_facts++] = f;
}

static int scan_machine_word(struct scan *sc, const struct perfdata_record *rec,
			     struct json_object *o)
{
	const char *word = rec->private.word, *text = rec->private.json;
	struct merge_source *s;
	int64_t pid;

	if (!merge_json_int(o, "machine", &pid) || pid <= 0 || pid > INT32_MAX)
		return 0;
	s = add_source(sc->in, (int32_t)pid);
	if (!s)
		return too_many(sc, "VMs");
	if (!strcmp(word, "vm"))
		scan_vm(s, o, text);
	else if (!strcmp(word, "stats"))
		replace(&s->stats_json, text);
	else if (!strcmp(word, "clock"))
		scan_clock(sc, rec, s, o);
	return 0;
}

static int scan_private(struct scan *sc, const struct perfdata_record *rec)
{
	struct json_object *o = merge_json_parse(rec->private.json), *v;
	int ret = 0;

	if (!o)
		return 0;
	if (!strcmp(rec->private.word, "merge")) {
		sc->in->merged = true;
		if (json_object_object_get_ex(o, "aligned", &v))
			sc->in->unaligned = !json_object_get_boolean(v);
	} else {
		ret = scan_machine_word(sc, rec, o);
	}
	json_object_put(o);
	return ret;
}

static int scan_record(void *ctx, const struct perfdata_record *rec)
{
	struct scan *sc = ctx;
	struct merge_source *s;

	if (sc->n++ % LOOK_EVERY == 0 && merge_pending_signal())
		return err_set(&sc->err, ECANCELED, "%s: interrupted", sc->in->shown);
	if (rec->time && rec->time != UINT64_MAX && (!sc->in->start || rec->time < sc->in->start))
		sc->in->start = rec->time;
	if (rec->is_private)
		return scan_private(sc, rec);
	s = add_source(sc->in, source_pid(rec));
	if (!s)
		return too_many(sc, "VMs");
	switch (rec->type) {
	case PERF_RECORD_SAMPLE:
		return scan_sample(sc, rec, s);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		scan_map(rec, s);
		break;
	case PERF_RECORD_LOST:
		add_saturated(&s->lost_records, rec->lost.lost);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		add_saturated(&s->lost, rec->lost.lost);
		break;
	}
	return 0;
}

int merge_scan(struct merge *m, struct merge_input *in, struct vmprof_err *err)
{
	struct scan sc = {.m = m, .in = in};
	int ret = merge_open_reader(in, &in->header, err);

	if (ret)
		return ret;
	add_source(in, MERGE_HOST);
	ret = perfdata_reader_run(in->header, scan_record, &sc, &in->damage);
	if (sc.err.code)
		return err_set(err, sc.err.code, "%s", sc.err.msg);
	if (ret && ret != -EBADMSG)
		return err_set(err, ret, "%s", in->damage.msg);
	in->broken = ret;
	merge_index_build_ids(in);
	for (size_t i = 0; i < in->nr_sources; i++) {
		struct merge_source *s = in->sources[i];

		s->has_kernel |= s->kernel && merge_find_build_id(in, s, s->kernel);
		/* both are told of the same loss where both are told */
		if (s->lost_records > s->lost)
			s->lost = s->lost_records;
	}
	perfdata_reader_clock(in->header, &in->clock);
	return 0;
}
