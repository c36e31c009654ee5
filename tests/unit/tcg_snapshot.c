// SPDX-License-Identifier: GPL-2.0-only
/*
 * Snapshots of a vCPU at a tick of its thread's clock: this thread plays the vCPU, this program's
 * memory is "QEMU's", with a made-up CPU state of x86-64, page tables of 4 and 5 levels, or of
 * aarch64, and RAM with a hole.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "backend/perf_ring.h"
#include "backend/tcg_snapshot.h"
#include "tests/unit/test.h"

#define PAGE	 4096ull
#define RAM_SIZE (8u << 20)
#define SPLIT	 (4u << 20)   /* guest RAM below the hole */
#define HIGH	 (1ull << 32) /* and where the rest of it is */
#define SP	 0xffffc90000123e58ull
#define USER_SP	 0x00007ffc12345678ull
#define CR4_LA57 (1u << 12)
#define NR_PAGES 6

/* Pages from the one that SP is in: that and the one above, the task, the two below its stack's top
 * and the page that was interrupted. The CPU's own area is in the first one too. */
#define AT(n)	    ((SP & ~0xfffull) + (n)*PAGE)
#define GS	    AT(0)
#define TASK	    (AT(2) + 0x40)
#define STACK	    AT(2) /* of 8 KiB: its top is page 3 */
#define IRQ_TOP	    (AT(0) + 0xff8)
#define INTERRUPTED (AT(4) + 0x128)

/* The root is at 0x1000: a bit above it is cleared, as with page-table isolation. */
static const struct guest_wanted wanted = {
	.root_clear = 0x2000,
	.current = 0x1f8,
	.task_stack = 0x18,
	.thread_size = 0x2000,
	.saved_sp = 0x2000 - 16,
	.irq_stack = 0x200,
};

static _Alignas(16) uint8_t env[TCG_ENV_SIZE];
static uint8_t *ram;
static const struct tcg_layout layout = {.kernel_gs = 0x2000};
static struct vm_ram_region regions[2];

static void put64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

static uint64_t gpa_of(uint64_t offset)
{
	return offset < SPLIT ? offset : HIGH + offset - SPLIT;
}

/* Tables at offsets 0x1000, 0x2000 ... of RAM down to a page at @target; @large: 2 MiB. */
static void map_page(uint64_t va, unsigned levels, uint64_t target, bool large)
{
	uint64_t table = 0x1000;

	for (unsigned level = levels - 1;; level--) {
		uint8_t *pte = ram + table + ((va >> (12 + 9 * level)) & 511) * 8;

		if (!level || (large && level == 1)) {
			put64(pte, gpa_of(target) | (large ? 0x80 : 0) | 1);
			return;
		}
		table = 0x1000 * (levels - level + 1);
		put64(pte, gpa_of(table) | 0x8000000000000067ull);
	}
}

/* Where in RAM the pages from AT(0) on are: not in their order, but in a large page. */
static uint64_t offset_of(unsigned page, bool large)
{
	return (6u << 20) + (large ? ((SP & 0x1ff000) + page * PAGE) : (page ^ 1) * PAGE);
}

static void put_at(uint64_t va, bool large, uint64_t word)
{
	put64(ram + offset_of((unsigned)((va - AT(0)) / PAGE), large) + (va & (PAGE - 1)), word);
}

struct setup {
	unsigned levels;
	bool large;	/* the kernel's pages are in one of 2 MiB */
	bool above;	/* the page above SP is there */
	bool interrupt; /* SP is on the interrupt stack */
	bool user;	/* in user mode */
};

static void setup(const struct setup *c)
{
	memset(env, 0, sizeof(env));
	memset(ram, 0, 0x10000);
	put64(env + X86_RSP * 8, c->user ? USER_SP : SP);
	put64(env + tcg_env_cr(&layout, 3), gpa_of(0x1000) | 0x005); /* with a PCID */
	put64(env + tcg_env_cr(&layout, 4), c->levels == 5 ? CR4_LA57 : 0);
	put64(env + tcg_env_gs_base(&layout), 0x7f0000001000ull);
	put64(env + layout.kernel_gs, GS);
	for (uint64_t at = 6u << 20; at < RAM_SIZE; at += 8)
		put64(ram + at, at);
	for (unsigned i = 0; i < NR_PAGES; i++)
		if (i != 1 || c->above)
			map_page(AT(i), c->levels, c->large ? 6u << 20 : offset_of(i, false),
				 c->large);
	map_page(USER_SP, c->levels, 0x612000, false);
	map_page(USER_SP + PAGE, c->levels, 0x611000, false);
	put_at(GS + wanted.current, c->large, TASK);
	put_at(TASK + wanted.task_stack, c->large, STACK);
	put_at(STACK + wanted.saved_sp, c->large, USER_SP);
	put_at(GS + wanted.irq_stack, c->large, c->interrupt ? IRQ_TOP : AT(5));
	put_at(IRQ_TOP, c->large, INTERRUPTED);
}

/* Uses up some ms of CPU time. */
static void spin(unsigned ms)
{
	struct timespec ts;
	uint64_t end = 0, now;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
		now = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
		end = end ? end : now + ms * 1000000ull;
	} while (now < end);
}

/* Runs for some ticks; the last snapshot of them. */
static const struct tcg_snapshot *take(struct tcg_snapshots *s, struct perf_ring *ring)
{
	const struct tcg_snapshot *snap, *last = NULL;
	unsigned n = 0;

	while (tcg_snapshots_next(s)) /* of the event before */
		;
	ioctl(ring->fd, PERF_EVENT_IOC_ENABLE, 0);
	for (int tries = 0; tries < 50 && n < 3; tries++) {
		spin(10);
		while (n < 3 && (snap = tcg_snapshots_next(s))) {
			last = snap;
			n++;
		}
	}
	ioctl(ring->fd, PERF_EVENT_IOC_DISABLE, 0);
	return last;
}

/* Page @page of the snapshot is a copy of the page at @va, which lies at @offset of RAM. */
static void check_page(const struct tcg_snapshot *snap, enum tcg_snapshot_page page, uint64_t va,
		       uint64_t offset)
{
	CHECK_EQ(snap->page_va[page], va & ~(PAGE - 1));
	CHECK(!memcmp(snap->page[page], ram + offset, PAGE));
}

static void check_snapshot(const struct tcg_snapshot *snap, const struct setup *c)
{
	CHECK_EQ(snap->source, 7);
	CHECK_EQ(snap->env_error, 0);
	CHECK(snap->value >= 1000000);
	CHECK(!memcmp(snap->env, env, sizeof(snap->env)));
	CHECK_EQ(snap->kernel_gs, GS);
	CHECK_EQ(snap->task_error, 0);
	CHECK_EQ(snap->task, TASK);
	if (c->user) {
		check_page(snap, TCG_PAGE_SP, USER_SP, 0x612000);
		check_page(snap, TCG_PAGE_SP_ABOVE, USER_SP + PAGE, 0x611000);
		CHECK_EQ(snap->page_va[TCG_PAGE_TASK_TOP], 0);
		return;
	}
	check_page(snap, TCG_PAGE_SP, SP, offset_of(0, c->large));
	if (c->above)
		check_page(snap, TCG_PAGE_SP_ABOVE, AT(1), offset_of(1, c->large));
	else
		CHECK_EQ(snap->page_va[TCG_PAGE_SP_ABOVE], 0);
	check_page(snap, TCG_PAGE_TASK_TOP, AT(3), offset_of(3, c->large));
	check_page(snap, TCG_PAGE_USER, USER_SP, 0x612000);
	check_page(snap, TCG_PAGE_USER_ABOVE, USER_SP + PAGE, 0x611000);
	if (!c->interrupt) {
		CHECK_EQ(snap->page_va[TCG_PAGE_INTERRUPTED], 0);
		return;
	}
	check_page(snap, TCG_PAGE_INTERRUPTED, INTERRUPTED, offset_of(4, c->large));
	check_page(snap, TCG_PAGE_INTERRUPTED_ABOVE, AT(5), offset_of(5, c->large));
}

static void check(struct tcg_snapshots *s, struct setup c)
{
	const struct tcg_snapshot *snap;
	struct perf_event_attr attr;
	struct perf_ring ring;
	struct vmprof_err err;

	setup(&c);
	tcg_attr(&attr, 1000000);
	if (perf_ring_open(&ring, &attr, 0, 1, &err))
		test_skip(err.msg);
	if (tcg_snapshots_attach(s, ring.fd, 7, (uintptr_t)env, &layout, regions, 2, &wanted,
				 &err)) {
		fprintf(stderr, "%s\n", err.msg);
		CHECK(false);
		return;
	}
	snap = take(s, &ring);
	CHECK(snap);
	if (snap)
		check_snapshot(snap, &c);
	/* No record of the event's own: there was room. */
	CHECK(!perf_ring_next(&ring));
	perf_ring_close(&ring);
}

/* The reader is woken by a new task, and when it said that it sleeps. */
static void check_wakeup(struct tcg_snapshots *s)
{
	struct setup c = {.levels = 4, .above = true};
	struct perf_event_attr attr;
	struct perf_ring ring;
	struct vmprof_err err;
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET};
	int ep = epoll_create1(EPOLL_CLOEXEC);

	setup(&c);
	tcg_attr(&attr, 1000000);
	if (perf_ring_open(&ring, &attr, 0, 1, &err))
		test_skip(err.msg);
	CHECK(!tcg_snapshots_attach(s, ring.fd, 0, (uintptr_t)env, &layout, regions, 2, &wanted,
				    &err));
	while (tcg_snapshots_next(s))
		;
	epoll_ctl(ep, EPOLL_CTL_ADD, tcg_snapshots_fd(s), &ev);
	ioctl(ring.fd, PERF_EVENT_IOC_ENABLE, 0);
	spin(5);
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
	CHECK(!tcg_snapshots_sleep(s)); /* there are some */
	while (tcg_snapshots_next(s))
		;
	spin(5);
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 1);
	while (tcg_snapshots_next(s))
		;
	spin(5);
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 0);
	tcg_snapshots_forget_tasks(s);
	spin(5);
	CHECK_EQ(epoll_wait(ep, &ev, 1, 0), 1);
	ioctl(ring.fd, PERF_EVENT_IOC_DISABLE, 0);
	while (tcg_snapshots_next(s))
		;
	CHECK(tcg_snapshots_sleep(s));
	perf_ring_close(&ring);
	close(ep);
}

/* Tables that are not there, not RAM, or point to themselves: the registers are had all the same.
 */
static void check_bad(struct tcg_snapshots *s, uint64_t cr3, uint64_t pte)
{
	const struct tcg_snapshot *snap;
	struct perf_event_attr attr;
	struct perf_ring ring;
	struct vmprof_err err;

	setup(&(struct setup){.levels = 4, .above = true});
	put64(env + tcg_env_cr(&layout, 3), cr3);
	if (pte)
		put64(ram + 0x1000 + ((SP >> 39) & 511) * 8, pte);
	tcg_attr(&attr, 1000000);
	if (perf_ring_open(&ring, &attr, 0, 1, &err))
		test_skip(err.msg);
	CHECK(!tcg_snapshots_attach(s, ring.fd, 0, (uintptr_t)env, &layout, regions, 2, &wanted,
				    &err));
	snap = take(s, &ring);
	CHECK(snap && !snap->env_error && !snap->page_va[TCG_PAGE_SP] && snap->task_error);
	perf_ring_close(&ring);
}

/* As many as there can be: the program must not get too long for the kernel. */
static void check_many_regions(struct tcg_snapshots *s)
{
	struct vm_ram_region many[TCG_SNAPSHOT_REGIONS];
	struct perf_event_attr attr;
	struct perf_ring ring;
	struct vmprof_err err;

	for (unsigned i = 0; i < TCG_SNAPSHOT_REGIONS; i++)
		many[i] = (struct vm_ram_region){(uint64_t)i << 34, 1ull << 33, 0x7f0000000000ull};
	tcg_attr(&attr, 1000000);
	if (perf_ring_open(&ring, &attr, 0, 1, &err))
		test_skip(err.msg);
	if (tcg_snapshots_attach(s, ring.fd, 0, (uintptr_t)env, &layout, many, TCG_SNAPSHOT_REGIONS,
				 &wanted, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		CHECK(false);
	}
	perf_ring_close(&ring);
}

/* ---------- aarch64 ---------- */

#define A64_SP	  0xffff800008123e58ull
#define A64_STACK 0xffff800008120000ull
#define A64_TASK  0xffff000003456040ull
#define A64_TPIDR 0xffff000007000000ull
#define A64_USP	  0x0000ffffe93c1160ull

static const struct tcg_layout a64_layout = {
	.arch = GUEST_ARCH_AARCH64,
	.tcr = 0x360,
	.ttbr0 = 0x310,
	.ttbr1 = 0x330,
	.vbar = 0x4c0,
	.sp_el0 = 0x260,
	.tpidr_el1 = 0x518,
};

static const struct guest_wanted a64_wanted = {
	.current = 0x1f8,
	.task_stack = 0x20,
	.thread_size = 0x4000,
	.saved_sp = 0x4000 - 96,
};

struct a64_setup {
	bool user, block, other_stack, entry;
};

/* As map_page(), with tables of their own for each half and each page. */
static void a64_map(uint64_t va, uint64_t target, bool block)
{
	static uint64_t next;
	uint64_t table = va >> 63 ? 0x1000 : 0x2000;

	if (!va) {
		next = 0x3000;
		return;
	}
	for (int shift = 39;; shift -= 9) {
		uint8_t *desc = ram + table + (va >> shift & 511) * 8;
		uint64_t word;

		if (shift == 12 || (block && shift == 21)) {
			put64(desc, gpa_of(target) | 0x0060000000000700ull | (block ? 1 : 3));
			return;
		}
		memcpy(&word, desc, 8);
		if (!word) {
			put64(desc, gpa_of(next) | 0x0800000000000003ull);
			word = next;
			next += 0x1000;
		}
		table = word & 0xfffff000;
	}
}

static void a64_setup(const struct a64_setup *c)
{
	uint64_t sp = c->user ? A64_USP : c->other_stack ? A64_SP + 0x100000 : A64_SP;

	memset(env, 0, sizeof(env));
	memset(ram, 0, 0x40000);
	for (uint64_t at = 6u << 20; at < RAM_SIZE; at += 8)
		put64(ram + at, at);
	a64_map(0, 0, false);
	put64(env + tcg_arm64_sp(), sp);
	put64(env + a64_layout.ttbr0, gpa_of(0x2000) | 0x00ab000000000001ull);
	put64(env + a64_layout.ttbr1, gpa_of(0x1000) | 0x0034000000000001ull);
	put64(env + a64_layout.sp_el0, c->user || c->entry ? A64_USP : A64_TASK);
	put64(env + a64_layout.tpidr_el1, A64_TPIDR);
	if (c->block) {
		a64_map(A64_STACK, 6u << 20, true);
	} else {
		a64_map(A64_STACK + 0x3000, (6u << 20) + 0x123000, false);
		a64_map(A64_STACK + 0x2000, (6u << 20) + 0x122000, false);
	}
	a64_map(A64_SP + 0x100000, 0x700000, false);
	a64_map(A64_TASK, 0x710000, false);
	a64_map(A64_TPIDR, 0x720000, false);
	a64_map(A64_USP, 0x730000, false);
	put64(ram + 0x710040 + a64_wanted.task_stack, A64_STACK);
	put64(ram + 0x720000 + a64_wanted.current, A64_TASK);
	put64(ram + (6u << 20) + 0x120000 + a64_wanted.saved_sp, A64_USP);
}

static void check_a64(struct tcg_snapshots *s, struct a64_setup c)
{
	const struct tcg_snapshot *snap;
	struct perf_event_attr attr;
	struct perf_ring ring;
	struct vmprof_err err;
	uint64_t top = A64_STACK + 0x3000;

	a64_setup(&c);
	tcg_attr(&attr, 1000000);
	if (perf_ring_open(&ring, &attr, 0, 1, &err))
		test_skip(err.msg);
	if (tcg_snapshots_attach(s, ring.fd, 7, (uintptr_t)env, &a64_layout, regions, 2,
				 &a64_wanted, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		CHECK(false);
		return;
	}
	snap = take(s, &ring);
	perf_ring_close(&ring);
	CHECK(snap);
	if (!snap)
		return;
	CHECK(!memcmp(snap->env, env, sizeof(snap->env)));
	CHECK_EQ(snap->task_error, 0);
	CHECK_EQ(snap->task, A64_TASK);
	if (c.user) {
		check_page(snap, TCG_PAGE_SP, A64_USP, 0x730000);
		CHECK_EQ(snap->page_va[TCG_PAGE_TASK_TOP], 0);
		return;
	}
	if (c.other_stack)
		check_page(snap, TCG_PAGE_SP, A64_SP + 0x100000, 0x700000);
	else
		check_page(snap, TCG_PAGE_SP, A64_SP, (6u << 20) + 0x123000);
	check_page(snap, TCG_PAGE_TASK_TOP, top, (6u << 20) + 0x123000);
	check_page(snap, TCG_PAGE_USER, A64_USP, 0x730000);
	if (c.other_stack)
		check_page(snap, TCG_PAGE_INTERRUPTED, top - PAGE, (6u << 20) + 0x122000);
	else
		CHECK_EQ(snap->page_va[TCG_PAGE_INTERRUPTED], 0);
}

int main(void)
{
	struct tcg_snapshots *s;
	struct vmprof_err err;

	if (tcg_snapshots_open(&s, 1, &err))
		test_skip(err.msg);
	ram = mmap(NULL, RAM_SIZE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	regions[0] = (struct vm_ram_region){0, SPLIT, (uintptr_t)ram};
	regions[1] = (struct vm_ram_region){HIGH, RAM_SIZE - SPLIT, (uintptr_t)ram + SPLIT};
	check(s, (struct setup){.levels = 4, .above = true});
	check(s, (struct setup){.levels = 5, .above = true});
	check(s, (struct setup){.levels = 4, .above = true, .large = true, .interrupt = true});
	check(s, (struct setup){.levels = 4});
	check(s, (struct setup){.levels = 4, .above = true, .interrupt = true});
	check(s, (struct setup){.levels = 5, .above = true, .user = true});
	check_a64(s, (struct a64_setup){0});
	check_a64(s, (struct a64_setup){.block = true, .other_stack = true});
	check_a64(s, (struct a64_setup){.other_stack = true});
	check_a64(s, (struct a64_setup){.entry = true});
	check_a64(s, (struct a64_setup){.user = true});
	check_wakeup(s);
	check_many_regions(s);
	check_bad(s, 0x8000000000ull, 0);	      /* no RAM there */
	check_bad(s, 0x1000, gpa_of(0x1000) & ~1ull); /* not present */
	check_bad(s, 0x1000, 0xfffffffffe067ull);     /* leads out of RAM */
	tcg_snapshots_close(s);
	return test_done();
}
