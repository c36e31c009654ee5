// SPDX-License-Identifier: GPL-2.0-only
/*
 * The direct backend without a module: a VM's shared memory is found and taken once; a thread that
 * plays the guest's module answers, refuses, is of another version, says nothing, or goes and comes
 * back; a guest that writes without end has no more of it read than its counters can count; what a
 * hostile handler writes comes out as a sample that can be, or not at all; the guest's ticks become
 * the host's time.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/direct_clock.h"
#include "backend/direct_log.h"
#include "backend/direct_ring.h"
#include "kernel/core/table.h"
#include "tests/unit/test.h"
#include "vm/proc.h"

#define PAGE  4096u
#define SIZE  ((u64)VMP_RECORD_MAX)
#define RINGS 2u
#define BYTES (1u << 20)
#define NOW   VMPROF_LOG_VERSION
#define OLD   (VMPROF_LOG_VERSION - 1)

/* ---------- the log ---------- */

static char path[] = "/tmp/vmprof-direct.XXXXXX";
static u8 *memory; /* the file, as QEMU would have it mapped */
static struct vm vm = {
	.name = "web1", .shared_size = BYTES, .shared_path = path, .nr_vcpus = RINGS};
static struct vmprof_err err;

static const struct vmprof_log_event cycles = {PERF_TYPE_RAW, VMP_COUNT_FLAGS, 0x11, 100000};

static void make_vm(void)
{
	struct proc_stat st;
	int fd = mkstemp(path);

	CHECK(fd >= 0 && !ftruncate(fd, BYTES));
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(memory != MAP_FAILED);
	close(fd);
	vm.pid = getpid();
	CHECK_EQ(proc_stat(vm.pid, &st), 0);
	vm.start_time = st.start_time;
}

/* What the guest's module is like. */
static struct {
	atomic_bool end;
	u32 version, state, cpus, side;
	u64 handler;
	const char *why;
	pthread_t thread;
} guest;

static void *guest_run(void *arg)
{
	struct vmprof_log_guest *page = (void *)(memory + PAGE);
	struct vmprof_log_host asked;
	u32 answered = 0;

	while (!atomic_load(&guest.end)) {
		int rc = vmp_log_request(memory, BYTES, &asked);

		usleep(1000);
		if (rc || asked.request == answered)
			continue;
		answered = asked.request;
		*page = (struct vmprof_log_guest){
			.magic = VMPROF_LOG_MAGIC,
			.version = guest.version,
			.state = asked.nr ? guest.state : VMPROF_GUEST_IDLE,
			.handler = guest.handler,
			.cpus = guest.cpus,
			.nr = asked.nr,
			.side = guest.side,
		};
		memcpy(page->events, asked.events, sizeof(page->events));
		snprintf(page->why, sizeof(page->why), "%s", guest.why);
		vmp_store_release(&page->answered, answered);
	}
	return NULL;
}

static void guest_start(u32 version, u32 state, u64 handler, const char *why)
{
	guest.version = version;
	guest.state = state;
	guest.handler = handler;
	guest.cpus = RINGS;
	guest.why = why;
	atomic_store(&guest.end, false);
	CHECK(!pthread_create(&guest.thread, NULL, guest_run, NULL));
}

static void guest_end(void)
{
	atomic_store(&guest.end, true);
	pthread_join(guest.thread, NULL);
}

static int ask(struct direct_log *l)
{
	int rc = direct_log_open(l, &vm, &err);

	return rc ? rc : direct_log_ask(l, VMPROF_SOURCE_DIRECT, 16, &cycles, 1, &err);
}

static void test_answers(void)
{
	static const struct {
		u32 version, state;
		u64 handler;
		const char *why, *says;
	} bad[] = {
		{OLD, VMPROF_GUEST_READY, 8, "",
		 "has version 1 of the log, and this vmprof version 2"},
		{OLD, VMPROF_GUEST_REFUSED, 8, "old", "has version 1 of the log"},
		{NOW, VMPROF_GUEST_REFUSED, 0, "no\033 way", "the guest of web1 refuses: no"},
		{NOW, VMPROF_GUEST_READY, 0, "", "answers what cannot be"},
		{NOW, VMPROF_GUEST_IDLE, 8, "", "answers what cannot be"},
		{NOW, 77, 8, "", "answers what cannot be"},
	};
	struct direct_log l, second;
	ptrdiff_t side;

	memset(memory, 0, BYTES);
	guest_start(NOW, VMPROF_GUEST_READY, 8, "");
	CHECK_EQ(ask(&l), 0);
	CHECK_EQ(l.row.handler, 8);
	CHECK_EQ(l.request, 1);
	CHECK(!strncmp((char *)direct_log_ring(&l, 0), "", 1) && !direct_log_ring(&l, RINGS));
	CHECK(!direct_log_side(&l)); /* it does not tell */
	CHECK_EQ(direct_log_open(&second, &vm, &err), -EBUSY);
	CHECK(strstr(err.msg, "the log of web1 is used by another program"));
	direct_log_withdraw(&l);
	CHECK_EQ(l.row.state, VMPROF_GUEST_IDLE);
	direct_log_close(&l);
	guest.side = 1;
	CHECK_EQ(ask(&l), 0); /* requests go on where they were */
	CHECK_EQ(l.request, 3);
	side = (u8 *)direct_log_side(&l) - (u8 *)l.shared.memory;
	CHECK_EQ(side, l.ring_offset + RINGS * l.ring_stride);
	CHECK(side + PAGE + l.side_size <= BYTES);
	CHECK_EQ(l.side_size, BYTES / 4);
	direct_log_close(&l);
	guest_end();
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		guest_start(bad[i].version, bad[i].state, bad[i].handler, bad[i].why);
		CHECK_EQ(ask(&l), -ENOLINK);
		CHECK(strstr(err.msg, bad[i].says));
		direct_log_close(&l);
		guest_end();
	}
}

/* One that goes and comes: its row does not stand, it is asked again, and all of our page with it.
 */
static void test_again(void)
{
	struct vmprof_log_guest *row = (void *)(memory + PAGE);
	struct vmprof_log_host *page = (void *)memory;
	struct vmprof_log_guest saved;
	struct direct_log l;

	memset(memory, 0, BYTES);
	guest_start(VMPROF_LOG_VERSION, VMPROF_GUEST_READY, 8, "");
	CHECK_EQ(ask(&l), 0);
	guest_end();
	CHECK(direct_log_stands(&l));
	saved = *row;
#define GONE(field, value)                                                                         \
	do {                                                                                       \
		row->field = (value);                                                              \
		CHECK(!direct_log_stands(&l));                                                     \
		*row = saved;                                                                      \
	} while (0)
	GONE(state, VMPROF_GUEST_IDLE);
	GONE(state, 99);
	GONE(handler, 16);
	GONE(handler, 0);
	GONE(answered, 0);
	GONE(version, 7);
	GONE(magic, 0);
	GONE(cpus, UINT32_MAX);
	GONE(nr, 255);
	GONE(events[0].period, 1);
	GONE(events[0].period, 1ull << 63);
	memset(row->why, '\033', sizeof(row->why));
	CHECK(direct_log_stands(&l)); /* what is not used may be anything */
	*row = saved;
	CHECK(direct_log_stands(&l));
	memset(memory, 0xff, sizeof(*page));
	direct_log_post(&l, VMPROF_SOURCE_DIRECT, 16, &cycles, 1);
	CHECK(!direct_log_stands(&l));
	CHECK_EQ(page->magic, VMPROF_LOG_MAGIC);
	CHECK_EQ(page->request, 2);
	CHECK_EQ(page->ring_offset, 2 * PAGE);
	CHECK_EQ(page->rings, RINGS);
	direct_log_close(&l);
	guest_end();
}

/* One that is told of a new request without having done anything. */
static void test_silence(void)
{
	struct direct_log l;

	memset(memory, 0, BYTES);
	CHECK_EQ(ask(&l), -ENOLINK);
	CHECK(strstr(err.msg, "vmprof_guest.ko is not loaded there"));
	direct_log_withdraw(&l);
	direct_log_close(&l);
}

static void test_memory(void)
{
	struct direct_log l;

	memset(memory, 0, BYTES);
	memory[100] = 1;
	CHECK_EQ(direct_log_open(&l, &vm, &err), -EINVAL);
	CHECK(strstr(err.msg, "something else than a log"));
	CHECK_EQ(memory[100], 1);
	memory[100] = 0;
	vm.nr_vcpus = 16;
	CHECK_EQ(direct_log_open(&l, &vm, &err), -ENOSPC);
	CHECK(strstr(err.msg, "too little for 16 CPUs"));
	vm.nr_vcpus = RINGS;
	vm.shared_size = 0;
	CHECK_EQ(direct_log_open(&l, &vm, &err), -ENODEV);
	CHECK(strstr(err.msg, "web1 has no ivshmem-plain device"));
	vm.shared_size = 2 * BYTES;
	CHECK_EQ(direct_log_open(&l, &vm, &err), -ENODEV);
	vm.shared_size = BYTES;
	vm.start_time++;
	CHECK_EQ(direct_log_open(&l, &vm, &err), -ESRCH);
	vm.start_time--;
	/* Its owner may cut it at any time. */
	CHECK_EQ(direct_log_open(&l, &vm, &err), 0);
	CHECK(!truncate(path, PAGE));
	direct_log_withdraw(&l);
	memset(direct_log_ring(&l, 1), 1, SIZE);
	CHECK(vm_shared_is_cut(&l.shared));
	direct_log_close(&l);
	CHECK(!truncate(path, 0));
	CHECK_EQ(direct_log_open(&l, &vm, &err), -EINVAL);
	CHECK(!truncate(path, BYTES));
}

/* ---------- events ---------- */

static void test_events(void)
{
	struct event e = {.name = "cycles",
			  .type = PERF_TYPE_HARDWARE,
			  .config = PERF_COUNT_HW_CPU_CYCLES,
			  .guest = true,
			  .rate = 100000};
	struct vmprof_log_event out;

	CHECK_EQ(direct_log_event(&e, GUEST_ARCH_AARCH64, &out, &err), 0);
	CHECK_EQ(out.type, PERF_TYPE_RAW);
	CHECK_EQ(out.config, 0x11);
	CHECK_EQ(out.flags, VMP_COUNT_USER | VMP_COUNT_KERNEL);
	CHECK_EQ(direct_log_event(&e, GUEST_ARCH_X86_64, &out, &err), -EOPNOTSUPP);
	e.exclude_kernel = true;
	CHECK_EQ(direct_log_event(&e, GUEST_ARCH_AARCH64, &out, &err), 0);
	CHECK_EQ(out.flags, VMP_COUNT_USER);
	e.rate = 999;
	CHECK_EQ(direct_log_event(&e, GUEST_ARCH_AARCH64, &out, &err), -EINVAL);
	e.freq = true;
	CHECK_EQ(direct_log_event(&e, GUEST_ARCH_AARCH64, &out, &err), -EINVAL);
	CHECK(strstr(err.msg, "give a period"));
	e.freq = false;
	e.rate = 100000;
	e.type = PERF_TYPE_RAW;
	e.config = 0x10000;
	CHECK_EQ(direct_log_event(&e, GUEST_ARCH_AARCH64, &out, &err), -EOPNOTSUPP);
	e.config = 0x1b;
	CHECK_EQ(direct_log_event(&e, GUEST_ARCH_AARCH64, &out, &err), 0);
	CHECK_EQ(out.config, 0x1b);
	e.type = PERF_TYPE_SOFTWARE;
	CHECK_EQ(direct_log_event(&e, GUEST_ARCH_AARCH64, &out, &err), -EOPNOTSUPP);
}

/* A timer of the host takes the place of counters. */
static void test_timer(void)
{
	struct event e = {.name = "cpu-clock",
			  .type = PERF_TYPE_SOFTWARE,
			  .config = PERF_COUNT_SW_CPU_CLOCK,
			  .guest = true,
			  .rate = 1000000};
	static const u64 bad[] = {99999, VMPROF_LOG_PERIOD_MAX + 1};
	struct vmprof_log_event out;

	CHECK_EQ(direct_log_event(&e, GUEST_ARCH_X86_64, &out, &err), 0);
	CHECK_EQ(out.type, PERF_TYPE_SOFTWARE);
	CHECK_EQ(out.config, PERF_COUNT_SW_CPU_CLOCK);
	CHECK_EQ(out.period, 1000000);
	CHECK_EQ(out.flags, VMP_COUNT_USER | VMP_COUNT_KERNEL);
	e.exclude_user = true;
	e.rate = 100000;
	CHECK_EQ(direct_log_event(&e, GUEST_ARCH_X86_64, &out, &err), 0);
	CHECK_EQ(out.flags, VMP_COUNT_KERNEL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		e.rate = bad[i];
		CHECK_EQ(direct_log_event(&e, GUEST_ARCH_X86_64, &out, &err), -EINVAL);
		CHECK(strstr(err.msg, "from 100000 to 2147483648"));
	}
	e.rate = 1000;
	e.freq = true;
	CHECK_EQ(direct_log_event(&e, GUEST_ARCH_X86_64, &out, &err), -EINVAL);
	CHECK(strstr(err.msg, "give a period"));
	e.freq = false;
	e.rate = 1000000;
	e.precise = 1;
	CHECK_EQ(direct_log_event(&e, GUEST_ARCH_X86_64, &out, &err), -EOPNOTSUPP);
	e.precise = 0;
	e.config = PERF_COUNT_SW_TASK_CLOCK;
	CHECK_EQ(direct_log_event(&e, GUEST_ARCH_X86_64, &out, &err), -EOPNOTSUPP);
	CHECK(strstr(err.msg, "it has cpu-clock"));
	/* A number of arm64's is none of x86. */
	e.type = PERF_TYPE_RAW;
	e.config = 0x11;
	CHECK_EQ(direct_log_event(&e, GUEST_ARCH_X86_64, &out, &err), -EOPNOTSUPP);
}

/* ---------- rings ---------- */

static u8 ring_memory[RINGS][PAGE + SIZE] __attribute__((aligned(64)));
static struct vmp_ring producer[RINGS];

static void put_task(u32 ring, u32 pid, const char *comm)
{
	struct vmp_guest_task t = {
		.header = {sizeof(t), VMP_REC_GUEST_TASK}, .pid = pid, .tgid = pid};
	struct vmp_part part = {&t, sizeof(t)};

	memset(t.comm, 'x', sizeof(t.comm)); /* with no end */
	if (comm)
		strcpy(t.comm, comm);
	vmp_ring_write(&producer[ring], &part, 1);
}

/* With as many addresses as it says, or @more. */
static void put(u32 ring, u64 time, const struct vmp_guest_sample *like, u32 more)
{
	static const u64 chain[] = {0xffff800008001000, VMP_CHAIN_USER, 0x401000, VMP_CHAIN_LINK,
				    0x403000,		0x402000,	5,	  6};
	struct vmp_guest_sample s = *like;
	struct vmp_part parts[2] = {{&s, sizeof(s)}, {chain, (s.nr_chain + more) * 8}};

	s.header = (struct vmp_record){(u32)sizeof(s) + parts[1].size, VMP_REC_GUEST_SAMPLE};
	s.time = time;
	vmp_ring_write(&producer[ring], parts, 2);
}

static void rings_make(struct direct_rings *r)
{
	direct_rings_init(r, RINGS, 1);
	for (u32 i = 0; i < RINGS; i++) {
		CHECK_EQ(vmp_ring_init(&producer[i], ring_memory[i], PAGE, SIZE), 0);
		CHECK_EQ(direct_rings_set(r, i, ring_memory[i], sizeof(ring_memory[i])), 0);
	}
	r->first = 10;
}

static const struct vmp_guest_sample good = {.ip = 0xffff800008000000,
					     .period = 100000,
					     .pid = 7,
					     .tgid = 6,
					     .flags = VMP_SAMPLE_KERNEL,
					     .nr_chain = 6};

static void test_order(void)
{
	static const u64 want[] = {11, 12, 20, 21};
	struct raw_sample raw;
	struct direct_rings r;

	rings_make(&r);
	put(0, 5, &good, 0);
	direct_rings_start(&r); /* without what was there */
	put_task(0, 7, "worker");
	put(0, 11, &good, 0);
	put(0, 20, &good, 0);
	put(1, 12, &good, 0);
	put(1, 21, &good, 0);
	direct_rings_fill(&r);
	CHECK(direct_rings_look(&r, 100));
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		CHECK(direct_rings_take(&r, &raw));
		CHECK_EQ(raw.time, want[i]);
		CHECK_EQ(raw.vcpu, want[i] % 10 == 1 && want[i] > 20 ? 1 : want[i] == 12);
		CHECK_EQ(raw.host_cpu, UINT32_MAX);
		CHECK_EQ(raw.pid, 6);
		CHECK_EQ(raw.tid, 7);
		CHECK_STR(raw.comm, raw.vcpu ? "" : "worker");
		CHECK_EQ(raw.chain_len, 4);
		CHECK_EQ(raw.chain[0], good.ip);
		CHECK_EQ(raw.chain[2], 0x401000);
		CHECK_EQ(raw.chain[3], 0x402000);
		CHECK(raw.has & RAW_HAS_LINK && raw.link == 0x403000);
	}
	CHECK(!direct_rings_take(&r, &raw));
	vmp_ring_missed(&producer[0], 5);
	put_task(0, 7, NULL);
	put(0, 101, &good, 0);
	put(0, 300, &good, 0); /* came in before it was read */
	direct_rings_fill(&r);
	CHECK(direct_rings_look(&r, 200));
	CHECK(direct_rings_take(&r, &raw));
	CHECK_EQ(raw.time, 101);
	CHECK_EQ(strlen(raw.comm), sizeof(raw.comm) - 1);
	CHECK(!direct_rings_take(&r, &raw));
	direct_rings_fill(&r);
	CHECK(direct_rings_look(&r, 300));
	CHECK(direct_rings_take(&r, &raw));
	CHECK_EQ(direct_rings_lost(&r), 5);
	CHECK_EQ(r.bad, 0);
	direct_rings_free(&r);
}

static void test_hostile(void)
{
	static const struct vmp_guest_sample bad[] = {
		{.pid = 7, .tgid = 7, .event = 1, .nr_chain = 4}, /* and ends with that mark */
		{.pid = 7, .tgid = 7, .nr_chain = 1000},
		{.pid = 0xffffffff, .tgid = 7},
	};
	struct raw_sample raw;
	struct direct_rings r;

	rings_make(&r);
	put(0, 12, &bad[0], 0);
	put(0, 12, &good, 1); /* longer than it says */
	put(0, 9, &good, 0);  /* before the start */
	put(0, 1000, &good, 0);
	put(0, UINT64_MAX, &good, 0);
	put(0, 20, &bad[2], 0);
	put(0, 21, &good, 0);
	for (int i = 0; i < 2; i++) { /* each look drops one from the future */
		direct_rings_fill(&r);
		CHECK(!direct_rings_look(&r, 100));
	}
	direct_rings_fill(&r);
	CHECK(direct_rings_look(&r, 100));
	CHECK(direct_rings_take(&r, &raw));
	CHECK_EQ(raw.time, 21);
	CHECK_EQ(r.bad, 6);
	vmp_store(&producer[0].page->lost, UINT64_MAX);
	vmp_store(&producer[1].page->lost, UINT64_MAX);
	CHECK(direct_rings_lost(&r) < 1ull << 50);
	producer[0].head += 12; /* no record ends there */
	vmp_store(&producer[0].page->head, producer[0].head);
	direct_rings_fill(&r);
	CHECK_EQ(r.bad, 7);
	ring_memory[1][0] ^= 1;
	CHECK_EQ(direct_rings_set(&r, 1, ring_memory[1], sizeof(ring_memory[1])), -EPROTO);
	direct_rings_free(&r);
}

/* Of the places that a record may begin at, how many have been read. */
static u64 read_of(u64 size)
{
	return producer[0].page->tail / size;
}

/* A guest that says again and again that its ring is full is read as fast as its counters count. */
static void test_flood(void)
{
	const struct vmp_record none[2] = {{sizeof(none), 99}}; /* and 8 bytes behind its header */
	struct vmp_part part = {none, sizeof(none)};
	u64 *words = (u64 *)(ring_memory[0] + PAGE);
	struct vmp_guest_sample lone = good;
	struct direct_rings r;
	struct raw_sample raw;
	unsigned taken = 0;

	rings_make(&r);
	memset(words, 0, SIZE);
	while (!vmp_ring_write(&producer[0], &part, 1))
		;
	for (int i = 0; i < 3; i++)
		direct_rings_fill(&r);
	CHECK_EQ(read_of(16), 3 * 1024);
	CHECK(r.flooded);
	direct_rings_allow(&r, 10);
	for (int i = 0; i < 3; i++)
		direct_rings_fill(&r);
	CHECK_EQ(read_of(16), 3 * 1024 + 30);
	direct_rings_allow(&r, 1ull << 60);
	direct_rings_fill(&r);
	CHECK_EQ(read_of(16), SIZE / 16);
	CHECK_EQ(r.bad, 0);
	direct_rings_free(&r);
	/* Samples that could be, the same ones again and again. */
	rings_make(&r);
	lone.nr_chain = 0;
	while (producer[0].head + sizeof(lone) <= SIZE)
		put(0, 20, &lone, 0);
	for (int look = 0; look < 10; look++) {
		direct_rings_fill(&r);
		direct_rings_look(&r, 100);
		while (direct_rings_take(&r, &raw))
			vmp_store(&producer[0].page->head,
				  producer[0].page->tail + (++taken % 1000 + 1) * sizeof(lone));
		CHECK_EQ(taken, 1024 + look * 7);
		direct_rings_allow(&r, 7);
	}
	CHECK(r.flooded);
	direct_rings_free(&r);
	/* None that a handler writes is that large: it is not even copied. */
	rings_make(&r);
	words[0] = (u64)VMP_REC_GUEST_SAMPLE << 32 | (SIZE - 8);
	vmp_store(&producer[0].page->head, SIZE - 8);
	memset(r.ring[0].next, 0x55, sizeof(*r.ring[0].next));
	direct_rings_fill(&r);
	CHECK_EQ(r.bad, 1);
	CHECK_EQ(r.ring[0].next->header.type, 0x55555555);
	CHECK_EQ(producer[0].page->tail, SIZE - 8);
	direct_rings_free(&r);
}

static uint64_t random_word(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* Rings of random bytes, and of records of which some bytes are: what comes out of them can be. */
static void test_random(void)
{
	struct direct_rings r;
	struct raw_sample raw;
	unsigned taken = 0;

	for (int round = 0; round < 300; round++) {
		rings_make(&r);
		for (u64 i = 0; i < 200; i++)
			put(i % RINGS, 20 + i, &good, 0);
		for (u64 i = 0; i < (u64)(round % 30); i++)
			ring_memory[i % RINGS][PAGE + random_word() % 16384] = (u8)random_word();
		if (round % 10 == 9) /* all of it, and more than there is room for */
			for (u64 i = 0; i < SIZE; i += 8)
				*(u64 *)(ring_memory[0] + PAGE + i) =
					random_word() >> random_word() % 64;
		if (round % 10 == 9)
			vmp_store(&producer[0].page->head, random_word() >> random_word() % 64);
		for (int i = 0; i < 20; i++) {
			direct_rings_fill(&r);
			direct_rings_look(&r, 1000);
			while (direct_rings_take(&r, &raw)) {
				taken++;
				CHECK(raw.time >= r.first && raw.time <= 1000);
				CHECK(!raw.event && raw.vcpu < RINGS);
				CHECK(raw.pid >= 0 && raw.tid >= 0);
				CHECK(raw.chain_len && raw.chain_len <= SAMPLE_MAX_CHAIN);
				CHECK(strnlen(raw.comm, sizeof(raw.comm)) < sizeof(raw.comm));
			}
		}
		direct_rings_free(&r);
	}
	CHECK(taken > 300);
}

/*
 * A guest that writes another record whenever one is read, as the place that records are read to
 * lies over the ring's head, which is the second word of each.
 */
static void test_no_pause(void)
{
	u64 *words = (u64 *)(ring_memory[0] + PAGE);
	union direct_record *own;
	struct raw_sample raw;
	struct direct_rings r;

	rings_make(&r);
	for (u64 i = 0; i < SIZE / 16; i++) {
		const struct vmp_record none = {16, VMP_REC_LOST};

		memcpy(&words[2 * i], &none, sizeof(none));
		words[2 * i + 1] = 16 * (i + 2);
	}
	own = r.ring[0].next;
	r.ring[0].next = (union direct_record *)(&producer[0].page->head - 1);
	vmp_store(&producer[0].page->head, 16);
	direct_rings_fill(&r);
	CHECK_EQ(producer[0].page->tail, 16);
	direct_rings_start(&r);
	CHECK_EQ(producer[0].page->tail, 32);
	CHECK_EQ(r.bad, 0);
	r.ring[0].next = own;
	/* Stopped, what it has written is what there is. */
	put(1, 30, &good, 0);
	put(1, 31, &good, 0);
	direct_rings_stop(&r);
	put(1, 32, &good, 0);
	direct_rings_fill(&r);
	CHECK(direct_rings_look(&r, 100));
	for (u64 time = 30; time < 32; time++)
		CHECK(direct_rings_take(&r, &raw) && raw.time == time);
	direct_rings_fill(&r);
	CHECK(!direct_rings_look(&r, 100) && !direct_rings_take(&r, &raw));
	direct_rings_free(&r);
}

/* ---------- time ---------- */

static void test_clock(void)
{
	struct direct_pair p = {.ticks = 1000, .ns = 5000000000, .error = 30};
	struct direct_clock c;

	direct_clock_start(&c, &p, 1000000000);
	CHECK_EQ(direct_clock_ns(&c, 1500), 5000000500); /* a tick a ns, for want of more */
	CHECK_EQ(direct_clock_ns(&c, 500), 4999999500);
	p = (struct direct_pair){.ticks = 1001000, .ns = 5002000000, .error = 50};
	direct_clock_step(&c, &p);
	CHECK_EQ(direct_clock_ns(&c, 501000), 5001000000); /* two ns a tick */
	CHECK_EQ(direct_clock_ns(&c, 1001500), 5002001000);
	CHECK_EQ(direct_clock_ns(&c, 1ull << 62), c.now.ns);
	CHECK_EQ(direct_clock_ns(&c, -(1ull << 62)), 0);
	CHECK_EQ(c.error, 50);
	p = (struct direct_pair){.ticks = 1001010, .ns = 5002000020, .error = 20};
	direct_clock_step(&c, &p);
	CHECK_EQ(direct_clock_ns(&c, 1001010), 5002000020);
	CHECK_EQ(c.error, 50);
	/* Of no frequency: what comes behind a reading that is near the last one may be older. */
	p = (struct direct_pair){.ticks = 1000, .ns = 5000000000};
	direct_clock_start(&c, &p, 0);
	p = (struct direct_pair){.ticks = 51000, .ns = 5100000000};
	direct_clock_step(&c, &p);
	p = (struct direct_pair){.ticks = 51001, .ns = 5100002000};
	direct_clock_step(&c, &p);
	CHECK_EQ(direct_clock_ns(&c, 26001), 5050002000);
	p = direct_pair_read();
	direct_clock_start(&c, &p, direct_counter_frequency());
	usleep(20000);
	p = direct_pair_read();
	direct_clock_step(&c, &p);
	CHECK_EQ(direct_clock_ns(&c, p.ticks), p.ns);
	CHECK(p.ticks > c.before.ticks && p.ns > c.before.ns + 10000000);
}

int main(void)
{
	make_vm();
	test_answers();
	test_again();
	test_silence();
	test_memory();
	test_events();
	test_timer();
	test_order();
	test_hostile();
	test_flood();
	test_random();
	test_no_pause();
	test_clock();
	unlink(path);
	return test_done();
}
