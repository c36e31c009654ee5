// SPDX-License-Identifier: GPL-2.0-only
#include "record/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "perfdata/writer.h"
#include "record/events.h"
#include "record/rounds.h"
#include "record/self.h"
#include "record/summary.h"
#include "record/targets.h"
#include "record/vmrec.h"
#include "record/wholehost.h"
#include "symbolize/elfimage.h"

struct recorder {
	const struct record_options *opts;
	struct targets targets;
	struct perfdata_writer *writer;
	char *store;
	struct buf buf;
	struct rounds rounds;
	unsigned wakeups;
};

static int open_vmrec(struct recorder *r, struct target *t, struct vmprof_err *err)
{
	const struct vmrec_config cfg = {
		.vm = t->vm,
		.backend = t->backend,
		.caps = t->caps,
		.events = &t->events,
		.chains = r->opts->chains,
		.stack_size = r->opts->stack_size,
		.multiplex = r->opts->multiplex,
		.domain = r->opts->domain,
		.pause = r->opts->pause,
		.experimental = r->opts->experimental,
		.force = r->opts->force,
		.host_modules = t == r->targets.t,
		.realtime = r->opts->realtime,
		.store = r->store,
		.end_fd = r->rounds.end_fd,
	};

	return vmrec_open(&t->rec, &cfg, err);
}

static int open_target(struct recorder *r, struct target *t, struct vmprof_err *err)
{
	int rc = open_vmrec(r, t, err);

	if (rc)
		rc = targets_fall_back(t, r->opts, err);
	if (!rc && !t->rec)
		rc = open_vmrec(r, t, err);
	if (rc)
		return target_error(t, err);
	summary_choice(r->opts, t);
	return 0;
}

/* With --all-vms one that has ended since it was found, say, does not spoil the others. */
static int open_targets(struct recorder *r, struct vmprof_err *err)
{
	for (unsigned i = 0; i < r->targets.n;) {
		int rc = open_target(r, &r->targets.t[i], err);

		if (!rc) {
			i++;
			continue;
		}
		if (!r->opts->all_vms || r->targets.n == 1)
			return rc;
		record_say(r->opts, "vmprof record: %s; left out\n", err->msg);
		targets_drop(&r->targets, i);
	}
	return 0;
}

static int open_writer(struct recorder *r, const struct id_plan *p, struct vmprof_err *err)
{
	struct perfdata_event events[EVENTS_MAX];
	const struct perfdata_writer_config cfg = {
		.path = r->opts->output,
		.events = events,
		.nr_events = r->targets.events.n,
		.ids = p->entries,
		.nr_ids = p->n,
		.argv = r->opts->argv,
	};

	for (unsigned i = 0; i < r->targets.events.n; i++)
		events[i] = (struct perfdata_event){
			.name = r->targets.events.events[i].name,
			.attr = events_file_attr(&r->targets.events.events[i]),
			.ids = p->by_event[i],
			.nr_ids = p->nr_by_event[i],
		};
	return perfdata_writer_open(&r->writer, &cfg, err);
}

static int start_targets(struct recorder *r, const struct id_plan *p, struct vmprof_err *err)
{
	const uint64_t *ids = p->ids;

	for (unsigned i = 0; i < r->targets.n; i++) {
		struct target *t = &r->targets.t[i];
		int rc = vmrec_start(t->rec, ids, err);

		if (rc)
			return err_prefix(err, "VM '%s'", t->name);
		ids += (size_t)t->events.n * vmrec_nr_vcpus(t->rec);
	}
	return r->targets.host ? wholehost_start(r->targets.host, ids, &r->buf, err) : 0;
}

static int open_host(struct targets *ts, const struct record_options *opts, struct vmprof_err *err)
{
	int rc;

	if (!ts->nr_host_events)
		return 0;
	rc = wholehost_open(&ts->host, ts->host_events, ts->nr_host_events, opts->chains, err);
	if (!rc)
		summary_host(opts, ts);
	return rc;
}

static int open_all(struct recorder *r, struct vmprof_err *err)
{
	struct id_plan plan = {0};
	int rc = open_targets(r, err);

	if (!rc)
		rc = targets_number_events(&r->targets, err);
	if (!rc)
		rc = open_host(&r->targets, r->opts, err);
	if (rc)
		return rc;
	id_plan_make(&plan, &r->targets);
	rc = open_writer(r, &plan, err);
	if (!rc)
		rc = start_targets(r, &plan, err);
	id_plan_free(&plan);
	return rc;
}

/* ---------- running ---------- */

static int flush(void *ctx, struct vmprof_err *err)
{
	struct recorder *r = ctx;
	int rc;

	for (unsigned i = 0; i < r->targets.n; i++) {
		vmrec_take(r->targets.t[i].rec, &r->buf);
		vmrec_encode_stats(r->targets.t[i].rec, &r->buf);
	}
	if (r->targets.host)
		wholehost_take(r->targets.host, &r->buf);
	rc = perfdata_writer_append(r->writer, &r->buf, err);
	if (!rc)
		rc = perfdata_writer_flush(r->writer, err);
	r->wakeups++;
	return rc;
}

/* Returns how many VMs are still there; says once of each one that it is not. */
static unsigned count_running(void *ctx)
{
	struct recorder *r = ctx;
	unsigned running = 0;

	for (unsigned i = 0; i < r->targets.n; i++) {
		struct target *t = &r->targets.t[i];
		struct vmrec_stats st;

		vmrec_get_stats(t->rec, &st);
		running += !st.ended;
		if (st.ended && !t->said_ended)
			record_say(r->opts, "vmprof record: %s: %s\n", t->name, st.ended);
		t->said_ended = st.ended;
	}
	return running;
}

static const struct rounds_ops ops = {.flush = flush, .running = count_running};

/* ---------- ending ---------- */

static void stop_targets(struct recorder *r)
{
	for (unsigned i = 0; i < r->targets.n; i++)
		if (r->targets.t[i].rec)
			vmrec_stop(r->targets.t[i].rec);
	if (r->targets.host)
		wholehost_stop(r->targets.host);
}

/* @ok: nothing went wrong before. */
static int finish(struct recorder *r, bool ok, struct vmprof_err *err)
{
	struct vmprof_err close_err;
	uint64_t bytes;
	int rc, rc2;

	stop_targets(r);
	count_running(r);
	rc = flush(r, err);
	for (unsigned i = 0; i < r->targets.n; i++)
		vmrec_add_build_ids(r->targets.t[i].rec, r->writer);
	bytes = perfdata_writer_bytes(r->writer);
	rc2 = perfdata_writer_close(r->writer, &close_err);
	r->writer = NULL;
	if (!rc && rc2)
		*err = close_err;
	rc = rc ? rc : rc2;
	if (!rc && ok)
		summary_closing(r->opts, &r->targets, r->wakeups, bytes);
	return rc;
}

static int record(struct recorder *r, int *status, struct vmprof_err *err)
{
	int rc = rounds_begin(&r->rounds, r->opts, err);

	if (!rc)
		rc = open_all(r, err);
	if (!rc)
		rc = rounds_run(&r->rounds, &ops, r, status, err);
	if (r->writer) {
		struct vmprof_err finish_err;
		int rc2 = finish(r, !rc, &finish_err);

		if (!rc && rc2)
			*err = finish_err;
		rc = rc ? rc : rc2;
	}
	/* A second signal shall not cut off what gives the VMs' own back to them. */
	targets_free(&r->targets);
	rounds_end(&r->rounds);
	return rc;
}

/*
 * Symbols are saved beside a file, or where the pipe form's are looked for: not in /dev beside a
 * device.
 */
static char *store_for(const char *output)
{
	struct stat st;

	if (!stat(output, &st) && (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
		return NULL;
	return elfstore_beside(output);
}

int recorder_run(const struct record_options *opts, struct record_result *result,
		 struct vmprof_err *err)
{
	const struct vmprof_backend *self = self_wanted(opts);
	struct recorder r = {.opts = opts, .store = store_for(opts->output)};
	int rc;

	*result = (struct record_result){0};
	rc = self ? self_run(self, opts, r.store, result, err)
		  : targets_choose(&r.targets, opts, err);
	if (!rc && !self) {
		rc = record(&r, &result->status, err);
		result->signal = r.rounds.signal;
	}
	targets_free(&r.targets);
	buf_free(&r.buf);
	free(r.store);
	return rc;
}
