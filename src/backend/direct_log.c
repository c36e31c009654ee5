// SPDX-License-Identifier: GPL-2.0-only
#include "backend/direct_log.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <time.h>

#include "kernel/core/table.h"
#include "kernel/uapi/vmprof.h"
#include "util/clock.h"
#include "util/text.h"

#define ANSWER_NS   5000000000ull /* the guest looks four times a second, when it runs */
#define WITHDRAW_NS 2000000000ull
#define LOOK_NS	    5000000 /* between two looks for the answer */

/* ---------- the memory ---------- */

static struct vmprof_log_host *host_page(const struct direct_log *l)
{
	return l->shared.memory;
}

static bool is_empty(const void *page)
{
	const uint64_t *word = page;

	for (size_t i = 0; i < VMPROF_LOG_PAGE / sizeof(*word); i++)
		if (word[i])
			return false;
	return true;
}

static uint32_t side_size(uint64_t bytes, uint32_t ring_size, uint32_t rings)
{
	uint32_t size;

	vmp_log_side(bytes, ring_size, rings, &size);
	return size;
}

/* The largest rings for which there is room, with side-band if there is any for both; 0: none. */
static uint32_t ring_size(uint64_t bytes, uint32_t rings)
{
	uint64_t size = 1u << 31;

	while (size >= VMP_RECORD_MAX &&
	       2 * VMPROF_LOG_PAGE + (size + VMPROF_LOG_PAGE) * rings > bytes)
		size /= 2;
	if (size > VMP_RECORD_MAX && !side_size(bytes, (uint32_t)size, rings))
		size /= 2;
	return size >= VMP_RECORD_MAX ? (uint32_t)size : 0;
}

/*
 * The host's page is made anew, since the guest may have written into it: only the number of
 * requests goes on, by which the guest knows a new one.
 */
static int format(struct direct_log *l, struct vmprof_err *err)
{
	struct vmprof_log_host *page = host_page(l);
	uint32_t size = ring_size(l->shared.bytes, l->vm->nr_vcpus);
	bool ours = vmp_load_acquire(&page->magic) == VMPROF_LOG_MAGIC;
	char name[96];

	escape_str(name, sizeof(name), l->vm->name);
	if (!size)
		return err_set(err, ENOSPC,
			       "the log of %s has %llu KiB, which is too little for %u CPUs: its "
			       "ivshmem-plain device must be larger, see vmprof_guest(4)",
			       name, (unsigned long long)l->shared.bytes >> 10, l->vm->nr_vcpus);
	if (!ours && !is_empty(page))
		return err_set(err, EINVAL,
			       "the ivshmem-plain device of %s has something else than a log in it",
			       name);
	l->request = ours ? vmp_load(&page->request) : 0;
	l->rings = l->vm->nr_vcpus;
	l->ring_size = size;
	l->ring_offset = 2 * VMPROF_LOG_PAGE;
	l->ring_stride = (uint64_t)size + VMPROF_LOG_PAGE;
	l->side_offset = vmp_log_side(l->shared.bytes, size, l->rings, &l->side_size);
	if (vmp_log_init(page, l->shared.bytes, size, l->rings))
		return err_set(err, EINVAL, "the log of %s cannot have %u rings", name, l->rings);
	return 0;
}

int direct_log_open(struct direct_log *l, const struct vm *vm, struct vmprof_err *err)
{
	int rc;

	*l = (struct direct_log){.vm = vm};
	rc = vm_shared_open(&l->shared, vm, err);
	if (rc)
		return rc;
	rc = format(l, err);
	if (rc)
		vm_shared_close(&l->shared);
	return rc;
}

void direct_log_close(struct direct_log *l)
{
	if (l->shared.memory)
		vm_shared_close(&l->shared);
}

void *direct_log_ring(const struct direct_log *l, uint32_t cpu)
{
	return cpu < l->rings ? (uint8_t *)l->shared.memory + l->ring_offset + cpu * l->ring_stride
			      : NULL;
}

void *direct_log_side(const struct direct_log *l)
{
	return l->side_size && l->row.side ? (uint8_t *)l->shared.memory + l->side_offset : NULL;
}

/* ---------- requests ---------- */

/* All of the page, since the guest may have written into it. */
void direct_log_post(struct direct_log *l, uint32_t source, uint32_t chain,
		     const struct vmprof_log_event *events, uint32_t nr)
{
	struct vmprof_log_host *page = host_page(l), host = {
							     .magic = VMPROF_LOG_MAGIC,
							     .version = VMPROF_LOG_VERSION,
							     .request = l->request,
							     .ring_offset = l->ring_offset,
							     .ring_stride = l->ring_stride,
							     .side_offset = l->side_offset,
							     .ring_size = l->ring_size,
							     .side_size = l->side_size,
							     .rings = l->rings,
							     .source = source,
							     .chain = chain,
							     .nr = nr,
						     };

	for (uint32_t i = 0; i < nr; i++)
		host.events[i] = events[i];
	*page = host;
	l->request = l->request + 1 ? l->request + 1 : 1; /* 0 is none */
	vmp_store_release(&page->request, l->request);
}

/* 0, -VMP_ECORRUPT, or -VMP_ENOENT: it has not come in this time. */
static int await(struct direct_log *l, uint64_t ns)
{
	const struct timespec pause = {.tv_nsec = LOOK_NS};
	uint64_t end = clock_now_ns() + ns;
	int rc;

	for (;;) {
		rc = vmp_log_row(l->shared.memory, l->shared.bytes, l->request, &l->row);
		if (rc != -VMP_ENOENT || clock_now_ns() >= end || !vm_alive(l->vm))
			return rc;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
}

static int no_answer(struct direct_log *l, const char *name, struct vmprof_err *err)
{
	if (!vm_alive(l->vm))
		return vm_access_error(l->vm, ESRCH, "the log", err);
	return err_set(err, ENOLINK,
		       "the guest of %s does not answer: vmprof_guest.ko is not loaded there, see "
		       "vmprof_guest(4), or the VM stands still",
		       name);
}

static int bad_answer(const struct direct_log *l, const char *name, struct vmprof_err *err)
{
	if (l->row.version != VMPROF_LOG_VERSION)
		return err_set(err, ENOLINK,
			       "the module vmprof_guest in %s has version %u of the log, and this "
			       "vmprof version %u: load the one that came with it",
			       name, l->row.version, VMPROF_LOG_VERSION);
	return err_set(err, ENOLINK, "the guest of %s answers what cannot be", name);
}

static bool same_events(const struct vmprof_log_guest *row, const struct vmprof_log_event *events,
			uint32_t nr)
{
	return row->nr == nr && !memcmp(row->events, events, nr * sizeof(*events));
}

int direct_log_ask(struct direct_log *l, uint32_t source, uint32_t chain,
		   const struct vmprof_log_event *events, uint32_t nr, struct vmprof_err *err)
{
	const struct vmprof_log_guest *row = &l->row;
	char name[96];
	int rc;

	escape_str(name, sizeof(name), l->vm->name);
	direct_log_post(l, source, chain, events, nr);
	rc = await(l, ANSWER_NS);
	if (rc == -VMP_ENOENT)
		return no_answer(l, name, err);
	if (rc)
		return bad_answer(l, name, err);
	if (row->state == VMPROF_GUEST_REFUSED)
		return err_set(err, ENOLINK, "the guest of %s refuses: %s", name, row->why);
	if (row->state != VMPROF_GUEST_READY || !row->handler || !same_events(row, events, nr))
		return bad_answer(l, name, err);
	return 0;
}

bool direct_log_stands(const struct direct_log *l)
{
	struct vmprof_log_guest now;

	return !vmp_log_row(l->shared.memory, l->shared.bytes, l->request, &now) &&
	       now.state == l->row.state && now.handler == l->row.handler;
}

void direct_log_withdraw(struct direct_log *l)
{
	bool there = l->row.magic != 0; /* it has answered before */

	if (!l->shared.memory)
		return;
	direct_log_post(l, VMPROF_SOURCE_PERF, 0, NULL, 0);
	if (there)
		await(l, WITHDRAW_NS);
}

/* ---------- events ---------- */

#define CONFIG_MAX_ARM64 0xffff

/* The architecture's own numbers of perf's events, where all of its CPUs have one. */
static int64_t arm64_config(const struct event *e)
{
	static const struct {
		uint64_t perf;
		uint16_t config;
	} numbers[] = {
		{PERF_COUNT_HW_CPU_CYCLES, 0x11},	{PERF_COUNT_HW_INSTRUCTIONS, 0x08},
		{PERF_COUNT_HW_CACHE_REFERENCES, 0x04}, {PERF_COUNT_HW_CACHE_MISSES, 0x03},
		{PERF_COUNT_HW_BRANCH_MISSES, 0x10},
	};

	if (e->type == PERF_TYPE_RAW && e->config <= CONFIG_MAX_ARM64)
		return (int64_t)e->config;
	for (size_t i = 0; e->type == PERF_TYPE_HARDWARE && i < sizeof(numbers) / sizeof(*numbers);
	     i++)
		if (numbers[i].perf == e->config)
			return numbers[i].config;
	return -1;
}

/* On x86 a timer of the host takes the place of counters. */
static bool is_timer(const struct event *e)
{
	return e->type == PERF_TYPE_SOFTWARE && e->config == PERF_COUNT_SW_CPU_CLOCK;
}

/* What the architecture has of it, but for its rate and modes. */
static int make_event(const struct event *e, enum guest_arch arch, struct vmprof_log_event *out)
{
	int64_t config = arm64_config(e);
	bool has = arch == GUEST_ARCH_AARCH64 ? config >= 0 : is_timer(e);

	*out = arch == GUEST_ARCH_AARCH64
		       ? (struct vmprof_log_event){.type = PERF_TYPE_RAW,
						   .config = (uint64_t)config}
		       : (struct vmprof_log_event){.type = PERF_TYPE_SOFTWARE,
						   .config = PERF_COUNT_SW_CPU_CLOCK};
	return has && !e->precise && !e->precise_max && !e->exclusive ? 0 : -EOPNOTSUPP;
}

static const char *names_of(enum guest_arch arch)
{
	return arch == GUEST_ARCH_AARCH64
		       ? "cycles, instructions, cache-references, cache-misses, branch-misses and "
			 "rNNN of arm64"
		       : "cpu-clock, a timer of the host, on x86";
}

static int check_period(const struct event *e, enum guest_arch arch, const char *name,
			struct vmprof_err *err)
{
	uint32_t min = arch == GUEST_ARCH_AARCH64 ? VMPROF_LOG_PERIOD_MIN : VMPROF_CLOCK_PERIOD_MIN;

	if (e->freq)
		return err_set(err, EINVAL,
			       "event '%s': delivery to the guest has no frequencies: give a "
			       "period with -c",
			       name);
	if (e->rate < min || e->rate > VMPROF_LOG_PERIOD_MAX)
		return err_set(err, EINVAL,
			       "event '%s', period %llu: delivered to the guest it is from %u to "
			       "%llu",
			       name, (unsigned long long)e->rate, min, VMPROF_LOG_PERIOD_MAX);
	return 0;
}

int direct_log_event(const struct event *e, enum guest_arch arch, struct vmprof_log_event *out,
		     struct vmprof_err *err)
{
	char name[128];
	int rc;

	escape_str(name, sizeof(name), e->name);
	if (e->host || !e->guest || event_is_of_host(e))
		return err_set(err, EOPNOTSUPP,
			       "event '%s': it is the host's, and the guest's handler samples the "
			       "guest",
			       name);
	if (make_event(e, arch, out))
		return err_set(err, EOPNOTSUPP,
			       "event '%s' cannot be delivered to the guest: it has %s", name,
			       names_of(arch));
	rc = check_period(e, arch, name, err);
	if (rc)
		return rc;
	out->period = e->rate;
	out->flags = (e->exclude_user ? 0u : VMP_COUNT_USER) |
		     (e->exclude_kernel ? 0u : VMP_COUNT_KERNEL);
	return out->flags ? 0
			  : err_set(err, EOPNOTSUPP,
				    "event '%s': user and kernel mode are both excluded", name);
}
