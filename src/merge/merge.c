// SPDX-License-Identifier: GPL-2.0-only
/*
 * The course of a merge: read all inputs once, plan, read them again side by side, and write what
 * comes out in the order of time.
 */
#include "merge/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "merge/impl.h"
#include "util/text.h"
#include "util/xalloc.h"

#define APPEND_BYTES (1u << 20)
#define ROUND_BYTES  (8u << 20) /* between FINISHED_ROUNDs, which perf waits for */
#define LOOK_EVERY   4096	/* records, for a signal */

/* An input's next record. */
struct head {
	struct merge_feed *feed;
	uint32_t input; /* of equal times the earlier input's comes first */
	uint64_t time;
	const uint8_t *bytes;
	size_t n;
};

struct output {
	struct merge *m;
	struct perfdata_writer *w;
	char *tmp; /* what is written until it is whole; NULL: the output is no file */
	struct head *heap;
	size_t nr;
	struct buf b;
	uint64_t since_round, last_time, records;
	bool damaged;
};

/* ---------- the order ---------- */

static bool before(const struct head *a, const struct head *b)
{
	return a->time != b->time ? a->time < b->time : a->input < b->input;
}

static void sift_down(struct output *o, size_t i)
{
	struct head moved = o->heap[i];

	for (size_t child; (child = 2 * i + 1) < o->nr; i = child) {
		if (child + 1 < o->nr && before(&o->heap[child + 1], &o->heap[child]))
			child++;
		if (!before(&o->heap[child], &moved))
			break;
		o->heap[i] = o->heap[child];
	}
	o->heap[i] = moved;
}

/* The input has ended: says of what is damaged, once. */
static int end_feed(struct output *o, const struct head *h, struct vmprof_err *err)
{
	struct vmprof_err damage = {0};
	int ret = merge_feed_end(h->feed, &damage);

	if (ret && ret != -EBADMSG)
		return err_set(err, ret, "%s", damage.msg);
	if (ret) {
		merge_warn("%s; what is whole of it is merged", damage.msg);
		o->damaged = true;
	}
	return 0;
}

/* Moves the heap's first input on. */
static int advance(struct output *o, struct vmprof_err *err)
{
	struct head *h = &o->heap[0];
	int ret = 0;

	if (!merge_feed_next(h->feed, &h->time, &h->bytes, &h->n)) {
		struct head ended = *h;

		*h = o->heap[--o->nr];
		ret = end_feed(o, &ended, err);
	}
	if (o->nr)
		sift_down(o, 0);
	return ret;
}

static int start_feeds(struct output *o, struct vmprof_err *err)
{
	struct merge *m = o->m;
	int ret = 0;

	o->heap = xcalloc(m->nr_inputs, sizeof(*o->heap));
	for (uint32_t i = 0; i < m->nr_inputs && !ret; i++) {
		ret = merge_feed_start(&o->heap[o->nr].feed, m, &m->inputs[i], err);
		o->heap[o->nr].input = i;
		o->nr += !ret;
	}
	/* all have a head, or are gone, before the first record is chosen */
	for (size_t i = o->nr; i-- > 0 && !ret;) {
		struct head *h = &o->heap[i];

		if (merge_feed_next(h->feed, &h->time, &h->bytes, &h->n))
			continue;
		ret = end_feed(o, h, err);
		*h = o->heap[--o->nr];
	}
	for (size_t i = o->nr / 2; i-- > 0;)
		sift_down(o, i);
	return ret;
}

/* ---------- the file ---------- */

static int write_out(struct output *o, bool round, struct vmprof_err *err)
{
	int ret;

	o->since_round += o->b.len;
	ret = perfdata_writer_append(o->w, &o->b, err);
	if (ret || !(round || o->since_round >= ROUND_BYTES))
		return ret;
	o->since_round = 0;
	return perfdata_writer_flush(o->w, err);
}

static int interrupted(struct vmprof_err *err)
{
	return merge_pending_signal() ? err_set(err, ECANCELED, "interrupted") : 0;
}

static int merge_records(struct output *o, struct vmprof_err *err)
{
	int ret = start_feeds(o, err);

	merge_encode_start(o->m, &o->b);
	while (!ret && o->nr) {
		const struct head *h = &o->heap[0];

		buf_add(&o->b, h->bytes, h->n);
		o->last_time = h->time;
		if (o->b.len >= APPEND_BYTES)
			ret = write_out(o, false, err);
		if (!ret && ++o->records % LOOK_EVERY == 0)
			ret = interrupted(err);
		if (!ret)
			ret = advance(o, err);
	}
	while (o->nr)
		merge_feed_end(o->heap[--o->nr].feed, NULL);
	if (ret)
		return ret;
	merge_encode_end(o->m, &o->b, o->last_time > o->m->start ? o->last_time : o->m->start);
	merge_add_build_ids(o->m, o->w);
	return write_out(o, true, err);
}

/* What another file may be put in place of. A link is written through: it may be /dev/stdout. */
static bool is_file(const char *path)
{
	struct stat st;

	return strcmp(path, "-") != 0 && (lstat(path, &st) || S_ISREG(st.st_mode));
}

/* What a file says of its machine besides, which is copied as it is. */
static const enum perfdata_feature of_machine[] = {
	PERFDATA_FEAT_CPUID,	       PERFDATA_FEAT_CPU_TOPOLOGY, PERFDATA_FEAT_NUMA_TOPOLOGY,
	PERFDATA_FEAT_PMU_MAPPINGS,    PERFDATA_FEAT_CACHE,	   PERFDATA_FEAT_MEM_TOPOLOGY,
	PERFDATA_FEAT_BPF_PROG_INFO,   PERFDATA_FEAT_BPF_BTF,	   PERFDATA_FEAT_CPU_PMU_CAPS,
	PERFDATA_FEAT_HYBRID_TOPOLOGY, PERFDATA_FEAT_PMU_CAPS,
};
#define OF_MACHINE (sizeof(of_machine) / sizeof(*of_machine))

static size_t raw_features(const struct perfdata_reader *r,
			   struct perfdata_raw_feature raw[OF_MACHINE])
{
	size_t n = 0;

	for (size_t i = 0; i < OF_MACHINE; i++) {
		raw[n].feature = of_machine[i];
		n += perfdata_reader_feature_raw(r, of_machine[i], &raw[n].data, &raw[n].size);
	}
	return n;
}

/* The host's name, kernel and CPUs of the first file that is of the host; a clock if it is one. */
static void make_origin(const struct merge *m, struct perfdata_origin *origin,
			struct perfdata_raw_feature raw[OF_MACHINE])
{
	const struct merge_input *ref = m->reference;

	*origin = (struct perfdata_origin){0};
	if (!m->no_align)
		origin->clock = ref->clock;
	if (ref->offset) {
		/* moved by --clock-offset, it is that clock no more, but what the day says of it */
		origin->clock.clock_ns = merge_time(ref, ref->clock.clock_ns);
		origin->clock.known = origin->clock.has_wall;
	}
	if (ref->in_guest)
		return;
	origin->hostname = perfdata_reader_feature_str(ref->header, PERFDATA_FEAT_HOSTNAME);
	origin->osrelease = perfdata_reader_feature_str(ref->header, PERFDATA_FEAT_OSRELEASE);
	origin->arch = perfdata_reader_feature_str(ref->header, PERFDATA_FEAT_ARCH);
	origin->cpudesc = perfdata_reader_feature_str(ref->header, PERFDATA_FEAT_CPUDESC);
	perfdata_reader_host(ref->header, &origin->host);
	origin->raw = raw;
	origin->nr_raw = raw_features(ref->header, raw);
	for (size_t i = 0; i < m->nr_inputs; i++)
		origin->host_kernel |=
			!m->inputs[i].in_guest &&
			(m->inputs[i].sources[0]->kernel || m->inputs[i].sources[0]->has_kernel);
}

/* Written under another name: nobody finds half a file under the one that was asked for. */
static int make_tmp(struct output *o, struct vmprof_err *err)
{
	int fd;

	o->tmp = xasprintf("%s.XXXXXX", o->m->opts->output);
	fd = mkostemp(o->tmp, O_CLOEXEC);
	if (fd < 0) {
		free(o->tmp);
		o->tmp = NULL;
		return err_sys(err, errno, "%s: cannot be created", o->m->opts->output);
	}
	close(fd);
	return 0;
}

static int open_output(struct output *o, struct vmprof_err *err)
{
	struct merge *m = o->m;
	struct perfdata_event *events = xcalloc(m->nr_events, sizeof(*events));
	struct perfdata_raw_feature raw[OF_MACHINE];
	struct perfdata_origin origin;
	struct perfdata_writer_config cfg = {
		.path = m->opts->output,
		.force = true,
		.events = events,
		.nr_events = m->nr_events,
		.ids = m->ids,
		.nr_ids = m->nr_ids,
		.argv = m->opts->argv,
		.origin = &origin,
	};
	int ret = is_file(cfg.path) ? make_tmp(o, err) : 0;

	make_origin(m, &origin, raw);
	for (size_t i = 0; i < m->nr_events; i++) {
		const struct merge_event *e = &m->events[i];

		events[i] = (struct perfdata_event){.name = e->name,
						    .attr = e->attr,
						    .ids = e->ids,
						    .nr_ids = e->nr_ids,
						    .no_chains = !e->chains,
						    .user_copies = e->attr.sample_stack_user,
						    .group_size = e->group_size,
						    .group_name = e->group_name};
	}
	if (o->tmp)
		cfg.path = o->tmp;
	if (!ret)
		ret = perfdata_writer_open(&o->w, &cfg, err);
	free(events);
	return ret;
}

/* What had the name has something in it: it is kept, as record does it. */
static int put_in_place(struct output *o, struct vmprof_err *err)
{
	const char *path = o->m->opts->output;
	char *old = xasprintf("%s.old", path);
	struct stat st;
	int ret = 0;

	if (!stat(path, &st) && st.st_size && rename(path, old))
		ret = err_sys(err, errno, "%s: cannot be kept as %s", path, old);
	if (!ret && rename(o->tmp, path))
		ret = err_sys(err, errno, "%s: cannot be given its name", path);
	free(old);
	return ret;
}

static void say_end(struct output *o, uint64_t bytes)
{
	const struct merge *m = o->m;
	uint64_t samples = 0;
	char shown[256];

	for (size_t i = 0; i < m->nr_inputs; i++) {
		const struct merge_input *in = &m->inputs[i];

		merge_say_input(m, in);
		samples += in->samples - in->left_out[PERF_RECORD_SAMPLE];
		for (size_t k = 0; k < in->nr_sources; k++)
			samples -= in->sources[k]->duplicates;
	}
	escape_str(shown, sizeof(shown), m->opts->output);
	merge_say(m, "[ vmprof merge: Wrote %.3f MB %s (%" PRIu64 " samples, %zu VM%s) ]\n",
		  (double)bytes / 1048576.0, strcmp(shown, "-") ? shown : "to standard output",
		  samples, m->nr_vms - 1, m->nr_vms == 2 ? "" : "s");
}

static int write_file(struct merge *m, bool *damaged, struct vmprof_err *err)
{
	struct output o = {.m = m};
	struct vmprof_err close_err;
	uint64_t bytes = 0;
	int ret = open_output(&o, err), ret2;

	if (!ret)
		ret = merge_records(&o, err);
	if (o.w) {
		bytes = perfdata_writer_bytes(o.w);
		ret2 = perfdata_writer_close(o.w, &close_err);
		if (!ret && ret2)
			ret = err_set(err, ret2, "%s", close_err.msg);
	}
	if (!ret && o.tmp)
		ret = put_in_place(&o, err);
	if (ret && o.tmp)
		unlink(o.tmp);
	if (!ret)
		say_end(&o, bytes);
	*damaged = o.damaged;
	free(o.tmp);
	free(o.heap);
	buf_free(&o.b);
	return ret;
}

/* ---------- the course ---------- */

/* Where the output goes there should be room for an input as well. */
static char *dir_of(const char *output)
{
	const char *slash = strrchr(output, '/'), *tmp = getenv("TMPDIR");

	if (!is_file(output))
		return xstrdup(tmp && *tmp ? tmp : "/tmp");
	return slash ? xstrndup(output, (size_t)(slash - output) + 1) : xstrdup(".");
}

static int plan(struct merge *m, struct vmprof_err *err)
{
	int ret = merge_open_inputs(m, err);

	for (size_t i = 0; i < m->nr_inputs && !ret; i++)
		ret = merge_scan(m, &m->inputs[i], err);
	if (!ret)
		ret = merge_plan_vms(m, err);
	if (!ret)
		ret = merge_plan_clocks(m, err);
	if (!ret)
		ret = merge_plan_events(m, err);
	if (!ret)
		merge_plan_overlaps(m);
	return ret;
}

int merge_run(const struct merge_options *opts, struct merge_result *result, struct vmprof_err *err)
{
	struct merge m = {.opts = opts, .tmp_dir = dir_of(opts->output)};
	int ret;

	*result = (struct merge_result){0};
	merge_block_signals();
	ret = plan(&m, err);
	if (!ret)
		ret = write_file(&m, &result->damaged, err);
	if (!ret)
		merge_stores(&m);
	else if (ret == -ECANCELED)
		result->signal = merge_pending_signal();
	merge_free_events(&m);
	merge_free_vms(&m);
	merge_free_inputs(&m);
	free(m.facts);
	free(m.tmp_dir);
	return ret;
}
