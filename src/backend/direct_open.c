// SPDX-License-Identifier: GPL-2.0-only
/* Delivery to the guest: whether a VM can have it, and the way to counters that are lent. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/direct_session.h"
#include "kernel/core/table.h"
#include "util/clock.h"
#include "util/text.h"
#include "util/xalloc.h"

#define LENT_NS	   5000000000ull /* for the guest to run at all */
#define LENT_PAUSE 5000000

/* ---------- what there is ---------- */

static const char *const event_names[] = {"cycles",	  "instructions",  "cache-references",
					  "cache-misses", "branch-misses", NULL};
static const char *const timer_names[] = {"cpu-clock", NULL};

static bool is_x86(const struct vm *vm)
{
	return vm_guest_arch(vm) == GUEST_ARCH_X86_64;
}

const char *direct_lent(const struct vm *vm)
{
	return is_x86(vm) ? "NMIs" : "counters";
}

static bool works(u32 deliveries, const struct direct_way *way)
{
	return deliveries & 1u << way->delivery;
}

static int no_delivery(const struct vmprof_info *info, const struct direct_way *way,
		       struct vmprof_err *err)
{
	const char *why =
		way->delivery == VMP_DELIVER_DIRECT ? info->why_not_direct : info->why_not_inject;

	return err_set(err, EOPNOTSUPP, "no %s delivery on this host: %s%s", way->backend->name,
		       *why ? why : "vmprof.ko has it not",
		       works(info->experimental, way) ? " (--experimental)" : "");
}

/* On x86 direct delivery is experimental, whatever else there may be against it. */
static int probe_device(const struct vm *vm, const struct direct_way *way, bool *experimental,
			struct vmprof_err *err)
{
	struct kmod_dev d;
	int rc = kmod_open(&d, err);

	if (rc)
		return rc;
	if (!works(d.info.deliveries, way)) {
		*experimental = is_x86(vm) && way->delivery == VMP_DELIVER_DIRECT;
		rc = no_delivery(&d.info, way, err);
	}
	kmod_close(&d);
	return rc;
}

void direct_probe(const struct vm *vm, const struct direct_way *way, struct backend_caps *caps)
{
	struct vmprof_err err = {0};
	char name[96];

	*caps = (struct backend_caps){.events = is_x86(vm) ? timer_names : event_names,
				      .registers = true,
				      .exact_ip = true,
				      .memory = vm->ram_spec != NULL};
	escape_str(name, sizeof(name), vm->name);
	if (vm->accel == VM_ACCEL_UNKNOWN)
		vm_accel_error(vm, &err);
	else if (vm->accel != VM_ACCEL_KVM)
		err_set(&err, ENOTSUP,
			"%s runs under %s: counters are lent to guests that KVM runs", name,
			vm_accel_name(vm->accel));
	else if (!vm->shared_size)
		err_set(&err, ENODEV,
			"%s has no ivshmem-plain device with shared memory for its log, see "
			"vmprof_guest(4)",
			name);
	else
		probe_device(vm, way, &caps->experimental, &err);
	caps->usable = !err.code;
	snprintf(caps->why_not, sizeof(caps->why_not), "%s", err.msg);
}

/* ---------- opening ---------- */

void direct_close(struct backend_session *base)
{
	struct direct_session *s = direct_of(base);

	if (!s)
		return;
	kmod_close(&s->dev); /* the guest's handler is to be there until then */
	if (s->nr_events)
		direct_log_withdraw(&s->log);
	direct_rings_free(&s->rings);
	direct_side_free(&s->side);
	direct_log_close(&s->log);
	backend_ram_close(&s->ram);
	free(s);
}

static int make_events(const struct backend_config *cfg, const struct vm *vm,
		       struct vmprof_log_event *asked, struct vmprof_event *lent,
		       struct vmprof_err *err)
{
	unsigned max = is_x86(vm) ? 1 : VMPROF_LOG_EVENTS_MAX;

	if (cfg->nr_events > max)
		return err_set(err, ENOSPC,
			       "more than %u event%s of one VM by delivery to the guest", max,
			       max == 1 ? "" : "s");
	for (unsigned i = 0; i < cfg->nr_events; i++) {
		int rc = direct_log_event(&cfg->events[i], vm_guest_arch(vm), &asked[i], err);

		if (rc)
			return rc;
		lent[i] = (struct vmprof_event){
			.type = asked[i].type,
			.flags = asked[i].flags,
			.config = asked[i].config,
			.period = asked[i].period,
		};
	}
	return 0;
}

static int open_rings(struct direct_session *s, struct vmprof_err *err)
{
	uint32_t cpus = s->log.row.cpus, n = cpus < s->log.rings ? cpus : s->log.rings;
	char name[96];

	direct_rings_init(&s->rings, n, s->nr_events);
	for (uint32_t i = 0; i < n; i++)
		if (direct_rings_set(&s->rings, i, direct_log_ring(&s->log, i), s->log.ring_stride))
			return err_set(err, EPROTO, "the log of %s has no ring of CPU %u",
				       escape_str(name, sizeof(name), s->base.vm->name), i);
	if (cpus > n)
		snprintf(s->note, sizeof(s->note),
			 "the guest may have %u CPUs, and the log has room for %u: others are not "
			 "sampled",
			 cpus, n);
	return 0;
}

/* Without it samples have names of processes, and no files. */
static int open_side(struct direct_session *s, struct vmprof_err *err)
{
	void *ring = direct_log_side(&s->log);
	char name[96];

	if (!ring)
		snprintf(s->note, sizeof(s->note),
			 "the guest does not tell its processes' maps: %s",
			 s->log.row.why[0] ? s->log.row.why : "it does not say why");
	else if (direct_side_open(&s->side, ring, (size_t)s->log.side_size + VMPROF_LOG_PAGE))
		return err_set(err, EPROTO, "the log of %s has no ring for side-band",
			       escape_str(name, sizeof(name), s->base.vm->name));
	return 0;
}

/* They are lent when the VM runs next; whether it can have them is known then. */
static int try_to_lend(struct direct_session *s, struct vmprof_err *err)
{
	const struct timespec pause = {.tv_nsec = LENT_PAUSE};
	uint64_t end = clock_now_ns() + LENT_NS;
	char name[96];
	int rc = kmod_start(&s->dev, err);

	if (rc)
		return rc;
	do {
		rc = kmod_status(&s->dev, &s->status);
		if (rc)
			return err_sys(err, -rc, "vmprof.ko does not say whether it lends %s",
				       direct_lent(s->base.vm));
		if (s->status.state != VMPROF_DIRECT_WAITING)
			break;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	} while (clock_now_ns() < end && vm_alive(s->base.vm));
	kmod_stop(&s->dev);
	s->status.why[sizeof(s->status.why) - 1] = 0;
	if (s->status.state == VMPROF_DIRECT_REFUSED || s->status.state == VMPROF_DIRECT_TAKEN_BACK)
		return err_set(err, EOPNOTSUPP, "%s cannot be lent %s: %s",
			       escape_str(name, sizeof(name), s->base.vm->name),
			       direct_lent(s->base.vm), s->status.why);
	return 0;
}

/* No CPU counts more a ns: clocks of a GHz each, and what several instructions of one make. */
#define CYCLES_A_NS  8.0
#define EVENTS_A_NS  64.0
#define ARM64_CYCLES 0x11

static double fastest(const struct vmprof_log_event *events, unsigned n)
{
	double sum = 0;

	for (unsigned i = 0; i < n; i++) {
		double a_ns = events[i].config == ARM64_CYCLES ? CYCLES_A_NS : EVENTS_A_NS;

		sum += (events[i].type == PERF_TYPE_SOFTWARE ? 1 : a_ns) / (double)events[i].period;
	}
	return sum;
}

static int attach(struct direct_session *s, const struct backend_config *cfg,
		  struct vmprof_err *err)
{
	struct vmprof_log_event asked[VMPROF_LOG_EVENTS_MAX];
	struct vmprof_event lent[VMPROF_LOG_EVENTS_MAX];
	struct kmod_direct direct = {
		.delivery = s->way->delivery,
		.name = s->way->backend->name,
		.events = lent,
		.nr_events = cfg->nr_events,
		.flags = (cfg->experimental ? VMPROF_ATTACH_EXPERIMENTAL : 0u) |
			 (cfg->force ? VMPROF_ATTACH_FORCE : 0u),
	};
	int rc = make_events(cfg, s->base.vm, asked, lent, err);

	if (!rc)
		rc = direct_log_open(&s->log, s->base.vm, err);
	if (rc)
		return rc;
	s->nr_events = cfg->nr_events;
	s->fastest = fastest(asked, s->nr_events);
	rc = direct_log_ask(&s->log, s->way->source, cfg->chains ? VMPROF_LOG_CHAIN_MAX : 0, asked,
			    s->nr_events, err);
	if (!rc)
		rc = open_rings(s, err);
	if (!rc)
		rc = open_side(s, err);
	if (rc)
		return rc;
	direct.handler = s->log.row.handler;
	direct.log = s->log.shared.memory;
	rc = kmod_attach_direct(&s->dev, s->base.vm, &direct, err);
	return rc ? rc : try_to_lend(s, err);
}

/* Before the guest is asked for anything. What @cfg forces is known by trying only. */
static int check_host(const struct direct_session *s, const struct backend_config *cfg,
		      struct vmprof_err *err)
{
	uint32_t has = s->dev.info.deliveries;

	if (cfg->experimental)
		has |= s->dev.info.experimental;
	return works(has, s->way) || cfg->force ? 0 : no_delivery(&s->dev.info, s->way, err);
}

int direct_open(const struct direct_way *way, struct backend_session **out, const struct vm *vm,
		const struct backend_config *cfg, struct vmprof_err *err)
{
	struct direct_session *s = xcalloc(1, sizeof(*s));
	struct direct_pair now = direct_pair_read();
	struct vmprof_err why;
	int rc;

	*out = NULL;
	s->way = way;
	s->base.backend = way->backend;
	s->base.vm = vm;
	s->log.shared.guard = s->log.shared.fd = -1;
	/* Of a counter whose frequency is not known the first samples shall have a rate. */
	direct_clock_start(&s->clock, &now, direct_counter_frequency());
	backend_ram_init(&s->ram);
	if (backend_ram_open(&s->ram, vm, &why))
		snprintf(s->note, sizeof(s->note), "no symbols: %s", why.msg);
	rc = kmod_open(&s->dev, err);
	if (!rc && cfg->nr_events)
		rc = check_host(s, cfg, err);
	if (!rc && cfg->nr_events)
		rc = attach(s, cfg, err);
	if (rc) {
		direct_close(&s->base);
		return rc;
	}
	*out = &s->base;
	return 0;
}
