// SPDX-License-Identifier: GPL-2.0-only
/*
 * kernel/core: the log that a guest and its host share. A request and its answer come across; each
 * side refuses what the other one may write that is no request, or no row, and whatever it accepts
 * of random bytes lies in the memory.
 */
#include "kernel/core/log.h"
#include "kernel/core/table.h"
#include "tests/unit/test.h"

#define RINGS 4u
#define SIZE  ((u32)VMP_RECORD_MAX)
#define CPUS  (2 * VMPROF_LOG_PAGE + RINGS * ((u64)SIZE + VMPROF_LOG_PAGE))
#define BYTES (CPUS + SIZE + VMPROF_LOG_PAGE)

static u8 memory[BYTES] __attribute__((aligned(VMPROF_LOG_PAGE)));
static struct vmprof_log_host *const host = (void *)memory;
static struct vmprof_log_guest *const guest = (void *)(memory + VMPROF_LOG_PAGE);

static const struct vmprof_log_event cycles = {4, VMP_COUNT_FLAGS, 0x11, 100000};

static void format(void)
{
	memset(memory, 0, sizeof(memory));
	CHECK_EQ(vmp_log_init(memory, BYTES, SIZE, RINGS), 0);
}

static void ask(void)
{
	format();
	host->source = VMPROF_SOURCE_DIRECT;
	host->chain = 16;
	host->nr = 1;
	host->events[0] = cycles;
	host->request = 1;
}

static void answer(void)
{
	*guest = (struct vmprof_log_guest){
		.magic = VMPROF_LOG_MAGIC,
		.version = VMPROF_LOG_VERSION,
		.answered = 1,
		.state = VMPROF_GUEST_READY,
		.handler = 0xffff800008000000,
		.cpus = 2,
		.nr = 1,
		.events = {cycles},
		.why = "none",
	};
}

static void test_sizes(void)
{
	CHECK_EQ(vmp_log_init(memory, BYTES, SIZE - 1, RINGS), -VMP_EINVAL);
	CHECK_EQ(vmp_log_init(memory, BYTES, SIZE / 2, RINGS), -VMP_EINVAL);
	CHECK_EQ(vmp_log_init(memory, BYTES, SIZE, 0), -VMP_EINVAL);
	CHECK_EQ(vmp_log_init(memory, BYTES, SIZE, VMPROF_LOG_RINGS_MAX + 1), -VMP_EINVAL);
	CHECK_EQ(vmp_log_init(memory, CPUS - 1, SIZE, RINGS), -VMP_EFULL);
	CHECK_EQ(vmp_log_init(memory, 100, SIZE, RINGS), -VMP_EFULL);
}

/* The ring for side-band has what the others leave, if that is enough. */
static void test_side(void)
{
	static const struct {
		u64 bytes;
		u32 size;
	} of[] = {
		{CPUS, 0},
		{BYTES - 1, 0},
		{BYTES, SIZE},
		{BYTES + SIZE, 2 * SIZE},
		{1ull << 40, VMPROF_LOG_SIDE_MAX},
	};
	struct vmprof_log_host copy;
	u32 size;

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		CHECK_EQ(vmp_log_side(of[i].bytes, SIZE, RINGS, &size), of[i].size ? CPUS : 0);
		CHECK_EQ(size, of[i].size);
	}
	CHECK_EQ(vmp_log_init(memory, CPUS, SIZE, RINGS), 0);
	host->request = 1;
	CHECK_EQ(vmp_log_request(memory, CPUS, &copy), 0);
	CHECK_EQ(copy.side_size, 0);
}

/* A request that differs from a good one in one word. */
#define REQUEST(field, value, wanted)                                                              \
	do {                                                                                       \
		struct vmprof_log_host got;                                                        \
		ask();                                                                             \
		host->field = (value);                                                             \
		CHECK_EQ(vmp_log_request(memory, BYTES, &got), (wanted));                          \
	} while (0)

static void test_request(void)
{
	struct vmprof_log_host copy;

	format();
	CHECK_EQ(vmp_log_request(memory, BYTES, &copy), -VMP_ENOENT);
	ask();
	CHECK_EQ(vmp_log_request(memory, BYTES, &copy), 0);
	CHECK_EQ(copy.request, 1);
	CHECK_EQ(copy.events[0].period, 100000);
	CHECK_EQ(vmp_log_request(memory, 2 * VMPROF_LOG_PAGE - 1, &copy), -VMP_ENOENT);
	REQUEST(magic, 0, -VMP_ENOENT);
	REQUEST(request, 0, -VMP_ENOENT);
	REQUEST(version, VMPROF_LOG_VERSION + 1, -VMP_EINVAL);
	REQUEST(ring_offset, VMPROF_LOG_PAGE, -VMP_ECORRUPT);
	REQUEST(ring_offset, 2 * VMPROF_LOG_PAGE + 8, -VMP_ECORRUPT);
	REQUEST(ring_offset, ~0ull - VMPROF_LOG_PAGE + 1, -VMP_ECORRUPT);
	REQUEST(ring_stride, 1ull << 62, -VMP_ECORRUPT);
	REQUEST(ring_stride, SIZE, -VMP_ECORRUPT);
	REQUEST(ring_size, 2 * SIZE, -VMP_ECORRUPT);
	REQUEST(ring_size, SIZE - 8, -VMP_ECORRUPT);
	REQUEST(rings, RINGS + 1, -VMP_ECORRUPT);
	REQUEST(side_size, 0, 0);
	REQUEST(side_size, 2 * SIZE, -VMP_ECORRUPT);
	REQUEST(side_size, SIZE - 8, -VMP_ECORRUPT);
	REQUEST(side_offset, CPUS - VMPROF_LOG_PAGE, -VMP_ECORRUPT);
	REQUEST(side_offset, CPUS + VMPROF_LOG_PAGE, -VMP_ECORRUPT);
	REQUEST(side_offset, CPUS - 8, -VMP_ECORRUPT);
	REQUEST(side_offset, 0, -VMP_ECORRUPT);
	REQUEST(side_offset, ~0ull - VMPROF_LOG_PAGE + 1, -VMP_ECORRUPT);
	REQUEST(rings, 0, -VMP_ECORRUPT);
	REQUEST(source, VMPROF_SOURCES, -VMP_ECORRUPT);
	REQUEST(chain, VMPROF_LOG_CHAIN_MAX + 1, -VMP_ECORRUPT);
	REQUEST(nr, VMPROF_LOG_EVENTS_MAX + 1, -VMP_ECORRUPT);
	REQUEST(nr, 0, 0);
	REQUEST(events[0].period, 1, -VMP_ECORRUPT);
	REQUEST(events[0].period, 1ull << 32, -VMP_ECORRUPT);
	REQUEST(events[0].flags, 0, -VMP_ECORRUPT);
	REQUEST(events[0].flags, 4, -VMP_ECORRUPT);
	REQUEST(source, VMPROF_SOURCE_INJECT, 0);
	host->events[0].period = 1;
	CHECK_EQ(vmp_log_request(memory, BYTES, &copy), -VMP_ECORRUPT);
	REQUEST(events[0].flags, VMP_COUNT_USER | VMPROF_LOG_FREQ, -VMP_ECORRUPT);
}

/* Frequencies are of the guest's own perf. */
static void test_frequency(void)
{
	struct vmprof_log_host copy;

	ask();
	host->source = VMPROF_SOURCE_PERF;
	host->events[0].period = 999;
	host->events[0].flags = VMP_COUNT_KERNEL | VMPROF_LOG_FREQ;
	CHECK_EQ(vmp_log_request(memory, BYTES, &copy), 0);
	CHECK_EQ(copy.events[0].flags, VMP_COUNT_KERNEL | VMPROF_LOG_FREQ);
	host->events[0].flags = VMPROF_LOG_FREQ;
	CHECK_EQ(vmp_log_request(memory, BYTES, &copy), -VMP_ECORRUPT);
}

#define ROW(field, value, wanted)                                                                  \
	do {                                                                                       \
		struct vmprof_log_guest got;                                                       \
		answer();                                                                          \
		guest->field = (value);                                                            \
		CHECK_EQ(vmp_log_row(memory, BYTES, 1, &got), (wanted));                           \
	} while (0)

static void test_row(void)
{
	struct vmprof_log_guest copy;

	ask();
	CHECK_EQ(vmp_log_row(memory, BYTES, 1, &copy), -VMP_ENOENT);
	answer();
	CHECK_EQ(vmp_log_row(memory, BYTES, 1, &copy), 0);
	CHECK_EQ(copy.handler, 0xffff800008000000);
	CHECK_EQ(vmp_log_row(memory, BYTES, 2, &copy), -VMP_ENOENT);
	ROW(version, 0, -VMP_ECORRUPT);
	ROW(state, VMPROF_GUEST_REFUSED + 1, -VMP_ECORRUPT);
	ROW(cpus, 0, -VMP_ECORRUPT);
	ROW(cpus, VMPROF_LOG_RINGS_MAX + 1, -VMP_ECORRUPT);
	ROW(nr, VMPROF_LOG_EVENTS_MAX + 1, -VMP_ECORRUPT);
	ROW(events[0].period, 10, -VMP_ECORRUPT);
	answer();
	memset(guest->why, 'x', sizeof(guest->why));
	guest->why[3] = '\033';
	CHECK_EQ(vmp_log_row(memory, BYTES, 1, &copy), 0);
	CHECK_STR(copy.why, "xxx");
	memset(guest->why, 'x', sizeof(guest->why));
	CHECK_EQ(vmp_log_row(memory, BYTES, 1, &copy), 0);
	CHECK_EQ(strlen(copy.why), sizeof(copy.why) - 1);
}

static void test_random(void)
{
	struct vmprof_log_host request;
	struct vmprof_log_guest row;
	u64 seed = 1;

	for (int i = 0; i < 200000; i++) {
		u8 *at;

		if (i % 8 == 0) {
			ask();
			answer();
		}
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		at = (seed >> 40 & 1 ? (u8 *)guest : (u8 *)host) + (seed >> 41) % sizeof(*guest);
		*at = (u8)(seed >> 32);
		if (!vmp_log_request(memory, BYTES, &request)) {
			CHECK(request.nr <= VMPROF_LOG_EVENTS_MAX);
			CHECK(request.chain <= VMPROF_LOG_CHAIN_MAX);
			CHECK(request.ring_offset + request.rings * request.ring_stride <= BYTES);
			CHECK(request.ring_size + VMPROF_LOG_PAGE <= request.ring_stride);
			CHECK(!request.side_size ||
			      request.side_offset + VMPROF_LOG_PAGE + request.side_size <= BYTES);
		}
		if (!vmp_log_row(memory, BYTES, guest->answered, &row)) {
			CHECK(row.nr <= VMPROF_LOG_EVENTS_MAX);
			CHECK(row.cpus && row.cpus <= VMPROF_LOG_RINGS_MAX);
			CHECK(memchr(row.why, 0, sizeof(row.why)));
		}
	}
}

int main(void)
{
	test_sizes();
	test_side();
	test_request();
	test_frequency();
	test_row();
	test_random();
	return test_done();
}
