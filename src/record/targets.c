// SPDX-License-Identifier: GPL-2.0-only
#include "record/targets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/events.h"
#include "record/summary.h"
#include "record/wholehost.h"
#include "util/text.h"
#include "util/xalloc.h"

/* ---------- which VMs, by which backend ---------- */

static struct target *add_target(struct targets *ts, struct vm *vm, const char *only)
{
	struct target *t = ts->t;

	for (; t < ts->t + ts->n; t++)
		if (t->vm == vm)
			return t;
	*t = (struct target){.vm = vm, .only = only};
	escape_str(t->name, sizeof(t->name), vm->name);
	ts->n++;
	return t;
}

/* What was said for all VMs comes before what was said for one. */
static int share_events(struct targets *ts, const struct record_options *opts,
			struct vmprof_err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < ts->n && !rc; i++) {
		struct target *t = &ts->t[i];
		struct event_list own = t->asked;

		if (own.n && opts->events_default)
			continue;
		t->asked = (struct event_list){0};
		rc = event_list_append(&t->asked, &opts->wanted.events, err);
		if (!rc)
			rc = event_list_append(&t->asked, &own, err);
		event_list_free(&own);
		if (rc)
			err_prefix(err, "VM '%s'", t->name);
	}
	return rc;
}

/* Who types this in a VM that has vmprof's module wants what is not asked for there. */
static int no_vm(const struct targets *ts, const struct record_options *opts,
		 struct vmprof_err *err)
{
	if (!ts->vms.n && opts->delivery != RECORD_DELIVER_HOST && backend_self_usable())
		return err_set(err, EOPNOTSUPP,
			       "no VM runs here: what a host lends this one is asked for "
			       "on the host; from within leave out --deliver");
	return -err->code;
}

/* The backend that it must be; NULL: any. */
static const char *only_backend(const struct record_options *opts)
{
	switch (opts->delivery) {
	case RECORD_DELIVER_INJECT:
		return backend_inject.name;
	case RECORD_DELIVER_DIRECT:
		return backend_direct.name;
	case RECORD_DELIVER_HOST:
		break;
	}
	return opts->backend;
}

static int choose_vms(struct targets *ts, const struct record_options *opts, struct vmprof_err *err)
{
	const char *only = only_backend(opts);
	unsigned hidden = 0;
	int rc = vm_list_get(&ts->vms, &hidden, err);

	if (rc)
		return rc;
	ts->t = xcalloc(ts->vms.n, sizeof(*ts->t));
	for (unsigned i = 0; i < opts->wanted.nr_vms; i++) {
		struct vm *vm = vm_list_find(&ts->vms, opts->wanted.vms[i].spec, err);

		if (!vm)
			return -err->code;
		rc = event_list_append(&add_target(ts, vm, only)->asked,
				       &opts->wanted.vms[i].events, err);
		if (rc)
			return rc;
	}
	for (size_t i = 0; opts->all_vms && i < ts->vms.n; i++)
		add_target(ts, ts->vms.vms[i], only);
	if (!ts->n) {
		struct vm *vm = vm_list_only(&ts->vms, hidden, err);

		if (!vm)
			return no_vm(ts, opts, err);
		add_target(ts, vm, only);
	}
	return share_events(ts, opts, err);
}

/*
 * The best backend behind @before (NULL: of all) that can profile this VM, or the one that was
 * asked for.
 */
static int choose_backend(const struct record_options *opts, struct target *t,
			  const struct vmprof_backend *before, struct vmprof_err *err)
{
	const char *asked = t->only;
	bool for_events = before != NULL;
	char why[sizeof(err->msg)] = "";

	if (asked && !backend_by_name(asked))
		return err_set(err, EINVAL, "there is no backend '%s'", asked);
	for (const struct vmprof_backend *const *b = vmprof_backends; *b; b++) {
		size_t at = strlen(why);

		if (before) {
			before = before == *b ? NULL : before;
			continue;
		}
		if (asked ? strcmp((*b)->name, asked) != 0 : (*b)->only_asked)
			continue;
		if (for_events && (*b)->clocks_only)
			continue;
		(*b)->probe(t->vm, &t->caps);
		if (t->caps.usable || (opts->experimental && t->caps.experimental)) {
			t->backend = *b;
			return 0;
		}
		snprintf(why + at, sizeof(why) - at, "%s%s: %s", at ? "; " : "", (*b)->name,
			 t->caps.why_not);
	}
	return err_set(err, ENOTSUP, "VM '%s' cannot be profiled here (%s)", t->name, why);
}

/* What was asked for and the backend has not is an error; with --all-vms the others may have it. */
static int check_asked(const struct record_options *opts, const struct target *t,
		       struct vmprof_err *err)
{
	if (opts->pause && !t->caps.can_pause)
		return err_set(err, ENOTSUP,
			       "VM '%s': the %s backend never stops a VM: leave out --pause",
			       t->name, t->backend->name);
	if (opts->domain && !t->caps.domain)
		return err_set(err, ENOTSUP,
			       "VM '%s': the %s backend counts only while the guest runs: "
			       "--count domain needs vmprof.ko, see vmprof(4)",
			       t->name, t->backend->name);
	if (!opts->chains || t->caps.registers)
		return 0;
	return err_set(err, ENOTSUP,
		       "VM '%s': the %s backend gets no registers of the guest, and so no call "
		       "chains: leave out -g",
		       t->name, t->backend->name);
}

/* Interrupts that the host raises are asked for where they can be had, and not at any price. */
static bool gives_way(const struct target *t, const struct record_options *opts)
{
	return opts->delivery == RECORD_DELIVER_INJECT && t->only;
}

static int take_host(struct target *t, const struct record_options *opts, const char *why,
		     struct vmprof_err *err)
{
	record_say(opts, "vmprof record: %s: %s; taking the host's delivery\n", t->name, why);
	t->only = NULL;
	return choose_backend(opts, t, NULL, err);
}

/* With --all-vms a VM that cannot be profiled is left out and said; with --vm it is an error. */
static int choose_backends(struct targets *ts, const struct record_options *opts,
			   struct vmprof_err *err)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < ts->n; i++) {
		struct target *t = &ts->t[i];
		int rc = choose_backend(opts, t, NULL, err);

		if (rc && gives_way(t, opts))
			rc = take_host(t, opts, t->caps.why_not, err);
		rc = rc ? rc : check_asked(opts, t, err);
		if (rc && !opts->all_vms)
			return rc;
		if (rc) {
			record_say(opts, "vmprof record: %s; left out\n", err->msg);
			event_list_free(&t->asked);
		} else {
			ts->t[kept++] = *t;
		}
	}
	ts->n = kept;
	return kept ? 0 : err_set(err, ENOTSUP, "none of the VMs of this host can be profiled");
}

/* ---------- events and ids ---------- */

static uint32_t file_event(struct targets *ts, const struct event *ev)
{
	unsigned i;

	for (i = 0; i < ts->events.n; i++)
		if (event_same(&ts->events.events[i], ev))
			return i;
	if (i == EVENTS_MAX)
		return EVENTS_MAX;
	ts->events.events[ts->events.n++] = *ev;
	return i;
}

/*
 * An event that the best backend has not may be had by the next one; who has named a backend, or
 * what only the best one can do, does not get another.
 */
static int fit_events(const struct record_options *opts, struct target *t, char *fell_back,
		      size_t size, struct vmprof_err *err)
{
	for (;;) {
		struct vmprof_err no_other;
		int rc = events_fit(&t->asked, t->backend, t->vm, &t->events, fell_back, size, err);

		if ((rc != -ENOENT && rc != -EOPNOTSUPP) || t->only ||
		    choose_backend(opts, t, t->backend, &no_other) ||
		    check_asked(opts, t, &no_other))
			return rc;
		record_say(opts, "vmprof record: %s: %s; taking the %s backend\n", t->name,
			   err->msg, t->backend->name);
	}
}

int target_error(const struct target *t, struct vmprof_err *err)
{
	return strncmp(err->msg, t->name, strlen(t->name)) ? err_prefix(err, "VM '%s'", t->name)
							   : -err->code;
}

static int resolve_events(const struct record_options *opts, struct target *t,
			  struct vmprof_err *err)
{
	char fell_back[256];
	int rc = fit_events(opts, t, fell_back, sizeof(fell_back), err);

	if ((rc == -ENOENT || rc == -EOPNOTSUPP) && gives_way(t, opts)) {
		rc = take_host(t, opts, err->msg, err);
		rc = rc ? rc : check_asked(opts, t, err);
		rc = rc ? rc : fit_events(opts, t, fell_back, sizeof(fell_back), err);
	}
	if (rc)
		return target_error(t, err);
	if (*fell_back)
		record_say(opts, "vmprof record: %s: %s\n", t->name, fell_back);
	return 0;
}

int targets_fall_back(struct target *t, const struct record_options *opts, struct vmprof_err *err)
{
	bool guest = err->code == ENOLINK && !opts->backend;
	int rc;

	if (!guest && (!gives_way(t, opts) || err->code == ESRCH))
		return -err->code;
	event_list_free(&t->events);
	rc = take_host(t, opts, err->msg, err);
	rc = rc ? rc : check_asked(opts, t, err);
	return rc ? rc : resolve_events(opts, t, err);
}

static int number_events(struct targets *ts, struct target *t, struct vmprof_err *err)
{
	for (unsigned i = 0; i < t->events.n; i++) {
		t->file_event[i] = file_event(ts, &t->events.events[i]);
		if (t->file_event[i] == EVENTS_MAX)
			return err_set(err, EINVAL, "more than %d events", EVENTS_MAX);
	}
	return 0;
}

static void number_host_events(struct targets *ts)
{
	bool wanted[EVENTS_MAX] = {false};

	for (unsigned i = 0; i < ts->n; i++)
		for (unsigned e = 0; e < ts->t[i].events.n && ts->t[i].caps.apart; e++)
			wanted[ts->t[i].file_event[e]] |= ts->t[i].events.events[e].host;
	for (uint32_t fe = 0; fe < ts->events.n; fe++) {
		if (!wanted[fe])
			continue;
		ts->host_file_event[ts->nr_host_events] = fe;
		ts->host_events[ts->nr_host_events++] = ts->events.events[fe];
	}
}

int targets_number_events(struct targets *ts, struct vmprof_err *err)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < ts->n; i++)
		rc = number_events(ts, &ts->t[i], err);
	number_host_events(ts);
	return rc;
}

/* @entry but for its number, which is the next one. */
static void plan_entry(struct id_plan *p, const struct perfdata_id_entry *entry)
{
	uint64_t fe = entry->idx, id = p->n + 1;

	p->ids[p->n] = id;
	p->entries[p->n] = *entry;
	p->entries[p->n++].id = id;
	p->by_event[fe] =
		xgrow(p->by_event[fe], &p->cap_by_event[fe], p->nr_by_event[fe] + 1, sizeof(id));
	p->by_event[fe][p->nr_by_event[fe]++] = id;
}

static void plan_id(struct id_plan *p, const struct target *t, unsigned event, uint32_t vcpu)
{
	plan_entry(p, &(struct perfdata_id_entry){
			      .idx = t->file_event[event],
			      .cpu = (uint64_t)-1,
			      .tid = vcpu < t->vm->nr_vcpus ? (uint64_t)t->vm->vcpus[vcpu].tid : 0,
			      .machine_pid = (uint64_t)vm_number(t->vm),
			      .vcpu = vcpu,
		      });
}

static void plan_host(struct id_plan *p, const struct targets *ts, const uint32_t *cpu, unsigned n)
{
	for (unsigned e = 0; e < ts->nr_host_events; e++)
		for (unsigned i = 0; i < n; i++)
			plan_entry(p, &(struct perfdata_id_entry){.idx = ts->host_file_event[e],
								  .cpu = cpu[i],
								  .tid = (uint64_t)-1});
}

void id_plan_make(struct id_plan *p, const struct targets *ts)
{
	const uint32_t *cpu = NULL;
	unsigned nr_cpus = 0;
	size_t total;

	if (ts->host)
		cpu = wholehost_cpus(ts->host, &nr_cpus);
	total = (size_t)ts->nr_host_events * nr_cpus;
	for (unsigned i = 0; i < ts->n; i++)
		total += (size_t)ts->t[i].events.n * vmrec_nr_vcpus(ts->t[i].rec);
	p->entries = xcalloc(total, sizeof(*p->entries));
	p->ids = xcalloc(total, sizeof(*p->ids));
	for (unsigned i = 0; i < ts->n; i++) {
		const struct target *t = &ts->t[i];

		for (unsigned e = 0; e < t->events.n; e++)
			for (uint32_t v = 0; v < vmrec_nr_vcpus(t->rec); v++)
				plan_id(p, t, e, v);
	}
	plan_host(p, ts, cpu, nr_cpus);
}

void id_plan_free(struct id_plan *p)
{
	for (unsigned i = 0; i < EVENTS_MAX; i++)
		free(p->by_event[i]);
	free(p->entries);
	free(p->ids);
}

int targets_choose(struct targets *ts, const struct record_options *opts, struct vmprof_err *err)
{
	int rc = choose_vms(ts, opts, err);

	if (!rc)
		rc = choose_backends(ts, opts, err);
	for (unsigned i = 0; !rc && i < ts->n; i++)
		rc = resolve_events(opts, &ts->t[i], err);
	return rc;
}

void targets_drop(struct targets *ts, unsigned i)
{
	event_list_free(&ts->t[i].asked);
	event_list_free(&ts->t[i].events);
	ts->n--;
	memmove(ts->t + i, ts->t + i + 1, (ts->n - i) * sizeof(*ts->t));
}

void targets_free(struct targets *ts)
{
	for (unsigned i = 0; i < ts->n; i++) {
		vmrec_close(ts->t[i].rec);
		event_list_free(&ts->t[i].asked);
		event_list_free(&ts->t[i].events);
	}
	wholehost_free(ts->host);
	free(ts->t);
	vm_list_free(&ts->vms);
	*ts = (struct targets){0};
}
