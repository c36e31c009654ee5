// SPDX-License-Identifier: GPL-2.0-only
/*
 * The perf backend without a VM: threads of this program stand for vCPUs, and clocks sample the
 * host's side of them (:H). Samples are in the order of time, of the right thread and event, none
 * is lost, and their periods add up to the CPU time; what the guest alone is asked for gives none;
 * a process that ends is seen to.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/backend.h"
#include "tests/unit/test.h"
#include "util/clock.h"
#include "vm/proc.h"

#define NR_VCPUS  4
#define NR_EVENTS 3
#define PERIOD	  1000000 /* ns */

static atomic_bool stop;
static atomic_int tids[NR_VCPUS];

static void *spin(void *arg)
{
	volatile uint64_t n = 0;

	atomic_store((atomic_int *)arg, (int)syscall(SYS_gettid));
	while (!atomic_load(&stop))
		n++;
	return NULL;
}

static struct vm_vcpu vcpus[NR_VCPUS];
static struct vm vm = {
	.name = (char[]){"threads"},
	.accel = VM_ACCEL_KVM,
	.hypervisor = VM_HYPERVISOR_OTHER,
	.arch = (char[]){"x86_64"},
	.vcpus = vcpus,
	.nr_vcpus = NR_VCPUS,
};

static void be_vm(pid_t pid)
{
	struct proc_stat st;

	CHECK(!proc_stat(pid, &st));
	vm.pid = pid;
	vm.start_time = st.start_time;
}

/* cpu-clock and task-clock in a group, and one alone; the last but one of the guest. */
static const struct event events[NR_EVENTS] = {
	{.name = "cpu-clock:H",
	 .type = PERF_TYPE_SOFTWARE,
	 .config = PERF_COUNT_SW_CPU_CLOCK,
	 .rate = PERIOD,
	 .host = true,
	 .leader = 0},
	{.name = "task-clock",
	 .type = PERF_TYPE_SOFTWARE,
	 .config = PERF_COUNT_SW_TASK_CLOCK,
	 .rate = PERIOD,
	 .guest = true,
	 .leader = 0},
	{.name = "task-clock:H",
	 .type = PERF_TYPE_SOFTWARE,
	 .config = PERF_COUNT_SW_TASK_CLOCK,
	 .freq = true,
	 .rate = 500,
	 .host = true,
	 .leader = 2},
};

struct tally {
	uint64_t n[NR_EVENTS][NR_VCPUS], period[NR_EVENTS];
	uint64_t last;
	bool ordered;
};

static void take(struct tally *t, const struct raw_sample *raw)
{
	CHECK(raw->event < NR_EVENTS && raw->vcpu < NR_VCPUS);
	CHECK_EQ(raw->tid, vcpus[raw->vcpu].tid);
	CHECK_EQ(raw->pid, vm.pid);
	CHECK(raw->mode == SAMPLE_MODE_HOST_USER || raw->mode == SAMPLE_MODE_HOST_KERNEL);
	t->n[raw->event][raw->vcpu]++;
	t->period[raw->event] += raw->period;
	t->ordered = t->ordered && raw->time >= t->last;
	t->last = raw->time;
}

static uint64_t total(const struct tally *t, unsigned event)
{
	uint64_t n = 0;

	for (unsigned v = 0; v < NR_VCPUS; v++)
		n += t->n[event][v];
	return n;
}

static void test_sampling(struct backend_session *s)
{
	struct tally t = {.ordered = true};
	struct backend_event_stats es;
	struct backend_stats st;
	struct raw_sample raw[8];
	struct vmprof_err err;
	uint64_t end;
	int n;

	if (backend_perf.start(s, &err)) {
		fprintf(stderr, "start: %s\n", err.msg);
		test_failures++;
		return;
	}
	/* Until each thread had its share, however busy this machine is. */
	for (end = clock_now_ns() + 20000000000ull; clock_now_ns() < end;) {
		bool enough = true;

		n = backend_perf.read(s, raw, 8, 50);
		CHECK(n >= 0);
		for (int i = 0; i < n; i++)
			take(&t, &raw[i]);
		for (unsigned v = 0; v < NR_VCPUS; v++)
			enough = enough && t.n[0][v] > 100;
		if (enough)
			break;
	}
	CHECK(!backend_perf.stop(s));
	while ((n = backend_perf.read(s, raw, 8, 0)) > 0)
		for (int i = 0; i < n; i++)
			take(&t, &raw[i]);
	backend_perf.stats(s, &st);
	CHECK(t.ordered);
	CHECK_EQ(st.lost, 0);
	CHECK_EQ(st.samples, total(&t, 0) + total(&t, 1) + total(&t, 2));
	CHECK_EQ(total(&t, 1), 0); /* there is no guest */
	CHECK(total(&t, 2) > 0);
	CHECK_EQ(t.period[0], total(&t, 0) * PERIOD);
	backend_perf.event_stats(s, 0, BACKEND_ALL_VCPUS, &es);
	CHECK(es.count >= t.period[0] && es.enabled >= es.running && es.running > 0);
	backend_perf.event_stats(s, 1, BACKEND_ALL_VCPUS, &es);
	CHECK(es.count > 0);
}

/* Events of rate 0: no samples; each vCPU has its own count; one thread is not counted twice. */
static void test_counting(void)
{
	const struct event counted[] = {
		{.name = "task-clock",
		 .type = PERF_TYPE_SOFTWARE,
		 .config = PERF_COUNT_SW_TASK_CLOCK,
		 .guest = true,
		 .host = true},
	};
	const struct backend_config cfg = {.events = counted, .nr_events = 1};
	const pid_t second = vcpus[1].tid;
	struct backend_event_stats all, one[NR_VCPUS];
	struct backend_session *s;
	struct raw_sample raw;
	struct vmprof_err err;
	uint64_t end;

	for (unsigned shared = 0; shared < 2; shared++) {
		vcpus[1].tid = shared ? vcpus[0].tid : second;
		CHECK(!backend_perf.open(&s, &vm, &cfg, &err));
		CHECK(!backend_perf.start(s, &err));
		for (end = clock_now_ns() + 20000000000ull; clock_now_ns() < end;) {
			CHECK_EQ(backend_perf.read(s, &raw, 1, 20), 0);
			backend_perf.event_stats(s, 0, 0, &one[0]);
			backend_perf.event_stats(s, 0, 1, &one[1]);
			if (one[0].count && (shared || one[1].count))
				break;
		}
		backend_perf.stop(s);
		backend_perf.event_stats(s, 0, BACKEND_ALL_VCPUS, &all);
		for (unsigned v = 0; v < NR_VCPUS; v++) {
			backend_perf.event_stats(s, 0, v, &one[v]);
			all.count -= one[v].count;
			all.running -= one[v].running;
		}
		CHECK(one[0].count > 0 && one[0].running > 0);
		CHECK_EQ(one[1].count > 0, !shared);
		CHECK_EQ(one[1].enabled > 0, !shared);
		CHECK_EQ(all.count, 0);
		CHECK_EQ(all.running, 0);
		backend_perf.close(s);
	}
	vcpus[1].tid = second;
}

static void test_refused(void)
{
	struct event e = events[0];
	struct vmprof_err err;

	e.type = PERF_TYPE_RAW;
	e.config = UINT64_MAX;
	CHECK(backend_perf.try_event(&vm, &e, &err) < 0 && strstr(err.msg, "'cpu-clock:H'"));
	e = events[2];
	e.rate = 1u << 30;
	CHECK_EQ(backend_perf.try_event(&vm, &e, &err), -EINVAL);
	CHECK(strstr(err.msg, "perf_event_max_sample_rate"));
}

/* A process that ends while it is sampled: no more samples, and it is said. */
static void test_end(void)
{
	const struct backend_config cfg = {.events = events, .nr_events = 1};
	pid_t child = fork();
	struct backend_session *s;
	struct raw_sample raw;
	struct vmprof_err err;
	int n = 0;

	if (!child)
		for (;;)
			;
	be_vm(child);
	for (unsigned i = 0; i < NR_VCPUS; i++)
		vcpus[i].tid = i ? 0 : child;
	CHECK(!backend_perf.open(&s, &vm, &cfg, &err));
	CHECK(!backend_perf.start(s, &err));
	kill(child, SIGKILL);
	for (int i = 0; i < 1000 && n >= 0; i++)
		n = backend_perf.read(s, &raw, 1, 20);
	CHECK_EQ(n, -ESRCH);
	CHECK_EQ(backend_perf.peek(s, 0, &raw.regs), -ESRCH);
	backend_perf.stop(s);
	backend_perf.close(s);
	waitpid(child, NULL, 0);
}

int main(void)
{
	const struct backend_config cfg = {.events = events, .nr_events = NR_EVENTS};
	struct backend_session *s;
	pthread_t threads[NR_VCPUS];
	struct vmprof_err err;

	for (unsigned i = 0; i < NR_VCPUS; i++) {
		CHECK(!pthread_create(&threads[i], NULL, spin, &tids[i]));
		while (!atomic_load(&tids[i]))
			usleep(1000);
		vcpus[i] = (struct vm_vcpu){i, atomic_load(&tids[i])};
	}
	be_vm(getpid());
	if (backend_perf.try_event(&vm, &events[0], &err)) {
		printf("SKIP: %s\n", err.msg);
		return 77;
	}
	CHECK(!backend_perf.open(&s, &vm, &cfg, &err));
	test_sampling(s);
	backend_perf.close(s);
	test_counting();
	test_refused();
	atomic_store(&stop, true);
	for (unsigned i = 0; i < NR_VCPUS; i++)
		pthread_join(threads[i], NULL);
	test_end();
	return test_done();
}
