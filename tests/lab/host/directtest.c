// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's side of a shared log (kernel/uapi/vmprof_log.h) and of delivery to the guest, as a
 * program has it. Prints what it sees, a line a fact.
 *
 * directtest format FILE RINGS RING_SIZE
 * directtest info
 * directtest run FILE SOURCE EVENT:PERIOD[:MODES][,...] CHAIN TID...    until a line comes in;
 *                     with LATE in the environment the log is read only then
 * directtest cycles FILE EVENT:PERIOD N TID...        N starts and stops
 * directtest hold FILE EVENT:PERIOD TID...     lends the counters until it is killed
 * directtest request FILE SOURCE EVENT:PERIOD    which stays: the guest is ready for nothing
 * directtest withdraw FILE          what was asked for
 * directtest lend EVENT:PERIOD TID...  without a guest's row, for 10 s or until a line comes in
 * directtest silent FILE EVENT:PERIOD TID...   x86: its handler has gone; until that is noticed
 * directtest refuse TID...
 * directtest own SECONDS    within a guest: the own user's log, for that time, with cpu-clock
 * directtest user COMMAND...    as a user who may nothing
 * SOURCE: direct, inject, or perf's type number; the commands without it: DELIVER in the
 * environment, if it is not direct. MODES: u, k or uk.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernel/core/log.h"
#include "kernel/core/sample.h"
#include "kernel/core/table.h"
#include "kernel/uapi/vmprof.h"

#define PERF_TYPE_SOFTWARE 1
#define PERF_TYPE_RAW	   4
#ifdef __x86_64__
#define DIRECT_TYPE PERF_TYPE_SOFTWARE
#else
#define DIRECT_TYPE PERF_TYPE_RAW
#endif

static void *memory;
static u64 bytes;
static struct vmprof_log_host *request;
static struct vmprof_log_guest row;
static __s32 threads[VMPROF_VCPUS_MAX];
static __u32 nr_threads;
static u32 source = VMPROF_SOURCE_DIRECT;

static void fail(const char *what)
{
	printf("failed %s: %s\n", what, strerror(errno));
	exit(1);
}

static void map_log(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		fail(path);
	bytes = (u64)st.st_size;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		fail("mmap");
	request = memory;
}

/* ------------------------------------------------------------------ the guest's part */

/* Makes a request and waits for its answer, a minute. */
static void ask(u32 chain, u32 nr, const struct vmprof_log_event *events,
		struct vmprof_log_guest *answer)
{
	u32 i;

	*answer = (struct vmprof_log_guest){0};
	request->source = source;
	request->chain = chain;
	request->nr = nr;
	for (i = 0; i < nr; i++)
		request->events[i] = events[i];
	vmp_store_release(&request->request, request->request + 1);
	for (i = 0; i < 1200; i++) {
		int err = vmp_log_row(memory, bytes, request->request, answer);

		if (err == -VMP_ECORRUPT)
			printf("row: corrupt\n");
		if (err != -VMP_ENOENT)
			break;
		usleep(50000);
	}
	printf("row: state %u clock %u frequency %llu handler %s cpus %u nr %u why %s\n",
	       answer->state, answer->clock, answer->frequency, answer->handler ? "given" : "none",
	       answer->cpus, answer->nr, answer->why);
}

static u32 parse(char *list, u32 type, struct vmprof_log_event *events)
{
	u32 nr = 0;

	for (char *e = strtok(list, ","); e && nr < VMPROF_LOG_EVENTS_MAX; e = strtok(NULL, ",")) {
		char modes[3] = "uk";
		long long config, period;

		if (sscanf(e, "%lli:%lli:%2s", &config, &period, modes) < 2)
			exit(2);
		events[nr++] = (struct vmprof_log_event){
			.type = type,
			.flags = (strchr(modes, 'u') ? VMP_COUNT_USER : 0) |
				 (strchr(modes, 'k') ? VMP_COUNT_KERNEL : 0),
			.config = (u64)config,
			.period = (u64)period,
		};
	}
	return nr;
}

/* The guest's own user, who is the host of a log of his own. */
static int own(unsigned seconds)
{
	const struct vmprof_log_event clock = {PERF_TYPE_SOFTWARE, VMP_COUNT_FLAGS, 0, 10000000};
	int fd = open(VMPROF_GUEST_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		fail(VMPROF_GUEST_DEVICE);
	bytes = 2 * VMPROF_LOG_PAGE + VMP_RECORD_MAX + VMPROF_LOG_PAGE;
	bytes += -bytes % (u64)sysconf(_SC_PAGESIZE);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		fail("mmap");
	request = memory;
	vmp_log_init(memory, bytes, VMP_RECORD_MAX, 1);
	*request = (struct vmprof_log_host){
		.magic = request->magic,
		.version = request->version,
		.ring_offset = request->ring_offset,
		.ring_stride = request->ring_stride,
		.ring_size = request->ring_size,
		.rings = 1,
		.request = 1,
		.nr = 1,
		.events = {clock},
	};
	if (ioctl(fd, VMPROF_GUEST_IOC_LOOK) || vmp_log_row(memory, bytes, 1, &row))
		fail("answer");
	printf("own state %u %s\n", row.state, row.why);
	fflush(stdout);
	sleep(seconds);
	return 0;
}

static int as_user(char **command)
{
	if (setgid(65534) || setuid(65534))
		fail("setuid");
	execvp(command[0], command);
	fail(command[0]);
	return 1;
}

/* ------------------------------------------------------------------ the host's part */

static int open_device(void)
{
	int fd = open(VMPROF_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		fail(VMPROF_DEVICE);
	return fd;
}

static __u32 attach_flags = VMPROF_ATTACH_EXPERIMENTAL;

static int attach(int fd)
{
	struct vmprof_event events[VMPROF_LOG_EVENTS_MAX] = {0};
	struct vmprof_attach a = {
		.size = sizeof(a),
		.delivery =
			source == VMPROF_SOURCE_INJECT ? VMP_DELIVER_INJECT : VMP_DELIVER_DIRECT,
		.nr_vcpus = nr_threads,
		.vcpus = (__u64)(unsigned long)threads,
		.nr_events = row.nr,
		.events = (__u64)(unsigned long)events,
		.handler = row.handler,
		.log = (__u64)(unsigned long)memory,
		.flags = attach_flags,
	};

	for (u32 i = 0; i < row.nr; i++)
		events[i] = (struct vmprof_event){.type = row.events[i].type,
						  .flags = row.events[i].flags,
						  .config = row.events[i].config,
						  .period = row.events[i].period};
	return ioctl(fd, VMPROF_IOC_ATTACH, &a);
}

static void print_status(int fd)
{
	static const char *const states[] = {"off", "waiting", "lent", "taken back", "refused"};
	struct vmprof_status s = {.size = sizeof(s)};

	if (ioctl(fd, VMPROF_IOC_STATUS, &s))
		fail("status");
	printf("status: %s entries %llu deferred %llu why %s\n", states[s.state], s.entries,
	       s.deferred, s.why);
	if (source == VMPROF_SOURCE_INJECT)
		printf("raised %llu held %llu\n", s.sent, s.held);
#ifdef __x86_64__
	printf("nmis: sent %llu guest %llu host %llu guard %llu forwarded %llu merged %llu late "
	       "%llu "
	       "foreign %llu unsent %llu kept_entry %llu kept_injected %llu held %llu\n",
	       s.sent, s.guest, s.host, s.guard, s.forwarded, s.merged, s.late, s.foreign, s.unsent,
	       s.kept_entry, s.kept_injected, s.held);
#endif
}

/* ------------------------------------------------------------------ samples */

#define PLACES 65536
static struct {
	u64 place, count;
	u32 event;
} places[PLACES];

static struct {
	u64 samples[VMPROF_LOG_EVENTS_MAX], periods[VMPROF_LOG_EVENTS_MAX];
	u64 longest[VMPROF_LOG_EVENTS_MAX];
	u64 kernel, lost, bad, tasks, late, chained, frames, in_user;
	u64 cpus[64];
} seen;
static u8 is_fixed[1 << 16]; /* by pid: ever called so; rings are read one after the other */

static void tally(u32 event, u64 place)
{
	u64 i = (place + event) * 0x9e3779b97f4a7c15ull >> 48;

	while (places[i].count && (places[i].place != place || places[i].event != event))
		i = (i + 1) % PLACES;
	places[i].place = place;
	places[i].event = event;
	places[i].count++;
}

static void take_sample(const struct vmp_guest_sample *s, u32 size, u64 *last)
{
	const u64 *chain = (const u64 *)(s + 1);

	if (size != sizeof(*s) + s->nr_chain * sizeof(u64) || s->event >= row.nr || s->cpu >= 64) {
		seen.bad++;
		return;
	}
	seen.samples[s->event]++;
	seen.periods[s->event] += s->period;
	if (s->period > seen.longest[s->event])
		seen.longest[s->event] = s->period;
	seen.kernel += !!(s->flags & VMP_SAMPLE_KERNEL);
	seen.cpus[s->cpu]++;
	seen.late += s->time < *last;
	*last = s->time;
	seen.chained += !!s->nr_chain;
	seen.frames += s->nr_chain;
	for (u32 i = 0; i < s->nr_chain; i++)
		seen.in_user += chain[i] == VMP_CHAIN_USER;
	if (is_fixed[(u16)s->pid] && !(s->flags & VMP_SAMPLE_KERNEL))
		tally(s->event, s->ip & ~255ull);
}

static void take_task(const struct vmp_guest_task *t)
{
	seen.tasks++;
	is_fixed[(u16)t->pid] |= !strncmp(t->comm, "fixed", sizeof(t->comm));
}

static void drain(struct vmp_reader *readers, u64 *last)
{
	static union {
		struct vmp_record header;
		struct vmp_guest_sample sample;
		struct vmp_guest_task task;
		struct vmp_lost lost;
		u8 bytes[VMP_RECORD_MAX];
	} buf;

	for (u32 v = 0; v < row.cpus; v++) {
		long n;

		while ((n = vmp_ring_read(&readers[v], &buf, sizeof(buf))) != 0) {
			if (n < 0)
				seen.bad++;
			else if (buf.header.type == VMP_REC_GUEST_SAMPLE)
				take_sample(&buf.sample, (u32)n, &last[v]);
			else if (buf.header.type == VMP_REC_GUEST_TASK)
				take_task(&buf.task);
			else if (buf.header.type == VMP_REC_LOST)
				seen.lost += buf.lost.records;
		}
	}
}

static void print_samples(void)
{
	for (u32 e = 0; e < row.nr; e++)
		printf("event %u samples %llu period %llu sum %llu longest %llu\n", e,
		       seen.samples[e], seen.samples[e] ? seen.periods[e] / seen.samples[e] : 0,
		       seen.periods[e], seen.longest[e]);
	printf("kernel %llu lost %llu bad %llu tasks %llu late %llu chained %llu frames %llu user "
	       "%llu\n",
	       seen.kernel, seen.lost, seen.bad, seen.tasks, seen.late, seen.chained, seen.frames,
	       seen.in_user);
	for (u32 c = 0; c < 64; c++)
		if (seen.cpus[c])
			printf("cpu %u %llu\n", c, seen.cpus[c]);
	for (u32 i = 0; i < PLACES; i++)
		if (places[i].count)
			printf("place %u %llx %llu\n", places[i].event, places[i].place,
			       places[i].count);
}

/* ------------------------------------------------------------------ commands */

static void open_rings(struct vmp_reader *readers)
{
	for (u32 v = 0; v < row.cpus; v++)
		if (v >= request->rings ||
		    vmp_reader_init(&readers[v],
				    (u8 *)memory + request->ring_offset + v * request->ring_stride,
				    request->ring_stride))
			fail("ring");
}

static int run(void)
{
	static struct vmp_reader readers[VMPROF_LOG_RINGS_MAX];
	static u64 last[VMPROF_LOG_RINGS_MAX];
	struct pollfd in = {.fd = 0, .events = POLLIN};
	struct vmprof_log_guest end;
	int fd = -1;

	open_rings(readers);
	if (source != VMPROF_SOURCE_PERF) {
		fd = open_device();
		if (attach(fd))
			fail("attach");
		if (ioctl(fd, VMPROF_IOC_START))
			fail("start");
	}
	printf("running\n");
	fflush(stdout);
	/* What the reader costs is no part of the mechanism. */
	if (getenv("LATE"))
		poll(&in, 1, -1);
	while (poll(&in, 1, 100) == 0)
		drain(readers, last);
	if (fd >= 0) {
		print_status(fd);
		if (ioctl(fd, VMPROF_IOC_STOP))
			fail("stop");
		print_status(fd);
		close(fd);
	}
	ask(0, 0, NULL, &end);
	drain(readers, last);
	print_samples();
	return 0;
}

static int cycles(int n)
{
	struct vmprof_log_guest end;

	for (int i = 0; i < n; i++) {
		int fd = open_device();

		if (attach(fd))
			fail("attach");
		if (i % 4 && ioctl(fd, VMPROF_IOC_START))
			fail("start");
		usleep(3000);
		if (i % 4 > 1 && ioctl(fd, VMPROF_IOC_STOP))
			fail("stop");
		close(fd);
	}
	ask(0, 0, NULL, &end);
	printf("cycles %d done\n", n);
	return 0;
}

static void hold(void)
{
	int fd = open_device();

	if (attach(fd) || ioctl(fd, VMPROF_IOC_START))
		fail("start");
	for (;;) {
		print_status(fd);
		fflush(stdout);
		usleep(250000);
	}
}

/* Its handler is the guest's affair: so a guest that has none can be had as well. */
static int lend(u32 nr, const struct vmprof_log_event *events)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};
	int fd = open_device();

	row = (struct vmprof_log_guest){.nr = nr,
					.handler = source == VMPROF_SOURCE_INJECT ? 15 : 1};
	for (u32 i = 0; i < nr; i++)
		row.events[i] = events[i];
	if (attach(fd) || ioctl(fd, VMPROF_IOC_START))
		fail("start");
	for (u32 i = 0; i < 100 && poll(&in, 1, 100) == 0; i++) {
		print_status(fd);
		fflush(stdout);
	}
	close(fd);
	printf("closed\n");
	return 0;
}

static int silent(void)
{
	struct vmprof_status s = {.size = sizeof(s)};
	struct vmprof_log_guest end;
	int fd = open_device();

	ask(0, 0, NULL, &end);
	if (attach(fd) || ioctl(fd, VMPROF_IOC_START))
		fail("start");
	for (int i = 0; i < 600 && s.state != VMPROF_DIRECT_TAKEN_BACK; i++) {
		usleep(100000);
		if (ioctl(fd, VMPROF_IOC_STATUS, &s))
			fail("status");
	}
	if (ioctl(fd, VMPROF_IOC_STOP))
		fail("stop");
	print_status(fd);
	return 0;
}

static void expect(const char *what, int got, int wanted)
{
	int error = got ? errno : 0;

	printf("%s %s: %s\n", error == wanted ? "refused" : "WRONG", what, strerror(error));
}

#define TRY(what, field, value)                                                                    \
	do {                                                                                       \
		struct vmprof_log_guest saved = row;                                               \
		row.field = (value);                                                               \
		expect(what, attach(fd), EINVAL);                                                  \
		row = saved;                                                                       \
	} while (0)

#ifdef __x86_64__
/* Everything but CAP_SYS_ADMIN, with which the device can be opened. */
static void drop_admin(void)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		fail("capget");
	data[0].effective &= ~(1u << CAP_SYS_ADMIN);
	if (syscall(SYS_capset, &header, data))
		fail("capset");
}

static int refuse(void)
{
	int fd = open_device();

	row = (struct vmprof_log_guest){.nr = 1, .handler = 1};
	row.events[0] = (struct vmprof_log_event){DIRECT_TYPE, VMP_COUNT_FLAGS, 0, 1000000};
	expect("no log", attach(fd), EINVAL);
	memory = mmap(NULL, 8192, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	expect("a log that is not to be written", attach(fd), EFAULT);
	memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TRY("no handler", handler, 0);
	TRY("a period of 1", events[0].period, 1);
	TRY("a period of 2^32", events[0].period, 1ull << 32);
	TRY("another clock", events[0].config, 1);
	TRY("an event of the PMU", events[0].type, PERF_TYPE_RAW);
	row.nr = 2;
	row.events[1] = row.events[0];
	expect("two events", attach(fd), EINVAL);
	row.nr = 1;
	attach_flags = 0;
	expect("what is experimental", attach(fd), EOPNOTSUPP);
	attach_flags = VMPROF_ATTACH_EXPERIMENTAL | 0x400;
	expect("an unknown flag", attach(fd), EINVAL);
	attach_flags = VMPROF_ATTACH_EXPERIMENTAL;
	expect("nothing", attach(fd), 0);
	close(fd);
	drop_admin();
	fd = open_device();
	expect("no CAP_SYS_ADMIN", attach(fd), EPERM);
	return 0;
}
#else
static int refuse(void)
{
	struct vmprof_status s = {.size = sizeof(s)};
	int fd = open_device();

	row = (struct vmprof_log_guest){.nr = 1, .handler = 1};
	row.events[0] = (struct vmprof_log_event){PERF_TYPE_RAW, VMP_COUNT_FLAGS, 0x11, 100000};
	TRY("no handler", handler, 0);
	TRY("a period of 1", events[0].period, 1);
	TRY("a period of 2^32", events[0].period, 1ull << 32);
	TRY("an event of EL2", events[0].config, 0x08000011);
	TRY("another PMU's event", events[0].type, 0);
	row.nr = 7;
	for (int i = 1; i < 7; i++)
		row.events[i] = row.events[0];
	expect("more events than counters", attach(fd), ENOSPC);
	row.nr = 1;
	expect("status of nothing", ioctl(fd, VMPROF_IOC_STATUS, &s), ENXIO);
	source = VMPROF_SOURCE_INJECT;
	TRY("no interrupt", handler, 0);
	TRY("an interrupt that the guest's kernel has itself", handler, 7);
	TRY("a device's interrupt", handler, 40);
	source = VMPROF_SOURCE_DIRECT;
	expect("nothing", attach(fd), 0);
	return 0;
}
#endif

static int info(void)
{
	struct vmprof_info i = {.size = sizeof(i)};

	if (ioctl(open_device(), VMPROF_IOC_INFO, &i))
		fail("info");
	printf("deliveries %x experimental %x why %s\n", i.deliveries, i.experimental,
	       i.why_not_direct);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct vmprof_log_event events[VMPROF_LOG_EVENTS_MAX];
	const char *from = getenv("DELIVER");
	u32 type = DIRECT_TYPE, chain = 0, nr;
	int arg = 2, n = 0;

	if (!strcmp(what, "info"))
		return info();
	if (argc < 3)
		return 2;
	if (!strcmp(what, "own"))
		return own((unsigned)atoi(argv[2]));
	if (!strcmp(what, "user"))
		return as_user(argv + 2);
	if (strcmp(what, "refuse") && strcmp(what, "lend"))
		map_log(argv[arg++]);
	if (!strcmp(what, "format"))
		return -vmp_log_init(memory, bytes, (u32)atoi(argv[4]), (u32)atoi(argv[3]));
	if (!strcmp(what, "withdraw")) {
		ask(0, 0, NULL, &row);
		return 0;
	}
	if (!strcmp(what, "run") || !strcmp(what, "request"))
		from = argv[arg++];
	if (from && !strcmp(from, "inject")) {
		source = VMPROF_SOURCE_INJECT;
	} else if (from && strcmp(from, "direct") != 0) {
		source = VMPROF_SOURCE_PERF;
		type = (u32)atoi(from);
	}
	nr = strcmp(what, "refuse") ? parse(argv[arg++], type, events) : 0;
	if (!strcmp(what, "run"))
		chain = (u32)atoi(argv[arg++]);
	if (!strcmp(what, "cycles"))
		n = atoi(argv[arg++]);
	while (arg < argc && nr_threads < VMPROF_VCPUS_MAX)
		threads[nr_threads++] = atoi(argv[arg++]);
	if (!strcmp(what, "refuse"))
		return refuse();
	if (!strcmp(what, "lend"))
		return lend(nr, events);
	ask(chain, nr, events, &row);
	if (row.state != VMPROF_GUEST_READY)
		return 1;
	if (!strcmp(what, "request"))
		return 0;
	if (!strcmp(what, "hold"))
		hold();
	if (!strcmp(what, "silent"))
		return silent();
	return strcmp(what, "cycles") ? run() : cycles(n);
}
