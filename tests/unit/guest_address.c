// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest without registers, made up: its kernel found in memory, all its processes, and whose a
 * sample is that is no more than an address: who ran there if that is known, else who has code
 * there, shared out among several.
 */
#include <errno.h>
#include <unistd.h>

#include "guest/guest.h"
#include "guest/kernel.h"
#include "tests/unit/faketask.h"
#include "tests/unit/test.h"
#include "util/clock.h"

enum { TASKS = 0x90, NR_SWITCHES = 16, RUNQUEUES = 0x300, OTHER_PID = 200 };
#define LOST 0x12345000ull /* in nobody's map */

struct setup {
	struct fakeguest g;
	struct faketask t, other; /* other: only .task, .mm, .root */
	struct guest *guest;
	struct sample out;
	char log[4096];
};

static void link_tasks(struct setup *s, bool other)
{
	uint64_t second = other ? s->other.task : s->g.init_task;

	fg_put64(&s->g, s->g.init_task + TASKS, s->t.task + TASKS);
	fg_put64(&s->g, s->t.task + TASKS, second + TASKS);
	fg_put64(&s->g, s->other.task + TASKS, s->g.init_task + TASKS);
}

/* Another process that has the same maps, as of a program at fixed addresses. */
static void add_other(struct setup *s)
{
	struct fakeguest *g = &s->g;
	uint64_t file;

	memcpy(&file, fg_host(g, g->root, s->t.mm + 0x200 + 56), 8);
	s->other.root = fg_new_root(g);
	ft_mm(g, &s->other, file);
	fg_put64(g, s->other.mm + 0x60, 2);
	s->other.task = fg_data(g, 1);
	fg_write(g, g->root, s->other.task, fg_host(g, g->root, s->t.task), 0x80);
	fg_put64(g, s->other.task + 0x10, s->t.kstack + FT_THREAD);
	fg_put64(g, s->other.task + 0x20, s->other.mm);
	fg_put32(g, s->other.task + 0x2c, OTHER_PID);
	fg_put32(g, s->other.task + 0x30, OTHER_PID);
	fg_put64(g, s->other.task + 0x40, s->other.task);
	fg_put64(g, s->other.task + 0x48, 2000);
	fg_puts(g, s->other.task + 0x50, "other");
}

/* CPU 0 runs @task since it switched for the @switches-th time. */
static void run(struct setup *s, uint64_t task, uint64_t switches)
{
	fg_put64(&s->g, s->g.percpu + FG_PERCPU_SYM, task);
	fg_put64(&s->g, s->g.percpu + RUNQUEUES + NR_SWITCHES, switches);
}

static void setup(struct setup *s, bool both)
{
	const struct fg_options opt = {.pti = false};
	const struct guest_config cfg = {.arch = GUEST_ARCH_X86_64, .nr_vcpus = 2};
	struct vmprof_err err = {0};

	memset(s, 0, sizeof(*s));
	fakeguest_init(&s->g, &opt);
	faketask_add(&s->g, &s->t);
	fg_member(&s->g, "task_struct", "tasks", TASKS, "");
	fg_struct(&s->g, "rq", 64);
	fg_member(&s->g, "rq", "nr_switches", NR_SWITCHES, "");
	fg_sym(&s->g, 'A', "runqueues", RUNQUEUES);
	add_other(s);
	fg_put64(&s->g, s->g.init_task + 0x10, s->t.kstack + 2 * FT_THREAD);
	link_tasks(s, both);
	run(s, s->t.task, 1);
	fakeguest_finish(&s->g);
	CHECK_EQ(guest_open(&s->guest, &s->g.fm.mem, &cfg, &err), 0);
	CHECK_EQ(guest_identify(s->guest, NULL, &err), 0);
}

static void teardown(struct setup *s)
{
	guest_close(s->guest);
	fakeguest_free(&s->g);
}

static void drain(struct setup *s)
{
	static const char *const names[] = {
		[GUEST_EVENT_KERNEL] = "KERNEL", [GUEST_EVENT_MODULE] = "MODULE",
		[GUEST_EVENT_FORK] = "FORK",	 [GUEST_EVENT_COMM] = "COMM",
		[GUEST_EVENT_MMAP] = "MMAP",	 [GUEST_EVENT_EXIT] = "EXIT",
		[GUEST_EVENT_CGROUP] = "CGROUP",
	};
	size_t at = s->log[0] = 0;
	struct guest_event ev;

	while (guest_next_event(s->guest, &ev))
		at += (size_t)snprintf(
			s->log + at, sizeof(s->log) - at, "%s %d %s\n",
			ev.type < sizeof(names) / sizeof(*names) ? names[ev.type] : "?", ev.pid,
			ev.dso.path ? ev.dso.path : (ev.name ? ev.name : ""));
}

/* A sample of CPU 0, now; whose it is, 0 for nobody. */
static int32_t owner(struct setup *s, uint64_t ip)
{
	const struct raw_sample raw = {
		.has = RAW_HAS_IP | RAW_HAS_MODE,
		.time = clock_now_ns(),
		.period = 1,
		.ip = ip,
		.mode = ip >> 63 ? SAMPLE_MODE_GUEST_KERNEL : SAMPLE_MODE_GUEST_USER,
	};

	CHECK_EQ(guest_complete(s->guest, &raw, &s->out), 0);
	drain(s);
	CHECK_EQ(s->out.ip, ip);
	CHECK_EQ(s->out.mode, raw.mode);
	CHECK_EQ(s->out.unattributed != SAMPLE_ATTRIBUTED, s->out.pid < 0);
	return s->out.pid < 0 ? 0 : s->out.pid;
}

static uint64_t shared(struct setup *s)
{
	struct guest_stats st;

	guest_get_stats(s->guest, &st);
	return st.shared;
}

/* Its source has named the process: what that has mapped is in memory. */
static void test_named(void)
{
	const uint64_t chain[] = {FG_FUNC_0 + 8, FT_FUNC(1) + 8};
	struct raw_sample raw = {
		.has = RAW_HAS_IP | RAW_HAS_MODE | RAW_HAS_PROCESS | RAW_HAS_CHAIN,
		.time = clock_now_ns(),
		.ip = FT_FUNC(0) + 8,
		.mode = SAMPLE_MODE_GUEST_USER,
		.pid = FT_PID,
		.tid = FT_PID + 1,
		.comm = "thread",
		.chain = chain,
		.chain_len = 2,
	};
	struct guest_dso dso;
	struct setup s;

	setup(&s, true);
	drain(&s);
	CHECK_EQ(guest_complete(s.guest, &raw, &s.out), 0);
	drain(&s);
	CHECK(!strstr(s.log, "EXIT")); /* it is the process that is known already */
	CHECK(strstr(s.log, "FORK 100 \nCOMM 100 thread\n"));
	CHECK_EQ(s.out.pid, FT_PID);
	CHECK_EQ(s.out.tid, FT_PID + 1);
	CHECK(s.out.has_dso);
	CHECK_EQ(s.out.dso_offset, FT_FUNC(0) + 8 - FT_CODE);
	CHECK(guest_next_hit_dso(s.guest, &dso));
	CHECK_STR(dso.path, "/srv/app");
	raw.ip = LOST;
	CHECK_EQ(guest_complete(s.guest, &raw, &s.out), 0);
	CHECK(!s.out.has_dso);
	CHECK_EQ(s.out.pid, FT_PID);
	raw.pid = raw.tid = 4711; /* in no list: one that came and went */
	CHECK_EQ(guest_complete(s.guest, &raw, &s.out), 0);
	drain(&s);
	CHECK(strstr(s.log, "COMM 4711 thread"));
	CHECK_EQ(s.out.pid, 4711);
	CHECK_EQ(s.out.unattributed, SAMPLE_ATTRIBUTED);
	teardown(&s);
}

/* The kernel that memory shows is the one that registers lead to. */
static void test_scan(bool la57, bool pti)
{
	const struct fg_options opt = {.la57 = la57, .pti = pti};
	struct guest_kernel *by_regs = NULL, *by_scan = NULL;
	struct vmprof_err err = {0};
	struct guest_virt *v;
	struct fakeguest g;

	memset(&g, 0, sizeof(g));
	fakeguest_init(&g, &opt);
	fakeguest_finish(&g);
	v = guest_virt_new(&g.fm.mem, GUEST_ARCH_X86_64);
	CHECK(!guest_kernel_find(&by_regs, &g.fm.mem, v, &g.regs, &err));
	CHECK(!guest_kernel_scan(&by_scan, &g.fm.mem, v, &err));
	if (by_regs && by_scan) {
		CHECK(guest_kernel_same(by_regs, by_scan));
		CHECK(guest_kernel_in_memory(by_scan));
		memset(g.fm.ram, 0, g.fm.size);
		usleep(25000); /* it is not looked at more often than that */
		for (int i = 0; i < 5; i++)
			guest_kernel_in_memory(by_scan);
		CHECK(!guest_kernel_in_memory(by_scan));
	}
	guest_kernel_free(by_regs);
	guest_kernel_free(by_scan);
	by_scan = NULL;
	CHECK_EQ(guest_kernel_scan(&by_scan, &g.fm.mem, v, &err), -ENOENT);
	CHECK(strstr(err.msg, "no 64-bit Linux kernel"));
	/* Tables that lead to themselves and to each other, and to what is no kernel. */
	for (size_t i = 0; i < g.fm.size / 8; i++)
		((uint64_t *)g.fm.ram)[i] = (i * 4096 % g.fm.size) | 0x63;
	CHECK(guest_kernel_scan(&by_scan, &g.fm.mem, v, &err) < 0);
	guest_virt_free(v);
	fakeguest_free(&g);
}

static void test_processes(void)
{
	struct setup s;

	setup(&s, true);
	drain(&s);
	CHECK_STR(s.log, "KERNEL 0 [kernel]\nMODULE 0 fake_mod\n"
			 "FORK 100 \nCOMM 100 worker\nCGROUP 100 /app.slice\nMMAP 100 /srv/app\n"
			 "MMAP 100 [vdso]\nFORK 200 \nCOMM 200 other\nCGROUP 200 /app.slice\n"
			 "MMAP 200 /srv/app\nMMAP 200 [vdso]\n");
	teardown(&s);
}

static void test_one_owner(void)
{
	struct setup s;

	setup(&s, false);
	CHECK_EQ(owner(&s, FT_FUNC(0)), FT_PID);
	CHECK(s.out.has_dso && s.out.dso_offset == FT_FUNC(0) - FT_CODE);
	CHECK_EQ(shared(&s), 0);
	/* Nobody's address, while it is not known who ran. */
	run(&s, s.t.task, 2);
	CHECK_EQ(owner(&s, LOST), 0);
	CHECK_EQ(s.out.unattributed, SAMPLE_NO_PROCESS);
	/* And while it is: code that was made just now. */
	CHECK_EQ(owner(&s, LOST), FT_PID);
	CHECK(!s.out.has_dso);
	teardown(&s);
}

static void test_kernel_mode(void)
{
	struct setup s;

	setup(&s, true);
	CHECK_EQ(owner(&s, FT_KERNEL_IP), 0); /* there is no look before it */
	CHECK_EQ(owner(&s, FT_KERNEL_IP), FT_PID);
	run(&s, s.other.task, 2);
	CHECK_EQ(owner(&s, FT_KERNEL_IP), 0);
	CHECK_EQ(owner(&s, FT_KERNEL_IP), OTHER_PID);
	/* It switched away and back. */
	run(&s, s.other.task, 4);
	CHECK_EQ(owner(&s, FT_KERNEL_IP), 0);
	CHECK_EQ(s.out.unattributed, SAMPLE_NO_PROCESS);
	teardown(&s);
}

static void test_several_owners(void)
{
	unsigned n[2] = {0};
	struct setup s;

	setup(&s, true);
	owner(&s, FT_FUNC(0));
	/* Who ran is known: nothing is shared out. */
	run(&s, s.other.task, 2);
	owner(&s, FT_KERNEL_IP);
	for (int i = 0; i < 30; i++)
		CHECK_EQ(owner(&s, FT_FUNC(1)), OTHER_PID);
	run(&s, s.t.task, 3);
	owner(&s, FT_KERNEL_IP);
	for (int i = 0; i < 10; i++)
		CHECK_EQ(owner(&s, FT_FUNC(1)), FT_PID);
	CHECK(shared(&s) <= 1);
	/* Not known, but one of the owners was there before and after. */
	run(&s, s.other.task, 10);
	owner(&s, FT_KERNEL_IP);
	run(&s, s.other.task, 12);
	CHECK_EQ(owner(&s, FT_FUNC(1)), OTHER_PID);
	CHECK(shared(&s) >= 1);
	/* Neither: by what is certainly theirs, which is 3 : 1. */
	run(&s, s.g.init_task, 20);
	owner(&s, FT_KERNEL_IP);
	for (uint64_t i = 0; i < 80; i++) {
		run(&s, s.g.init_task, 30 + i);
		n[owner(&s, FT_FUNC(1)) == OTHER_PID]++;
	}
	CHECK(n[1] >= 57 && n[1] <= 63);
	CHECK(shared(&s) >= 81);
	teardown(&s);
}

/* The task that ran has no code there, another process has: its vCPU is another CPU, say. */
static void test_contradiction(void)
{
	struct setup s;

	setup(&s, false);
	owner(&s, FT_FUNC(0));
	run(&s, s.g.init_task, 9);
	owner(&s, FT_KERNEL_IP);
	CHECK_EQ(owner(&s, FT_FUNC(0)), FT_PID);
	CHECK(s.out.torn);
	teardown(&s);
}

static void test_ended(void)
{
	struct setup s;
	int32_t seen = 0;

	setup(&s, true);
	drain(&s);
	link_tasks(&s, false);
	/* Addresses that are nobody's are looked for anew, but not all the time. */
	for (int i = 0; i < 100 && !strstr(s.log, "EXIT"); i++) {
		run(&s, s.g.init_task, 100 + (uint64_t)i);
		owner(&s, LOST);
		usleep(5000);
	}
	CHECK_STR(s.log, "EXIT 200 \n");
	for (uint64_t i = 0; i < 10; i++) {
		run(&s, s.g.init_task, 300 + i);
		seen |= owner(&s, FT_FUNC(0)) ^ FT_PID;
	}
	CHECK_EQ(seen, 0);
	teardown(&s);
}

int main(void)
{
	for (int i = 0; i < 4; i++)
		test_scan(i & 1, i & 2);
	test_processes();
	test_one_owner();
	test_kernel_mode();
	test_several_owners();
	test_contradiction();
	test_ended();
	test_named();
	return test_done();
}
