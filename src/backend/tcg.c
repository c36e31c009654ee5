// SPDX-License-Identifier: GPL-2.0-only
/*
 * VMs that QEMU's binary translator runs: each vCPU thread is clocked by its own CPU time, and at a
 * tick the vCPU's registers are read out of QEMU's memory. QEMU is not stopped and not asked.
 *
 * A tick is an event of the vCPU's own time and the state is read within it or shortly after, so
 * two samples have at least a period of that vCPU's work between them: however loaded the host is,
 * no state is read twice, which is what sampling by the host's time does while the host has the
 * vCPU off its CPU.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/tcg_session.h"
#include "guest/arm64.h"
#include "guest/x86.h"
#include "util/clock.h"
#include "util/text.h"
#include "util/xalloc.h"

#define RING_ORDER  3 /* 32 KiB: 400 ticks */
#define CHECK_TRIES 5
/* A thread that makes more than one sample in this time is looked at by the clock, not woken by
 * each. */
#define BATCH_MS   5
#define FORGET_NS  100000000ull
#define EPOLL_DEAD UINT32_MAX
#define EPOLL_SNAP (UINT32_MAX - 1)

static struct tcg_session *tcg_of(struct backend_session *s)
{
	return (struct tcg_session *)s;
}

/* ---------- reading ---------- */

/* Waits; 1 when something happened, 0 at the timeout, -errno. */
static int wait_for_ticks(struct tcg_session *s, int timeout_ms)
{
	struct epoll_event ev[16];
	int n = epoll_wait(s->epoll, ev, sizeof(ev) / sizeof(*ev), timeout_ms);

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		if (ev[i].data.u32 == EPOLL_DEAD)
			s->gone = true;
		else if (ev[i].data.u32 == EPOLL_SNAP)
			continue;
		else if (ev[i].events & (EPOLLHUP | EPOLLERR)) /* the thread has ended */
			epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->sources[ev[i].data.u32].ring.fd,
				  NULL);
	}
	return n > 0;
}

/*
 * Snapshots can wait: while there are some at each look, the next look is BATCH_MS later. When
 * there were none the next one is to wake us. Returns how long to wait at most, -1 for ever.
 */
static int choose_wait(struct tcg_session *s, int left_ms)
{
	bool busy = s->batch > 0;

	s->batch = 0;
	if (!s->snapshots)
		return left_ms;
	if (clock_now_ns() - s->tasks_forgotten >= FORGET_NS) {
		tcg_snapshots_forget_tasks(s->snapshots);
		s->tasks_forgotten = clock_now_ns();
	}
	if (busy)
		return left_ms < 0 || left_ms > BATCH_MS ? BATCH_MS : left_ms;
	return tcg_snapshots_sleep(s->snapshots) ? left_ms : 0;
}

static int tcg_read(struct backend_session *base, struct raw_sample *samples, unsigned n,
		    int timeout_ms)
{
	struct tcg_session *s = tcg_of(base);
	uint64_t end = clock_now_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * 1000000;

	for (;;) {
		unsigned got = tcg_hand_out(s, samples, n);
		int left_ms = timeout_ms, r;
		uint64_t now;

		s->batch += got;
		if (got)
			return (int)got;
		if (s->gone)
			return -ESRCH;
		now = clock_now_ns();
		if (timeout_ms >= 0 && now >= end)
			return 0;
		if (timeout_ms >= 0)
			left_ms = (int)((end - now + 999999) / 1000000);
		r = wait_for_ticks(s, choose_wait(s, left_ms));
		if (r < 0)
			return r;
	}
}

/* ---------- opening ---------- */

static int check_events(const struct vm *vm, const struct backend_config *cfg,
			struct vmprof_err *err)
{
	char name[128];

	for (unsigned i = 0; i < cfg->nr_events; i++) {
		const struct event *e = &cfg->events[i];
		int r = tcg_try_event(vm, e, err);

		if (r)
			return r;
		if (!e->rate)
			return err_set(err, EINVAL, "event %s: the rate must not be 0",
				       escape_str(name, sizeof(name), e->name));
	}
	return 0;
}

static void free_sources(struct tcg_session *s)
{
	for (unsigned i = 0; i < s->nr_sources; i++)
		perf_ring_close(&s->sources[i].ring);
	free(s->sources);
	s->sources = NULL;
	s->nr_sources = 0;
}

static void tcg_close(struct backend_session *base)
{
	struct tcg_session *s = tcg_of(base);

	if (!s)
		return;
	free_sources(s);
	tcg_snapshots_close(s->snapshots);
	vm_ram_close(s->ram);
	free(s->cpus.cpu);
	free(s->events);
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->pidfd >= 0)
		close(s->pidfd);
	free(s);
}

/* Do the guest's page tables, as this vCPU uses them, lead to what must be there? */
static bool page_tables_fit(struct tcg_session *s, struct guest_virt *v,
			    const struct guest_regs *regs)
{
	struct guest_as as = {regs->pgtable & X86_ADDR_MASK, regs->cr4 & X86_CR4_LA57};
	uint64_t vectors = regs->idt_base;
	struct guest_paging p = {0};
	uint8_t code[4], gate[16];

	guest_virt_flush(v, 0);
	if (guest_virt_arch(v) == GUEST_ARCH_AARCH64) {
		if (arm64_paging_set(&p, regs->tcr, regs->pgtable_kernel))
			return false;
		guest_virt_set_paging(v, &p);
		as = (struct guest_as){.root = arm64_root(&p, false, regs->pgtable)};
		vectors = regs->vbar;
	}
	return !guest_virt_read(v, as, regs->ip, code, sizeof(code)) ||
	       !guest_virt_read(v, as, vectors, gate, sizeof(gate));
}

static bool has_paging(const struct guest_regs *regs, enum guest_arch arch)
{
	if (arch == GUEST_ARCH_AARCH64)
		return regs->tcr;
	return (regs->cr0 & X86_CR0_PG) && (regs->efer & X86_EFER_LMA);
}

/*
 * Registers and RAM were found apart from each other; that the one leads to code in the other says
 * that both are right. A vCPU that runs can change its page tables meanwhile, so a few tries.
 */
static int check_together(struct tcg_session *s, struct vmprof_err *err)
{
	enum guest_arch arch = vm_guest_arch(s->base.vm);
	struct guest_virt *v = guest_virt_new(vm_ram_mem(s->ram), arch);
	struct timespec pause = {0, 2000000};
	unsigned paging = 0, fit = 0;
	struct guest_regs regs;
	char name[128];

	for (unsigned try = 0; try < CHECK_TRIES && !fit; try++) {
		for (uint32_t i = 0; i < s->cpus.n && !fit; i++) {
			if (tcg_read_regs(s, i, &regs) || !has_paging(&regs, arch))
				continue;
			paging++;
			fit += page_tables_fit(s, v, &regs);
		}
		if (!paging)
			break;
		if (!fit)
			nanosleep(&pause, NULL);
	}
	guest_virt_free(v);
	if (!paging || fit)
		return 0;
	return err_set(
		err, EIO,
		"%s (pid %d): the guest's page tables lead nowhere: its registers or its memory "
		"were found in the wrong place, and no sample could be trusted",
		escape_str(name, sizeof(name), s->base.vm->name), s->base.vm->pid);
}

static int open_vm(struct tcg_session *s, struct vmprof_err *err)
{
	const struct vm *vm = s->base.vm;
	struct proc_maps maps;
	int r;

	s->pidfd = (int)syscall(SYS_pidfd_open, vm->pid, 0);
	if (s->pidfd < 0)
		return vm_access_error(vm, errno, "the process", err);
	if (!vm_alive(vm)) /* the same process as when the VMs were listed */
		return vm_access_error(vm, ESRCH, "the process", err);
	r = vm_ram_open(&s->ram, vm, err);
	if (r)
		return r;
	r = proc_maps_read(&maps, vm->pid);
	if (r)
		return vm_access_error(vm, r, "the memory map", err);
	tcg_code_find(&s->code, &maps);
	r = tcg_find_cpus(&s->cpus, vm, &maps, err);
	proc_maps_free(&maps);
	return r ? r : check_together(s, err);
}

static int tcg_open(struct backend_session **out, const struct vm *vm,
		    const struct backend_config *cfg, struct vmprof_err *err)
{
	struct tcg_session *s;
	int r = check_events(vm, cfg, err);

	*out = NULL;
	if (r)
		return r;
	s = xcalloc(1, sizeof(*s));
	s->base.backend = &backend_tcg;
	s->base.vm = vm;
	s->epoll = -1;
	s->nr_events = cfg->nr_events;
	s->events = xcalloc(cfg->nr_events ? cfg->nr_events : 1, sizeof(*s->events));
	for (unsigned i = 0; i < cfg->nr_events; i++)
		s->events[i] = cfg->events[i];
	r = open_vm(s, err);
	if (r) {
		tcg_close(&s->base);
		return r;
	}
	*out = &s->base;
	return 0;
}

static bool has_source(const struct tcg_session *s, pid_t tid, unsigned event)
{
	for (unsigned i = 0; i < s->nr_sources; i++)
		if (s->sources[i].event == event && s->cpus.cpu[s->sources[i].vcpu].tid == tid)
			return true;
	return false;
}

static int add_source(struct tcg_session *s, uint32_t vcpu, unsigned event, struct vmprof_err *err)
{
	struct tcg_source *src = &s->sources[s->nr_sources];
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = s->nr_sources};
	struct perf_event_attr attr;
	int r;

	tcg_attr(&attr, tcg_event_period(&s->events[event]));
	r = perf_ring_open(&src->ring, &attr, s->cpus.cpu[vcpu].tid, RING_ORDER, err);
	if (r)
		return r;
	src->vcpu = vcpu;
	src->event = event;
	s->nr_sources++;
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, src->ring.fd, &ev))
		return err_sys(err, errno, "epoll_ctl");
	return 0;
}

/* A pointer into the session, which is read by another thread: it is set once. */
static void note_no_snapshots(struct tcg_session *s, const char *why)
{
	snprintf(s->note, sizeof(s->note),
		 "registers and stacks are read while the vCPU goes on, which cuts chains: %s",
		 why);
	s->stats.note = s->note;
}

/* The program in the host's kernel walks one kind of page tables only. */
static bool can_snapshot_arm64(struct tcg_session *s)
{
	struct guest_paging p = {0};
	struct guest_regs regs;

	for (uint32_t i = 0; i < s->cpus.n; i++)
		if (!tcg_read_regs(s, i, &regs) && regs.tcr)
			return s->cpus.layout.tpidr_el1 &&
			       !arm64_paging_set(&p, regs.tcr, regs.pgtable_kernel) &&
			       p.half[0].page_shift == 12 && p.half[0].va_bits == 48 &&
			       p.half[1].page_shift == 12 && p.half[1].va_bits == 48 && !p.pa52;
	return false;
}

/*
 * Snapshots are a gain, not a need: without the right to load BPF programs, or with threads that
 * run several vCPUs, state is read when the tick is handed out.
 */
static void start_snapshots(struct tcg_session *s)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.u32 = EPOLL_SNAP};
	struct vm_ram_region ram[TCG_SNAPSHOT_REGIONS];
	unsigned n = vm_ram_regions(s->ram, ram, TCG_SNAPSHOT_REGIONS);
	struct vmprof_err why;

	if (s->shared_thread) {
		note_no_snapshots(s, "one thread runs all vCPUs");
		return;
	}
	if (s->cpus.layout.arch == GUEST_ARCH_AARCH64 && !can_snapshot_arm64(s)) {
		note_no_snapshots(s, "the guest's page tables are not those of 4 KiB pages and "
				     "48-bit addresses, or its kernel is still starting");
		return;
	}
	if (tcg_snapshots_open(&s->snapshots, s->nr_sources, &why)) {
		note_no_snapshots(s, why.msg);
		return;
	}
	for (uint32_t i = 0; i < s->nr_sources; i++) {
		struct tcg_source *src = &s->sources[i];
		uint64_t env = s->cpus.cpu[src->vcpu].env;

		if (!env)
			continue;
		if (tcg_snapshots_attach(s->snapshots, src->ring.fd, i, env, &s->cpus.layout, ram,
					 n, s->wants ? &s->wanted : NULL, &why))
			note_no_snapshots(s, why.msg);
		else
			src->env = env;
	}
	epoll_ctl(s->epoll, EPOLL_CTL_ADD, tcg_snapshots_fd(s->snapshots), &ev);
}

static int tcg_start(struct backend_session *base, struct vmprof_err *err)
{
	struct tcg_session *s = tcg_of(base);
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = EPOLL_DEAD};
	int r = 0;

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->pidfd, &ev))
		return err_sys(err, errno, "epoll_create");
	s->sources = xcalloc((size_t)s->cpus.n * s->nr_events + 1, sizeof(*s->sources));
	for (uint32_t v = 0; v < s->cpus.n && !r; v++)
		for (unsigned e = 0; e < s->nr_events && !r; e++) {
			pid_t tid = s->cpus.cpu[v].tid;

			if (!tid)
				continue;
			if (has_source(s, tid, e))
				s->shared_thread = true;
			else
				r = add_source(s, v, e, err);
		}
	if (!r && !s->nr_sources)
		r = err_set(err, ENOENT, "no vCPU thread of pid %d is known", s->base.vm->pid);
	if (!r)
		start_snapshots(s);
	for (unsigned i = 0; i < s->nr_sources && !r; i++)
		if (ioctl(s->sources[i].ring.fd, PERF_EVENT_IOC_ENABLE, 0))
			r = err_sys(err, errno, "cannot start a perf event");
	return r;
}

static void tcg_want(struct backend_session *base, const struct guest_wanted *wanted)
{
	struct tcg_session *s = tcg_of(base);

	s->wanted = *wanted;
	s->wants = true;
}

static int tcg_stop(struct backend_session *base)
{
	struct tcg_session *s = tcg_of(base);

	for (unsigned i = 0; i < s->nr_sources; i++)
		ioctl(s->sources[i].ring.fd, PERF_EVENT_IOC_DISABLE, 0);
	return 0;
}

static struct guest_mem *tcg_memory(struct backend_session *base)
{
	return vm_ram_mem(tcg_of(base)->ram);
}

static int tcg_peek(struct backend_session *base, uint32_t vcpu, struct guest_regs *regs)
{
	return tcg_read_regs(tcg_of(base), vcpu, regs);
}

static uint32_t tcg_nr_vcpus(struct backend_session *base)
{
	return tcg_of(base)->cpus.n;
}

static pid_t tcg_vcpu_tid(struct backend_session *base, uint32_t vcpu)
{
	struct tcg_session *s = tcg_of(base);

	return vcpu < s->cpus.n ? s->cpus.cpu[vcpu].tid : 0;
}

static void tcg_stats(struct backend_session *base, struct backend_stats *st)
{
	*st = tcg_of(base)->stats;
}

const struct vmprof_backend backend_tcg = {
	.name = "tcg",
	.summary = "vCPU state of QEMU's translator, clocked by the vCPU's own CPU time",
	.probe = tcg_probe,
	.try_event = tcg_try_event,
	.open = tcg_open,
	.memory = tcg_memory,
	.peek = tcg_peek,
	.nr_vcpus = tcg_nr_vcpus,
	.vcpu_tid = tcg_vcpu_tid,
	.want = tcg_want,
	.start = tcg_start,
	.read = tcg_read,
	.stop = tcg_stop,
	.stats = tcg_stats,
	.close = tcg_close,
};
