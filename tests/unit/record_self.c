// SPDX-License-Identifier: GPL-2.0-only
/*
 * A record of the machine that we run on, whatever its samples come from: here from a backend that
 * makes them up, of this process. They are as perf has those of a whole system: modes, CPU, chains
 * with markers, ids; what runs already has names and maps before them; a program that starts
 * meanwhile is told by the kernel; what was lost is said in the file.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/selfrec.h"
#include "tests/unit/test.h"
#include "util/clock.h"
#include "util/xalloc.h"

#define PATIENCE    20000000000ull
#define KERNEL_ADDR 0xffffffff81000123ull
#define LOST	    5
#define FIRST_ID    70
#define CPUS	    2

static struct backend_session session;
static unsigned handed_out;
static bool stopped;

static int source_open(struct backend_session **out, const struct vm *vm,
		       const struct backend_config *cfg, struct vmprof_err *err)
{
	CHECK(!vm);
	CHECK_EQ(cfg->nr_events, 1);
	*out = &session;
	return 0;
}

static uint32_t source_cpus(struct backend_session *s)
{
	return CPUS;
}

static int source_start(struct backend_session *s, struct vmprof_err *err)
{
	return 0;
}

static uint64_t address_of(const void *function)
{
	return (uint64_t)(uintptr_t)function;
}

/* Two samples: one of a program, one of the kernel that was called by it. */
static int source_read(struct backend_session *s, struct raw_sample *out, unsigned n, int timeout)
{
	static uint64_t user[2], kernel[3];

	user[0] = address_of(source_read);
	user[1] = address_of(source_open);
	kernel[0] = KERNEL_ADDR;
	kernel[1] = KERNEL_ADDR + 0x100;
	kernel[2] = address_of(source_cpus);
	if (handed_out == 2 || stopped) {
		usleep((unsigned)timeout * 1000);
		return 0;
	}
	*out = (struct raw_sample){
		.has = RAW_HAS_IP | RAW_HAS_MODE | RAW_HAS_PROCESS | RAW_HAS_CHAIN,
		.vcpu = handed_out,
		.time = clock_now_ns(),
		.period = 1000,
		.pid = getpid(),
		.tid = getpid(),
		.ip = handed_out ? kernel[0] : user[0],
		.mode = handed_out ? SAMPLE_MODE_GUEST_KERNEL : SAMPLE_MODE_GUEST_USER,
		.chain = handed_out ? kernel : user,
		.chain_len = handed_out ? 3 : 2,
	};
	handed_out++;
	return 1;
}

static int source_stop(struct backend_session *s)
{
	stopped = true;
	return 0;
}

static void source_stats(struct backend_session *s, struct backend_stats *st)
{
	*st = (struct backend_stats){.samples = handed_out, .lost = handed_out == 2 ? LOST : 0};
}

static void source_close(struct backend_session *s)
{
}

static const struct vmprof_backend source = {
	.name = "source",
	.open = source_open,
	.nr_vcpus = source_cpus,
	.start = source_start,
	.read = source_read,
	.stop = source_stop,
	.stats = source_stats,
	.close = source_close,
};

struct seen {
	unsigned samples;
	uint64_t lost;
	bool named, mapped;		/* this process, before its first sample */
	bool forked, execed, with_maps; /* the program that was started meanwhile */
	pid_t child;
};

static uint64_t last_word(const struct perf_event_header *h)
{
	return *(const uint64_t *)((const uint8_t *)h + h->size - sizeof(uint64_t));
}

static void see_sample(struct seen *s, const struct perf_event_header *h, const uint64_t *body)
{
	bool kernel = s->samples++;
	const uint32_t *ids = (const uint32_t *)&body[2], *cpu = (const uint32_t *)&body[4];
	const uint64_t *chain = &body[7];

	CHECK(s->named && s->mapped);
	CHECK_EQ(h->misc, kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
	CHECK_EQ(body[0], FIRST_ID + kernel);
	CHECK_EQ(body[1], kernel ? KERNEL_ADDR : address_of(source_read));
	CHECK_EQ(ids[0], getpid());
	CHECK_EQ(ids[1], getpid());
	CHECK_EQ(cpu[0], kernel);
	CHECK_EQ(body[5], 1000);
	CHECK_EQ(body[6], kernel ? 5 : 3);
	CHECK_EQ(chain[0], kernel ? (uint64_t)PERF_CONTEXT_KERNEL : (uint64_t)PERF_CONTEXT_USER);
	CHECK_EQ(chain[1], body[1]);
	if (!kernel)
		return;
	CHECK_EQ(chain[2], KERNEL_ADDR + 0x100);
	CHECK_EQ(chain[3], (uint64_t)PERF_CONTEXT_USER);
	CHECK_EQ(chain[4], address_of(source_cpus));
}

static void see_map(struct seen *s, const uint32_t *ids, const uint64_t *body)
{
	uint64_t at = address_of(source_read);

	s->mapped |= ids[0] == (uint32_t)getpid() && at - body[1] < body[2];
	s->with_maps |= s->execed && ids[0] == (uint32_t)s->child;
}

static void see(struct seen *s, const struct perf_event_header *h)
{
	const uint64_t *body = (const void *)(h + 1);
	const uint32_t *ids = (const void *)body;

	if (h->type == PERF_RECORD_SAMPLE) {
		see_sample(s, h, body);
		return;
	}
	CHECK_EQ(last_word(h), FIRST_ID);
	switch (h->type) {
	case PERF_RECORD_COMM:
		s->named |= ids[0] == (uint32_t)getpid();
		s->execed |= ids[0] == (uint32_t)s->child && h->misc & PERF_RECORD_MISC_COMM_EXEC &&
			     !strcmp((const char *)&body[1], "true");
		break;
	case PERF_RECORD_FORK:
		s->forked |= ids[0] == (uint32_t)s->child && ids[1] == (uint32_t)getpid();
		break;
	case PERF_RECORD_MMAP2:
		see_map(s, ids, body);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		s->lost += body[0];
		break;
	}
}

static void look(struct seen *s, struct selfrec *r)
{
	struct buf out = {0};

	selfrec_take(r, &out);
	for (size_t at = 0; at < out.len;) {
		const struct perf_event_header *h = (const void *)(out.data + at);

		see(s, h);
		at += h->size;
	}
	buf_free(&out);
}

static pid_t start_program(void)
{
	pid_t pid = fork();

	if (!pid) {
		execlp("true", "true", NULL);
		_exit(1);
	}
	return pid;
}

int main(void)
{
	const struct event_list events = {.events = {{.name = "cpu-clock", .rate = 1000}}, .n = 1};
	const struct selfrec_config cfg = {.backend = &source,
					   .events = &events,
					   .chains = true,
					   .end_fd = eventfd(0, EFD_CLOEXEC)};
	const uint64_t ids[CPUS] = {FIRST_ID, FIRST_ID + 1};
	uint64_t end = clock_now_ns() + PATIENCE;
	struct seen seen = {0};
	struct selfrec_stats st;
	struct vmprof_err err;
	struct selfrec *r;
	int status;
	int rc = selfrec_open(&r, &cfg, &err);

	if (rc == -EPERM || rc == -EACCES || rc == -ENOSYS || rc == -ENOENT)
		test_skip(err.msg);
	if (rc || selfrec_start(r, ids, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	CHECK_EQ(selfrec_nr_cpus(r), CPUS);
	seen.child = start_program();
	CHECK_EQ(waitpid(seen.child, &status, 0), seen.child);
	while ((seen.samples < 2 || !seen.with_maps || !seen.lost) && clock_now_ns() < end) {
		usleep(10000);
		look(&seen, r);
	}
	selfrec_stop(r);
	look(&seen, r);
	selfrec_get_stats(r, &st);
	selfrec_close(r);
	CHECK_EQ(seen.samples, 2);
	CHECK_EQ(st.written, 2);
	CHECK_EQ(st.backend.lost, LOST);
	CHECK_EQ(seen.lost, LOST);
	CHECK(seen.forked && seen.execed && seen.with_maps);
	CHECK(!st.ended);
	return test_done();
}
