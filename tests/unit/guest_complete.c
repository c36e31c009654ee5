// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples made complete, over a made-up guest with processes: side-band and its order, names that
 * change, exec, reused task_structs, threads; registers that no longer fit the running task; stacks
 * that were popped meanwhile; files out of the page cache; a VM that goes away; noise.
 */
#include <errno.h>
#include <linux/perf_event.h>

#include "guest/guest.h"
#include "tests/unit/faketask.h"
#include "tests/unit/test.h"

#define KERNEL ((uint64_t)PERF_CONTEXT_KERNEL)
#define USER   ((uint64_t)PERF_CONTEXT_USER)

struct setup {
	struct fakeguest g;
	struct faketask t;
	struct guest *guest;
	struct sample out;
	uint64_t time;
	struct guest_regs now; /* what peek says */
	unsigned peeks;
	char log[4096]; /* side-band since it was cleared, one line an event */
};

static int peek(void *ctx, uint32_t vcpu, struct guest_regs *regs)
{
	struct setup *s = ctx;

	s->peeks++;
	*regs = s->now;
	return 0;
}

static void setup(struct setup *s, bool map, bool pti)
{
	const struct fg_options opt = {.pti = pti};
	struct guest_config cfg = {.arch = GUEST_ARCH_X86_64,
				   .chains = true,
				   .nr_vcpus = 1,
				   .peek = peek,
				   .peek_ctx = s};
	struct vmprof_err err;

	memset(s, 0, sizeof(*s));
	fakeguest_init(&s->g, &opt);
	faketask_add(&s->g, &s->t);
	fakeguest_finish(&s->g);
	s->g.fm.map = map;
	s->now = s->t.user;
	s->time = 1000000000;
	CHECK_EQ(guest_open(&s->guest, &s->g.fm.mem, &cfg, &err), 0);
	CHECK_EQ(guest_identify(s->guest, &s->g.regs, &err), 0);
}

static void teardown(struct setup *s)
{
	guest_close(s->guest);
	fakemem_free(&s->g.fm);
}

static void drain(struct setup *s)
{
	static const char *const names[] = {"KERNEL", "MODULE", "CODE",	  "FORK", "COMM",
					    "MMAP",   "EXIT",	"CGROUP", "RESET"};
	size_t at = strlen(s->log);
	struct guest_event ev;

	while (guest_next_event(s->guest, &ev)) {
		at += (size_t)snprintf(s->log + at, sizeof(s->log) - at, "%s %d %d %d %s%s%s\n",
				       names[ev.type], ev.pid, ev.tid, ev.ppid,
				       ev.name ? ev.name : "", ev.dso.path ? ev.dso.path : "",
				       ev.exec ? " exec" : "");
		if (at >= sizeof(s->log))
			abort();
	}
}

/* Completes a sample and checks the side-band that it brought up. */
static int complete(struct setup *s, const struct guest_regs *regs, const char *events)
{
	const struct raw_sample raw = {.has = RAW_HAS_REGS,
				       .time = s->time += 10000000,
				       .period = 1000000,
				       .ip = regs->ip,
				       .regs = *regs};
	int rc = guest_complete(s->guest, &raw, &s->out);

	s->log[0] = 0;
	drain(s);
	if (events)
		CHECK_STR(s->log, events);
	return rc;
}

static void check_user_chain(const struct setup *s, const uint64_t *chain)
{
	CHECK_EQ(chain[0], USER);
	CHECK_EQ(chain[1], s->t.user.ip);
	for (int i = 1; i < FT_FRAMES; i++)
		CHECK_EQ(chain[1 + i], FT_RETURN(i));
}

static void test_first(bool map, bool pti)
{
	struct guest_stats st;
	struct setup s;

	setup(&s, map, pti);
	drain(&s);
	CHECK_STR(s.log, "KERNEL 0 0 0 [kernel]\nMODULE 0 0 0 fake_mod\n");
	CHECK_EQ(complete(&s, &s.t.user,
			  "FORK 100 100 0 \nCOMM 100 100 0 worker\nCGROUP 100 100 0 /app.slice\n"
			  "MMAP 100 100 0 /srv/app\nMMAP 100 100 0 [vdso]\n"),
		 0);
	CHECK_EQ(s.out.pid, FT_PID);
	CHECK_EQ(s.out.tid, FT_PID);
	CHECK_EQ(s.out.mode, SAMPLE_MODE_GUEST_USER);
	CHECK_EQ(s.out.unattributed, SAMPLE_ATTRIBUTED);
	CHECK_EQ(s.out.ip, s.t.user.ip);
	CHECK_EQ(s.out.period, 1000000);
	CHECK_EQ(s.out.user_end, CHAIN_OUTERMOST);
	CHECK_EQ(s.out.kernel_end, CHAIN_NONE);
	CHECK_EQ(s.out.chain_len, FT_FRAMES + 1);
	check_user_chain(&s, s.out.chain);

	s.now = s.t.kernel;
	CHECK_EQ(complete(&s, &s.t.kernel, ""), 0);
	CHECK_EQ(s.out.pid, FT_PID);
	CHECK_EQ(s.out.mode, SAMPLE_MODE_GUEST_KERNEL);
	CHECK_EQ(s.out.kernel_end, CHAIN_OUTERMOST);
	CHECK_EQ(s.out.user_end, CHAIN_OUTERMOST);
	CHECK_EQ(s.out.chain[0], KERNEL);
	CHECK_EQ(s.out.chain[1], FT_KERNEL_IP);
	CHECK_EQ(s.out.chain[2], FT_KERNEL_RET);
	check_user_chain(&s, s.out.chain + 3);
	guest_get_stats(s.guest, &st);
	CHECK_EQ(st.samples, 2);
	CHECK_EQ(st.unattributed[SAMPLE_ATTRIBUTED], 2);
	CHECK_EQ(st.processes, 1);
	CHECK_EQ(st.maps, 2);
	CHECK_EQ(st.vma_walks, 1);
	CHECK_EQ(st.user_end[CHAIN_OUTERMOST], 2);
	CHECK_EQ(st.kernel_end[CHAIN_OUTERMOST], 1);
	teardown(&s);
}

/* An exec seen under way has its stack not yet where it will begin. */
static void test_exec_under_way(void)
{
	uint64_t garbage = 1;
	struct setup s;

	setup(&s, true, true);
	drain(&s);
	fg_write(&s.g, s.t.root, FT_STACK + 0xe50, &garbage, 8); /* libc has no frame pointers */
	complete(&s, &s.t.user, NULL);
	CHECK_EQ(s.out.user_end, CHAIN_OUTERMOST);
	fg_put64(&s.g, s.t.mm + 0x60, 2);
	fg_put64(&s.g, s.t.mm + 0x50, FT_STACK + 0x20000);
	complete(&s, &s.t.user, NULL);
	CHECK_EQ(s.out.user_end, CHAIN_BAD_FRAME);
	s.time += 1000000000;
	fg_put64(&s.g, s.t.mm + 0x50, FT_STACK + FG_PAGE - 64);
	fg_put64(&s.g, s.t.mm + 0x38, 3);
	complete(&s, &s.t.user, NULL);
	CHECK_EQ(s.out.user_end, CHAIN_OUTERMOST);
	teardown(&s);
}

static void test_changes(void)
{
	struct setup s;

	setup(&s, true, false);
	drain(&s);
	complete(&s, &s.t.user, NULL);
	complete(&s, &s.t.user, "");
	fg_puts(&s.g, s.t.task + 0x50, "renamed");
	complete(&s, &s.t.user, "COMM 100 100 0 renamed\n");
	fg_puts(&s.g, s.t.task + 0x50, "sixteen letters!"); /* no NUL among the 16 */
	complete(&s, &s.t.user, "COMM 100 100 0 sixteen letters!\n");

	/* exec: another mm, the same task; all maps are news. */
	fg_puts(&s.g, s.t.task + 0x50, "fresh");
	fg_put64(&s.g, s.t.mm + 0x60, 2);
	complete(&s, &s.t.user,
		 "COMM 100 100 0 fresh exec\nMMAP 100 100 0 /srv/app\nMMAP 100 100 0 [vdso]\n");
	/* A mapping is made executable: only that one is news. */
	s.time += 1000000000;
	fg_put64(&s.g, s.t.mm + 0x200 + 0x100 + 32, 7);
	fg_put64(&s.g, s.t.mm + 0x38, 3);
	complete(&s, &s.t.user, "MMAP 100 100 0 [stack]\n");
	/* The task_struct now belongs to another process. */
	fg_put32(&s.g, s.t.task + 0x2c, 200);
	fg_put32(&s.g, s.t.task + 0x30, 200);
	fg_put64(&s.g, s.t.task + 0x48, 2000);
	fg_put64(&s.g, s.t.mm + 0x60, 3);
	complete(&s, &s.t.user, NULL);
	CHECK(!strncmp(s.log, "FORK 200 200 0 \nCOMM 200 200 0 fresh\n", 37));
	CHECK_EQ(s.out.pid, 200);
	/* Its number is used again by a later one. */
	fg_put64(&s.g, s.t.task + 0x48, 3000);
	fg_put64(&s.g, s.t.mm + 0x60, 4);
	complete(&s, &s.t.user, NULL);
	CHECK(!strncmp(s.log, "EXIT 200 200 0 \nFORK 200 200 0 \n", 31));
	teardown(&s);
}

/* Moved to the root cgroup it has left the one that it was in. */
static void test_cgroup(void)
{
	uint64_t css_set, root_css_set;
	struct setup s;

	setup(&s, true, false);
	css_set = s.t.task + 0x800;
	root_css_set = s.t.task + 0x900;
	fg_put64(&s.g, root_css_set, root_css_set + 16);
	fg_put64(&s.g, root_css_set + 16, css_set + 64); /* the root's kernfs node: ft_cgroup() */
	complete(&s, &s.t.user, NULL);
	CHECK(strstr(s.log, "CGROUP 100 100 0 /app.slice\n"));
	fg_put64(&s.g, s.t.task + 0x60, root_css_set);
	complete(&s, &s.t.user, "CGROUP 100 100 0 /\n");
	complete(&s, &s.t.user, "");
	fg_put64(&s.g, s.t.task + 0x60, css_set);
	complete(&s, &s.t.user, "CGROUP 100 100 0 /app.slice\n");
	teardown(&s);

	setup(&s, true, false);
	fg_put64(&s.g, root_css_set, root_css_set + 16);
	fg_put64(&s.g, root_css_set + 16, css_set + 64);
	fg_put64(&s.g, s.t.task + 0x60, root_css_set);
	complete(&s, &s.t.user, NULL);
	CHECK(strstr(s.log, "CGROUP 100 100 0 /\n"));
	teardown(&s);
}

static void test_thread(void)
{
	uint64_t second, stack;
	struct setup s;

	setup(&s, true, false);
	drain(&s);
	second = fg_data(&s.g, 1);
	s.g.next = (s.g.next + FT_THREAD - 1) & ~(FT_THREAD - 1);
	stack = fg_data(&s.g, FT_THREAD / FG_PAGE);
	memcpy(fg_host(&s.g, s.g.root, second), fg_host(&s.g, s.g.root, s.t.task), FG_PAGE);
	fg_put64(&s.g, second + 0x10, stack);
	fg_put32(&s.g, second + 0x2c, 101); /* pid, in the kernel's words */
	fg_puts(&s.g, second + 0x50, "second");
	fg_put64(&s.g, s.g.percpu + FG_PERCPU_SYM, second);
	/* The process comes first, by its leader's name. */
	complete(&s, &s.t.user,
		 "FORK 100 100 0 \nCOMM 100 100 0 worker\nFORK 100 101 100 \n"
		 "COMM 100 101 0 second\nCGROUP 100 100 0 /app.slice\n"
		 "MMAP 100 100 0 /srv/app\nMMAP 100 100 0 [vdso]\n");
	CHECK_EQ(s.out.pid, 100);
	CHECK_EQ(s.out.tid, 101);
	fg_put64(&s.g, s.g.percpu + FG_PERCPU_SYM, s.t.task);
	complete(&s, &s.t.user, "");
	CHECK_EQ(s.out.tid, 100);

	/* Kernel mode on the second thread's stack, the first one runs by now: the stack decides.
	 */
	s.now = s.t.user;
	s.now.ip = FT_FUNC(1);
	s.t.kernel.sp += stack - s.t.kstack;
	memcpy(fg_host(&s.g, s.g.root, stack), fg_host(&s.g, s.g.root, s.t.kstack), FG_PAGE);
	for (uint64_t page = 0; page < FT_THREAD; page += FG_PAGE)
		memcpy(fg_host(&s.g, s.g.root, stack + page),
		       fg_host(&s.g, s.g.root, s.t.kstack + page), FG_PAGE);
	complete(&s, &s.t.kernel, "");
	CHECK_EQ(s.out.pid, 100);
	CHECK_EQ(s.out.tid, 101);
	CHECK(!s.out.torn);
	teardown(&s);
}

/* The kernel's idle task runs by the time that memory is read. */
static void test_switched(void)
{
	struct guest_regs other;
	struct guest_stats st;
	struct setup s;

	setup(&s, true, false);
	drain(&s);
	complete(&s, &s.t.user, NULL);
	fg_put64(&s.g, s.g.init_task + 0x10, s.t.kstack - FT_THREAD);
	fg_puts(&s.g, s.g.init_task + 0x50, "swapper/0");
	fg_put64(&s.g, s.g.percpu + FG_PERCPU_SYM, s.g.init_task);

	/* The page table in the registers is a known process's. */
	complete(&s, &s.t.user, NULL);
	CHECK_EQ(s.out.pid, FT_PID);
	CHECK_EQ(s.out.user_end, CHAIN_OUTERMOST);
	CHECK(!s.out.torn);

	/* It is nobody's, and stays so: the sample is nobody's. */
	other = s.t.user;
	other.pgtable += 16 * FG_PAGE;
	s.now = other;
	complete(&s, &other, NULL);
	CHECK_EQ(s.out.pid, -1);
	CHECK_EQ(s.out.unattributed, SAMPLE_NO_PROCESS);
	CHECK(s.out.torn);
	CHECK_EQ(s.out.ip, other.ip);
	CHECK_EQ(s.out.chain_len, 0);

	/* It is nobody's now, but fresh registers are somebody's. */
	s.now = s.t.user;
	s.now.ip = FT_FUNC(1) + 1;
	complete(&s, &other, NULL);
	CHECK_EQ(s.out.pid, FT_PID);
	CHECK_EQ(s.out.ip, FT_FUNC(1) + 1);
	CHECK(!s.out.torn);
	CHECK_EQ(s.out.chain[1], FT_FUNC(1) + 1);

	/* The process has ended: its page table may be anyone's. */
	fg_put32(&s.g, s.t.task + 0x28, 16);
	s.now = s.t.user;
	complete(&s, &s.t.user, NULL);
	CHECK_EQ(s.out.pid, -1);
	guest_get_stats(s.guest, &st);
	CHECK_EQ(st.torn, 2);
	CHECK_EQ(st.unattributed[SAMPLE_NO_PROCESS], 2);
	teardown(&s);
}

/* Another process runs by then, with a page table of its own: not its sample. */
static void test_other_process(void)
{
	struct guest_regs nobody;
	uint64_t task, mm;
	struct setup s;

	setup(&s, true, false);
	drain(&s);
	complete(&s, &s.t.user, NULL);
	task = fg_data(&s.g, 1);
	mm = fg_data(&s.g, 1);
	memcpy(fg_host(&s.g, s.g.root, task), fg_host(&s.g, s.g.root, s.t.task), FG_PAGE);
	memcpy(fg_host(&s.g, s.g.root, mm), fg_host(&s.g, s.g.root, s.t.mm), FG_PAGE);
	fg_put64(&s.g, task + 0x20, mm);
	fg_put32(&s.g, task + 0x2c, 300);
	fg_put32(&s.g, task + 0x30, 300);
	fg_put64(&s.g, task + 0x40, task);
	fg_put64(&s.g, mm + 0x20, fg_kva(&s.g, fg_new_root(&s.g)));
	fg_put64(&s.g, mm + 0x60, 2);
	fg_put64(&s.g, s.g.percpu + FG_PERCPU_SYM, task);
	complete(&s, &s.t.user, NULL);
	CHECK_EQ(s.out.pid, FT_PID);
	CHECK_EQ(s.out.user_end, CHAIN_OUTERMOST);
	nobody = s.t.user;
	nobody.pgtable += 32 * FG_PAGE;
	s.now = nobody;
	complete(&s, &nobody, NULL);
	CHECK_EQ(s.out.pid, -1);
	teardown(&s);
}

static void test_torn(void)
{
	struct setup s;

	setup(&s, true, false);
	drain(&s);
	s.now = s.t.user;
	s.now.sp = s.t.user.fp + 16; /* the leaf has returned: its caller still runs */
	s.now.ip = FT_RETURN(1);
	complete(&s, &s.t.user, NULL);
	CHECK_EQ(s.out.user_end, CHAIN_OUTERMOST);
	CHECK_EQ(s.out.chain_len, FT_FRAMES + 1);
	s.now.sp = s.t.user.fp + 56; /* and the caller too */
	complete(&s, &s.t.user, "");
	CHECK_EQ(s.out.user_end, CHAIN_TORN);
	CHECK_EQ(s.out.chain_len, 2);
	CHECK_EQ(s.out.chain[1], s.t.user.ip);
	CHECK_EQ(s.out.pid, FT_PID);
	/* In the kernel by now: where the user's stack pointer was is on the kernel's stack. */
	s.now = s.t.kernel;
	complete(&s, &s.t.user, "");
	CHECK_EQ(s.out.user_end, CHAIN_OUTERMOST);
	fg_put64(&s.g, s.t.kstack + FT_THREAD - 168 + 152, s.t.user.fp + 100);
	complete(&s, &s.t.user, "");
	CHECK_EQ(s.out.user_end, CHAIN_TORN);
	/* Nonsense where a frame was, with a vCPU that stands still, is a bad frame. */
	s.now = s.t.user;
	fg_write(&s.g, s.t.root, s.t.user.fp + 8, "garbage", 8);
	complete(&s, &s.t.user, "");
	CHECK_EQ(s.out.user_end, CHAIN_BAD_FRAME);
	s.now.sp += 64;
	complete(&s, &s.t.user, "");
	CHECK_EQ(s.out.user_end, CHAIN_TORN);
	teardown(&s);
}

/* Completes a sample whose stacks were copied with its registers: those pages are @page. */
static void complete_given(struct setup *s, const struct guest_regs *regs,
			   const struct raw_memory *memory, unsigned n)
{
	struct guest_wanted wanted;
	struct raw_sample raw = {
		.has = RAW_HAS_REGS | RAW_HAS_TASK,
		.time = s->time += 10000000,
		.ip = regs->ip,
		.regs = *regs,
		.task = s->t.task,
		.nr_memory = n,
	};

	CHECK(guest_wanted(s->guest, &wanted));
	CHECK_EQ(wanted.saved_sp, FT_THREAD - 16);
	memcpy(raw.memory, memory, n * sizeof(*memory));
	guest_complete(s->guest, &raw, &s->out);
	drain(s);
}

static const uint64_t *copy_page(struct setup *s, uint64_t root, uint64_t va, uint64_t *page)
{
	return memcpy(page, fg_host(&s->g, root, va), FG_PAGE);
}

/* What was copied is believed and not looked at again; what was not is, if it is still there. */
static void test_given(void)
{
	static uint64_t kstack[FG_PAGE / 8], ustack[FG_PAGE / 8], other[FG_PAGE / 8];
	struct raw_memory memory[2];
	struct setup s;
	uint64_t top;

	setup(&s, true, false);
	drain(&s);
	top = s.t.kstack + FT_THREAD - FG_PAGE;
	memory[0] = (struct raw_memory){top, FG_PAGE, copy_page(&s, s.g.root, top, kstack)};
	memory[1] =
		(struct raw_memory){FT_STACK, FG_PAGE, copy_page(&s, s.t.root, FT_STACK, ustack)};
	s.now = s.t.user;
	s.now.sp = s.t.user.fp + 256; /* it went on since, and popped all of that */
	complete_given(&s, &s.t.kernel, memory, 2);
	CHECK_EQ(s.out.pid, FT_PID);
	CHECK_EQ(s.out.kernel_end, CHAIN_OUTERMOST);
	CHECK_EQ(s.out.user_end, CHAIN_OUTERMOST);
	CHECK_EQ(s.peeks, 0);
	check_user_chain(&s, s.out.chain + 3);

	/* The user's stack is read later: it has been popped. */
	complete_given(&s, &s.t.kernel, memory, 1);
	CHECK_EQ(s.out.kernel_end, CHAIN_OUTERMOST);
	CHECK_EQ(s.out.user_end, CHAIN_TORN);
	CHECK_EQ(s.out.chain_len, 5);
	/* Or it has not, as the thread is where it was. */
	s.now = s.t.kernel;
	complete_given(&s, &s.t.kernel, memory, 1);
	CHECK_EQ(s.out.user_end, CHAIN_OUTERMOST);
	check_user_chain(&s, s.out.chain + 3);

	/* The page table was another one already: the page at the user's address is another's. */
	memory[1].word = other;
	s.t.kernel.pgtable += 16 * FG_PAGE;
	complete_given(&s, &s.t.kernel, memory, 2);
	CHECK_EQ(s.out.pid, FT_PID);
	CHECK_EQ(s.out.user_end, CHAIN_OUTERMOST);
	check_user_chain(&s, s.out.chain + 3);

	/* The process has ended since, and has no memory any more; it was known. */
	memory[1].word = ustack;
	fg_put32(&s.g, s.t.task + 0x28, 16);
	fg_put64(&s.g, s.t.task + 0x20, 0);
	complete_given(&s, &s.t.user, memory + 1, 1);
	CHECK_EQ(s.out.pid, FT_PID);
	CHECK_EQ(s.out.user_end, CHAIN_OUTERMOST);
	teardown(&s);
}

/* Of a backend that knows the general registers alone, the CPU is told by the vCPU's number. */
static void test_general(void)
{
	struct guest_wanted wanted;
	struct raw_sample raw = {.has = RAW_HAS_GENERAL, .time = 2000000000};
	struct setup s;

	setup(&s, true, false);
	drain(&s);
	CHECK(guest_wanted(s.guest, &wanted));
	CHECK_EQ(wanted.nr_areas, 1);
	CHECK_EQ(wanted.areas[0], s.g.percpu);
	raw.regs = s.now = s.t.user;
	raw.regs.gdt_base = raw.regs.idt_base = 0;
	raw.regs.gs_base = raw.regs.kernel_gs_base = 0;
	raw.regs.has_gs = false;
	guest_complete(s.guest, &raw, &s.out);
	CHECK_EQ(s.out.pid, FT_PID);
	CHECK_EQ(s.out.user_end, CHAIN_OUTERMOST);
	drain(&s);
	/* A CPU that the guest has not: nobody is known to run there. */
	raw.vcpu = 77;
	raw.regs.pgtable += 32 * FG_PAGE;
	s.now = raw.regs;
	guest_complete(s.guest, &raw, &s.out);
	CHECK_EQ(s.out.pid, -1);
	drain(&s);
	teardown(&s);
}

static void test_files(void)
{
	uint8_t buf[8192], present[1];
	struct guest_dso dso;
	struct setup s;

	setup(&s, false, false);
	drain(&s);
	CHECK(!guest_next_hit_dso(s.guest, &dso));
	complete(&s, &s.t.user, NULL);
	CHECK(guest_next_hit_dso(s.guest, &dso));
	CHECK_STR(dso.path, "/srv/app");
	CHECK_EQ(dso.ino, 4711);
	CHECK_EQ(dso.ino_generation, 7);
	CHECK_EQ(dso.size, FG_PAGE);
	CHECK_EQ(dso.build_id_len, 20);
	CHECK_EQ(dso.build_id[19], 0xcc);
	CHECK(!guest_next_hit_dso(s.guest, &dso));
	CHECK_EQ(guest_dso_read(s.guest, dso.id, 0, buf, sizeof(buf), present), 4096);
	CHECK_EQ(present[0], 1);
	CHECK(!memcmp(buf, ELFMAG, SELFMAG));
	CHECK_EQ(guest_dso_read(s.guest, dso.id, 4000, buf, 1000, NULL), 96);
	CHECK_EQ(guest_dso_read(s.guest, dso.id, 1 << 20, buf, 10, NULL), 0);
	CHECK_EQ(guest_dso_read(s.guest, 999, 0, buf, 10, NULL), -ENOENT);
	CHECK_EQ(guest_dso_read_image(s.guest, dso.id, FT_RETURN(1) - 5, buf, 5), 0);
	CHECK_EQ(buf[0], 0xe8);
	CHECK_EQ(guest_dso_read_image(s.guest, dso.id, 0x7000000, buf, 5), -EFAULT);
	teardown(&s);
}

static void test_gone(void)
{
	for (unsigned n = 0; n < 60; n++) {
		struct setup s;
		int rc;

		setup(&s, false, false);
		s.g.fm.gone_after = s.g.fm.readv_calls + n + 1;
		rc = complete(&s, &s.t.user, NULL);
		CHECK(rc == 0 || rc == -ESRCH);
		CHECK(n > 3 || rc == -ESRCH);
		CHECK_EQ(s.out.ip, s.t.user.ip);
		teardown(&s);
	}
}

static void test_no_kernel(void)
{
	struct guest_kernel_info info;
	struct setup s;

	setup(&s, true, false);
	drain(&s);
	s.g.regs.idt_base = 0x1000; /* firmware: nothing there */
	s.g.regs.cr0 = 0x10;
	s.g.regs.efer = 0;
	complete(&s, &s.g.regs, "");
	CHECK_EQ(s.out.unattributed, SAMPLE_NO_KERNEL);
	CHECK_EQ(s.out.pid, -1);
	CHECK_EQ(s.out.chain_len, 0);
	guest_kernel_info(s.guest, &info); /* kept until another one is found */
	CHECK(info.known && info.has_types);
	complete(&s, &s.t.user, NULL);
	CHECK_EQ(s.out.pid, FT_PID);
	teardown(&s);
}

/* What an agent in the guest says is taken as it is. */
static void test_named(void)
{
	const uint64_t chain[] = {0xffffffff81000000, 0xffffffff81000010, 0x401000, 0x402000};
	struct raw_sample raw = {.has = RAW_HAS_IP | RAW_HAS_MODE | RAW_HAS_PROCESS | RAW_HAS_CHAIN,
				 .ip = chain[0],
				 .mode = SAMPLE_MODE_GUEST_KERNEL,
				 .pid = 7,
				 .tid = 8,
				 .comm = "agent",
				 .chain = chain,
				 .chain_len = 4};
	struct setup s;

	setup(&s, true, false);
	drain(&s);
	s.log[0] = 0;
	CHECK_EQ(guest_complete(s.guest, &raw, &s.out), 0);
	drain(&s);
	CHECK_STR(s.log, "FORK 7 7 0 \nCOMM 7 7 0 agent\nFORK 7 8 7 \nCOMM 7 8 0 agent\n");
	CHECK_EQ(s.out.pid, 7);
	CHECK_EQ(s.out.tid, 8);
	CHECK_EQ(s.out.mode, SAMPLE_MODE_GUEST_KERNEL);
	CHECK_EQ(s.out.chain_len, 6);
	CHECK_EQ(s.out.chain[0], KERNEL);
	CHECK_EQ(s.out.chain[3], USER);
	CHECK_EQ(s.out.chain[5], 0x402000);
	teardown(&s);
}

static void test_noise(void)
{
	for (unsigned every = 1; every < 40; every++) {
		struct setup s;

		setup(&s, false, every & 1);
		s.g.fm.noise_every = every;
		for (int i = 0; i < 20; i++) {
			CHECK_EQ(complete(&s, i & 1 ? &s.t.kernel : &s.t.user, NULL), 0);
			CHECK(s.out.chain_len <= SAMPLE_MAX_CHAIN + 2);
		}
		teardown(&s);
	}
}

int main(void)
{
	for (int i = 0; i < 4; i++)
		test_first(i & 1, i & 2);
	test_exec_under_way();
	test_changes();
	test_cgroup();
	test_thread();
	test_switched();
	test_other_process();
	test_torn();
	test_given();
	test_general();
	test_files();
	test_gone();
	test_no_kernel();
	test_named();
	test_noise();
	return test_done();
}
