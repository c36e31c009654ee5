// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host as a whole in a record: samples of all who run here, on each CPU under an id of its own,
 * with names and maps of who was there before and of who came later, all in the file's form.
 */
#include <errno.h>
#include <signal.h>
#include <linux/perf_event.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perfdata/encode.h"
#include "record/wholehost.h"
#include "tests/unit/test.h"
#include "util/clock.h"

#define PATIENCE 20000000000ull
#define FIRST_ID 100

struct seen {
	unsigned own, child; /* samples */
	unsigned child_chains;
	bool own_name, own_map, child_fork, child_name, child_exit;
	uint64_t start;
};

static unsigned nr_cpus;
static const uint32_t *cpus;

/* CPU of an event's id; there are two events. */
static uint32_t cpu_of(uint64_t id)
{
	CHECK(id >= FIRST_ID && id < FIRST_ID + 2 * nr_cpus);
	return cpus[(id - FIRST_ID) % nr_cpus];
}

static void see_sample(struct seen *s, const struct perf_event_header *h, pid_t child)
{
	struct {
		uint64_t id, ip;
		uint32_t pid, tid;
		uint64_t time;
		uint32_t cpu, reserved;
		uint64_t period, nr, chain[];
	} const *body = (const void *)(h + 1);

	CHECK_EQ(body->cpu, cpu_of(body->id));
	CHECK(body->time >= s->start);
	CHECK_EQ(h->size, sizeof(*h) + sizeof(*body) + body->nr * 8);
	s->own += body->pid == (uint32_t)getpid();
	if (body->pid == (uint32_t)child) {
		s->child++;
		s->child_chains += body->nr > 1;
	}
}

static void see(struct seen *s, const struct perf_event_header *h, pid_t child)
{
	const uint8_t *record = (const uint8_t *)h;
	const uint32_t *ids = (const uint32_t *)(h + 1);
	uint64_t id;

	memcpy(&id, record + h->size - 8, 8);
	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		see_sample(s, h, child);
		return;
	case PERF_RECORD_COMM:
		s->own_name |= ids[0] == (uint32_t)getpid();
		s->child_name |= ids[0] == (uint32_t)child && !strcmp((char *)(ids + 2), "a?[2Jb");
		break;
	case PERF_RECORD_MMAP2:
		s->own_map |= ids[0] == (uint32_t)getpid() &&
			      strstr((const char *)record + 72, "record_wholehost") != NULL;
		break;
	case PERF_RECORD_FORK:
		s->child_fork |= ids[0] == (uint32_t)child;
		break;
	case PERF_RECORD_EXIT:
		s->child_exit |= ids[0] == (uint32_t)child;
		break;
	default:
		CHECK_EQ(h->type, PERF_RECORD_LOST);
	}
	cpu_of(id);
}

static void see_all(struct seen *s, const struct buf *b, pid_t child)
{
	for (size_t at = 0; at < b->len;) {
		const struct perf_event_header *h = (const void *)(b->data + at);

		CHECK(h->size >= sizeof(*h) && at + h->size <= b->len);
		if (h->size < sizeof(*h))
			return;
		see(s, h, child);
		at += h->size;
	}
}

static void spin(volatile uint64_t rounds)
{
	while (rounds--)
		;
}

int main(void)
{
	const struct event events[] = {{.name = "cpu-clock",
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.freq = true,
					.rate = 1000,
					.guest = true,
					.host = true},
				       {.name = "cpu-clock:k",
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.rate = 1000000,
					.exclude_user = true,
					.guest = true,
					.host = true}};
	uint64_t ids[2 * 1024], begin = clock_now_ns();
	struct seen seen = {.start = begin};
	struct wholehost_stats stats;
	struct wholehost *h;
	struct vmprof_err err;
	struct buf b = {0};
	bool ended = false;
	pid_t child;
	int r;

	r = wholehost_open(&h, events, 2, true, &err);
	if (r == -EACCES || r == -EPERM || r == -ENOSYS || r == -ENOENT)
		test_skip(err.msg);
	CHECK_EQ(r, 0);
	cpus = wholehost_cpus(h, &nr_cpus);
	CHECK(nr_cpus > 0 && nr_cpus <= 1024);
	for (unsigned i = 0; i < 2 * nr_cpus; i++)
		ids[i] = FIRST_ID + i;
	CHECK_EQ(wholehost_start(h, ids, &b, &err), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever becomes of the test */
		prctl(PR_SET_NAME, "a\033[2Jb");
		for (;;)
			spin(1000);
	}
	while (clock_now_ns() - begin < PATIENCE && !(seen.child_exit && seen.own > 20)) {
		spin(10000000);
		wholehost_take(h, &b);
		see_all(&seen, &b, child);
		buf_reset(&b);
		if (seen.child > 20 && !ended) {
			ended = true;
			kill(child, SIGKILL);
			waitpid(child, NULL, 0);
		}
	}
	wholehost_stop(h);
	wholehost_take(h, &b);
	buf_reset(&b);
	wholehost_take(h, &b);
	CHECK_EQ(b.len, 0); /* nothing comes any more */
	wholehost_get_stats(h, &stats);
	CHECK(stats.samples >= seen.own + seen.child);
	CHECK_EQ(stats.misled, 0); /* no kernel of a dom0 with a virtual PMU */
	CHECK(seen.own > 20 && seen.child > 20 && seen.child_chains > 0);
	CHECK(seen.own_name && seen.own_map);
	CHECK(seen.child_fork && seen.child_name && seen.child_exit);
	if (!ended) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	wholehost_free(h);
	buf_free(&b);
	return test_done();
}
