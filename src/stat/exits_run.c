// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exits as they come: the tracepoints kvm:kvm_exit and kvm:kvm_entry of each vCPU's thread, both in
 * one buffer, so that they are in the order in which they were.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "backend/perf_ring.h"
#include "stat/exits.h"
#include "stat/exits_format.h"
#include "stat/run.h"
#include "util/text.h"
#include "util/xalloc.h"

#define RING_ORDER 7 /* pages, as a power of two: 512 KiB, of 4000 exits or more */

/* PERF_RECORD_SAMPLE with the sample_type of open_tracepoint(). */
struct exit_record {
	struct perf_event_header header;
	uint64_t time;
	uint32_t size;
	uint8_t raw[];
};

struct lost_record { /* PERF_RECORD_LOST */
	struct perf_event_header header;
	uint64_t id, lost;
};

struct exits_vcpu {
	struct perf_ring ring; /* of kvm_exit */
	int entry_fd;
	struct exit_vcpu at;
};

struct exits_vm {
	char name[128]; /* escaped */
	struct exits_vcpu *vcpus;
	unsigned nr_vcpus;
	struct exit_table table;
};

struct exits {
	struct exits_format format;
	uint64_t exit_id, entry_id;
	struct exits_vm *vms;
	unsigned n;
	int epoll;
};

/* ---------- tracepoints ---------- */

static int read_formats(struct exits *x, struct vmprof_err *err)
{
	char *text = xmalloc(TRACEPOINT_FORMAT_MAX);
	int rc = tracepoint_id(&x->exit_id, NULL, "kvm", "kvm_exit", err);

	rc = rc ? rc : tracepoint_id(&x->entry_id, NULL, "kvm", "kvm_entry", err);
	rc = rc ? rc : tracepoint_format(text, NULL, "kvm", "kvm_exit", err);
	rc = rc ? rc : exits_format_init(&x->format, text, err);
	free(text);
	return rc;
}

static void take_record(struct exits *x, struct exits_vm *vm, struct exits_vcpu *v,
			const struct exit_record *r)
{
	size_t size = r->header.size - offsetof(struct exit_record, raw);
	enum exit_kind kind;
	uint32_t reason;
	uint64_t type;

	size = r->size < size ? r->size : size;
	if (!tracepoint_value(&type, &x->format.type, r->raw, size))
		return;
	if (type == x->entry_id)
		entry_seen(&vm->table, &v->at, r->time);
	else if (type == x->exit_id &&
		 exits_format_reason(&x->format, r->raw, size, &kind, &reason))
		exit_seen(&v->at, kind, reason, r->time);
}

/* The buffer of a thread that has ended is always ready: it is looked at all the same. */
static void forget_ended(struct exits *x)
{
	struct epoll_event ev[16];
	int n = epoll_wait(x->epoll, ev, sizeof(ev) / sizeof(*ev), 0);

	for (int i = 0; i < n; i++) {
		const struct exits_vcpu *v = ev[i].data.ptr;

		if (ev[i].events & (EPOLLHUP | EPOLLERR))
			epoll_ctl(x->epoll, EPOLL_CTL_DEL, v->ring.fd, NULL);
	}
}

static void drain(void *ctx)
{
	struct stat_run *run = ctx;
	struct exits *x = run->what;
	const struct perf_event_header *h;

	forget_ended(x);
	for (unsigned i = 0; i < x->n; i++)
		for (unsigned n = 0; n < x->vms[i].nr_vcpus; n++) {
			struct exits_vcpu *v = &x->vms[i].vcpus[n];

			while ((h = perf_ring_next(&v->ring))) {
				if (h->type == PERF_RECORD_SAMPLE &&
				    h->size >= offsetof(struct exit_record, raw))
					take_record(x, &x->vms[i], v,
						    (const struct exit_record *)h);
				else if (h->type == PERF_RECORD_LOST &&
					 h->size >= sizeof(struct lost_record))
					exits_lost(&x->vms[i].table, &v->at,
						   ((const struct lost_record *)h)->lost);
			}
		}
}

/* ---------- opening ---------- */

static int open_tracepoint(uint64_t id, pid_t tid, struct vmprof_err *err)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = id,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.disabled = 1,
		.watermark = 1,
		.wakeup_watermark = (uint32_t)sysconf(_SC_PAGESIZE) << (RING_ORDER - 2),
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int fd = perf_event_open_fd(&attr, tid, -1, -1, 0);

	if (fd == -EACCES || fd == -EPERM)
		return perf_permission_error("trace the exits of the VM", fd, err);
	return fd < 0 ? err_sys(err, fd, "the tracepoints of KVM on thread %d", tid) : fd;
}

static int open_vcpu(struct exits *x, struct exits_vcpu *v, pid_t tid, struct vmprof_err *err)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = v};
	int rc;

	v->ring.fd = open_tracepoint(x->exit_id, tid, err);
	if (v->ring.fd < 0)
		return v->ring.fd;
	v->entry_fd = open_tracepoint(x->entry_id, tid, err);
	if (v->entry_fd < 0)
		return v->entry_fd;
	rc = perf_ring_map(&v->ring, RING_ORDER, err);
	if (rc)
		return rc;
	if (ioctl(v->entry_fd, PERF_EVENT_IOC_SET_OUTPUT, v->ring.fd) ||
	    epoll_ctl(x->epoll, EPOLL_CTL_ADD, v->ring.fd, &ev))
		return err_sys(err, errno, "the buffer of a tracepoint");
	return 0;
}

static void close_vm(struct exits_vm *vm)
{
	for (unsigned i = 0; i < vm->nr_vcpus; i++) {
		perf_ring_close(&vm->vcpus[i].ring);
		if (vm->vcpus[i].entry_fd >= 0)
			close(vm->vcpus[i].entry_fd);
	}
	free(vm->vcpus);
	exit_table_reset(&vm->table);
	*vm = (struct exits_vm){0};
}

static int open_vcpus(struct exits *x, struct exits_vm *e, const struct vm *vm, int only,
		      struct vmprof_err *err)
{
	e->vcpus = xcalloc(vm->nr_vcpus, sizeof(*e->vcpus));
	for (uint32_t v = 0; v < vm->nr_vcpus; v++) {
		struct exits_vcpu *vcpu = &e->vcpus[e->nr_vcpus];
		int rc;

		if (only >= 0 && v != (uint32_t)only)
			continue;
		if (!vm->vcpus[v].tid)
			return err_set(err, ENOENT,
				       "which thread runs vCPU %u is not known: start QEMU with "
				       "-name ...,debug-threads=on, or run as root with debugfs "
				       "mounted",
				       v);
		vcpu->ring.fd = vcpu->entry_fd = -1;
		e->nr_vcpus++;
		rc = open_vcpu(x, vcpu, vm->vcpus[v].tid, err);
		if (rc)
			return rc;
	}
	return e->nr_vcpus ? 0 : err_set(err, ENOENT, "there is no vCPU %d", only);
}

static int start_tracing(struct stat_run *r, struct vmprof_err *err)
{
	struct exits *x = xcalloc(1, sizeof(*x));

	r->what = x;
	x->vms = xcalloc(r->vms.n, sizeof(*x->vms));
	x->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (x->epoll < 0)
		return err_sys(err, errno, "epoll_create");
	return read_formats(x, err);
}

static void close_exits(struct stat_run *r)
{
	struct exits *x = r->what;

	if (!x)
		return;
	for (unsigned i = 0; i < x->n; i++)
		close_vm(&x->vms[i]);
	if (x->epoll >= 0)
		close(x->epoll);
	free(x->vms);
	free(x);
	r->what = NULL;
}

static int open_exits(struct stat_run *r, const struct vm *vm, const struct event_list *events,
		      struct vmprof_err *err)
{
	struct exits_vm *e;
	struct exits *x;
	int rc;

	if (vm->accel == VM_ACCEL_UNKNOWN)
		return vm_accel_error(vm, err);
	if (vm->accel != VM_ACCEL_KVM)
		return err_set(err, ENOTSUP, "it runs under %s: only KVM has exits",
			       vm_accel_name(vm->accel));
	if (!r->what) {
		rc = start_tracing(r, err);
		if (rc) {
			close_exits(r); /* or the next VM would take it for begun */
			return rc;
		}
	}
	x = r->what;
	e = &x->vms[x->n];
	escape_str(e->name, sizeof(e->name), vm->name);
	rc = open_vcpus(x, e, vm, r->o->vcpu, err);
	if (rc)
		close_vm(e);
	else
		x->n++;
	return rc;
}

/* ---------- a run ---------- */

static int start_exits(struct stat_run *r, struct vmprof_err *err)
{
	struct exits *x = r->what;

	/* Entries first: an exit whose entry could not be seen would be the next one's. */
	for (unsigned i = 0; i < x->n; i++)
		for (unsigned n = 0; n < x->vms[i].nr_vcpus; n++) {
			struct exits_vcpu *v = &x->vms[i].vcpus[n];

			if (ioctl(v->entry_fd, PERF_EVENT_IOC_ENABLE, 0) ||
			    ioctl(v->ring.fd, PERF_EVENT_IOC_ENABLE, 0))
				return err_sys(err, errno, "a tracepoint cannot be enabled");
		}
	return 0;
}

static void print_exits(struct stat_run *r)
{
	struct exits *x = r->what;

	for (unsigned i = 0; i < x->n; i++) {
		exit_table_print(&x->vms[i].table, r->o, x->vms[i].name, r->out);
		exit_table_reset(&x->vms[i].table);
	}
}

static int end_interval(void *ctx, uint64_t since_start_ns, struct vmprof_err *err)
{
	struct stat_run *r = ctx;

	if (r->o->format == STAT_TEXT)
		fprintf(r->out, "\n# %.9f seconds", (double)since_start_ns / 1e9);
	print_exits(r);
	return fflush(r->out) ? err_sys(err, errno, "cannot write the exits") : 0;
}

static void begin_exits(struct stat_run *r, struct stat_loop *l)
{
	struct exits *x = r->what;

	l->fd = x->epoll;
	l->ready = drain;
	if (r->o->interval_ns)
		l->interval = end_interval;
}

static void end_exits(struct stat_run *r, const struct stat_loop *l)
{
	struct exits *x = r->what;

	for (unsigned i = 0; i < x->n; i++)
		for (unsigned n = 0; n < x->vms[i].nr_vcpus; n++) {
			ioctl(x->vms[i].vcpus[n].ring.fd, PERF_EVENT_IOC_DISABLE, 0);
			ioctl(x->vms[i].vcpus[n].entry_fd, PERF_EVENT_IOC_DISABLE, 0);
		}
	drain(r);
}

static int finish_exits(struct stat_run *r, struct vmprof_err *err)
{
	if (!r->o->interval_ns)
		print_exits(r);
	return 0;
}

const struct stat_kind stat_exits = {
	.open = open_exits,
	.start = start_exits,
	.begin = begin_exits,
	.end = end_exits,
	.finish = finish_exits,
	.close = close_exits,
};
