// SPDX-License-Identifier: GPL-2.0-only
#include "backend/kmod_dev.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "kernel/core/sample.h"
#include "kernel/core/table.h"
#include "util/text.h"
#include "util/xalloc.h"

/* ---------- the device ---------- */

static int open_error(int code, struct vmprof_err *err)
{
	switch (code) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		return err_set(err, ENOENT,
			       "vmprof.ko is not loaded (there is no " VMPROF_DEVICE
			       "): 'modprobe vmprof', see vmprof(4)");
	case EACCES:
	case EPERM:
		return err_set(err, code,
			       "this user may not open " VMPROF_DEVICE
			       ": run as root, or give the program CAP_PERFMON and the device");
	default:
		return err_sys(err, code, "cannot open " VMPROF_DEVICE);
	}
}

int kmod_open(struct kmod_dev *d, struct vmprof_err *err)
{
	*d = (struct kmod_dev){.info.size = sizeof(d->info)};
	d->fd = open(VMPROF_DEVICE, O_RDWR | O_CLOEXEC);
	if (d->fd < 0)
		return open_error(errno, err);
	if (ioctl(d->fd, VMPROF_IOC_INFO, &d->info)) {
		int code = errno;

		kmod_close(d);
		return err_sys(err, code, VMPROF_DEVICE " does not say what it is");
	}
	if (d->info.abi != VMPROF_ABI) {
		kmod_close(d);
		return err_set(
			err, EPROTO,
			"vmprof.ko has interface %u and this vmprof understands %u: load the "
			"module that came with it",
			d->info.abi, VMPROF_ABI);
	}
	return 0;
}

void kmod_close(struct kmod_dev *d)
{
	if (d->fd >= 0)
		close(d->fd);
	free(d->place);
	free(d->vcpu);
	d->fd = -1;
	d->place = d->vcpu = NULL;
	d->attach.vm = 0;
}

/* ---------- events ---------- */

int kmod_event(const struct event *e, struct vmprof_event *out, struct vmprof_err *err)
{
	const char *why = NULL;
	char name[128];

	if (event_is_of_host(e) || e->host || !e->guest)
		why = "it is the host's, and vmprof.ko samples guests";
	else if (e->precise || e->precise_max)
		why = "vmprof.ko has no precise events";
	else if (e->exclusive)
		why = "vmprof.ko shares a CPU's counters";
	else if (e->exclude_user && e->exclude_kernel)
		why = "user and kernel mode are both excluded";
	if (why)
		return err_set(err, EOPNOTSUPP, "event '%s': %s",
			       escape_str(name, sizeof(name), e->name), why);
	*out = (struct vmprof_event){
		.type = e->type,
		.config = e->config,
		.config1 = e->config1,
		.config2 = e->config2,
		.period = e->rate,
		.flags = e->freq && e->rate ? VMPROF_EVENT_FREQ : 0,
	};
	/* A clock ticks in the host: its samples' modes are for their reader to look at. */
	if (!e->exclude_user || event_is_clock(e))
		out->flags |= VMP_COUNT_USER;
	if (!e->exclude_kernel || event_is_clock(e))
		out->flags |= VMP_COUNT_KERNEL;
	return 0;
}

static int make_events(const struct kmod_config *cfg, struct vmprof_event *events,
		       struct vmprof_err *err)
{
	char name[128];

	for (unsigned i = 0; i < cfg->nr_events; i++) {
		const struct event *e = &cfg->events[i];
		int rc = kmod_event(e, &events[i], err);

		/* All events of a VM count at once, grouped or not, but for this: */
		if (!rc && e->leader != i && cfg->multiplex)
			rc = err_set(err, EOPNOTSUPP,
				     "event '%s': vmprof.ko keeps no groups together when events "
				     "take turns: leave out --multiplex or the braces",
				     escape_str(name, sizeof(name), e->name));
		if (rc)
			return rc;
	}
	return 0;
}

/* ---------- attaching ---------- */

/* Sampled events may take turns in the module, if that is asked for; vmprof stat does not ask. */
static bool has_samples(const struct kmod_config *cfg)
{
	for (unsigned i = 0; cfg && i < cfg->nr_events; i++)
		if (cfg->events[i].rate)
			return true;
	return false;
}

static int too_many(const struct kmod_dev *d, const struct kmod_config *cfg, const char *name,
		    struct vmprof_err *err)
{
	const struct vmprof_attach *a = &d->attach;

	return err_set(err, ENOSPC,
		       "%s asks for %u events, this CPU has %u counters%s: ask for fewer%s", name,
		       a->wanted, a->have,
		       a->wanted > a->have ? "" : ", not all of which can count each of these",
		       has_samples(cfg) ? ", or let them take turns with --multiplex" : "");
}

/* @cfg: NULL if the guest's own events are taken. */
static int attach_error(const struct kmod_dev *d, const struct vm *vm,
			const struct kmod_config *cfg, int code, struct vmprof_err *err)
{
	const struct event *only = cfg && cfg->nr_events == 1 ? cfg->events : NULL;
	char name[128], event[128] = "an event";

	escape_str(name, sizeof(name), vm->name);
	if (only)
		escape_str(event, sizeof(event), only->name);
	switch (code) {
	case ENOSPC:
		return too_many(d, cfg, name, err);
	case EBUSY:
		return err_set(err, code,
			       "%s is being profiled through vmprof.ko by another program, and a "
			       "VM has one owner at a time: stop that one, or use --backend perf",
			       name);
	case ESRCH:
		return vm_access_error(vm, ESRCH, "the thread of a vCPU", err);
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case EOPNOTSUPP:
		return err_set(err, code,
			       "%s%s%s cannot be sampled by vmprof.ko: this host's PMU (if it has "
			       "one) does not count it; cpu-clock works everywhere",
			       only ? "event '" : "", event, only ? "'" : "");
	case EINVAL:
		return err_set(err, code,
			       "%s: vmprof.ko does not take the events as they were asked for: "
			       "-F is at most kernel.perf_event_max_sample_rate",
			       name);
	default:
		return err_sys(err, code, "%s: vmprof.ko cannot take the VM", name);
	}
}

/* Which threads there are. 0 or -ENOENT with a sentence */
static int find_threads(struct kmod_dev *d, const struct vm *vm, int32_t *tids,
			struct vmprof_err *err)
{
	uint32_t n = 0;

	d->nr_vcpus = vm->nr_vcpus;
	d->place = xcalloc(vm->nr_vcpus + 1, sizeof(*d->place));
	d->vcpu = xcalloc(vm->nr_vcpus + 1, sizeof(*d->vcpu));
	for (uint32_t i = 0; i < vm->nr_vcpus; i++) {
		d->place[i] = KMOD_NO_PLACE;
		if (!vm->vcpus[i].tid || n == VMPROF_VCPUS_MAX)
			continue;
		d->place[i] = n;
		d->vcpu[n] = i;
		tids[n++] = vm->vcpus[i].tid;
	}
	d->attach.nr_vcpus = n;
	return n ? 0
		 : err_set(err, ENOENT,
			   "which threads run the VM's vCPUs is not known: start QEMU with -name "
			   "...,debug-threads=on, or run as root with debugfs mounted");
}

int kmod_attach(struct kmod_dev *d, const struct vm *vm, const struct kmod_config *cfg,
		struct vmprof_err *err)
{
	struct vmprof_event events[EVENTS_MAX];
	int32_t *tids = xcalloc(vm->nr_vcpus + 1, sizeof(*tids));
	int rc = make_events(cfg, events, err);

	free(d->place);
	free(d->vcpu);
	d->attach = (struct vmprof_attach){
		.size = sizeof(d->attach),
		.flags = (cfg->multiplex ? VMP_ROW_MULTIPLEX : 0u) |
			 (cfg->domain ? VMP_ROW_DOMAIN : 0u),
		.delivery = VMP_DELIVER_HOST,
		.vcpus = (uintptr_t)tids,
		.events = (uintptr_t)events,
		.nr_events = cfg->nr_events,
		.ring_size = cfg->ring_size ? cfg->ring_size : VMPROF_RING_MIN,
		.stack_size = cfg->stack_size,
		.wakeup = cfg->wakeup,
		.sample_flags = cfg->registers ? VMP_SAMPLE_REGS : 0u,
	};
	d->place = d->vcpu = NULL;
	if (!rc)
		rc = find_threads(d, vm, tids, err);
	if (!rc && ioctl(d->fd, VMPROF_IOC_ATTACH, &d->attach))
		rc = attach_error(d, vm, cfg, errno, err);
	d->attach.vcpus = d->attach.events = 0;
	if (rc)
		d->attach.vm = 0;
	free(tids);
	return rc;
}

/* Where delivery to the guest fails for a reason of its own. */
static int direct_error(const struct kmod_dev *d, const struct vm *vm,
			const struct kmod_direct *direct, int code, struct vmprof_err *err)
{
	char name[128];

	escape_str(name, sizeof(name), vm->name);
	switch (code) {
	case EPERM:
		return err_set(err, code, "%s: %s delivery needs CAP_SYS_ADMIN: run as root", name,
			       direct->name);
	case EOPNOTSUPP:
		return err_set(err, code, "%s: no %s delivery on this host: %s", name, direct->name,
			       direct->delivery == VMP_DELIVER_DIRECT ? d->info.why_not_direct
								      : d->info.why_not_inject);
	case EINVAL:
		return err_set(err, code,
			       "%s: vmprof.ko does not deliver the events to the guest as they "
			       "were asked for",
			       name);
	case EFAULT:
		return err_set(
			err, code,
			"%s: vmprof.ko cannot write to the log: its file has to be in memory "
			"(tmpfs, such as /dev/shm, or huge pages) and may not be cut",
			name);
	default:
		return attach_error(d, vm, NULL, code, err);
	}
}

int kmod_attach_direct(struct kmod_dev *d, const struct vm *vm, const struct kmod_direct *direct,
		       struct vmprof_err *err)
{
	int32_t *tids = xcalloc(vm->nr_vcpus + 1, sizeof(*tids));
	int rc;

	d->attach = (struct vmprof_attach){
		.size = sizeof(d->attach),
		.flags = direct->flags,
		.delivery = direct->delivery,
		.vcpus = (uintptr_t)tids,
		.events = (uintptr_t)direct->events,
		.nr_events = direct->nr_events,
		.handler = direct->handler,
		.log = (uintptr_t)direct->log,
	};
	rc = find_threads(d, vm, tids, err);
	if (!rc && ioctl(d->fd, VMPROF_IOC_ATTACH, &d->attach))
		rc = direct_error(d, vm, direct, errno, err);
	d->attach.vcpus = d->attach.events = 0;
	free(tids);
	return rc;
}

int kmod_status(struct kmod_dev *d, struct vmprof_status *out)
{
	*out = (struct vmprof_status){.size = sizeof(*out)};
	return ioctl(d->fd, VMPROF_IOC_STATUS, out) ? -errno : 0;
}

int kmod_want(struct kmod_dev *d, const struct guest_wanted *wanted, struct vmprof_err *err)
{
	uint64_t *areas = xcalloc(d->attach.nr_vcpus, sizeof(*areas));
	const struct vmprof_want want = {
		.size = sizeof(want),
		.nr_vcpus = d->attach.nr_vcpus,
		.areas = (uintptr_t)areas,
		.root_clear = wanted->root_clear,
		.current_task = wanted->current,
		.task_stack = wanted->task_stack,
		.thread_size = wanted->thread_size,
		.saved_sp = wanted->saved_sp,
		.irq_stack = wanted->irq_stack,
	};
	int rc = 0;

	for (uint32_t i = 0; i < d->attach.nr_vcpus; i++)
		if (d->vcpu[i] < wanted->nr_areas)
			areas[i] = wanted->areas[d->vcpu[i]];
	if (ioctl(d->fd, VMPROF_IOC_WANT, &want))
		rc = err_sys(err, errno, "vmprof.ko does not take what is to be copied");
	free(areas);
	return rc;
}

/* ---------- counting ---------- */

int kmod_start(struct kmod_dev *d, struct vmprof_err *err)
{
	if (ioctl(d->fd, VMPROF_IOC_START))
		return err_sys(err, errno, "vmprof.ko cannot start to count");
	return 0;
}

void kmod_stop(struct kmod_dev *d)
{
	ioctl(d->fd, VMPROF_IOC_STOP);
}

int kmod_read(struct kmod_dev *d, uint32_t vcpu, unsigned event, struct vmprof_read *out)
{
	if (vcpu >= d->nr_vcpus || d->place[vcpu] == KMOD_NO_PLACE)
		return -ENOENT;
	*out = (struct vmprof_read){.size = sizeof(*out), .vcpu = d->place[vcpu], .event = event};
	return ioctl(d->fd, VMPROF_IOC_READ, out) ? -errno : 0;
}

int kmod_wait(struct kmod_dev *d, int ms, bool *gone)
{
	struct pollfd p = {.fd = d->fd, .events = POLLIN};
	int n = poll(&p, 1, ms);

	if (n < 0)
		return -errno;
	*gone |= n && p.revents & POLLHUP;
	return 0;
}

bool kmod_ended(struct kmod_dev *d)
{
	struct pollfd p = {.fd = d->fd};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLHUP);
}
