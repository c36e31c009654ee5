// SPDX-License-Identifier: GPL-2.0-only
#include "record/self.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "record/events.h"
#include "record/rounds.h"
#include "record/selfrec.h"
#include "record/summary.h"
#include "util/clock.h"
#include "util/text.h"
#include "util/xalloc.h"

struct self {
	const struct record_options *opts;
	const struct vmprof_backend *backend;
	const char *store;
	struct event_list events;
	struct selfrec *rec;
	struct perfdata_writer *writer;
	struct rounds rounds;
	struct buf buf;
	unsigned wakeups;
	bool said_ended;
};

/* ---------- whether, and what ---------- */

static bool runs_vms(void)
{
	struct vm_list vms;
	struct vmprof_err err;
	bool some = vm_list_get(&vms, NULL, &err) || vms.n;

	vm_list_free(&vms);
	return some;
}

const struct vmprof_backend *self_wanted(const struct record_options *opts)
{
	const struct vmprof_backend *b = backend_self_by_name(opts->backend);

	if (opts->backend || opts->wanted.nr_vms || opts->delivery != RECORD_DELIVER_HOST)
		return b;
	b = backend_self_usable();
	return b && !runs_vms() ? b : NULL;
}

/* What is said of VMs by a host means nothing from within. */
static int check_options(const struct self *s, struct vmprof_err *err)
{
	const struct record_options *o = s->opts;
	const char *what = o->wanted.nr_vms			? "--vm"
			   : o->delivery != RECORD_DELIVER_HOST ? "--deliver"
			   : o->multiplex			? "--multiplex"
			   : o->domain				? "--count domain"
			   : o->pause				? "--pause"
								: NULL;

	return what ? err_set(err, EINVAL,
			      "the %s backend samples the machine that it runs on: leave out %s",
			      s->backend->name, what)
		    : 0;
}

/* All of them are this machine's: what a host does besides its guests. */
static int choose_events(struct self *s, struct vmprof_err *err)
{
	struct event_list asked = {0};
	char fell_back[256] = "";
	int rc = event_list_append(&asked, &s->opts->wanted.events, err);

	for (unsigned i = 0; !rc && i < asked.n; i++) {
		struct event *e = &asked.events[i];
		char name[128];

		if (e->leader != i)
			rc = err_set(
				err, EINVAL,
				"event '%s': the %s backend has no groups: leave out the braces",
				escape_str(name, sizeof(name), e->name), s->backend->name);
		else if (e->said_machine && e->guest)
			rc = err_set(err, EINVAL,
				     "event '%s': guests of this machine are not sampled by the %s "
				     "backend",
				     escape_str(name, sizeof(name), e->name), s->backend->name);
		e->guest = false;
		e->host = true;
	}
	if (!rc)
		rc = events_fit(&asked, s->backend, NULL, &s->events, fell_back, sizeof(fell_back),
				err);
	event_list_free(&asked);
	if (!rc && *fell_back)
		record_say(s->opts, "vmprof record: %s\n", fell_back);
	return rc;
}

/* ---------- the file ---------- */

/* One id for each event on each CPU. */
struct ids {
	struct perfdata_id_entry *entries;
	uint64_t *id;
	size_t n;
};

static void make_ids(struct ids *ids, const struct self *s)
{
	uint32_t cpus = selfrec_nr_cpus(s->rec);

	ids->n = (size_t)s->events.n * cpus;
	ids->entries = xcalloc(ids->n, sizeof(*ids->entries));
	ids->id = xcalloc(ids->n, sizeof(*ids->id));
	for (size_t i = 0; i < ids->n; i++) {
		ids->id[i] = i + 1;
		ids->entries[i] = (struct perfdata_id_entry){
			.id = i + 1,
			.idx = i / cpus,
			.cpu = i % cpus,
			.tid = (uint64_t)-1,
		};
	}
}

static int open_writer(struct self *s, const struct ids *ids, struct vmprof_err *err)
{
	struct perfdata_event events[EVENTS_MAX];
	const struct perfdata_writer_config cfg = {
		.path = s->opts->output,
		.events = events,
		.nr_events = s->events.n,
		.ids = ids->entries,
		.nr_ids = ids->n,
		.argv = s->opts->argv,
	};
	size_t cpus = ids->n / s->events.n;

	for (unsigned i = 0; i < s->events.n; i++)
		events[i] = (struct perfdata_event){
			.name = s->events.events[i].name,
			.attr = events_file_attr(&s->events.events[i]),
			.ids = ids->id + i * cpus,
			.nr_ids = cpus,
		};
	return perfdata_writer_open(&s->writer, &cfg, err);
}

static void say_choice(const struct self *s)
{
	struct utsname uts;
	uint32_t cpus = selfrec_nr_cpus(s->rec);
	char what[320];

	uname(&uts);
	summary_events(&s->events, what, sizeof(what));
	record_say(s->opts, "vmprof record: this machine: %s backend, %s, %u CPU%s, Linux %s\n",
		   s->backend->name, what, cpus, cpus == 1 ? "" : "s", uts.release);
}

static int open_all(struct self *s, struct vmprof_err *err)
{
	const struct selfrec_config cfg = {
		.backend = s->backend,
		.events = &s->events,
		.chains = s->opts->chains,
		.realtime = s->opts->realtime,
		.end_fd = s->rounds.end_fd,
	};
	struct ids ids = {0};
	int rc = selfrec_open(&s->rec, &cfg, err);

	if (rc)
		return rc;
	say_choice(s);
	make_ids(&ids, s);
	rc = open_writer(s, &ids, err);
	if (!rc) /* now, as to find it is work of this machine */
		perfdata_writer_add_host_kernel(s->writer, clock_now_ns());
	if (!rc)
		rc = selfrec_start(s->rec, ids.id, err);
	free(ids.entries);
	free(ids.id);
	return rc;
}

/* ---------- the record ---------- */

static int flush(void *ctx, struct vmprof_err *err)
{
	struct self *s = ctx;
	int rc;

	selfrec_take(s->rec, &s->buf);
	rc = perfdata_writer_append(s->writer, &s->buf, err);
	if (!rc)
		rc = perfdata_writer_flush(s->writer, err);
	s->wakeups++;
	return rc;
}

static unsigned is_running(void *ctx)
{
	struct self *s = ctx;
	struct selfrec_stats st;

	selfrec_get_stats(s->rec, &st);
	if (st.ended && !s->said_ended)
		record_say(s->opts, "vmprof record: this machine: %s\n", st.ended);
	s->said_ended = st.ended;
	return !st.ended;
}

static const struct rounds_ops ops = {.flush = flush, .running = is_running};

static void say_closing(const struct self *s, uint64_t bytes)
{
	struct selfrec_stats st;

	selfrec_get_stats(s->rec, &st);
	summary_woken(s->opts, s->wakeups);
	record_say(s->opts, "[ vmprof record: this machine: %llu samples",
		   (unsigned long long)st.written);
	if (st.backend.lost)
		record_say(s->opts, ", %llu lost", (unsigned long long)st.backend.lost);
	record_say(s->opts, " ]\n");
	if (st.backend.note)
		record_say(s->opts, "vmprof record: %s\n", st.backend.note);
	if (st.backend.limit)
		record_say(s->opts, "vmprof record: %s\n", st.backend.limit);
	summary_written(s->opts, bytes, st.written);
}

/* @ok: nothing went wrong before. */
static int finish(struct self *s, bool ok, struct vmprof_err *err)
{
	struct vmprof_err close_err;
	uint64_t bytes;
	int rc, rc2;

	selfrec_stop(s->rec);
	is_running(s);
	rc = flush(s, err);
	selfrec_save(s->rec, s->store, s->writer);
	bytes = perfdata_writer_bytes(s->writer);
	rc2 = perfdata_writer_close(s->writer, &close_err);
	if (!rc && rc2)
		*err = close_err;
	rc = rc ? rc : rc2;
	if (!rc && ok)
		say_closing(s, bytes);
	return rc;
}

static int record(struct self *s, int *status, struct vmprof_err *err)
{
	int rc = rounds_begin(&s->rounds, s->opts, err);

	if (!rc)
		rc = open_all(s, err);
	if (!rc)
		rc = rounds_run(&s->rounds, &ops, s, status, err);
	if (s->writer) {
		struct vmprof_err finish_err;
		int rc2 = finish(s, !rc, &finish_err);

		if (!rc && rc2)
			*err = finish_err;
		rc = rc ? rc : rc2;
	}
	selfrec_close(s->rec); /* before a second signal may end us */
	rounds_end(&s->rounds);
	return rc;
}

int self_run(const struct vmprof_backend *backend, const struct record_options *opts,
	     const char *store, struct record_result *result, struct vmprof_err *err)
{
	struct self s = {.opts = opts, .backend = backend, .store = store};
	int rc = check_options(&s, err);

	if (!rc)
		rc = choose_events(&s, err);
	if (!rc)
		rc = record(&s, &result->status, err);
	result->signal = s.rounds.signal;
	event_list_free(&s.events);
	buf_free(&s.buf);
	return rc;
}
