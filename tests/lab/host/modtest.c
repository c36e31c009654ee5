// SPDX-License-Identifier: GPL-2.0-only
/*
 * Drives /dev/vmprof as a program may, well and badly, and prints what it sees, a line a fact.
 *
 * modtest info
 * modtest record SECONDS TYPE:CONFIG:PERIOD[,...] TID...   counts, samples, and how many of each
 * caller modtest cycles N TID...                                  attach, start, stop, close; and
 * closing at each stage modtest refuse TID...                                    what must be
 * refused modtest fuzz SECONDS TID...                              random calls modtest hold
 * SECONDS TID...                              counts, until it is killed
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kernel/core/sample.h"
#include "kernel/core/table.h"
#include "kernel/uapi/vmprof.h"

#define RING_SIZE  (1u << 20)
#define STACK_SIZE 4096u
#define WHOLE	   5 /* frames from the innermost function of split.c to main */

#ifdef __aarch64__ /* the lab's host can */
#define VMP_DIRECT_HERE 1
#else
#define VMP_DIRECT_HERE 0
#endif

static __s32 threads[VMPROF_VCPUS_MAX];
static __u32 nr_threads;
static struct vmprof_event events[VMP_EVENTS_MAX + 1];
static __u32 nr_events;

static void fail(const char *what)
{
	printf("failed %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int open_device(void)
{
	int fd = open(VMPROF_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		fail(VMPROF_DEVICE);
	return fd;
}

static struct vmprof_attach attach_all(void)
{
	return (struct vmprof_attach){
		.size = sizeof(struct vmprof_attach),
		.nr_vcpus = nr_threads,
		.vcpus = (__u64)(unsigned long)threads,
		.nr_events = nr_events,
		.events = (__u64)(unsigned long)events,
		.ring_size = RING_SIZE,
		.stack_size = STACK_SIZE,
		.wakeup = RING_SIZE / 4,
	};
}

/* ------------------------------------------------------------------ record */

#define PLACES 65536
static struct {
	__u64 caller, count;
} places[PLACES];

static void tally(__u64 caller)
{
	__u64 i = caller * 0x9e3779b97f4a7c15ull >> 48;

	while (places[i].count && places[i].caller != caller)
		i = (i + 1) % PLACES;
	places[i].caller = caller;
	places[i].count++;
}

static struct {
	__u64 samples, kernel, lost, bad, segments, elsewhere, whole;
} seen;

/*
 * The callers by frame pointer, out of the copied stack: how many, the first one in *caller. The
 * known programs keep frame pointers, and their stack is short.
 */
static unsigned walk(const struct vmp_sample *s, const struct vmp_segment *stack, __u64 *caller)
{
	const __u64 *words = (const __u64 *)(stack + 1);
	__u64 fp = s->fp;
	unsigned depth = 0;

	while (fp % 8 == 0 && fp >= stack->addr && fp - stack->addr + 16 <= stack->size) {
		const __u64 *frame = &words[(fp - stack->addr) / 8];

		if (!depth++)
			*caller = frame[1];
		if (frame[0] <= fp)
			break;
		fp = frame[0];
	}
	return depth;
}

static void take_sample(const struct vmp_sample *s, __u32 size)
{
	const __u8 *at = (const __u8 *)(s + 1), *end = (const __u8 *)s + size;
	__u64 caller = 0;

	seen.samples++;
	seen.kernel += !!(s->flags & VMP_SAMPLE_KERNEL);
	for (__u32 i = 0; i < s->nr_segments; i++) {
		const struct vmp_segment *segment = (const void *)at;

		if ((size_t)(end - at) < sizeof(*segment) ||
		    segment->size > (size_t)(end - at) - sizeof(*segment)) {
			seen.bad++;
			return;
		}
		seen.elsewhere += !i && segment->addr != (s->sp & ~7ull);
		if (!i && !(s->flags & VMP_SAMPLE_KERNEL) && walk(s, segment, &caller) >= WHOLE) {
			seen.whole++;
			tally(caller);
		}
		seen.segments++;
		at += sizeof(*segment) + segment->size;
	}
	seen.bad += at != end;
}

static void drain(struct vmp_reader *readers)
{
	static union {
		struct vmp_record header;
		struct vmp_sample sample;
		struct vmp_lost lost;
		__u8 bytes[VMP_RECORD_MAX];
	} buf;

	for (__u32 v = 0; v < nr_threads; v++) {
		long n;

		while ((n = vmp_ring_read(&readers[v], &buf, sizeof(buf))) != 0) {
			if (n < 0)
				seen.bad++;
			else if (buf.header.type == VMP_REC_SAMPLE)
				take_sample(&buf.sample, (__u32)n);
			else if (buf.header.type == VMP_REC_LOST)
				seen.lost += buf.lost.records;
		}
	}
}

static void print_counts(int fd)
{
	for (__u32 v = 0; v < nr_threads; v++)
		for (__u32 e = 0; e < nr_events; e++) {
			struct vmprof_read r = {.size = sizeof(r), .vcpu = v, .event = e};

			if (ioctl(fd, VMPROF_IOC_READ, &r))
				printf("count %u %u: %s\n", v, e, strerror(errno));
			else
				printf("count %u %u %llu enabled %llu running %llu outside %llu\n",
				       v, e, r.value, r.enabled, r.running, r.outside);
		}
}

static int record(double seconds)
{
	static struct vmp_reader readers[VMPROF_VCPUS_MAX];
	struct vmprof_attach a = attach_all();
	int fd = open_device();
	double end;

	if (ioctl(fd, VMPROF_IOC_ATTACH, &a)) {
		printf("attach: %s: wanted %u have %u\n", strerror(errno), a.wanted, a.have);
		return 1;
	}
	printf("attached vm %llu sharing %u slices %u wanted %u have %u\n", a.vm, a.sharing,
	       a.slices, a.wanted, a.have);
	for (__u32 v = 0; v < nr_threads; v++) {
		void *ring = mmap(NULL, a.ring_stride, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				  (off_t)(v * a.ring_stride));

		if (ring == MAP_FAILED)
			fail("mmap");
		if (vmp_reader_init(&readers[v], ring, a.ring_stride))
			fail("ring");
	}
	if (ioctl(fd, VMPROF_IOC_START))
		fail("start");
	for (end = now() + seconds; now() < end;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		poll(&p, 1, 200);
		drain(readers);
		if (p.revents & POLLHUP) {
			printf("hangup\n");
			break;
		}
	}
	if (ioctl(fd, VMPROF_IOC_STOP))
		fail("stop");
	drain(readers);
	print_counts(fd);
	printf("samples %llu kernel %llu whole %llu lost %llu bad %llu segments %llu elsewhere "
	       "%llu\n",
	       seen.samples, seen.kernel, seen.whole, seen.lost, seen.bad, seen.segments,
	       seen.elsewhere);
	for (__u32 i = 0; i < PLACES; i++)
		if (places[i].count)
			printf("caller %llx %llu\n", places[i].caller, places[i].count);
	close(fd);
	return 0;
}

/* ------------------------------------------------------------------ cycles */

static int cycles(int n)
{
	for (int i = 0; i < n; i++) {
		struct vmprof_attach a = attach_all();
		int fd = open_device();

		if (i % 5 && ioctl(fd, VMPROF_IOC_ATTACH, &a))
			fail("attach");
		if (i % 5 > 1 && ioctl(fd, VMPROF_IOC_START))
			fail("start");
		if (i % 5 > 2)
			usleep(2000);
		if (i % 5 > 3 && ioctl(fd, VMPROF_IOC_STOP))
			fail("stop");
		close(fd);
	}
	printf("cycles %d done\n", n);
	return 0;
}

static int hold(double seconds)
{
	struct vmprof_attach a = attach_all();
	int fd = open_device();

	if (ioctl(fd, VMPROF_IOC_ATTACH, &a) || ioctl(fd, VMPROF_IOC_START))
		fail("start");
	printf("holding\n");
	fflush(stdout);
	usleep((useconds_t)(seconds * 1e6));
	return 0;
}

/* ------------------------------------------------------------------ what must be refused */

static void expect(const char *what, int got, int wanted)
{
	int error = got ? errno : 0;

	printf("%s %s: %s%s%s\n", error == wanted ? "refused" : "WRONG", what, strerror(error),
	       error == wanted ? "" : ", not ", error == wanted ? "" : strerror(wanted));
}

static void expect_attach(int fd, const char *what, struct vmprof_attach a, int wanted)
{
	expect(what, ioctl(fd, VMPROF_IOC_ATTACH, &a), wanted);
}

static int refuse(void)
{
	struct {
		struct vmprof_attach a;
		__u64 more;
	} longer = {.more = 1};
	__s32 one = 1, twice[2] = {threads[0], threads[0]}, mixed[2] = {threads[0], 1};
	struct vmprof_attach a = attach_all();
	static __u64 areas[VMPROF_VCPUS_MAX + 1];
	struct vmprof_read r = {.size = sizeof(r)};
	struct vmprof_want w = {.size = sizeof(w), .nr_vcpus = nr_threads};
	int fd = open_device(), other = open_device();
	__u32 k = nr_events;

#define WITH(field, value)                                                                         \
	({                                                                                         \
		struct vmprof_attach b = a;                                                        \
		b.field = (value);                                                                 \
		b;                                                                                 \
	})
	expect("start without a VM", ioctl(fd, VMPROF_IOC_START), ENXIO);
	expect("read without a VM", ioctl(fd, VMPROF_IOC_READ, &r), ENXIO);
	expect("mmap without a VM",
	       mmap(NULL, RING_SIZE + 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED, ENXIO);
	expect("an unknown call", ioctl(fd, _IO('V', 0x7f)), ENOTTY);
	expect("a null pointer", ioctl(fd, VMPROF_IOC_ATTACH, NULL), EFAULT);
	expect_attach(fd, "size 0", WITH(size, 0), EINVAL);
	expect_attach(fd, "size 2^32 - 1", WITH(size, ~0u), EINVAL);
	longer.a = WITH(size, sizeof(longer));
	expect("fields of a later version", ioctl(fd, VMPROF_IOC_ATTACH, &longer), E2BIG);
	expect_attach(fd, "no vCPU", WITH(nr_vcpus, 0), EINVAL);
	expect_attach(fd, "2^32 - 1 vCPUs", WITH(nr_vcpus, ~0u), EINVAL);
	expect_attach(fd, "no event", WITH(nr_events, 0), EINVAL);
	expect_attach(fd, "33 events", WITH(nr_events, VMP_EVENTS_MAX + 1), EINVAL);
	expect_attach(fd, "threads of nowhere", WITH(vcpus, 1), EFAULT);
	expect_attach(fd, "events of nowhere", WITH(events, ~0ull - 7), EFAULT);
	expect_attach(fd, "a ring of 3 pages", WITH(ring_size, 3 * 4096), EINVAL);
	expect_attach(fd, "a ring of 2 GiB", WITH(ring_size, 1u << 31), EINVAL);
	expect_attach(fd, "a stack of 1 GiB", WITH(stack_size, 1u << 30), EINVAL);
	expect_attach(fd, "a stack of 7 bytes", WITH(stack_size, 7), EINVAL);
	expect_attach(fd, "unknown flags", WITH(flags, 0x80), EINVAL);
	expect_attach(fd, "delivery by injection with rings", WITH(delivery, VMP_DELIVER_INJECT),
		      EINVAL);
	expect_attach(fd, "direct delivery with rings", WITH(delivery, VMP_DELIVER_DIRECT),
		      VMP_DIRECT_HERE ? EINVAL : EOPNOTSUPP);
	expect_attach(fd, "unknown delivery", WITH(delivery, 77), EINVAL);
	one = 0x7fffffff;
	a.nr_vcpus = 1;
	expect_attach(fd, "no such thread", WITH(vcpus, (__u64)(unsigned long)&one), ESRCH);
	a.nr_vcpus = 2;
	expect_attach(fd, "one thread twice", WITH(vcpus, (__u64)(unsigned long)twice), EINVAL);
	expect_attach(fd, "threads of two processes", WITH(vcpus, (__u64)(unsigned long)mixed),
		      ESRCH);
	a = attach_all();
	events[k] = events[0];
	events[k].flags = 0;
	expect_attach(fd, "an event in no mode", WITH(nr_events, k + 1), EINVAL);
	events[k].flags = 0x4000;
	expect_attach(fd, "an event's unknown flag", WITH(nr_events, k + 1), EINVAL);

	expect_attach(fd, "nothing", a, 0);
	expect_attach(fd, "a second VM", a, EBUSY);
	expect_attach(other, "a second owner", a, EBUSY);
	r.vcpu = nr_threads;
	expect("read of a vCPU that is not there", ioctl(fd, VMPROF_IOC_READ, &r), EINVAL);
	expect("half a ring", mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED, EINVAL);
	expect("a ring that is not there",
	       mmap(NULL, RING_SIZE + 4096, PROT_READ, MAP_SHARED, fd,
		    (off_t)nr_threads * (RING_SIZE + 4096)) == MAP_FAILED,
	       EINVAL);
	expect("a private ring's growth",
	       mmap(NULL, 2 * (RING_SIZE + 4096), PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED,
	       EINVAL);
	w.areas = (__u64)(unsigned long)areas;
	w.nr_vcpus++;
	expect("areas of more vCPUs", ioctl(fd, VMPROF_IOC_WANT, &w), EINVAL);
	w.nr_vcpus = nr_threads;
	w.areas = 1;
	expect("areas of nowhere", ioctl(fd, VMPROF_IOC_WANT, &w), EFAULT);
	close(fd);
	expect_attach(other, "nothing, when the owner is gone", a, 0);
	return 0;
}

/* ------------------------------------------------------------------ random calls */

static __u64 random64(void)
{
	__u64 r = ((__u64)random() << 42) ^ ((__u64)random() << 21) ^ (__u64)random();

	return random() % 3 ? r >> (random() % 64) : r & 7;
}

/* A proper structure with some of its words replaced, so that calls get far. */
static void fuzz_once(int fd)
{
	static const unsigned long calls[] = {
		VMPROF_IOC_INFO, VMPROF_IOC_ATTACH, VMPROF_IOC_START, VMPROF_IOC_STATUS,
		VMPROF_IOC_STOP, VMPROF_IOC_READ,   VMPROF_IOC_WANT};
	union {
		struct vmprof_attach attach;
		struct vmprof_want want;
		struct vmprof_read read;
		__u32 word[64];
	} u;
	__u64 areas[VMPROF_VCPUS_MAX];
	unsigned long call = calls[(unsigned long)random() % 7];

	memset(&u, 0, sizeof(u));
	u.attach = attach_all();
	if (call == VMPROF_IOC_WANT) {
		for (__u32 i = 0; i < nr_threads; i++)
			areas[i] = random64();
		u.want = (struct vmprof_want){
			sizeof(u.want), nr_threads, (__u64)(unsigned long)areas,
			random64(),	random64(), random64(),
			random64(),	random64(), random64()};
	}
	if (call == VMPROF_IOC_READ)
		u.read = (struct vmprof_read){.size = sizeof(u.read)};
	for (long n = random() % 3; n > 0; n--)
		u.word[random() % 24] = (__u32)random64();
	ioctl(fd, call, random() % 20 ? (void *)&u : (void *)(unsigned long)random64());
	if (random() % 8 == 0) {
		size_t size = random() % 2 ? RING_SIZE + 4096 : (size_t)random64() % (1u << 22) + 1;
		void *ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				  (off_t)(random64() & ~4095ull));

		if (ring != MAP_FAILED) {
			for (int i = 0; i < 32; i++)
				((volatile __u64 *)ring)[i % 24] = random64();
			munmap(ring, size);
		}
	}
}

static int fuzz(double seconds)
{
	double end = now() + seconds;
	unsigned long calls = 0;
	int fd = open_device();

	while (now() < end) {
		if (random() % 50 == 0) {
			close(fd);
			fd = open_device();
		}
		fuzz_once(fd);
		calls++;
	}
	printf("fuzzed %lu calls in %.0f s\n", calls, seconds);
	return 0;
}

static int info(void)
{
	struct vmprof_info i = {.size = sizeof(i)};

	if (ioctl(open_device(), VMPROF_IOC_INFO, &i))
		fail("info");
	printf("abi %u counters %llx deliveries %x sample_flags %x vms %u\n", i.abi, i.counters,
	       i.deliveries, i.sample_flags, i.vms);
	return 0;
}

static void add_events(char *list)
{
	for (char *e = strtok(list, ","); e && nr_events < VMP_EVENTS_MAX; e = strtok(NULL, ",")) {
		struct vmprof_event *event = &events[nr_events++];

		event->flags = VMP_COUNT_FLAGS;
		if (sscanf(e, "%u:%lli:%lli", &event->type, (long long *)&event->config,
			   (long long *)&event->period) != 3)
			exit(2);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int arg = 2;
	double number = 0;

	if (!strcmp(what, "info"))
		return info();
	if (strcmp(what, "refuse") && arg < argc)
		number = atof(argv[arg++]);
	if (!strcmp(what, "record") && arg < argc)
		add_events(argv[arg++]);
	else
		add_events((char[]){"1:0:1000000"}); /* cpu-clock, 1 ms */
	while (arg < argc && nr_threads < VMPROF_VCPUS_MAX)
		threads[nr_threads++] = atoi(argv[arg++]);
	if (!nr_threads)
		return 2;
	if (!strcmp(what, "record"))
		return record(number);
	if (!strcmp(what, "cycles"))
		return cycles((int)number);
	if (!strcmp(what, "refuse"))
		return refuse();
	if (!strcmp(what, "fuzz"))
		return fuzz(number);
	return strcmp(what, "hold") ? 2 : hold(number);
}
