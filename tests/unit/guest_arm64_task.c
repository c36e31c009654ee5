// SPDX-License-Identifier: GPL-2.0-only
/*
 * A made-up aarch64 guest whose symbols are functions only: its process, module, map and chains are
 * found in both modes, by registers and without them; what contradicts itself is not believed.
 */
#include "guest/guest.h"
#include "tests/unit/fakearm64.h"
#include "tests/unit/test.h"

struct setup {
	struct fakeguest g;
	struct faketask t;
	struct guest *guest;
	struct sample s;
};

static void make(struct setup *s)
{
	const struct fg_options opt = {.arm64 = true, .functions_only = true};

	memset(s, 0, sizeof(*s));
	fakeguest_init(&s->g, &opt);
	faketask_add(&s->g, &s->t);
	fakearm64_make(&s->g, &s->t);
	fakeguest_finish(&s->g);
}

static void open_with(struct setup *s, bool chains)
{
	const struct guest_config cfg = {
		.arch = GUEST_ARCH_AARCH64, .chains = chains, .nr_vcpus = 1};
	struct vmprof_err err;

	CHECK(!guest_open(&s->guest, &s->g.fm.mem, &cfg, &err));
	if (guest_identify(s->guest, &s->t.kernel, &err))
		fprintf(stderr, "%s\n", err.msg);
}

static void open_guest(struct setup *s)
{
	open_with(s, true);
}

static void complete(struct setup *s, const struct guest_regs *regs)
{
	struct raw_sample raw = {.has = RAW_HAS_REGS,
				 .time = 1000000000,
				 .period = 1,
				 .ip = regs->ip,
				 .regs = *regs};

	CHECK(!guest_complete(s->guest, &raw, &s->s));
}

static void close_guest(struct setup *s)
{
	guest_close(s->guest);
	fakeguest_free(&s->g);
}

static void check_events(struct setup *s)
{
	unsigned comm = 0, module = 0, app = 0;
	struct guest_event ev;

	while (guest_next_event(s->guest, &ev)) {
		comm += ev.type == GUEST_EVENT_COMM && ev.pid == FT_PID &&
			!strcmp(ev.name, FT_COMM);
		module += ev.type == GUEST_EVENT_MODULE && !strcmp(ev.dso.path, "fake_mod");
		app += ev.type == GUEST_EVENT_MMAP && !strcmp(ev.dso.path, "/srv/app") &&
		       ev.start == FT_CODE && ev.dso.build_id_len == 20;
	}
	CHECK_EQ(comm, 1);
	CHECK_EQ(module, 1);
	CHECK_EQ(app, 1);
}

static void check_user_part(const uint64_t *chain)
{
	CHECK_EQ(chain[1], FT_FUNC(0) + 8);
	for (int i = 1; i < FT_FRAMES; i++)
		CHECK_EQ(chain[1 + i], FT_RETURN(i));
}

static void test_samples(void)
{
	struct guest_kernel_info info;
	struct setup s;

	make(&s);
	open_guest(&s);
	guest_kernel_info(s.guest, &info);
	CHECK(info.known && info.has_types);
	CHECK_EQ(info.nr_cpus, 1);
	CHECK_EQ(info.build_id_len, 20);
	complete(&s, &s.t.user);
	CHECK_EQ(s.s.pid, FT_PID);
	CHECK_EQ(s.s.mode, SAMPLE_MODE_GUEST_USER);
	CHECK_EQ(s.s.user_end, CHAIN_OUTERMOST);
	CHECK_EQ(s.s.chain_len, 1 + FT_FRAMES);
	check_user_part(s.s.chain);
	check_events(&s);
	complete(&s, &s.t.kernel);
	CHECK_EQ(s.s.pid, FT_PID);
	CHECK_EQ(s.s.mode, SAMPLE_MODE_GUEST_KERNEL);
	CHECK_EQ(s.s.kernel_end, CHAIN_OUTERMOST);
	CHECK_EQ(s.s.user_end, CHAIN_OUTERMOST);
	CHECK_EQ(s.s.chain_len, 3 + 1 + FT_FRAMES);
	CHECK_EQ(s.s.chain[1], FT_KERNEL_IP);
	CHECK_EQ(s.s.chain[2], FA_KERNEL_RET);
	check_user_part(s.s.chain + 3);
	close_guest(&s);
}

/* The leaf's return address in x30 alone, signed; the record is its caller's. */
static void test_no_frame_yet(void)
{
	uint64_t saved, record;
	struct setup s;

	make(&s);
	open_guest(&s);
	saved = s.t.kstack + FT_THREAD - FA_PT_REGS;
	record = saved - 64;
	fg_put64(&s.g, record, saved + FA_RECORD);
	fg_put64(&s.g, record + 8, (FG_FUNC_0 + 0x20) ^ 0x0025000000000000ull);
	fg_put32(&s.g, FG_FUNC_0 + 0x1c, fa_bl(FG_FUNC_0 + 0x1c, FG_DIV_ERROR));
	s.t.kernel.sp = s.t.kernel.fp = s.t.kernel.gpr[29] = record;
	s.t.kernel.gpr[30] = FA_KERNEL_RET ^ 0x003c000000000000ull;
	complete(&s, &s.t.kernel);
	CHECK_EQ(s.s.kernel_end, CHAIN_OUTERMOST);
	CHECK_EQ(s.s.chain[1], FT_KERNEL_IP);
	CHECK_EQ(s.s.chain[2], FA_KERNEL_RET);
	CHECK_EQ(s.s.chain[3], FG_FUNC_0 + 0x20);
	check_user_part(s.s.chain + 4);
	close_guest(&s);
}

/* An exception that came while the kernel ran: on with the registers that it has saved. */
static void test_exception(void)
{
	uint64_t saved, regs, last;
	struct setup s;

	make(&s);
	open_guest(&s);
	saved = s.t.kstack + FT_THREAD - FA_PT_REGS;
	last = saved - 32;
	regs = last - FA_PT_REGS - 32;
	for (uint64_t i = 0; i < FA_PT_REGS; i += 8)
		fg_put64(&s.g, regs + i, 0);
	fg_put64(&s.g, regs + 29 * 8, last);
	fg_put64(&s.g, regs + 30 * 8, FA_KERNEL_RET);
	fg_put64(&s.g, regs + 31 * 8, last);
	fg_put64(&s.g, regs + 32 * 8, FT_KERNEL_IP);
	fg_put64(&s.g, regs + 33 * 8, 0x400005);
	fg_put64(&s.g, regs + FA_RECORD, last);
	fg_put64(&s.g, regs + FA_RECORD + 8, FT_KERNEL_IP);
	s.t.kernel.ip = FG_FUNC_0 + 0x80;
	s.t.kernel.sp = regs;
	s.t.kernel.fp = s.t.kernel.gpr[29] = regs + FA_RECORD;
	s.t.kernel.gpr[30] = 0;
	complete(&s, &s.t.kernel);
	CHECK_EQ(s.s.kernel_end, CHAIN_OUTERMOST);
	CHECK_EQ(s.s.chain[1], FG_FUNC_0 + 0x80);
	CHECK_EQ(s.s.chain[2], FT_KERNEL_IP);
	CHECK_EQ(s.s.chain[3], FA_KERNEL_RET);
	check_user_part(s.s.chain + 4);
	close_guest(&s);
}

/* Records in a circle, down the stack, to nowhere: an end, and said which. */
static void test_bad_records(void)
{
	struct setup s;

	make(&s);
	open_guest(&s);
	fg_put64(&s.g, s.t.kernel.fp, s.t.kernel.fp);
	complete(&s, &s.t.kernel);
	CHECK_EQ(s.s.kernel_end, CHAIN_BAD_FRAME);
	fg_put64(&s.g, s.t.kernel.fp, s.t.kernel.fp - 16);
	complete(&s, &s.t.kernel);
	CHECK_EQ(s.s.kernel_end, CHAIN_BAD_FRAME);
	fg_put64(&s.g, s.t.kernel.fp, 0xffff900000000000);
	complete(&s, &s.t.kernel);
	CHECK_EQ(s.s.kernel_end, CHAIN_UNREADABLE);
	CHECK_EQ(s.s.pid, FT_PID);
	close_guest(&s);
}

/* On an interrupt's stack, which by now has other records: SP_EL0 says whose it is, or nothing. */
static void test_interrupt_stack(void)
{
	struct setup s;

	make(&s);
	open_with(&s, false);
	s.t.kernel.sp = s.t.kernel.fp = s.t.kernel.gpr[29] = 0xffff900000000800;
	s.t.kernel.pgtable = 0; /* that of no process */
	complete(&s, &s.t.kernel);
	CHECK_EQ(s.s.pid, FT_PID);
	CHECK_EQ(s.s.mode, SAMPLE_MODE_GUEST_KERNEL);
	CHECK_EQ(s.s.chain_len, 0);
	s.t.kernel.sp_el0 = s.t.user.sp; /* the CPU's task is known, but it may be a later one */
	complete(&s, &s.t.kernel);
	CHECK_EQ(s.s.pid, -1);
	close_guest(&s);
}

static bool has_types(struct setup *s)
{
	struct guest_kernel_info info;

	open_guest(s);
	guest_kernel_info(s->guest, &info);
	close_guest(s);
	CHECK(info.known);
	return info.has_types;
}

/* One thing wrong with what the code leads to: no processes then, rather than wrong ones. */
static void test_refused(void)
{
	struct setup s;
	uint64_t rq;

	make(&s);
	CHECK(has_types(&s));
	make(&s);
	fg_puts(&s.g, s.g.init_task + 0x50, "init");
	CHECK(!has_types(&s));
	make(&s);
	fg_put32(&s.g, s.g.init_task + 0x2c, 1);
	CHECK(!has_types(&s));
	make(&s);
	fg_put64(&s.g, s.t.task + FA_TASKS + 8, s.t.task);
	CHECK(!has_types(&s));
	make(&s);
	rq = s.g.percpu + ((s.g.spare + 0x40) & 4095);
	fg_put32(&s.g, rq, 1);
	CHECK(!has_types(&s));
	make(&s);
	fg_put64(&s.g, rq + FA_RQ_CURR, 0x1234);
	CHECK(!has_types(&s));
	make(&s);
	fg_put32(&s.g, FA_IDLE_TASK + 4, 0xd503201f);
	CHECK(!has_types(&s));
}

int main(void)
{
	test_samples();
	test_no_frame_yet();
	test_exception();
	test_bad_records();
	test_interrupt_stack();
	test_refused();
	return test_done();
}
