// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes and maps that the guest's own kernel has told: forks, execs and maps over maps come out
 * in samples as of their time, with no memory to read; what memory shows of such a process is later
 * and counts for less, until something of what was told is missing.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "guest/guest.h"
#include "tests/unit/faketask.h"
#include "tests/unit/test.h"
#include "util/clock.h"

enum { TASKS = 0x90, PAGES = 64 };

struct setup {
	struct fakeguest g;
	struct faketask t;
	struct guest *guest;
	struct sample out;
	char log[8192];
	char paths[64][32]; /* by id of the DSO */
};

/* ---------- the guest ---------- */

static int no_readv(struct guest_mem *m, struct guest_mem_io *io, int n)
{
	for (int i = 0; i < n; i++)
		io[i].ok = false;
	return 0;
}

static bool no_range(struct guest_mem *m, uint64_t gpa, uint64_t *start, uint64_t *len)
{
	return false;
}

/* One whose memory cannot be read. */
static void setup_blind(struct setup *s)
{
	static const struct guest_mem_ops ops = {.readv = no_readv, .next_range = no_range};
	static struct guest_mem none = {.ops = &ops};
	const struct guest_config cfg = {.arch = GUEST_ARCH_X86_64, .nr_vcpus = 1};

	memset(s, 0, sizeof(*s));
	CHECK_EQ(guest_open(&s->guest, &none, &cfg, NULL), 0);
}

static void setup(struct setup *s)
{
	const struct fg_options opt = {.pti = false};
	const struct guest_config cfg = {.arch = GUEST_ARCH_X86_64, .nr_vcpus = 1};

	memset(s, 0, sizeof(*s));
	fakeguest_init(&s->g, &opt);
	faketask_add(&s->g, &s->t);
	fg_member(&s->g, "task_struct", "tasks", TASKS, "");
	fg_put64(&s->g, s->g.init_task + 0x10, s->t.kstack + 2 * FT_THREAD);
	fg_put64(&s->g, s->g.init_task + TASKS, s->t.task + TASKS);
	fg_put64(&s->g, s->t.task + TASKS, s->g.init_task + TASKS);
	fakeguest_finish(&s->g);
	CHECK_EQ(guest_open(&s->guest, &s->g.fm.mem, &cfg, NULL), 0);
	CHECK_EQ(guest_identify(s->guest, NULL, NULL), 0);
}

static void teardown(struct setup *s)
{
	guest_close(s->guest);
	if (s->g.root)
		fakeguest_free(&s->g);
}

static uint64_t began_of_task(struct setup *s)
{
	uint64_t began;

	memcpy(&began, fg_host(&s->g, s->g.root, s->t.task + 0x48), sizeof(began));
	return began;
}

/* ---------- what is told, and sampled ---------- */

static void tell(struct setup *s, enum raw_told_type type, int32_t pid, int32_t ppid,
		 uint64_t began, const char *comm)
{
	struct raw_told told = {
		.type = type, .time = clock_now_ns(), .pid = pid, .ppid = ppid, .began = began};

	snprintf(told.comm, sizeof(told.comm), "%s", comm);
	guest_tell(s->guest, &told);
}

static void tell_map(struct setup *s, int32_t pid, uint64_t began, uint64_t start, uint64_t end,
		     uint64_t pgoff, const char *path)
{
	const struct raw_told told = {
		.type = RAW_TOLD_MAP,
		.time = clock_now_ns(),
		.pid = pid,
		.began = began,
		.start = start,
		.end = end,
		.pgoff = pgoff,
		.prot = PROT_READ | PROT_EXEC,
		.flags = MAP_PRIVATE,
		.dev = makedev(8, 1),
		.ino = path[0] == '/' && path[1] != '/' ? strlen(path) : 0,
		.size = 0x10000,
		.build_id = {1, 2, 3},
		.build_id_len = 3,
		.path = path,
	};

	guest_tell(s->guest, &told);
}

static void drain(struct setup *s)
{
	struct guest_event ev;
	size_t at = 0;

	s->log[0] = 0;
	while (guest_next_event(s->guest, &ev)) {
		const char *what = ev.type == GUEST_EVENT_FORK	 ? "FORK"
				   : ev.type == GUEST_EVENT_COMM ? ev.exec ? "EXEC" : "COMM"
				   : ev.type == GUEST_EVENT_MMAP ? "MMAP"
				   : ev.type == GUEST_EVENT_EXIT ? "EXIT"
								 : "";

		if (ev.dso.path)
			snprintf(s->paths[ev.dso.id % 64], sizeof(s->paths[0]), "%s", ev.dso.path);
		if (what[0] && at < sizeof(s->log))
			at += (size_t)snprintf(s->log + at, sizeof(s->log) - at, "%s %d %s\n", what,
					       ev.pid,
					       ev.dso.path ? ev.dso.path
					       : ev.name   ? ev.name
							   : "");
	}
}

/* The path of the file that a sample of that process is in, or "". */
static const char *at(struct setup *s, int32_t pid, const char *comm, uint64_t ip)
{
	struct raw_sample raw = {
		.has = RAW_HAS_IP | RAW_HAS_MODE | RAW_HAS_PROCESS,
		.time = clock_now_ns(),
		.ip = ip,
		.mode = SAMPLE_MODE_GUEST_USER,
		.pid = pid,
		.tid = pid,
	};

	snprintf(raw.comm, sizeof(raw.comm), "%s", comm);
	CHECK_EQ(guest_complete(s->guest, &raw, &s->out), 0);
	CHECK_EQ(s->out.pid, pid);
	drain(s);
	return s->out.has_dso ? s->paths[s->out.dso % 64] : "";
}

#define LOST 0x12345000ull /* in nobody's map: a reason to look at memory, soon */

/* Has memory looked at until a sample is in that file, or for twenty seconds. */
static const char *soon(struct setup *s, const char *comm, uint64_t ip, const char *wanted)
{
	const char *found = at(s, FT_PID, comm, ip);

	for (int i = 0; i < 1000 && strcmp(found, wanted); i++) {
		usleep(20000);
		at(s, FT_PID, comm, LOST);
		CHECK(!strstr(s->log, "EXIT"));
		found = at(s, FT_PID, comm, ip);
	}
	return found;
}

/* ---------- without memory ---------- */

static void test_life(void)
{
	struct setup s;

	setup_blind(&s);
	tell_map(&s, 7, 100, 0x400000, 0x402000, 0x1000, "/bin/sh");
	tell(&s, RAW_TOLD_KNOWN, 7, 1, 100, "sh");
	drain(&s);
	CHECK_STR(s.log, ""); /* nobody has had a sample */
	CHECK_STR(at(&s, 7, "sh", 0x401234), "/bin/sh");
	CHECK_EQ(s.out.dso_offset, 0x2234);
	CHECK_STR(s.log, "FORK 7 \nCOMM 7 sh\nMMAP 7 /bin/sh\n");
	tell(&s, RAW_TOLD_FORK, 8, 7, 200, "sh");
	CHECK_STR(at(&s, 8, "sh", 0x401234), "/bin/sh");
	CHECK_STR(s.log, "FORK 8 \nCOMM 8 sh\nMMAP 8 /bin/sh\n");
	tell(&s, RAW_TOLD_EXEC, 8, 7, 200, "true");
	tell_map(&s, 8, 200, 0x400000, 0x401000, 0, "/bin/true");
	CHECK_STR(at(&s, 8, "true", 0x400010), "/bin/true");
	CHECK_STR(s.log, "EXEC 8 true\nMMAP 8 /bin/true\nCOMM 8 true\n");
	CHECK_STR(at(&s, 8, "true", 0x401234), ""); /* what sh had there is gone */
	CHECK_STR(at(&s, 7, "sh", 0x401234), "/bin/sh");
	CHECK_STR(s.log, "");
	tell(&s, RAW_TOLD_GONE, 8, 0, 200, "true");
	drain(&s);
	CHECK_STR(s.log, "EXIT 8 \n");
	tell(&s, RAW_TOLD_FORK, 9, 7, 300, "sh"); /* one that no sample saw */
	tell(&s, RAW_TOLD_GONE, 9, 0, 300, "sh");
	drain(&s);
	CHECK_STR(s.log, "");
	teardown(&s);
}

/* One program after the other at the same addresses is announced each time. */
static void test_exec_of_itself(void)
{
	struct setup s;

	setup_blind(&s);
	for (int i = 0; i < 3; i++) {
		tell(&s, RAW_TOLD_EXEC, 7, 1, 100, "app");
		tell_map(&s, 7, 100, 0x400000, 0x401000, 0, "/bin/app");
		CHECK_STR(at(&s, 7, "app", 0x400010), "/bin/app");
		CHECK(strstr(s.log, "EXEC 7 app\nMMAP 7 /bin/app\n"));
	}
	teardown(&s);
}

static void test_numbers(void)
{
	struct setup s;

	setup_blind(&s);
	tell(&s, RAW_TOLD_EXEC, 7, 1, 100, "old");
	tell_map(&s, 7, 100, 0x400000, 0x401000, 0, "/bin/old");
	CHECK_STR(at(&s, 7, "old", 0x400010), "/bin/old");
	tell(&s, RAW_TOLD_FORK, 7, 1, 200, "new"); /* of a parent of whom nothing is known */
	CHECK_STR(at(&s, 7, "new", 0x400010), "");
	CHECK_STR(s.log, "EXIT 7 \nFORK 7 \nCOMM 7 new\n");
	tell_map(&s, 7, 100, 0x400000, 0x401000, 0, "/bin/old"); /* of the earlier one */
	tell(&s, RAW_TOLD_GONE, 7, 0, 100, "old");
	CHECK_STR(at(&s, 7, "new", 0x400010), "");
	CHECK_STR(s.log, "");
	teardown(&s);
}

/* Code that it has made is its own; two files of one path are two. */
static void test_files(void)
{
	struct raw_told map = {.type = RAW_TOLD_MAP,
			       .pid = 7,
			       .began = 100,
			       .start = 0x600000,
			       .end = 0x601000,
			       .prot = PROT_EXEC,
			       .path = "/memfd:jit (deleted)",
			       .ino = 5};
	struct guest_dso dso;
	uint32_t first;
	struct setup s;

	setup_blind(&s);
	tell_map(&s, 7, 100, 0x400000, 0x401000, 0, "//anon");
	guest_tell(s.guest, &map);
	map.start += 0x1000, map.end += 0x1000, map.build_id_len = 20; /* a program */
	guest_tell(s.guest, &map);
	map.start += 0x1000, map.end += 0x1000, map.path = "/bin/app";
	guest_tell(s.guest, &map);
	map.start += 0x1000, map.end += 0x1000, map.ino = 6;
	guest_tell(s.guest, &map);
	for (int i = 0; i < 3; i++) {
		struct raw_sample raw = {.has = RAW_HAS_IP | RAW_HAS_MODE | RAW_HAS_PROCESS,
					 .ip = (uint64_t[]){0x400010, 0x600010, 0x601010}[i],
					 .mode = SAMPLE_MODE_GUEST_USER,
					 .pid = 7,
					 .tid = 7};

		CHECK_EQ(guest_complete(s.guest, &raw, &s.out), 0);
		CHECK(guest_next_hit_dso(s.guest, &dso));
		CHECK_EQ(dso.owner, i < 2 ? 7 : 0);
		CHECK_EQ(dso.owner_start, i < 2 ? 100 : 0);
		CHECK_EQ(dso.build_id_len, i < 2 ? 0 : 20);
	}
	CHECK_STR(at(&s, 7, "", 0x602010), "/bin/app");
	first = s.out.dso;
	CHECK_STR(at(&s, 7, "", 0x603010), "/bin/app");
	CHECK(s.out.dso != first);
	teardown(&s);
}

static uint64_t random_below(uint64_t n)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % n;
}

/* Maps over maps, against a table of pages. */
static void test_overlaps(void)
{
	static const char *const paths[] = {"/a", "/bb", "/ccc"};
	struct {
		const char *path;
		uint64_t offset;
	} want[PAGES] = {0};
	struct setup s;

	setup_blind(&s);
	for (int round = 0; round < 400; round++) {
		uint64_t from = random_below(PAGES), n = 1 + random_below(PAGES - from);
		const char *path = paths[random_below(3)];

		n = round % 3 ? 1 + n % 6 : n;
		n = from + n > PAGES ? PAGES - from : n;
		tell_map(&s, 7, 100, from << 12, (from + n) << 12, (uint64_t)round << 20, path);
		for (uint64_t i = from; i < from + n; i++) {
			want[i].path = path;
			want[i].offset = ((uint64_t)round << 20) + ((i - from) << 12);
		}
		for (uint64_t i = 0; i < PAGES; i++) {
			at(&s, 7, "x", i << 12 | 5);
			CHECK_EQ(s.out.has_dso, want[i].path != NULL);
			if (s.out.has_dso)
				CHECK_EQ(s.out.dso_offset, want[i].offset + 5);
		}
	}
	teardown(&s);
}

/* A guest that tells of more than there can be. */
static void test_flood(void)
{
	struct setup s;

	setup_blind(&s);
	for (uint64_t i = 0; i < 3000; i++)
		tell_map(&s, 1, 1, i << 13, (i << 13) + 4096, 0, "/a");
	tell(&s, RAW_TOLD_KNOWN, 1, 0, 1, "init");
	for (int32_t i = 2; i < 70000; i++)
		tell(&s, RAW_TOLD_FORK, i, 1, (uint64_t)i, "bomb");
	CHECK_STR(at(&s, 1, "init", 10), "/a");
	CHECK_STR(at(&s, 2, "bomb", 10), "/a");
	CHECK_STR(at(&s, 60000, "bomb", 10), ""); /* there was no room for its maps */
	CHECK_STR(at(&s, 69999, "bomb", 10), "");
	teardown(&s);
}

/* ---------- and memory ---------- */

static void test_before_memory(void)
{
	uint64_t began;
	struct setup s;

	setup(&s);
	began = began_of_task(&s);
	CHECK_STR(at(&s, FT_PID, FT_COMM, FT_FUNC(0)), "/srv/app");
	/* It has been another program until a moment ago. */
	tell(&s, RAW_TOLD_EXEC, FT_PID, 1, began, "before");
	tell_map(&s, FT_PID, began, FT_CODE, FT_CODE + 0x1000, 0, "/srv/before");
	CHECK_STR(at(&s, FT_PID, "before", FT_FUNC(0)), "/srv/before");
	/* Memory says what it is now; what was not told is of it. */
	CHECK_STR(soon(&s, "before", FT_VDSO + 8, "[vdso]"), "[vdso]");
	CHECK_STR(at(&s, FT_PID, "before", FT_FUNC(0)), "/srv/before");
	CHECK(!strstr(s.log, "worker"));
	/* In no list any more: it has not ended before that is told. */
	fg_put64(&s.g, s.g.init_task + TASKS, s.g.init_task + TASKS);
	for (int i = 0; i < 5; i++) {
		usleep(30000);
		at(&s, FT_PID, "before", LOST);
		CHECK(!strstr(s.log, "EXIT"));
	}
	CHECK_STR(at(&s, FT_PID, "before", FT_FUNC(0)), "/srv/before");
	tell(&s, RAW_TOLD_GONE, FT_PID, 0, began, "before");
	drain(&s);
	CHECK_STR(s.log, "EXIT 100 \n");
	teardown(&s);
}

/* The same file, told and read, is one; nothing is said twice. */
static void test_same(void)
{
	struct raw_told map = {.type = RAW_TOLD_MAP,
			       .pid = FT_PID,
			       .start = FT_CODE,
			       .end = FT_CODE + 0x1000,
			       .prot = PROT_READ | PROT_EXEC,
			       .flags = MAP_PRIVATE,
			       .dev = makedev(8, 1),
			       .ino = 4711,
			       .ino_generation = 7,
			       .size = 4096,
			       .path = "/srv/app"};
	struct setup s;

	setup(&s);
	map.began = began_of_task(&s);
	CHECK_STR(at(&s, FT_PID, FT_COMM, FT_FUNC(0)), "/srv/app");
	guest_tell(s.guest, &map);
	tell(&s, RAW_TOLD_KNOWN, FT_PID, 1, map.began, FT_COMM);
	CHECK_STR(at(&s, FT_PID, FT_COMM, FT_FUNC(0)), "/srv/app");
	CHECK_STR(s.log, "");
	CHECK_STR(at(&s, FT_PID, FT_COMM, FT_VDSO + 8), ""); /* until memory is looked at */
	teardown(&s);
}

static void test_lost(void)
{
	uint64_t began;
	struct setup s;

	setup(&s);
	began = began_of_task(&s);
	tell(&s, RAW_TOLD_EXEC, FT_PID, 1, began, "before");
	tell_map(&s, FT_PID, began, FT_CODE, FT_CODE + 0x1000, 0, "/srv/before");
	CHECK_STR(at(&s, FT_PID, "before", FT_FUNC(0)), "/srv/before");
	tell(&s, RAW_TOLD_LOST, 0, 0, 0, "");
	CHECK_STR(soon(&s, "worker", FT_FUNC(0), "/srv/app"), "/srv/app");
	tell_map(&s, FT_PID, began, FT_CODE, FT_CODE + 0x1000, 0, "/srv/before");
	CHECK_STR(at(&s, FT_PID, "worker", FT_FUNC(0)), "/srv/app");
	tell(&s, RAW_TOLD_EXEC, FT_PID, 1, began, "after"); /* all of that one is told */
	tell_map(&s, FT_PID, began, FT_CODE, FT_CODE + 0x1000, 0, "/srv/after");
	CHECK_STR(at(&s, FT_PID, "after", FT_FUNC(0)), "/srv/after");
	teardown(&s);
}

int main(void)
{
	test_life();
	test_exec_of_itself();
	test_numbers();
	test_files();
	test_overlaps();
	test_flood();
	test_before_memory();
	test_same();
	test_lost();
	return test_done();
}
