// SPDX-License-Identifier: GPL-2.0-only
/*
 * A raw sample made complete: whose it is, and its call chain. Some backends copy all that is
 * needed for that with the registers; what they did not copy is dealt with in frames.c. With the
 * others, three things are read one after the other while the vCPU runs on: registers (by the
 * backend, before), the kernel's word on which task runs, the stack. Where they do not fit
 * together, time has passed between them. What is done then:
 *
 * Process. User mode's page table, and kernel mode's stack, belong to one process each. If the task
 * that the kernel names is another one, the vCPU has switched since the registers were read: the
 * sample is given to the known process that owns them, after a look whether it still does. Failing
 * that, the registers are read anew and the sample is made of those. It then shows the vCPU a few
 * microseconds later. That favours what runs just after a switch over what ran just before, but
 * only by the samples that would otherwise be lost, a fraction of those that hit a switch.
 *
 * Chain. Frames below the stack pointer of now may have been overwritten before they were read.
 * Samples are not taken again for that: functions that return soon would lose their samples to
 * those that do not. Instead the address stays and the chain is cut (CHAIN_TORN), but not if only
 * the leaf function has returned: what is above its frame is then its caller's, which still runs,
 * and whatever call the slot now belongs to was made by that caller too.
 */
#include <errno.h>
#include <string.h>
#include <linux/perf_event.h>

#include "guest/work.h"
#include "util/xalloc.h"

enum { MAX_VCPUS = 4096, RETAKES = 2, SWEEP_EVERY = 64 };

static struct guest_vcpu *vcpu_of(struct guest *g, uint32_t vcpu)
{
	vcpu = vcpu < MAX_VCPUS ? vcpu : MAX_VCPUS;
	while (g->nr_vcpus <= vcpu) {
		g->vcpu = xgrow(g->vcpu, &g->cap_vcpus, vcpu + 1, sizeof(*g->vcpu));
		g->vcpu[g->nr_vcpus++] = (struct guest_vcpu){0};
	}
	return &g->vcpu[vcpu];
}

/* ---------- one sample ---------- */

/* true: the stack is as it was with the registers. false: it is as it is now. */
static bool load_stack(struct guest_work *w)
{
	const struct raw_sample *raw = w->raw;

	if (raw && raw->nr_memory) {
		guest_stack_give(&w->stack, raw->memory, raw->nr_memory, w->as.root);
		return true;
	}
	if (w->user || w->regs.sp >> 63)
		guest_stack_load(&w->stack, w->regs.sp);
	return false;
}

/* Where the kernel does not count its flushes, no translation of user mode is older than this. */
static void forget_user(struct guest_work *w, struct guest_as as)
{
	if (!w->g->km.lay.mm_has_id && as.root)
		guest_virt_flush(w->g->virt, as.root);
}

static void start(struct guest_work *w)
{
	struct sample *s = w->out;

	/* At the border cpl and ip do not change in one: ip is what the sample will be told by. */
	w->user = !(w->regs.ip >> 63);
	w->as = (struct guest_as){guest_root_of(w->g, &w->regs), w->g->km.as.la57};
	w->thread = NULL;
	w->ended = false;
	w->nr_kernel = w->nr_user = 0;
	w->kwalk = (struct guest_kernel_walk){.thread_size = 0};
	s->ip = w->regs.ip;
	s->mode = w->user ? SAMPLE_MODE_GUEST_USER : SAMPLE_MODE_GUEST_KERNEL;
	s->has_dso = false;
	s->kernel_end = s->user_end = CHAIN_NONE;
	w->flushes = w->g->procs.flushes;
	w->have_now = false;
	guest_stack_init(&w->stack, w->g->virt, w->user ? w->as : w->g->km.as);
	if (w->user)
		forget_user(w, w->as);
	if (!w->g->cfg.chains)
		return;
	/* Before anything else: each microsecond that the vCPU runs on costs chains. */
	if (load_stack(w)) {
		w->now = w->regs;
		w->have_now = true;
	} else {
		w->have_now = guest_peek(w, &w->now);
	}
}

static int refresh_maps(struct guest_work *w, uint64_t ip)
{
	struct guest_process *proc = w->thread->process;
	int rc;

	if (w->ended)
		return 0;
	guest_procs_refresh_maps(&w->g->procs, proc, &w->task, 0, w->time, &rc);
	if (!rc && !guest_process_map(proc, ip))
		guest_procs_refresh_maps(&w->g->procs, proc, &w->task, ip, w->time, &rc);
	return rc;
}

/* true: it is known whose it is, and all that was asked for is in ->out. */
static bool user_sample(struct guest_work *w, int *rc)
{
	struct guest_map *map;

	if (!guest_settle_user(w, rc))
		return false;
	if (w->g->procs.flushes != w->flushes) { /* the stack was read by stale translations */
		guest_stack_init(&w->stack, w->g->virt, w->as);
		load_stack(w);
	}
	*rc = refresh_maps(w, w->regs.ip);
	if (*rc)
		return false;
	map = guest_process_map(w->thread->process, w->regs.ip);
	w->out->has_dso = map;
	if (map) {
		w->out->dso = map->dso->dso.id;
		w->out->dso_offset = w->regs.ip - map->start + map->pgoff;
	}
	if (w->g->cfg.chains)
		guest_walk_user(w, guest_frame_of(&w->regs), w->have_now ? &w->now : NULL);
	else if (map)
		guest_dsos_hit(&w->g->dsos, map->dso);
	return true;
}

static bool kernel_sample(struct guest_work *w, int *rc)
{
	struct guest *g = w->g;
	struct guest_frame f;

	if (g->cfg.chains || (!guest_owns_stack(w, w->regs.sp) && !guest_task_is_certain(w)))
		guest_walk_kernel(w);
	if (!guest_settle_kernel(w, rc))
		return false;
	if (!g->cfg.chains) {
		w->out->kernel_end = CHAIN_NONE;
		w->nr_kernel = 0;
		return true;
	}
	if (guest_cut_kernel(w, &f)) {
		*rc = refresh_maps(w, f.ip);
		if (*rc)
			return false;
		forget_user(w, w->thread->process->as);
		guest_stack_switch(&w->stack, w->thread->process->as);
		guest_walk_user(w, f, NULL);
	}
	return true;
}

/* Without types there are no processes; kernel chains need none. */
static void kernel_only(struct guest_work *w)
{
	if (!w->g->cfg.chains || w->user)
		return;
	w->g->km.lay.thread_size = w->g->km.lay.thread_size ? w->g->km.lay.thread_size : 16384;
	guest_walk_kernel(w);
	guest_put_chain(w);
}

static int with_kernel(struct guest_work *w)
{
	struct sample *s = w->out;
	int rc = 0;

	if (w->g->no_types) {
		start(w);
		kernel_only(w);
		s->unattributed = SAMPLE_NO_KERNEL;
		return 0;
	}
	for (int retake = 0; retake <= RETAKES; retake++) {
		bool done;

		start(w);
		rc = guest_find_current(w);
		if (rc == -ESRCH)
			return rc;
		done = w->user ? user_sample(w, &rc) : kernel_sample(w, &rc);
		if (rc == -ESRCH || w->stack.gone)
			return -ESRCH;
		if (done) {
			s->pid = w->thread->tgid;
			s->tid = w->thread->pid;
			s->unattributed = SAMPLE_ATTRIBUTED;
			s->torn = false;
			guest_put_chain(w);
			return 0;
		}
		guest_reread_kernel_info(w->g);
		if (retake == RETAKES || !guest_peek(w, &w->regs))
			break;
		w->raw = NULL;
	}
	s->torn = true;
	s->unattributed = SAMPLE_NO_PROCESS;
	w->nr_user = 0; /* its return addresses were not checked against anything */
	if (w->nr_kernel)
		guest_put_chain(w);
	return 0;
}

void guest_see_code(struct guest *g, const uint64_t *addr, unsigned n, uint64_t time)
{
	bool outside = false;

	for (unsigned i = 0; i < n; i++) {
		if (addr[i] - g->info.text < g->info.end - g->info.text)
			continue;
		guest_kernel_is_text(g->kernel, addr[i]); /* looks again, if it is not known */
		outside = true;
	}
	if (outside)
		guest_announce_code(g, time);
}

/* ---------- raw samples ---------- */

static void take_basics(const struct raw_sample *raw, struct sample *out)
{
	out->time = raw->time;
	out->period = raw->period;
	out->ip = raw->ip;
	out->event = raw->event;
	out->vcpu = raw->vcpu;
	out->host_cpu = raw->host_cpu;
	out->mode = raw->has & RAW_HAS_MODE ? raw->mode : SAMPLE_MODE_UNKNOWN;
	out->pid = out->tid = -1;
	out->unattributed = SAMPLE_NO_KERNEL;
	out->torn = out->has_dso = false;
	out->kernel_end = out->user_end = CHAIN_NONE;
	out->chain_len = 0;
}

/* The chain as its source has it, with perf's markers put in where kernel and user part begin. */
static void take_chain(const struct raw_sample *raw, struct sample *out)
{
	uint64_t marker = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < raw->chain_len && i < SAMPLE_MAX_CHAIN; i++) {
		uint64_t m = raw->chain[i] >> 63 ? (uint64_t)PERF_CONTEXT_KERNEL
						 : (uint64_t)PERF_CONTEXT_USER;

		if (m != marker && n + 2 <= SAMPLE_MAX_CHAIN + 2)
			out->chain[n++] = m;
		marker = m;
		if (n < SAMPLE_MAX_CHAIN + 2)
			out->chain[n++] = raw->chain[i];
		if (m == (uint64_t)PERF_CONTEXT_KERNEL)
			out->kernel_end = CHAIN_OUTERMOST;
		else
			out->user_end = CHAIN_OUTERMOST;
	}
	out->chain_len = n;
}

/* What the host did is nothing of the guest's; whose it is, its source knows. */
static void take_host(const struct raw_sample *raw, struct sample *out)
{
	out->pid = raw->pid;
	out->tid = raw->tid;
	out->unattributed = SAMPLE_ATTRIBUTED;
}

static int from_registers(struct guest *g, const struct raw_sample *raw, struct sample *out)
{
	struct guest_work *w = g->work;
	int rc;

	w->g = g;
	w->vc = vcpu_of(g, raw->vcpu);
	w->vcpu = raw->vcpu;
	w->time = raw->time;
	w->regs = raw->regs;
	w->raw = raw;
	w->general = !(raw->has & RAW_HAS_REGS);
	w->out = out;
	out->ip = raw->regs.ip;
	out->mode = raw->regs.cpl == 3 ? SAMPLE_MODE_GUEST_USER : SAMPLE_MODE_GUEST_KERNEL;
	rc = w->general ? guest_need_kernel_in_memory(g, raw->time)
			: guest_need_kernel(g, w->vc, &raw->regs, raw->time);
	if (rc)
		return rc == -ESRCH ? rc : 0;
	if (g->stats.samples % SWEEP_EVERY == 0 && !g->no_types)
		guest_procs_sweep(&g->procs, raw->time);
	rc = with_kernel(w);
	if (!rc && w->nr_kernel)
		guest_see_code(g, w->frames, w->nr_kernel, raw->time);
	else if (!rc && out->mode == SAMPLE_MODE_GUEST_KERNEL)
		guest_see_code(g, &out->ip, 1, raw->time);
	return rc;
}

int guest_complete(struct guest *g, const struct raw_sample *raw, struct sample *out)
{
	int rc = 0;

	take_basics(raw, out);
	if (raw->has & RAW_HAS_CHAIN && g->cfg.chains)
		take_chain(raw, out);
	if (raw->has & RAW_HAS_PROCESS)
		rc = guest_from_name(g, raw, out);
	else if (raw->has & (RAW_HAS_REGS | RAW_HAS_GENERAL))
		rc = from_registers(g, raw, out);
	else if (raw->has & RAW_HAS_MODE && sample_mode_is_guest(raw->mode))
		rc = guest_from_address(g, out);
	else if (raw->has & RAW_HAS_MODE)
		take_host(raw, out);
	g->stats.samples++;
	g->stats.torn += out->torn;
	g->stats.unattributed[out->unattributed]++;
	g->stats.kernel_end[out->kernel_end]++;
	g->stats.user_end[out->user_end]++;
	return rc;
}
