// SPDX-License-Identifier: GPL-2.0-only
/*
 * Domains of Xen, from dom0. Nothing runs in them or is asked of them: Xen tells vCPUs' CPU time
 * and registers, and maps their memory here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/clockevent.h"
#include "backend/xen_pmu.h"
#include "backend/xen_session.h"
#include "util/text.h"
#include "util/xalloc.h"

static const char *const event_names[] = {"cpu-clock", "task-clock", NULL};

static int xen_try_event(const struct vm *vm, const struct event *e, struct vmprof_err *err)
{
	struct event own = *e;

	own.host = own.host && !own.guest; /* of the host as a whole, which is not the backend's */
	return clockevent_try("xen", &own, err);
}

static int not_a_domain(const struct vm *vm, struct vmprof_err *err)
{
	char name[96];

	return err_set(err, ENOTSUP, "%s runs in %s: the xen backend samples domains of Xen",
		       escape_str(name, sizeof(name), vm->name),
		       vm_hypervisor_title(vm->hypervisor));
}

#if HAVE_XEN
static struct xen_session *xen_of(struct backend_session *s)
{
	return (struct xen_session *)s;
}

static void xen_probe(const struct vm *vm, struct backend_caps *caps)
{
	struct xen_pmu_answers answers;
	struct vmprof_err err = {0};
	struct xen xen;

	*caps = (struct backend_caps){.events = event_names,
				      .registers = true,
				      .peek = true,
				      .memory = true,
				      .exact_ip = true,
				      .can_pause = true,
				      .apart = true};
	if (vm->hypervisor != VM_HYPERVISOR_XEN)
		not_a_domain(vm, &err);
	else if (!xen_open(&xen, true, &err)) {
		xen_pmu_ask(&xen, &answers);
		xen_pmu_text(&answers, caps->lacks, sizeof(caps->lacks));
		xen_close(&xen);
	}
	caps->usable = !err.code;
	snprintf(caps->why_not, sizeof(caps->why_not), "%s", err.msg);
}

static void xen_close_session(struct backend_session *base)
{
	struct xen_session *s = xen_of(base);

	if (!s)
		return;
	xen_complete(base);
	if (s->mem.xen)
		xen_mem_free(&s->mem);
	xen_context_close(&s->context);
	for (uint32_t i = 0; i < s->nr_vcpus; i++)
		free(s->vcpu[i].ticks);
	free(s->vcpu);
	free(s->events);
	xen_close(&s->xen);
	free(s);
}

static int open_domain(struct xen_session *s, const struct backend_config *cfg,
		       struct vmprof_err *err)
{
	const struct vm *vm = s->base.vm;
	xc_domaininfo_t info;
	unsigned width;
	char name[128];
	int r = xen_open(&s->xen, true, err);

	if (r)
		return r;
	escape_str(name, sizeof(name), vm->name);
	r = xen_domain_info(&s->xen, vm->domid, &info);
	if (r == -ESRCH)
		return err_set(err, ESRCH, "%s (domain %u) has ended", name, vm->domid);
	if (r)
		return xen_call_error(r, "ask Xen for the domain", err);
	s->pv = !(info.flags & XEN_DOMINF_hvm_guest);
	if (s->pv && !s->xen.call->domain_get_guest_width(s->xen.xc, vm->domid, &width) &&
	    width != 8)
		return err_set(err, ENOTSUP,
			       "%s is a 32-bit PV guest: the xen backend knows 64-bit ones only",
			       name);
	s->tot_pages = info.tot_pages;
	xen_mem_init(&s->mem, &s->xen, vm->domid, s->pv);
	r = xen_context_open(&s->context, &s->xen, vm->domid, err);
	if (r)
		return r;
	s->nr_vcpus = info.max_vcpu_id + 1;
	s->vcpu = xcalloc(s->nr_vcpus, sizeof(*s->vcpu));
	for (uint32_t i = 0; i < s->nr_vcpus; i++)
		s->vcpu[i].ticks = xcalloc(s->nr_events + 1, sizeof(*s->vcpu[i].ticks));
	return 0;
}

static int xen_open_vm(struct backend_session **out, const struct vm *vm,
		       const struct backend_config *cfg, struct vmprof_err *err)
{
	struct xen_session *s;
	char name[128];
	int r = 0;

	*out = NULL;
	for (unsigned i = 0; i < cfg->nr_events && !r; i++) {
		r = xen_try_event(vm, &cfg->events[i], err);
		if (!r && !cfg->events[i].rate)
			r = err_set(err, EINVAL,
				    "event %s: the xen backend samples, and does not only count",
				    escape_str(name, sizeof(name), cfg->events[i].name));
	}
	if (r)
		return r;
	s = xcalloc(1, sizeof(*s));
	s->base.backend = &backend_xen;
	s->base.vm = vm;
	s->pause = cfg->pause;
	s->nr_events = cfg->nr_events;
	s->events = xcalloc(cfg->nr_events + 1, sizeof(*s->events));
	for (unsigned i = 0; i < cfg->nr_events; i++)
		s->events[i] = cfg->events[i];
	if (cfg->chains && !cfg->pause)
		s->stats.note = "stacks are read while the domain goes on, which may cut chains: "
				"--pause stops "
				"it for each sample";
	r = open_domain(s, cfg, err);
	if (r) {
		xen_close_session(&s->base);
		return r;
	}
	*out = &s->base;
	return 0;
}

static struct guest_mem *xen_memory(struct backend_session *base)
{
	return &xen_of(base)->mem.mem;
}

static uint32_t xen_nr_vcpus(struct backend_session *base)
{
	return xen_of(base)->nr_vcpus;
}

static void xen_stats(struct backend_session *base, struct backend_stats *st)
{
	*st = xen_of(base)->stats;
}
#else
static void xen_probe(const struct vm *vm, struct backend_caps *caps)
{
	struct vmprof_err err;

	*caps = (struct backend_caps){.events = event_names};
	not_a_domain(vm, &err);
	snprintf(caps->why_not, sizeof(caps->why_not), "%s", err.msg);
}
#endif

const struct vmprof_backend backend_xen = {
	.name = "xen",
	.summary = "vCPU state of Xen's domains, clocked by the vCPU's own CPU time",
	.probe = xen_probe,
	.try_event = xen_try_event,
#if HAVE_XEN
	.open = xen_open_vm,
	.memory = xen_memory,
	.peek = xen_peek,
	.nr_vcpus = xen_nr_vcpus,
	.start = xen_start,
	.read = xen_read,
	.complete = xen_complete,
	.stop = xen_stop,
	.stats = xen_stats,
	.close = xen_close_session,
#endif
};
