// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events to perf_event_open(), and what may be said where that fails.
 *
 * What the kernel's attribute excludes is of the mode at the interrupt. For a counter that is the
 * guest's mode. A clock's interrupt is always taken in the host, so that exclude_kernel would drop
 * all of a guest's samples, and software events ignore exclude_host and exclude_guest (seen
 * on 6.1): of clocks all samples are had, and those that were not asked for are dropped when they
 * are read. A clock that is only counted counts in all modes, whatever it is asked for.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/perf_session.h"
#include "util/text.h"

#define MAX_RATE_FILE "/proc/sys/kernel/perf_event_max_sample_rate"

static const char *const with_pmu[] = {"cycles",       "instructions", "cache-references",
				       "cache-misses", "branches",     "branch-misses",
				       "cpu-clock",    "task-clock",   NULL};
static const char *const without_pmu[] = {"cpu-clock", "task-clock", NULL};

void perf_attr(struct perf_event_attr *attr, const struct event *e)
{
	bool clock = event_is_clock(e) && e->rate;

	*attr = (struct perf_event_attr){
		.type = e->type,
		.size = sizeof(*attr),
		.config = e->config,
		.config1 = e->config1,
		.config2 = e->config2,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING |
			       PERF_FORMAT_LOST,
		.disabled = 1,
		.sample_id_all = 1,
		.exclude_hv = !clock,
		.exclude_user = !clock && e->exclude_user,
		.exclude_kernel = !clock && e->exclude_kernel,
		.exclude_host = !e->host,
		.exclude_guest = !e->guest,
		.precise_ip = e->precise & 3u,
		.pinned = e->pinned,
		.exclusive = e->exclusive,
		.freq = e->freq,
		.watermark = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	if (e->freq)
		attr->sample_freq = e->rate;
	else
		attr->sample_period = e->rate;
}

int perf_open(const struct event *e, pid_t tid, int group_fd, bool *counts_lost)
{
	struct perf_event_attr attr, plain;
	int fd;

	perf_attr(&attr, e);
	attr.disabled = group_fd < 0; /* those of a group go with its first one */
	attr.pinned &= group_fd < 0;
	attr.precise_ip = e->precise_max ? 3 : attr.precise_ip;
	do {
		fd = perf_event_open_fd(&attr, tid, -1, group_fd, 0);
		if (fd == -EINVAL) { /* before 6.0 the kernel does not count what it lost */
			plain = attr;
			plain.read_format &= ~(uint64_t)PERF_FORMAT_LOST;
			fd = perf_event_open_fd(&plain, tid, -1, group_fd, 0);
			*counts_lost = *counts_lost && fd < 0;
		}
	} while (fd < 0 && fd != -ESRCH && e->precise_max && attr.precise_ip-- > 0);
	return fd;
}

static uint64_t read_number(const char *path, uint64_t otherwise)
{
	FILE *f = fopen(path, "re");
	unsigned long long v;
	bool ok;

	if (!f)
		return otherwise;
	ok = fscanf(f, "%llu", &v) == 1;
	fclose(f);
	return ok ? v : otherwise;
}

static int invalid(const struct event *e, const char *name, struct vmprof_err *err)
{
	uint64_t max = read_number(MAX_RATE_FILE, UINT64_MAX);

	if (e->freq && e->rate > max)
		return err_set(err, EINVAL,
			       "event '%s': %llu Hz are more than this host allows: use -F with at "
			       "most %llu, or raise kernel.perf_event_max_sample_rate",
			       name, (unsigned long long)e->rate, (unsigned long long)max);
	if (e->precise)
		return err_set(
			err, EINVAL,
			"event '%s': this PMU is not that precise for a guest: try fewer 'p'",
			name);
	return err_set(err, EINVAL, "event '%s': the kernel does not take it as it was asked for",
		       name);
}

int perf_open_error(const struct vm *vm, const struct event *e, int code, struct vmprof_err *err)
{
	char name[128];

	escape_str(name, sizeof(name), e->name);
	switch (-code) {
	case ESRCH:
		return vm_access_error(vm, ESRCH, "the thread of a vCPU", err);
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case EOPNOTSUPP:
		return err_set(err, code,
			       "event '%s' cannot be sampled by the perf backend for this VM: this "
			       "host's PMU (if it has one) does not count it; cpu-clock works "
			       "everywhere",
			       name);
	case EACCES:
	case EPERM:
		return perf_permission_error("sample the threads of the VM", code, err);
	case EINVAL:
		return invalid(e, name, err);
	case EBUSY:
		return err_set(err, code,
			       "event '%s': the PMU is taken, by a counter watchdog or another "
			       "profiler",
			       name);
	case ENOSPC:
		return err_set(err, code,
			       "event '%s': its group has more events than the PMU has counters",
			       name);
	case EMFILE:
		return err_set(err, code,
			       "too many open files for one perf event a vCPU thread: raise "
			       "'ulimit -n'");
	default:
		return err_sys(err, code, "event '%s': perf_event_open", name);
	}
}

/* A thread of the VM that an event can be tried on; 0: none is known. */
static pid_t some_thread(const struct vm *vm)
{
	for (uint32_t i = 0; i < vm->nr_vcpus; i++)
		if (vm->vcpus[i].tid)
			return vm->vcpus[i].tid;
	return 0;
}

int perf_try_event(const struct vm *vm, const struct event *e, struct vmprof_err *err)
{
	bool lost = true;
	int fd = perf_open(e, some_thread(vm), -1, &lost);

	if (fd < 0)
		return perf_open_error(vm, e, fd, err);
	close(fd);
	return 0;
}

static bool has_cycles(const struct vm *vm)
{
	const struct event cycles = {.name = "cycles",
				     .type = PERF_TYPE_HARDWARE,
				     .config = PERF_COUNT_HW_CPU_CYCLES,
				     .guest = true,
				     .rate = 1000000};
	struct vmprof_err err;

	return !perf_try_event(vm, &cycles, &err);
}

void perf_probe(const struct vm *vm, struct backend_caps *caps)
{
	const struct event clock = {.name = "cpu-clock",
				    .type = PERF_TYPE_SOFTWARE,
				    .config = PERF_COUNT_SW_CPU_CLOCK,
				    .guest = true,
				    .rate = 1000000};
	struct vmprof_err err = {0};
	char name[96];

	*caps = (struct backend_caps){.events = without_pmu, .exact_ip = true};
	escape_str(name, sizeof(name), vm->name);
	if (vm->accel == VM_ACCEL_UNKNOWN)
		vm_accel_error(vm, &err);
	else if (vm->accel != VM_ACCEL_KVM)
		err_set(&err, ENOTSUP,
			"%s runs under %s: the perf backend samples guests that KVM runs", name,
			vm_accel_name(vm->accel));
	else if (!some_thread(vm))
		err_set(&err, ENOENT, "which threads run the vCPUs of %s is not known%s", name,
			vm->hypervisor == VM_HYPERVISOR_QEMU
				? ": start QEMU with -name ...,debug-threads=on, or run as root "
				  "with debugfs mounted"
				: ": run as root with debugfs mounted");
	else if (!perf_try_event(vm, &clock, &err) && has_cycles(vm))
		caps->events = with_pmu;
	caps->usable = !err.code;
	caps->memory = vm->ram_spec != NULL;
	snprintf(caps->why_not, sizeof(caps->why_not), "%s", err.msg);
}
