// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is mapped where, as records tell: of two files, one of which is put over the other's middle,
 * start or end, an address hits the right one; a process that was forked has its parent's, one that
 * executes a program has none of before, and one that ended keeps them while its samples are read.
 * A file that was hit has its build id in the profile and its symbols beside it; others have not.
 */
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "perfdata/reader.h"
#include "record/selfmaps.h"
#include "symbolize/elfimage.h"
#include "tests/unit/test.h"
#include "util/buf.h"
#include "util/xalloc.h"
#include "vm/proc.h"

#define PID  4000u
#define BASE 0x10000000ull
#define PAGE 0x1000ull

static char program[PATH_MAX], library[PATH_MAX];
static char profile[64], store[80];

static void tell(struct selfmaps *m, uint32_t type, uint16_t misc, const void *body, size_t n)
{
	struct perf_event_header h = {type, misc, (uint16_t)(sizeof(h) + n)};
	struct buf b = {0};

	buf_add(&b, &h, sizeof(h));
	buf_add(&b, body, n);
	selfmaps_record(m, (const void *)b.data);
	buf_free(&b);
}

static void tell_task(struct selfmaps *m, uint32_t type, uint32_t pid, uint32_t parent)
{
	const uint32_t body[] = {pid, parent, pid, parent, 0, 0};

	tell(m, type, 0, body, sizeof(body));
}

static void tell_exec(struct selfmaps *m, uint32_t pid)
{
	const uint32_t body[] = {pid, pid, 'x', 0};

	tell(m, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, body, sizeof(body));
}

/* @path's file, or one that has that path where this process is, and is @really another one. */
static void tell_map(struct selfmaps *m, uint64_t page, uint64_t pages, const char *path,
		     const char *really)
{
	struct {
		uint32_t pid, tid;
		uint64_t start, len, pgoff;
		uint32_t maj, min;
		uint64_t ino, generation;
		uint32_t prot, flags;
		char path[PATH_MAX];
	} body = {.pid = PID, .tid = PID, .start = BASE + page * PAGE, .len = pages * PAGE};
	struct stat st;

	if (path && !stat(really ? really : path, &st))
		body.ino = st.st_ino;
	snprintf(body.path, sizeof(body.path), "%s", path ? path : "//anon");
	tell(m, PERF_RECORD_MMAP2, 0, &body, sizeof(body));
}

static bool has_build_id(const char *path)
{
	const struct perfdata_reader_build_id *ids;
	struct perfdata_reader *r;
	struct vmprof_err err;
	uint8_t id[20];
	int len = elf_build_id(path, id);
	bool found = false;

	if (perfdata_reader_open(&r, profile, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	for (size_t i = 0, n = perfdata_reader_build_ids(r, &ids); i < n; i++)
		found |= !strcmp(ids[i].filename, path) && ids[i].len == len &&
			 !memcmp(ids[i].id, id, (size_t)len);
	perfdata_reader_close(r);
	return found;
}

static bool has_symbols(const char *path)
{
	char name[PATH_MAX + 8], found[PATH_MAX];
	uint8_t id[20];
	int len = elf_build_id(path, id);

	snprintf(name, sizeof(name), "host/%s", path);
	return !elfstore_get_named(store, name, id, (uint32_t)len, found);
}

/* Nothing but @path (NULL: nothing) is at that page of @pid; @to: symbols are saved. @m is freed.
 */
static void hit(struct selfmaps *m, pid_t pid, uint64_t page, const char *path, const char *to)
{
	const uint64_t id = 1;
	const struct perfdata_event event = {.name = "cpu-clock", .ids = &id, .nr_ids = 1};
	const struct perfdata_writer_config cfg = {
		.path = profile, .force = true, .events = &event, .nr_events = 1};
	struct perfdata_writer *w;
	struct vmprof_err err;

	if (perfdata_writer_open(&w, &cfg, &err)) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	selfmaps_hit(m, pid, BASE + page * PAGE + 8);
	selfmaps_save(m, to, w);
	CHECK(!perfdata_writer_close(w, &err));
	CHECK_EQ(has_build_id(program), path == program);
	CHECK_EQ(has_build_id(library), path == library);
	CHECK_EQ(has_symbols(program), to && path == program);
	CHECK_EQ(has_symbols(library), to && path == library);
	selfmaps_free(m);
}

static void check_hit(struct selfmaps *m, pid_t pid, uint64_t page, const char *path)
{
	hit(m, pid, page, path, NULL);
}

/* The program at pages 2 to 7, and @pages of the library over it from @page on. */
static struct selfmaps *two(uint64_t page, uint64_t pages)
{
	struct selfmaps *m = selfmaps_new();

	tell_map(m, 2, 6, program, NULL);
	tell_map(m, page, pages, library, NULL);
	return m;
}

static void test_places(void)
{
	check_hit(two(4, 2), PID, 1, NULL);
	check_hit(two(4, 2), PID, 3, program);
	check_hit(two(4, 2), PID, 4, library);
	check_hit(two(4, 2), PID, 5, library);
	check_hit(two(4, 2), PID, 6, program);
	check_hit(two(4, 2), PID, 8, NULL);
	check_hit(two(1, 3), PID, 1, library);
	check_hit(two(1, 3), PID, 3, library);
	check_hit(two(1, 3), PID, 4, program);
	check_hit(two(6, 4), PID, 5, program);
	check_hit(two(6, 4), PID, 9, library);
	check_hit(two(0, 10), PID, 4, library);
	check_hit(two(4, 2), PID + 1, 4, NULL);
}

static void test_anonymous(void)
{
	struct selfmaps *m = two(20, 1);

	tell_map(m, 4, 1, NULL, NULL);
	check_hit(m, PID, 4, NULL);
}

static void test_processes(void)
{
	struct selfmaps *m = two(4, 2);

	tell_task(m, PERF_RECORD_FORK, PID + 1, PID);
	check_hit(m, PID + 1, 4, library);
	m = two(4, 2);
	tell_task(m, PERF_RECORD_FORK, PID + 1, PID);
	tell_exec(m, PID + 1);
	check_hit(m, PID + 1, 4, NULL);
	m = two(4, 2);
	tell_task(m, PERF_RECORD_EXIT, PID, PID);
	check_hit(m, PID, 3, program);
	m = two(4, 2);
	tell_task(m, PERF_RECORD_EXIT, PID, PID);
	tell_task(m, PERF_RECORD_FORK, PID, 1); /* its number is another one's */
	check_hit(m, PID, 3, NULL);
}

static void test_other_file(void)
{
	struct selfmaps *m = selfmaps_new();

	tell_map(m, 2, 6, program, library);
	check_hit(m, PID, 3, NULL);
}

static bool find_files(void)
{
	struct proc_maps maps;
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (len < 0 || proc_maps_read(&maps, getpid()))
		return false;
	for (size_t i = 0; i < maps.n; i++)
		if (strstr(maps.map[i].path, "/libc.so") || strstr(maps.map[i].path, "/libc-"))
			snprintf(library, sizeof(library), "%s", maps.map[i].path);
	proc_maps_free(&maps);
	return *library;
}

int main(void)
{
	char dir[] = "/tmp/vmprof-selfmaps.XXXXXX", *command;
	uint8_t id[20];

	if (!find_files() || elf_build_id(program, id) <= 0 || elf_build_id(library, id) <= 0)
		test_skip("this program or its libc has no build id");
	CHECK(mkdtemp(dir) != NULL);
	snprintf(profile, sizeof(profile), "%s/perf.data", dir);
	snprintf(store, sizeof(store), "%s.debug", profile);
	test_places();
	test_anonymous();
	test_processes();
	test_other_file();
	hit(two(4, 2), PID, 4, library, store);
	command = xasprintf("rm -rf '%s'", dir);
	CHECK(!system(command));
	free(command);
	return test_done();
}
