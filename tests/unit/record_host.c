// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's side of a VM in its records: this program stands for a VM's process, its thread for a
 * vCPU, and a clock samples what it does in the host. Samples have its pid and thread, names and
 * maps are there before them, and each address in user mode lies in a map.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/vmrec.h"
#include "tests/unit/test.h"
#include "util/clock.h"
#include "vm/proc.h"

#define WANTED	 50
#define PATIENCE 20000000000ull
#define MAPS_MAX 256

static atomic_bool stop;
static atomic_int tid;

static void *spin(void *arg)
{
	volatile uint64_t n = 0;

	prctl(PR_SET_NAME, "CPU 0/KVM");
	atomic_store(&tid, (int)syscall(SYS_gettid));
	while (!atomic_load(&stop))
		n++;
	return NULL;
}

struct seen {
	struct {
		uint64_t start, end;
	} map[MAPS_MAX];
	unsigned nr_maps, samples, unmapped;
	bool named;
};

static void see_map(struct seen *s, const uint64_t *body)
{
	if (s->nr_maps == MAPS_MAX)
		return;
	s->map[s->nr_maps].start = body[1];
	s->map[s->nr_maps++].end = body[1] + body[2];
}

static void see_sample(struct seen *s, const struct perf_event_header *h, const uint64_t *body)
{
	const uint32_t *ids = (const uint32_t *)&body[2];
	bool mapped = false;

	s->samples++;
	CHECK_EQ(ids[0], getpid());
	CHECK_EQ(ids[1], atomic_load(&tid));
	CHECK(s->named);
	for (unsigned i = 0; i < s->nr_maps; i++)
		mapped |= body[1] - s->map[i].start < s->map[i].end - s->map[i].start;
	s->unmapped +=
		!mapped && (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
}

static void look(struct seen *s, const struct buf *b)
{
	for (size_t at = 0; at < b->len;) {
		const struct perf_event_header *h = (const void *)(b->data + at);
		const uint64_t *body = (const void *)(h + 1);
		unsigned mode = h->misc & PERF_RECORD_MISC_CPUMODE_MASK;

		if (h->type == PERF_RECORD_COMM && mode == PERF_RECORD_MISC_USER)
			s->named |= ((const uint32_t *)body)[1] == (uint32_t)atomic_load(&tid) &&
				    !strcmp((const char *)&body[1], "CPU 0/KVM");
		else if (h->type == PERF_RECORD_MMAP2 && mode == PERF_RECORD_MISC_USER)
			see_map(s, body);
		else if (h->type == PERF_RECORD_SAMPLE)
			see_sample(s, h, body);
		at += h->size;
	}
}

int main(void)
{
	const struct event_list events = {.events = {{.name = "cpu-clock:H",
						      .type = PERF_TYPE_SOFTWARE,
						      .config = PERF_COUNT_SW_CPU_CLOCK,
						      .rate = 1000000,
						      .host = true}},
					  .n = 1};
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
					 .end_fd = eventfd(0, EFD_CLOEXEC)};
	const uint64_t ids[] = {7};
	uint64_t end = clock_now_ns() + PATIENCE;
	struct seen seen = {0};
	struct vmprof_err err;
	struct buf out = {0};
	struct proc_stat st;
	pthread_t thread;
	struct vmrec *r;

	CHECK(!pthread_create(&thread, NULL, spin, NULL));
	while (!atomic_load(&tid))
		usleep(1000);
	vcpu.tid = atomic_load(&tid);
	CHECK(!proc_stat(getpid(), &st));
	vm.start_time = st.start_time;
	if (backend_perf.try_event(&vm, events.events, &err)) {
		printf("SKIP: %s\n", err.msg);
		return 77;
	}
	if (vmrec_open(&r, &cfg, &err) || vmrec_start(r, ids, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	while (seen.samples < WANTED && clock_now_ns() < end) {
		usleep(20000);
		buf_reset(&out);
		vmrec_take(r, &out);
		look(&seen, &out);
	}
	vmrec_stop(r);
	vmrec_close(r);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	CHECK(seen.samples >= WANTED);
	CHECK_EQ(seen.unmapped, 0);
	buf_free(&out);
	return test_done();
}
