// SPDX-License-Identifier: GPL-2.0-only
/*
 * A VM that is recorded while nobody takes its records, as when they are written to a pipe whose
 * reader has stopped: memory stays within its bound, samples for which there is no room are counted
 * as lost, and what comes once there is room again is recorded. What its source has been told of a
 * process comes before the samples.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "record/vmrec.h"
#include "tests/unit/faketask.h"
#include "tests/unit/test.h"
#include "util/clock.h"

#define BOUND	  (64u << 20) /* as vmprof-record(1) has it, for each VM */
#define ONE_MORE  4096	      /* the last record that went in may end behind it */
#define PATIENCE  60000000000ull
#define CHAIN_LEN 120

/* A source that always has a sample until it is stopped. */
struct source {
	struct backend_session session;
	struct fakeguest guest;
	uint64_t chain[CHAIN_LEN];
	atomic_uint_fast64_t samples;
	bool stopped, has_told;
};

static struct source source;

static int source_open(struct backend_session **out, const struct vm *vm,
		       const struct backend_config *cfg, struct vmprof_err *err)
{
	*out = &source.session;
	return 0;
}

static struct guest_mem *source_memory(struct backend_session *s)
{
	return &source.guest.fm.mem;
}

static int source_peek(struct backend_session *s, uint32_t vcpu, struct guest_regs *regs)
{
	*regs = source.guest.regs;
	return 0;
}

static uint32_t source_nr_vcpus(struct backend_session *s)
{
	return 1;
}

static int source_start(struct backend_session *s, struct vmprof_err *err)
{
	return 0;
}

static int source_stop(struct backend_session *s)
{
	source.stopped = true;
	return 0;
}

static int source_read(struct backend_session *s, struct raw_sample *samples, unsigned n,
		       int timeout_ms)
{
	if (source.stopped)
		return 0;
	*samples = (struct raw_sample){
		.has = RAW_HAS_IP | RAW_HAS_MODE | RAW_HAS_PROCESS | RAW_HAS_CHAIN,
		.time = clock_now_ns(),
		.period = 1,
		.ip = source.chain[0],
		.mode = SAMPLE_MODE_GUEST_USER,
		.pid = 7,
		.tid = 7,
		.comm = "agent",
		.chain = source.chain,
		.chain_len = CHAIN_LEN,
	};
	atomic_fetch_add(&source.samples, 1);
	return 1;
}

static bool source_told(struct backend_session *s, struct raw_told *out)
{
	if (source.has_told)
		return false;
	source.has_told = true;
	*out = (struct raw_told){
		.type = RAW_TOLD_MAP,
		.pid = 7,
		.start = 0x400000,
		.end = 0x401000,
		.prot = PROT_EXEC,
		.flags = MAP_PRIVATE,
		.ino = 5,
		.path = "/srv/told",
	};
	return true;
}

static void source_stats(struct backend_session *s, struct backend_stats *st)
{
	*st = (struct backend_stats){.ticks = atomic_load(&source.samples),
				     .samples = atomic_load(&source.samples)};
}

static void source_close(struct backend_session *s)
{
}

static const struct vmprof_backend backend = {
	.name = "source",
	.open = source_open,
	.memory = source_memory,
	.peek = source_peek,
	.nr_vcpus = source_nr_vcpus,
	.start = source_start,
	.read = source_read,
	.told = source_told,
	.stop = source_stop,
	.stats = source_stats,
	.close = source_close,
};

static void check_room_again(struct vmrec *r, struct buf *out, uint64_t written)
{
	uint64_t end = clock_now_ns() + PATIENCE;
	struct vmrec_stats st;

	do {
		usleep(20000);
		buf_reset(out);
		vmrec_take(r, out);
		vmrec_get_stats(r, &st);
	} while (st.written <= written && clock_now_ns() < end);
	CHECK(st.written > written);
}

static struct vmrec_stats wait_until_full(struct vmrec *r)
{
	uint64_t end = clock_now_ns() + PATIENCE;
	struct vmrec_stats st;

	do {
		usleep(20000);
		vmrec_get_stats(r, &st);
	} while (!st.backend.lost && clock_now_ns() < end);
	CHECK(st.backend.lost);
	return st;
}

int main(void)
{
	static char name[] = "stalled";
	const struct fg_options opt = {0};
	char arch[] = "x86_64";
	struct vm vm = {.name = name, .pid = getpid(), .nr_vcpus = 1, .arch = arch};
	const struct event_list events = {.events = {{.name = "cpu-clock"}}, .n = 1};
	const struct vmrec_config cfg = {.vm = &vm,
					 .caps = {.registers = true, .peek = true},
					 .backend = &backend,
					 .events = &events,
					 .chains = true,
					 .end_fd = eventfd(0, EFD_CLOEXEC)};
	const uint64_t ids[] = {1};
	struct vmrec_stats st;
	struct vmprof_err err;
	struct buf out = {0};
	struct vmrec *r;

	for (unsigned i = 0; i < CHAIN_LEN; i++)
		source.chain[i] = 0x400000 + i;
	fakeguest_init(&source.guest, &opt);
	fakeguest_finish(&source.guest);
	CHECK_EQ(vmrec_open(&r, &cfg, &err), 0);
	CHECK_EQ(vmrec_start(r, ids, &err), 0);

	st = wait_until_full(r);
	vmrec_take(r, &out);
	CHECK(out.len >= BOUND && out.len < BOUND + ONE_MORE);
	CHECK(memmem(out.data, 8192, "/srv/told", sizeof("/srv/told")));
	check_room_again(r, &out, st.written);

	vmrec_stop(r);
	vmrec_get_stats(r, &st);
	CHECK_EQ(st.written + st.backend.lost, st.backend.samples);
	vmrec_close(r);
	buf_free(&out);
	fakeguest_free(&source.guest);
	close(cfg.end_fd);
	return test_done();
}
