// SPDX-License-Identifier: GPL-2.0-only
#include "stat/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "util/text.h"

static int open_vm(struct stat_run *r, const struct stat_kind *k, unsigned i,
		   struct vmprof_err *err)
{
	if (r->vms.vm[i]->hypervisor == VM_HYPERVISOR_XEN)
		return err_set(err, ENOTSUP,
			       "nothing can be counted of a domain of Xen, which has no thread on "
			       "this host and whose hypervisor lends nobody its counters: take "
			       "samples, with vmprof record");
	return k->open(r, r->vms.vm[i], &r->vms.events[i], err);
}

/* With --all-vms one that cannot be counted, or has ended meanwhile, does not spoil the others. */
static int open_vms(struct stat_run *r, const struct stat_kind *k, struct vmprof_err *err)
{
	for (unsigned i = 0; i < r->vms.n;) {
		char name[128];
		int rc = open_vm(r, k, i, err);

		if (!rc) {
			i++;
			continue;
		}
		escape_str(name, sizeof(name), r->vms.vm[i]->name);
		err_prefix(err, "VM '%s'", name);
		if (!r->o->all_vms || r->vms.n == 1)
			return rc;
		fprintf(stderr, "vmprof stat: %s; left out\n", err->msg);
		stat_vms_drop(&r->vms, i);
	}
	return 0;
}

static int open_output(struct stat_run *r, struct vmprof_err *err)
{
	const struct stat_options *o = r->o;
	time_t now = time(NULL);
	char text[32];

	r->out = o->exits ? stdout : stderr;
	if (!o->output)
		return 0;
	r->out = fopen(o->output, o->append ? "ae" : "we");
	if (!r->out)
		return err_sys(err, errno, "%s: cannot be written", o->output);
	fprintf(r->out, "# started on %s\n", ctime_r(&now, text));
	return 0;
}

/* 0, or -errno with a sentence: not all has been written. */
static int close_output(struct stat_run *r, struct vmprof_err *err)
{
	FILE *f = r->out;
	const char *name = r->o->output	 ? r->o->output
			   : f == stdout ? "standard output"
					 : "standard error";
	bool bad = fflush(f) || ferror(f);
	int code = errno;

	r->out = NULL;
	if (r->o->output && fclose(f) && !bad) {
		bad = true;
		code = errno;
	}
	return bad ? err_sys(err, code ? code : EIO, "cannot write to %s", name) : 0;
}

static int run_once(struct stat_run *r, const struct stat_kind *k, struct stat_result *result,
		    struct vmprof_err *err)
{
	struct stat_loop l = {
		.interval_ns = r->o->interval_ns,
		.interval_count = r->o->interval_count,
		.duration_ns = r->o->duration_ns,
		.command = r->o->command ? &r->command : NULL,
		.signals = &r->signals,
		.vms = r->vms.vm,
		.nr_vms = r->vms.n,
		.fd = -1,
		.ctx = r,
	};
	int rc = 0;

	/* Not behind the command's start: on a busy host it may be over by then. */
	l.start = clock_now_ns();
	k->begin(r, &l);
	if (r->o->command)
		rc = workload_start(&r->command, r->o->command[0], err);
	rc = rc ? rc : stat_loop_run(&l, err);
	k->end(r, &l);
	workload_stop(&r->command);
	result->signal = l.signal;
	result->status = l.status;
	return rc;
}

/* The command is made ready before anything is opened, so that none of it comes to it. */
static int prepare(struct stat_run *r, struct vmprof_err *err)
{
	char **command = r->o->command;

	return command ? workload_prepare(&r->command, command, &r->signals.before, err) : 0;
}

static int run_all(struct stat_run *r, const struct stat_kind *k, struct stat_result *result,
		   struct vmprof_err *err)
{
	int rc = prepare(r, err);

	signals_ignore_writes(); /* the command has its own of these by now */
	raise_file_limit();
	rc = rc ? rc : open_output(r, err);
	rc = rc ? rc : open_vms(r, k, err);
	rc = rc ? rc : k->start(r, err);
	for (unsigned i = 0; i < r->o->repeat && !rc && !result->signal; i++) {
		rc = i ? prepare(r, err) : 0;
		rc = rc ? rc : run_once(r, k, result, err);
	}
	return rc ? rc : k->finish(r, err);
}

static int run_file(const struct stat_options *o, struct vmprof_err *err)
{
	struct stat_run r = {.o = o};
	struct vmprof_err close_err;
	int rc = open_output(&r, err), rc2;

	if (rc)
		return rc;
	rc = stat_exits_file(o, r.out, err);
	rc2 = close_output(&r, &close_err);
	if (!rc && rc2)
		*err = close_err;
	return rc ? rc : rc2;
}

int stat_run(const struct stat_options *o, struct stat_result *result, struct vmprof_err *err)
{
	const struct stat_kind *k = o->exits ? &stat_exits : &stat_counts;
	struct stat_run r = {.o = o, .signals.fd = -1};
	struct vmprof_err close_err;
	int rc, rc2 = 0;

	*result = (struct stat_result){0};
	if (o->input)
		return run_file(o, err);
	rc = stat_vms_choose(&r.vms, &o->wanted, o->all_vms, err);
	if (rc) {
		stat_vms_free(&r.vms);
		return rc;
	}
	rc = signals_block(&r.signals, err);
	rc = rc ? rc : run_all(&r, k, result, err);
	workload_stop(&r.command);
	if (r.out)
		rc2 = close_output(&r, &close_err);
	if (!rc && rc2)
		*err = close_err;
	k->close(&r);
	stat_vms_free(&r.vms);
	signals_restore(&r.signals);
	return rc ? rc : rc2;
}
