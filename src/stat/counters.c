// SPDX-License-Identifier: GPL-2.0-only
#include "stat/counters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/text.h"
#include "util/xalloc.h"

/* perf stat's, in its order; those of a PMU only if sysfs says that it has them. */
static const struct {
	const char *name, *if_there;
} defaults[] = {
	{"task-clock", NULL},
	{"context-switches", NULL},
	{"cpu-migrations", NULL},
	{"page-faults", NULL},
	{"cycles", NULL},
	{"stalled-cycles-frontend",
	 "/sys/bus/event_source/devices/cpu/events/stalled-cycles-frontend"},
	{"stalled-cycles-backend",
	 "/sys/bus/event_source/devices/cpu/events/stalled-cycles-backend"},
	{"instructions", NULL},
	{"branches", NULL},
	{"branch-misses", NULL},
};

static int add_defaults(struct event_list *l, struct vmprof_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof(defaults) / sizeof(*defaults) && !rc; i++)
		if (!defaults[i].if_there || !access(defaults[i].if_there, F_OK))
			rc = event_list_add(l, defaults[i].name, err);
	return rc;
}

/* ---------- who counts what ---------- */

/* Threads of a translator have no guest mode: what they do for the VM is all that there is. */
static void count_translator(struct event *e)
{
	e->host |= !e->said_machine;
}

static bool is_missing(int rc)
{
	return rc == -ENOENT || rc == -EOPNOTSUPP || rc == -ENODEV || rc == -ENXIO;
}

/*
 * With the permission that there is: perf's fallback to user mode. 0 or -errno with a sentence;
 * then @e is as it was.
 */
static int try_event(const struct vmprof_backend *b, const struct vm *vm, struct event *e,
		     struct vmprof_err *err)
{
	int rc = b->try_event(vm, e, err);
	struct vmprof_err again;
	struct event user = *e;

	if (rc != -EACCES || e->exclude_kernel || e->exclude_user)
		return rc;
	user.exclude_kernel = true;
	if (b->try_event(vm, &user, &again))
		return rc;
	user.name = xasprintf("%s%s", e->name, strchr(e->name, ':') ? "u" : ":u");
	free((char *)e->name);
	*e = user;
	return 0;
}

static bool may_count(const struct vmprof_backend *b, const struct counters *c,
		      const struct event *e)
{
	struct backend_caps caps;

	if (!b->event_stats || !b->try_event)
		return false;
	/* What happens in the host and the CPU time of a thread are the host kernel's to count. */
	if (event_is_of_host(e) || event_is_clock(e) || c->vm->accel == VM_ACCEL_TCG)
		return b == &backend_perf;
	b->probe(c->vm, &caps);
	return caps.usable;
}

static struct counters_part *part_for(struct counters *c, const struct vmprof_backend *b)
{
	for (unsigned i = 0; i < c->nr_parts; i++)
		if (c->part[i].backend == b)
			return &c->part[i];
	if (c->nr_parts == COUNTERS_SESSIONS)
		return NULL;
	c->part[c->nr_parts].backend = b;
	return &c->part[c->nr_parts++];
}

static void add_to_part(struct counters *c, unsigned i, struct counters_part *p)
{
	struct event *e = &p->events.events[p->events.n];

	*e = c->events.events[i];
	e->leader = e->leader == i ? p->events.n : c->index[e->leader];
	c->supported[i] = true;
	c->part_of[i] = (unsigned)(p - c->part);
	c->index[i] = p->events.n++;
}

static void note_left_to_perf(struct counters *c, const struct vmprof_err *why)
{
	snprintf(c->note, sizeof(c->note), "%s; counted by perf events", why->msg);
}

/* 0, also if nobody has the event, or -errno. */
static int place_event(struct counters *c, unsigned i, const char *backend, struct vmprof_err *err)
{
	struct event *e = &c->events.events[i];
	struct vmprof_err taken = {0};
	int rc = -ENOENT;

	if (c->vm->accel == VM_ACCEL_TCG)
		count_translator(e);
	if (e->leader != i && !c->supported[e->leader])
		return 0;
	/* there is no guest mode */
	if (c->vm->accel == VM_ACCEL_TCG && !e->host)
		return 0;
	for (const struct vmprof_backend *const *b = vmprof_backends; *b; b++) {
		struct counters_part *p;

		if (!may_count(*b, c, e) || (backend && *b != backend_by_name(backend)))
			continue;
		if (e->leader != i && c->part[c->part_of[e->leader]].backend != *b)
			continue;
		rc = try_event(*b, c->vm, e, err);
		if (rc == -EBUSY)
			taken = *err;
		p = rc ? NULL : part_for(c, *b);
		if (!p)
			continue;
		if (taken.code)
			note_left_to_perf(c, &taken);
		add_to_part(c, i, p);
		return 0;
	}
	return is_missing(rc) ? 0 : rc;
}

/* ---------- opening ---------- */

static bool has_thread(const struct vm *vm)
{
	for (uint32_t v = 0; v < vm->nr_vcpus; v++)
		if (vm->vcpus[v].tid)
			return true;
	return false;
}

static int check_vm(const struct counters *c, const char *backend, struct vmprof_err *err)
{
	const struct vmprof_backend *b = backend ? backend_by_name(backend) : NULL;
	struct backend_caps caps;

	if (backend && !b)
		return err_set(err, EINVAL, "there is no backend '%s'", backend);
	if (backend && !b->event_stats)
		return err_set(err, ENOTSUP, "the %s backend samples and does not count", backend);
	if (!vm_alive(c->vm))
		return vm_access_error(c->vm, ESRCH, "the process", err);
	if (!has_thread(c->vm)) {
		if (c->vm->accel == VM_ACCEL_UNKNOWN)
			return vm_accel_error(c->vm, err);
		return err_set(err, ENOENT,
			       "which threads run its vCPUs is not known: start QEMU with "
			       "-name ...,debug-threads=on, or run as root with debugfs mounted");
	}
	if (!b || c->vm->accel == VM_ACCEL_TCG)
		return 0;
	b->probe(c->vm, &caps);
	return caps.usable ? 0 : err_set(err, ENOTSUP, "%s", caps.why_not);
}

/* A backend that has no counters left for this VM leaves them to perf events, which take turns. */
static int open_part(struct counters *c, struct counters_part *p, bool only, struct vmprof_err *err)
{
	const struct backend_config cfg = {.events = p->events.events, .nr_events = p->events.n};
	int rc = p->backend->open(&p->session, c->vm, &cfg, err);

	if ((rc != -ENOSPC && rc != -EBUSY) || only || p->backend == &backend_perf)
		return rc;
	note_left_to_perf(c, err);
	p->backend = &backend_perf;
	return p->backend->open(&p->session, c->vm, &cfg, err);
}

int counters_open(struct counters *c, const struct vm *vm, const struct event_list *events,
		  const char *backend, struct vmprof_err *err)
{
	int rc;

	*c = (struct counters){.vm = vm, .nr_vcpus = vm->nr_vcpus};
	escape_str(c->name, sizeof(c->name), vm->name);
	rc = check_vm(c, backend, err);
	rc = rc		 ? rc
	     : events->n ? event_list_append(&c->events, events, err)
			 : add_defaults(&c->events, err);
	event_list_set_rate(&c->events, false, 0);
	for (unsigned i = 0; i < c->events.n && !rc; i++) {
		c->events.events[i].freq = false; /* period= and freq= are for samples */
		c->events.events[i].rate = 0;
		rc = place_event(c, i, backend, err);
	}
	for (unsigned i = 0; i < c->nr_parts && !rc; i++)
		rc = open_part(c, &c->part[i], backend, err);
	c->base = xcalloc((size_t)c->events.n * c->nr_vcpus + 1, sizeof(*c->base));
	c->now = xcalloc((size_t)c->events.n * c->nr_vcpus + 1, sizeof(*c->now));
	return rc;
}

void counters_close(struct counters *c)
{
	for (unsigned i = 0; i < c->nr_parts; i++)
		c->part[i].backend->close(c->part[i].session);
	event_list_free(&c->events);
	free(c->base);
	free(c->now);
	*c = (struct counters){0};
}

/* ---------- counting ---------- */

int counters_start(struct counters *c, struct vmprof_err *err)
{
	int rc = 0;

	for (unsigned i = 0; i < c->nr_parts && !rc; i++)
		rc = c->part[i].backend->start(c->part[i].session, err);
	return rc;
}

void counters_stop(struct counters *c)
{
	for (unsigned i = 0; i < c->nr_parts; i++)
		c->part[i].backend->stop(c->part[i].session);
}

static struct backend_event_stats read_one(const struct counters *c, unsigned event, uint32_t vcpu)
{
	const struct counters_part *p = &c->part[c->part_of[event]];
	struct backend_event_stats st = {0};

	if (c->supported[event])
		p->backend->event_stats(p->session, c->index[event], vcpu, &st);
	return st;
}

void counters_read(struct counters *c)
{
	for (unsigned e = 0; e < c->events.n; e++)
		for (uint32_t v = 0; v < c->nr_vcpus; v++)
			c->now[(size_t)e * c->nr_vcpus + v] = read_one(c, e, v);
}

void counters_restart(struct counters *c)
{
	memcpy(c->base, c->now, (size_t)c->events.n * c->nr_vcpus * sizeof(*c->base));
}

/* Each vCPU is scaled by its own times, as its counter was shared. */
static void add_vcpu(const struct counters *c, unsigned event, uint32_t v, struct count *sum)
{
	size_t i = (size_t)event * c->nr_vcpus + v;
	const struct backend_event_stats *was = &c->base[i], *now = &c->now[i];
	uint64_t enabled = now->enabled - was->enabled, running = now->running - was->running;
	double value = (double)(now->count - was->count);

	if (running && running < enabled)
		value = (double)(uint64_t)(value * (double)enabled / (double)running + 0.5);
	sum->value += running ? value : 0;
	sum->enabled += enabled;
	sum->running += running;
}

struct count counters_get(const struct counters *c, unsigned event, uint32_t vcpu)
{
	struct count sum = {0};

	if (vcpu != BACKEND_ALL_VCPUS) {
		add_vcpu(c, event, vcpu, &sum);
		return sum;
	}
	for (uint32_t v = 0; v < c->nr_vcpus; v++)
		add_vcpu(c, event, v, &sum);
	return sum;
}
