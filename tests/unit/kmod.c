// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kmod backend without its module: rings of several vCPUs come out as one stream in the order
 * of time and nothing before its time, and a look at them ends whatever is written meanwhile;
 * samples with registers and stacks are what the guest layer gets of them, for either architecture;
 * what cannot be is refused; events that the module has not are named.
 */
#include <errno.h>
#include <linux/perf_event.h>

#include "backend/kmod_dev.h"
#include "backend/kmod_ring.h"
#include "kernel/core/table.h"
#include "tests/unit/test.h"

#define PAGE  4096u
#define SIZE  ((u64)VMP_RECORD_MAX)
#define RINGS 3

static u8 memory[RINGS][PAGE + SIZE] __attribute__((aligned(64)));
static struct vmp_ring producer[RINGS];

static void put(uint32_t ring, u64 time)
{
	struct vmp_sample s = {
		.header = {sizeof(s), VMP_REC_SAMPLE}, .time = time, .vcpu = ring, .ip = 7};
	struct vmp_part part = {&s, sizeof(s)};

	vmp_ring_write(&producer[ring], &part, 1);
}

static void test_order(void)
{
	static const u64 want[] = {10, 11, 12, 20, 21};
	struct kmod_rings r;
	const struct vmp_sample *s;

	kmod_rings_init(&r, RINGS);
	for (uint32_t i = 0; i < RINGS; i++) {
		CHECK_EQ(vmp_ring_init(&producer[i], memory[i], PAGE, SIZE), 0);
		CHECK_EQ(kmod_rings_set(&r, i, memory[i], sizeof(memory[i])), 0);
	}
	CHECK(!kmod_rings_look(&r, 100));
	CHECK(!kmod_rings_take(&r));
	put(0, 10);
	put(0, 20);
	put(0, 101);
	put(1, 12);
	put(2, 11);
	put(2, 21);
	CHECK(kmod_rings_look(&r, 100));
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		s = kmod_rings_take(&r);
		CHECK(s && s->time == want[i]);
	}
	CHECK(!kmod_rings_take(&r)); /* one of 101 may have an older one behind it */
	put(1, 100);
	CHECK(kmod_rings_look(&r, 200));
	s = kmod_rings_take(&r);
	CHECK(s && s->time == 100 && s->vcpu == 1);
	s = kmod_rings_take(&r);
	CHECK(s && s->time == 101);
	CHECK(!kmod_rings_take(&r));
	vmp_ring_missed(&producer[1], 5);
	vmp_ring_missed(&producer[2], 2);
	CHECK_EQ(kmod_rings_lost(&r), 7);
	put(1, 300); /* behind the record that says so */
	CHECK(kmod_rings_look(&r, 300));
	s = kmod_rings_take(&r);
	CHECK(s && s->time == 300);
	CHECK_EQ(r.bad, 0);
	producer[0].head += 12; /* no record ends there */
	vmp_store(&producer[0].page->head, producer[0].head);
	CHECK(!kmod_rings_look(&r, 400));
	CHECK_EQ(r.bad, 1);
	memory[0][0] ^= 1;
	CHECK_EQ(kmod_rings_set(&r, 0, memory[0], sizeof(memory[0])), -EPROTO);
	kmod_rings_free(&r);
}

/*
 * A producer that writes another record whenever one is read: the place that records are read to
 * lies over the ring's head, which is the second word of each.
 */
static void test_no_pause(void)
{
	struct kmod_rings r;
	union kmod_record *own;
	u64 *words = (u64 *)(memory[0] + PAGE);

	kmod_rings_init(&r, 1);
	CHECK_EQ(vmp_ring_init(&producer[0], memory[0], PAGE, SIZE), 0);
	CHECK_EQ(kmod_rings_set(&r, 0, memory[0], sizeof(memory[0])), 0);
	for (u64 i = 0; i < SIZE / 16; i++) {
		const struct vmp_record none = {16, VMP_REC_LOST};

		memcpy(&words[2 * i], &none, sizeof(none));
		words[2 * i + 1] = 16 * (i + 2);
	}
	own = r.ring[0].next;
	r.ring[0].next = (union kmod_record *)(&producer[0].page->head - 1);
	vmp_store(&producer[0].page->head, 16);
	CHECK(!kmod_rings_look(&r, 100));
	CHECK_EQ(producer[0].page->tail, 16);
	CHECK_EQ(producer[0].page->head, 32);
	CHECK(!kmod_rings_look(&r, 200));
	CHECK_EQ(producer[0].page->tail, 32);
	CHECK_EQ(r.bad, 0);
	r.ring[0].next = own;
	kmod_rings_free(&r);
}

/* A sample with registers and two stacks. */
struct whole {
	struct vmp_sample s;
	struct vmp_regs regs;
	struct vmp_segment first;
	u64 words[2];
	struct vmp_segment second;
	u64 word;
};

static struct whole make(u32 flags)
{
	struct whole w = {
		.s = {.header = {sizeof(w), VMP_REC_SAMPLE},
		      .time = 5,
		      .cpu = 3,
		      .flags = flags | VMP_SAMPLE_REGS | VMP_SAMPLE_PAGE_TABLE,
		      .period = 1000,
		      .ip = 0x1234,
		      .sp = 0x7ff0,
		      .fp = 0x7ff8,
		      .page_table = 0x42000,
		      .task = 0xffff888000001000,
		      .nr_segments = 2},
		.first = {.addr = 0x7ff0, .size = 16},
		.words = {11, 12},
		.second = {.addr = 0x9000, .size = 8},
		.word = 13,
	};

	for (u64 i = 0; i < 31; i++)
		w.regs.gpr[i] = 100 + i;
	for (u64 i = 0; i < 6; i++)
		w.regs.system[i] = 200 + i;
	w.regs.flags = 0x246;
	return w;
}

static void test_decode(void)
{
	struct whole w = make(VMP_SAMPLE_TASK);
	struct raw_sample raw;

	CHECK(kmod_decode(&w.s, GUEST_ARCH_X86_64, &raw));
	CHECK_EQ(raw.has,
		 RAW_HAS_IP | RAW_HAS_MODE | RAW_HAS_HOST_CPU | RAW_HAS_TASK | RAW_HAS_GENERAL);
	CHECK_EQ(raw.mode, SAMPLE_MODE_GUEST_USER);
	CHECK_EQ(raw.regs.cpl, 3);
	CHECK_EQ(raw.regs.ip, 0x1234);
	CHECK_EQ(raw.regs.sp, 0x7ff0);
	CHECK_EQ(raw.regs.fp, 0x7ff8);
	CHECK_EQ(raw.regs.pgtable, 0x42000);
	CHECK_EQ(raw.regs.gpr[15], 115);
	CHECK_EQ(raw.regs.gpr[16], 0);
	CHECK_EQ(raw.regs.cr4, 201);
	CHECK_EQ(raw.nr_memory, 2);
	CHECK_EQ(raw.memory[0].addr, 0x7ff0);
	CHECK_EQ(raw.memory[0].len, 16);
	CHECK_EQ(raw.memory[0].word[1], 12);
	CHECK_EQ(raw.memory[1].word[0], 13);

	w = make(VMP_SAMPLE_KERNEL);
	CHECK(kmod_decode(&w.s, GUEST_ARCH_AARCH64, &raw));
	CHECK_EQ(raw.has, RAW_HAS_IP | RAW_HAS_MODE | RAW_HAS_HOST_CPU | RAW_HAS_REGS);
	CHECK_EQ(raw.mode, SAMPLE_MODE_GUEST_KERNEL);
	CHECK_EQ(raw.regs.cpl, 0);
	CHECK_EQ(raw.regs.gpr[30], 130);
	CHECK_EQ(raw.regs.pgtable_kernel, 200);
	CHECK_EQ(raw.regs.tpidr_el1, 204);
	CHECK_EQ(raw.regs.elr, 205);
}

static void test_bad(void)
{
	struct whole w = make(0);
	struct raw_sample raw;

	w.s.nr_segments = 3;
	CHECK(!kmod_decode(&w.s, GUEST_ARCH_X86_64, &raw));
	w = make(0);
	w.second.size = 16;
	CHECK(!kmod_decode(&w.s, GUEST_ARCH_X86_64, &raw));
	w = make(0);
	w.first.size = 12;
	CHECK(!kmod_decode(&w.s, GUEST_ARCH_X86_64, &raw));
	w = make(0);
	w.first.size = 0xfffffff8;
	CHECK(!kmod_decode(&w.s, GUEST_ARCH_X86_64, &raw));
	w = make(0);
	w.s.header.size = sizeof(w.s) + 8;
	w.s.nr_segments = 0;
	CHECK(!kmod_decode(&w.s, GUEST_ARCH_X86_64, &raw));
	w = make(0); /* without the page table the registers are of no use */
	w.s.flags &= ~(u32)VMP_SAMPLE_PAGE_TABLE;
	CHECK(kmod_decode(&w.s, GUEST_ARCH_X86_64, &raw));
	CHECK(!(raw.has & (RAW_HAS_GENERAL | RAW_HAS_REGS)));
}

static void test_events(void)
{
	struct event e = {.name = "cycles",
			  .type = PERF_TYPE_HARDWARE,
			  .guest = true,
			  .freq = true,
			  .rate = 4000,
			  .exclude_kernel = true};
	struct vmprof_event out;
	struct vmprof_err err;

	CHECK_EQ(kmod_event(&e, &out, &err), 0);
	CHECK_EQ(out.flags, VMP_COUNT_USER | VMPROF_EVENT_FREQ);
	CHECK_EQ(out.period, 4000);
	e.rate = 0; /* only counted */
	CHECK_EQ(kmod_event(&e, &out, &err), 0);
	CHECK_EQ(out.flags, VMP_COUNT_USER);
	e.type = PERF_TYPE_SOFTWARE; /* cpu-clock: in both modes, its reader drops the others */
	e.config = PERF_COUNT_SW_CPU_CLOCK;
	CHECK_EQ(kmod_event(&e, &out, &err), 0);
	CHECK_EQ(out.flags, VMP_COUNT_USER | VMP_COUNT_KERNEL);
	e.host = true;
	CHECK_EQ(kmod_event(&e, &out, &err), -EOPNOTSUPP);
	CHECK(strstr(err.msg, "cycles") && strstr(err.msg, "host"));
	e.host = false;
	e.precise = 1;
	CHECK_EQ(kmod_event(&e, &out, &err), -EOPNOTSUPP);
}

int main(void)
{
	test_order();
	test_no_pause();
	test_decode();
	test_bad();
	test_events();
	return test_done();
}
