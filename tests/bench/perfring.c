// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench/perfring [EVENTS] [SECONDS]: what the perf backend and the recorder behind it cost a
 * sample, and whether any is lost.
 *
 * One thread of this program spins and stands for a vCPU; EVENTS (8) clocks of 10,000 Hz sample
 * what it does in the host, which is as many samples a second as EVENTS vCPUs at that rate have.
 * Prints samples a second, lost ones, bytes, and the CPU time of all other threads (ring to
 * records) for each sample.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "record/vmrec.h"
#include "util/clock.h"
#include "vm/proc.h"

static atomic_bool stop;
static atomic_int tid;

static void *spin(void *arg)
{
	volatile uint64_t n = 0;

	atomic_store(&tid, (int)syscall(SYS_gettid));
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		n++;
	return NULL;
}

static uint64_t cpu_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void take(struct vmrec *r, unsigned seconds)
{
	uint64_t end = clock_now_ns() + seconds * 1000000000ull, bytes = 0;
	struct buf out = {0};

	while (clock_now_ns() < end) {
		usleep(500000);
		buf_reset(&out);
		vmrec_take(r, &out);
		bytes += out.len;
	}
	buf_free(&out);
	printf("%llu bytes, ", (unsigned long long)bytes);
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 8;
	unsigned seconds = argc > 2 ? (unsigned)atoi(argv[2]) : 5;
	struct event_list events = {.n = n && n <= EVENTS_MAX ? n : 1};
	struct vm_vcpu vcpu = {0};
	struct vm vm = {.name = (char[]){"self"},
			.arch = (char[]){"x86_64"},
			.accel = VM_ACCEL_KVM,
			.hypervisor = VM_HYPERVISOR_OTHER,
			.pid = getpid(),
			.vcpus = &vcpu,
			.nr_vcpus = 1};
	const struct vmrec_config cfg = {.vm = &vm,
					 .backend = &backend_perf,
					 .events = &events,
					 .realtime = 1,
					 .end_fd = eventfd(0, EFD_CLOEXEC)};
	uint64_t ids[EVENTS_MAX], start, cpu, other;
	struct vmrec_stats st;
	struct vmprof_err err;
	struct proc_stat ps;
	pthread_t thread;
	clockid_t clock;
	struct vmrec *r;

	for (unsigned i = 0; i < events.n; i++) {
		events.events[i] = (struct event){.name = "cpu-clock:H",
						  .type = PERF_TYPE_SOFTWARE,
						  .config = PERF_COUNT_SW_CPU_CLOCK,
						  .freq = true,
						  .rate = 10000,
						  .host = true,
						  .leader = i};
		ids[i] = i + 1;
	}
	pthread_create(&thread, NULL, spin, NULL);
	while (!atomic_load(&tid))
		usleep(1000);
	pthread_getcpuclockid(thread, &clock);
	vcpu.tid = atomic_load(&tid);
	proc_stat(getpid(), &ps);
	vm.start_time = ps.start_time;
	if (vmrec_open(&r, &cfg, &err) || vmrec_start(r, ids, &err)) {
		fprintf(stderr, "bench/perfring: %s\n", err.msg);
		return 1;
	}
	start = clock_now_ns();
	cpu = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	other = cpu_ns(clock);
	take(r, seconds);
	cpu = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu - (cpu_ns(clock) - other);
	start = clock_now_ns() - start;
	vmrec_stop(r);
	vmrec_get_stats(r, &st);
	vmrec_close(r);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	printf("%llu samples, %.0f a second, %llu lost, %llu times held back; %.2f us of CPU a "
	       "sample\n",
	       (unsigned long long)st.written, (double)st.written * 1e9 / (double)start,
	       (unsigned long long)st.backend.lost, (unsigned long long)st.backend.throttled,
	       (double)cpu / 1e3 / (double)(st.written + 1));
	return 0;
}
