// SPDX-License-Identifier: GPL-2.0-only
/*
 * costtest TID PERIOD MODE... <CONSOLE
 *
 * Profiles the vCPU that this thread runs while its VM (guest/l2-cost.c, whose console is standard
 * input) does its fixed work, once for each mode, and reads nothing before the work is done: all
 * that the work takes longer is what making the samples takes. Prints "MODE KIND TICKS SAMPLES LOST
 * LOOKS BEFORE".
 *
 * plain   nothing
 * null    the interrupts, with nothing done in them (null/null.c). BEFORE: ticks from the overflow
 *         to the handler, of LOOKS of them together, where KIND is look
 * perf    perf_event_open() and its ring, as vmprof's perf backend and perf record have it
 * kmod    vmprof.ko: address, mode, stack and frame pointer, page table, task
 * regs    the same and all registers, as vmprof record has it
 * chain   and what chains are made of, as vmprof record -g has it
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/core/sample.h"
#include "kernel/core/table.h"
#include "kernel/uapi/vmprof.h"

#define CYCLES	   0x11
#define PERF_PAGES 4096u /* of data */
#define KMOD_RING  VMPROF_RING_MAX
#define STACK	   4096u
#define NULL_FILES "/sys/module/null/parameters/"

static int tid;
static unsigned long period;
static struct {
	unsigned long samples, lost, looks, before;
} seen;

static void die(const char *what)
{
	printf("failed %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ------------------------------------------------------------------ null */

static unsigned long null_parameter(const char *name)
{
	char path[128];
	unsigned long value;
	FILE *f;

	snprintf(path, sizeof(path), NULL_FILES "%s", name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%lu", &value) != 1)
		die(path);
	fclose(f);
	return value;
}

static void null_load(void)
{
	char parameters[64];
	int fd = open("null.ko", O_RDONLY | O_CLOEXEC);

	snprintf(parameters, sizeof(parameters), "tid=%d period=%lu", tid, period);
	if (fd < 0 || syscall(SYS_finit_module, fd, parameters, 0))
		die("null.ko");
	close(fd);
}

static void null_unload(void)
{
	seen.samples = null_parameter("interrupts");
	seen.looks = null_parameter("looks");
	seen.before = null_parameter("before");
	if (syscall(SYS_delete_module, "null", 0))
		die("rmmod null");
}

/* ------------------------------------------------------------------ perf */

static int perf_fd;
static struct perf_event_mmap_page *perf_ring;
static size_t perf_bytes;

static void perf_start(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_RAW,
		.config = CYCLES,
		.size = sizeof(attr),
		.sample_period = period,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD,
		.disabled = 1,
		.sample_id_all = 1,
		.exclude_hv = 1,
		.exclude_host = 1,
		.watermark = 1,
		.use_clockid = 1,
		.clockid = 1, /* CLOCK_MONOTONIC */
	};

	perf_bytes = (PERF_PAGES + 1) * (size_t)sysconf(_SC_PAGESIZE);
	perf_fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (perf_fd < 0)
		die("perf_event_open");
	perf_ring = mmap(NULL, perf_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, perf_fd, 0);
	if (perf_ring == MAP_FAILED || ioctl(perf_fd, PERF_EVENT_IOC_ENABLE, 0))
		die("the ring of perf");
}

static void perf_stop(void)
{
	const char *data = (const char *)perf_ring + sysconf(_SC_PAGESIZE);
	__u64 head;

	ioctl(perf_fd, PERF_EVENT_IOC_DISABLE, 0);
	head = __atomic_load_n(&perf_ring->data_head, __ATOMIC_ACQUIRE);
	/* It was never full: records are from its start on. */
	for (__u64 at = 0; at < head;) {
		const struct perf_event_header *h = (const void *)(data + at);

		seen.samples += h->type == PERF_RECORD_SAMPLE;
		seen.lost += h->type == PERF_RECORD_LOST || h->type == PERF_RECORD_THROTTLE;
		at += h->size;
	}
	munmap(perf_ring, perf_bytes);
	close(perf_fd);
}

/* ------------------------------------------------------------------ vmprof.ko */

static int kmod_fd;
static void *kmod_ring;
static size_t kmod_bytes;
static __u64 task_stack, thread_size, saved_sp;

/* The guest's kernel is the host's. */
static void learn_kernel(void)
{
	null_load();
	task_stack = null_parameter("task_stack");
	thread_size = null_parameter("thread_size");
	saved_sp = null_parameter("saved_sp");
	null_unload();
}

static void kmod_want(void)
{
	__u64 area = 0;
	struct vmprof_want want = {
		.size = sizeof(want),
		.nr_vcpus = 1,
		.areas = (__u64)(unsigned long)&area,
		.task_stack = task_stack,
		.thread_size = thread_size,
		.saved_sp = saved_sp,
	};

	if (ioctl(kmod_fd, VMPROF_IOC_WANT, &want))
		die("want");
}

static void kmod_start(__u32 sample_flags, __u32 stack)
{
	__s32 threads[1] = {tid};
	struct vmprof_event event = {
		.type = PERF_TYPE_RAW,
		.flags = VMP_COUNT_FLAGS,
		.config = CYCLES,
		.period = period,
	};
	struct vmprof_attach a = {
		.size = sizeof(a),
		.nr_vcpus = 1,
		.vcpus = (__u64)(unsigned long)threads,
		.nr_events = 1,
		.events = (__u64)(unsigned long)&event,
		.ring_size = KMOD_RING,
		.stack_size = stack,
		.wakeup = KMOD_RING / 4,
		.sample_flags = sample_flags,
	};

	kmod_fd = open(VMPROF_DEVICE, O_RDWR | O_CLOEXEC);
	if (kmod_fd < 0 || ioctl(kmod_fd, VMPROF_IOC_ATTACH, &a))
		die("attach");
	kmod_bytes = a.ring_stride;
	kmod_ring = mmap(NULL, kmod_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kmod_fd, 0);
	if (kmod_ring == MAP_FAILED)
		die("the ring of vmprof.ko");
	if (stack)
		kmod_want();
	if (ioctl(kmod_fd, VMPROF_IOC_START))
		die("start");
}

static void start_kmod(void)
{
	kmod_start(0, 0);
}

static void start_regs(void)
{
	kmod_start(VMP_SAMPLE_REGS, 0);
}

static void start_chain(void)
{
	kmod_start(VMP_SAMPLE_REGS, STACK);
}

static void kmod_stop(void)
{
	static union {
		struct vmp_record header;
		__u8 bytes[VMP_RECORD_MAX];
	} buf;
	struct vmp_reader reader;
	long n;

	ioctl(kmod_fd, VMPROF_IOC_STOP);
	if (vmp_reader_init(&reader, kmod_ring, kmod_bytes))
		die("reading the ring");
	while ((n = vmp_ring_read(&reader, &buf, sizeof(buf))) != 0) {
		seen.samples += n > 0 && buf.header.type == VMP_REC_SAMPLE;
		seen.lost += n < 0 || buf.header.type != VMP_REC_SAMPLE;
	}
	munmap(kmod_ring, kmod_bytes);
	close(kmod_fd);
}

/* ------------------------------------------------------------------ the VM's work */

static void nothing(void)
{
}

static const struct mode {
	const char *name;
	void (*start)(void);
	void (*stop)(void);
} modes[] = {
	{"plain", nothing, nothing},	 {"null", null_load, null_unload},
	{"perf", perf_start, perf_stop}, {"kmod", start_kmod, kmod_stop},
	{"regs", start_regs, kmod_stop}, {"chain", start_chain, kmod_stop},
};

static const struct mode *find_mode(const char *name)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (!strcmp(modes[i].name, name))
			return &modes[i];
	printf("there is no mode %s\n", name);
	exit(2);
}

/* The words behind "@WHAT " of the next such line of the console. */
static void wait_for(const char *what, char *words, size_t size)
{
	char line[512];

	while (fgets(line, sizeof(line), stdin)) {
		const char *at = strstr(line, what);

		if (!at)
			continue;
		snprintf(words, size, "%s", at + strlen(what));
		words[strcspn(words, "\r\n")] = 0;
		return;
	}
	printf("the console ended before %s\n", what);
	exit(1);
}

int main(int argc, char **argv)
{
	char kind[128], end[128];

	if (argc < 4)
		return 2;
	tid = atoi(argv[1]);
	period = strtoul(argv[2], NULL, 0);
	learn_kernel();
	for (int i = 3; i < argc; i++) {
		const struct mode *m = find_mode(argv[i]);

		for (int kinds = 0; kinds < 3; kinds++) {
			wait_for("@begin ", kind, sizeof(kind));
			memset(&seen, 0, sizeof(seen));
			m->start();
			wait_for("@end ", end, sizeof(end));
			m->stop();
			printf("%s %s %lu %lu %lu %lu\n", m->name, end, seen.samples, seen.lost,
			       seen.looks, seen.before);
			fflush(stdout);
		}
	}
	return 0;
}
