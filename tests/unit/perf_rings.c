// SPDX-License-Identifier: GPL-2.0-only
/*
 * The perf backend's reader with 64 vCPUs of 10,000 samples a second each, whose rings this test
 * writes as the kernel does: nothing is lost as long as the reader comes twice a second, samples
 * are in the order of time over all rings, and what finds no room is counted.
 *
 *   perf_rings SECONDS   writes them in real time, and says how the reader has kept up
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backend/perf_session.h"
#include "tests/unit/test.h"
#include "util/clock.h"
#include "util/xalloc.h"

#define NR_VCPUS 64
#define RATE	 10000
#define STEP_NS	 (1000000000ull / RATE)
#define LATE_NS	 5000000

struct record {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t period;
};

struct lost {
	struct perf_event_header header;
	uint64_t id, lost;
};

struct writer { /* of one ring */
	struct perf_ring *ring;
	uint64_t id, lost; /* lost: not said in the ring yet */
};

struct setup {
	struct perf_session s;
	struct event event;
	struct vm vm;
	struct writer writer[NR_VCPUS];
	uint64_t first; /* time of the first sample */
	uint64_t written, dropped;
	uint64_t taken, last[NR_VCPUS], newest;
	uint64_t wrong; /* of another vCPU, twice, or not in order */
};

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void setup_init(struct setup *t)
{
	memset(t, 0, sizeof(*t));
	t->event = (struct event){.name = "cycles", .freq = true, .rate = RATE, .guest = true};
	t->vm = (struct vm){.name = "many", .nr_vcpus = NR_VCPUS};
	t->s.base.backend = &backend_perf;
	t->s.base.vm = &t->vm;
	t->s.events = &t->event;
	t->s.nr_events = 1;
	t->s.epoll = epoll_create1(0);
	t->s.sources = xcalloc(NR_VCPUS, sizeof(*t->s.sources));
	t->s.nr_sources = NR_VCPUS;
	for (uint32_t v = 0; v < NR_VCPUS; v++) {
		struct perf_ring *r = &t->s.sources[v].ring;

		r->fd = -1;
		r->data_size = page_size() << perf_ring_order(&t->s);
		r->base = xcalloc(1, page_size() + r->data_size);
		t->s.sources[v].vcpu = v;
		t->writer[v] = (struct writer){.ring = r, .id = 1000 + v};
		hashmap_set(&t->s.by_id, 1000 + v, (void *)(uintptr_t)(v + 1));
	}
	t->first = clock_now_ns();
}

static void setup_free(struct setup *t)
{
	for (uint32_t v = 0; v < NR_VCPUS; v++)
		free(t->s.sources[v].ring.base);
	hashmap_free(&t->s.by_id);
	close(t->s.epoll);
	free(t->s.sources);
	free(t->s.waiting);
}

/* ---------- the kernel's side ---------- */

static bool put(struct perf_ring *r, const void *record, size_t len)
{
	struct perf_event_mmap_page *page = r->base;
	uint64_t head = page->data_head, tail = __atomic_load_n(&page->data_tail, __ATOMIC_ACQUIRE);
	uint8_t *data = (uint8_t *)r->base + page_size();

	if (head + len - tail > r->data_size)
		return false;
	for (size_t i = 0; i < len; i++)
		data[(head + i) & (r->data_size - 1)] = ((const uint8_t *)record)[i];
	__atomic_store_n(&page->data_head, head + len, __ATOMIC_RELEASE);
	return true;
}

static void write_sample(struct setup *t, uint32_t v, uint64_t time)
{
	struct writer *w = &t->writer[v];
	const struct record r = {
		.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_GUEST_USER, sizeof(r)},
		.id = w->id,
		.ip = 0x400000 + v,
		.tid = v,
		.time = time,
		.period = 1,
	};
	const struct lost l = {
		.header = {PERF_RECORD_LOST, 0, sizeof(l)}, .id = w->id, .lost = w->lost};

	if (w->lost && put(w->ring, &l, sizeof(l)))
		w->lost = 0;
	t->written++;
	if (!w->lost && put(w->ring, &r, sizeof(r)))
		return;
	w->lost++;
	t->dropped++;
}

/* Sample number @n of each vCPU; they do not tick at once. */
static void write_all(struct setup *t, uint64_t n)
{
	for (uint32_t v = 0; v < NR_VCPUS; v++)
		write_sample(t, v, t->first + n * STEP_NS + (v * 37 % NR_VCPUS) * 1000);
}

/* ---------- the reader's ---------- */

static void take(struct setup *t, const struct raw_sample *raw, int n)
{
	for (int i = 0; i < n; i++) {
		uint32_t v = raw[i].vcpu;

		t->wrong += raw[i].ip != 0x400000 + v || raw[i].time <= t->last[v] ||
			    raw[i].time < t->newest;
		t->last[v] = t->newest = raw[i].time;
	}
	t->taken += (uint64_t)n;
}

static void read_all(struct setup *t)
{
	struct raw_sample raw[64];
	int n;

	while ((n = backend_perf.read(&t->s.base, raw, 64, 0)) > 0)
		take(t, raw, n);
	CHECK_EQ(n, 0);
}

/* Reads each time that @every samples of each vCPU have come. */
static void run(struct setup *t, uint64_t samples, uint64_t every)
{
	t->first = clock_now_ns() - samples * STEP_NS - 1000000000;
	for (uint64_t n = 0; n < samples; n++) {
		write_all(t, n);
		if (n % every == every - 1)
			read_all(t);
	}
	read_all(t);
}

static void test_nothing_is_lost(uint64_t every)
{
	struct backend_stats st;
	struct setup t;

	setup_init(&t);
	run(&t, 2 * RATE, every);
	backend_perf.stats(&t.s.base, &st);
	CHECK_EQ(t.dropped, 0);
	CHECK_EQ(t.taken, 2 * RATE * NR_VCPUS);
	CHECK_EQ(st.samples, t.taken);
	CHECK_EQ(st.lost, 0);
	CHECK_EQ(t.wrong, 0);
	setup_free(&t);
}

/* A reader that is held up for two seconds. */
static void test_lost_is_counted(void)
{
	struct backend_stats st;
	struct setup t;

	setup_init(&t);
	run(&t, 2 * RATE, 2 * RATE);
	CHECK(t.dropped > 0 && t.taken >= RATE / 2 * NR_VCPUS);
	run(&t, 1, 1); /* the kernel says it with the next sample that finds room */
	backend_perf.stats(&t.s.base, &st);
	CHECK_EQ(t.taken + t.dropped, t.written);
	CHECK_EQ(st.lost, t.dropped);
	CHECK_EQ(t.wrong, 0);
	setup_free(&t);
}

/* ---------- in real time ---------- */

static atomic_bool stop;

/* What a thread of this program cannot write in time, as it has no CPU, it leaves out. */
static void *write_in_time(void *arg)
{
	struct setup *t = arg;
	uint64_t next = t->first;

	while (!atomic_load(&stop)) {
		uint64_t now = clock_now_ns();

		if (now < next) {
			usleep(100);
			continue;
		}
		for (uint32_t v = 0; v < NR_VCPUS; v++)
			write_sample(t, v, now + v);
		next = now - next > LATE_NS ? now : next + STEP_NS;
	}
	return NULL;
}

static uint64_t cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static void in_real_time(unsigned seconds)
{
	struct raw_sample raw[64];
	pthread_t thread;
	struct setup t;
	uint64_t end, cpu;

	setup_init(&t);
	end = t.first + seconds * 1000000000ull;
	pthread_create(&thread, NULL, write_in_time, &t);
	while (clock_now_ns() < end) {
		int n = backend_perf.read(&t.s.base, raw, 64, 100);

		if (n > 0)
			take(&t, raw, n);
	}
	cpu = cpu_ms();
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	read_all(&t);
	printf("%llu samples written, %llu a second; %llu taken, %llu lost; the reader's CPU %llu "
	       "ms\n",
	       (unsigned long long)t.written, (unsigned long long)t.written / seconds,
	       (unsigned long long)t.taken, (unsigned long long)t.dropped, (unsigned long long)cpu);
	setup_free(&t);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		in_real_time((unsigned)strtoul(argv[1], NULL, 10));
		return test_done();
	}
	test_nothing_is_lost(20);
	test_nothing_is_lost(RATE / 2 - 1);
	test_lost_is_counted();
	return test_done();
}
