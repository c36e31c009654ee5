// SPDX-License-Identifier: GPL-2.0-only
/*
 * The session: records made by hand go in, addresses come out. Two VMs with the same pid, fork,
 * exec, overlapping maps, private records. Where symbols come from is session_symbols.c's.
 *   session resolve FILE [STORE]     helper of tests/cli/symbols.bats: "SYMBOL+OFFSET (DSO)" for
 *                                    each address, as perf script -F sym,symoff,dso prints them
 */
#include "tests/unit/session_make.h"

static void test_two_vms(void)
{
	struct session *s = open_session(NULL);

	put(path_of("store"), "web1/usr/sbin/server", 1, "web_main", false);
	put(path_of("store"), "db1/usr/sbin/server", 2, "_Z7db_mainv", false);
	put(path_of("store"), "web1/boot/[web1.kernel]", 3, "web_idle", false);
	private(s, "vm", "{\"machine\":3000001,\"name\":\"web1\",\"uuid\":\"u-1\",\"vcpus\":2}");
	private(s, "vm", "{\"machine\":3000002,\"name\":\"db1\"}");
	comm(s, WEB, 100, 100, "web1:server", false);
	comm(s, DB, 100, 100, "db1:server2", false);
	map(s, GU, WEB, 100, 0x400000, 0x10000, 0, "/usr/sbin/server", id_of(1));
	map(s, GU, DB, 100, 0x400000, 0x10000, 0, "/usr/sbin/server", id_of(2));
	map(s, GK, WEB, WEB, 0xffffffff81000000, 0x400000, 0, "/boot/[web1.kernel]", id_of(3));
	map(s, GK, WEB, WEB, 0xffffffffc0000000, 0x4000, 0, "/lib/modules/6.1/virtio-net.ko",
	    id_of(4));

	CHECK_STR(sym_at(s, WEB, 100, GU, 0x401010), "web_main");
	CHECK_STR(sym_at(s, DB, 100, GU, 0x401010), "db_main");
	CHECK_STR(sym_at(s, WEB, 100, GK, 0xffffffff81001000), "web_idle");
	CHECK(!sym_at(s, DB, 100, GK, 0xffffffff81001000));
	CHECK_STR(dso_at(s, WEB, 100, GK, 0xffffffff81001000), "[web1.kernel]");
	CHECK_STR(dso_at(s, WEB, 100, GK, 0xffffffffc0000010), "[virtio_net]");
	CHECK(!dso_at(s, WEB, 100, GU, 0x500000));
	/* In the same place of the cache as 0x401010 above. */
	CHECK(!sym_at(s, WEB, 100, GU, 0x400014));
	CHECK_STR(sym_at(s, WEB, 100, GU, 0x401010), "web_main");
	CHECK_EQ(resolve(s, WEB, 100, GK, 0xffffffff81001010).offset, 0x10);
	CHECK_EQ(resolve(s, WEB, 100, GK, 0xffffffff81002010).offset, 0x2010);
	CHECK_EQ(resolve(s, WEB, 100, GK, 0xffffffff81001000).level, 'g');
	CHECK_EQ(resolve(s, WEB, 100, GU, 0x401010).level, 'u');
	CHECK_EQ(resolve(s, 0, 1, HU, 0x401010).level, '.');
	CHECK_EQ(resolve(s, 0, 1, 1, 0x401010).level, 'k');
	CHECK_EQ(resolve(s, 0, 1, 3, 0x401010).level, 'H');

	CHECK_STR(thread_at(s, WEB, 100, 100)->comm, "server");
	CHECK_STR(thread_at(s, DB, 100, 100)->comm, "server2");
	CHECK_STR(thread_at(s, DB, 100, 101)->comm, ":101");
	CHECK_STR(thread_at(s, DB, 100, 100)->machine->name, "db1");
	CHECK_STR(thread_at(s, WEB, 100, 100)->machine->uuid, "u-1");
	CHECK_EQ(session_nr_machines(s), 3);
	CHECK_STR(session_machine_nth(s, 0)->name, "host");
	/* A VM without a record of its own. */
	CHECK_STR(thread_at(s, 77, 1, 1)->machine->name, "guest pid 77");
	comm(s, 77, 1, 1, "guest pid 77:x", false);
	CHECK_STR(thread_at(s, 77, 1, 1)->comm, "guest pid 77:x");
	/* Its maps are another machine's. */
	CHECK(!dso_at(s, 77, 100, GU, 0x401010));
	session_free(s);
}

static void test_chain_modes(void)
{
	CHECK_EQ(session_chain_mode(GU, PERF_CONTEXT_KERNEL), GK);
	CHECK_EQ(session_chain_mode(GK, PERF_CONTEXT_USER), GU);
	CHECK_EQ(session_chain_mode(HU, PERF_CONTEXT_KERNEL), 1);
	CHECK_EQ(session_chain_mode(1, PERF_CONTEXT_USER), HU);
	CHECK_EQ(session_chain_mode(1, PERF_CONTEXT_GUEST_USER), GU);
	CHECK_EQ(session_chain_mode(1, 0xffffffff81000000), 0);
}

static void test_fork_and_exec(void)
{
	struct session *s = open_session(NULL);
	struct thread *old;

	private(s, "vm", "{\"machine\":3000001,\"name\":\"web1\"}");
	comm(s, WEB, 10, 10, "web1:parent", false);
	map(s, GU, WEB, 10, 0x1000, 0x1000, 0, "/a", NULL);
	private(s, "cgroup", "{\"machine\":3000001,\"pid\":10,\"path\":\"/sys/x\"}");
	task(s, PERF_RECORD_FORK, WEB, 11, 11, 10, 10);
	task(s, PERF_RECORD_FORK, WEB, 10, 12, 10, 10);
	CHECK_STR(thread_at(s, WEB, 11, 11)->comm, "parent");
	CHECK_STR(thread_at(s, WEB, 10, 12)->cgroup, "/sys/x");
	CHECK_STR(thread_at(s, WEB, 11, 11)->cgroup, "/sys/x");
	CHECK_STR(dso_at(s, WEB, 11, GU, 0x1800), "a");
	/* A thread has its process's maps, later ones too; a forked process has its own. */
	map(s, GU, WEB, 10, 0x2000, 0x1000, 0, "/b", NULL);
	{
		struct location loc;

		session_resolve(s, thread_at(s, WEB, 10, 12), GU, 0x2800, &loc);
		CHECK(loc.dso && !strcmp(loc.dso->short_name, "b"));
	}
	CHECK(!dso_at(s, WEB, 11, GU, 0x2800));
	map(s, GU, WEB, 11, 0x1000, 0x1000, 0, "/c", NULL);
	CHECK_STR(dso_at(s, WEB, 11, GU, 0x1800), "c");
	CHECK_STR(dso_at(s, WEB, 10, GU, 0x1800), "a");
	/* The first map after an exec replaces all; a mere change of the name does nothing. */
	comm(s, WEB, 11, 11, "web1:name", false);
	CHECK_STR(dso_at(s, WEB, 11, GU, 0x1800), "c");
	comm(s, WEB, 11, 11, "web1:exec", true);
	CHECK_STR(dso_at(s, WEB, 11, GU, 0x1800), "c");
	map(s, GU, WEB, 11, 0x5000, 0x1000, 0, "/new", NULL);
	map(s, GU, WEB, 11, 0x6000, 0x1000, 0, "/lib", NULL);
	CHECK(!dso_at(s, WEB, 11, GU, 0x1800));
	CHECK_STR(dso_at(s, WEB, 11, GU, 0x5800), "new");
	CHECK_STR(dso_at(s, WEB, 11, GU, 0x6800), "lib");
	CHECK_STR(dso_at(s, WEB, 10, GU, 0x1800), "a");
	/* The pid comes again after an exit: another process, and the old thread stays as it was.
	 */
	old = thread_at(s, WEB, 11, 11);
	task(s, PERF_RECORD_EXIT, WEB, 11, 11, 10, 10);
	task(s, PERF_RECORD_FORK, WEB, 11, 11, 10, 10);
	CHECK(thread_at(s, WEB, 11, 11) != old);
	CHECK_STR(old->comm, "exec");
	CHECK_STR(thread_at(s, WEB, 11, 11)->comm, "parent");
	CHECK_STR(dso_at(s, WEB, 11, GU, 0x1800), "a");
	/* perf's own FORK of what ran already brings no maps. */
	{
		struct perfdata_record r = rec(PERF_RECORD_FORK, GU, WEB, 20, 20);

		r.misc = PERF_RECORD_MISC_FORK_EXEC;
		r.task.pid = r.task.tid = 20;
		r.task.ppid = r.task.ptid = 10;
		session_process(s, &r);
		CHECK(!dso_at(s, WEB, 20, GU, 0x1800));
	}
	session_free(s);
}

/* A kernel sample first: the program before the exec is forgotten when the new one runs. */
static void test_states(void)
{
	struct session *s = open_session(NULL);
	struct perfdata_record user = rec(PERF_RECORD_SAMPLE, GU, WEB, 10, 10);
	struct perfdata_record kernel = rec(PERF_RECORD_SAMPLE, GK, WEB, 10, 10);
	struct thread *t = session_thread(s, &user), *other = thread_at(s, WEB, 20, 20);
	uint32_t before, in_exec;

	map(s, GU, WEB, 10, 0x1000, 0x1000, 0, "/a", NULL);
	before = session_maps_state(t, GU);
	comm(s, WEB, 10, 10, "name", false);
	map(s, GU, WEB, 20, 0x1000, 0x1000, 0, "/a", NULL);
	CHECK_EQ(session_maps_state(t, GU), before);
	CHECK(session_maps_state(other, GU) != before);
	CHECK(session_maps_state(t, GK) != before);
	CHECK_EQ(session_maps_state(t, GK), session_maps_state(other, GK));
	comm(s, WEB, 10, 10, "exec", true);
	map(s, GU, WEB, 10, 0x5000, 0x1000, 0, "/new", NULL);
	in_exec = session_maps_state(session_thread(s, &kernel), GU);
	CHECK(in_exec != before);
	CHECK(session_maps_state(session_thread(s, &user), GU) != in_exec);
	before = session_maps_state(t, GK);
	map(s, GK, WEB, WEB, 0xffffffffc0000000, 0x4000, 0, "/lib/modules/6.1/x.ko", id_of(4));
	CHECK(session_maps_state(t, GK) != before);
	session_free(s);
}

static void test_overlaps(void)
{
	struct session *s = open_session(NULL);
	static const struct {
		uint64_t ip;
		const char *dso;
		uint64_t offset;
	} want[] = {
		{0x0fff, NULL, 0x0fff},	 {0x1000, "big", 0x0},	  {0x2fff, "big", 0x1fff},
		{0x3000, "mid", 0x500},	 {0x3fff, "mid", 0x14ff}, {0x4000, "big", 0x3000},
		{0x8fff, "big", 0x7fff}, {0x9000, "tail", 0x0},	  {0xafff, "tail", 0x1fff},
		{0xb000, NULL, 0xb000},
	};

	map(s, GU, WEB, 5, 0x1000, 0x9000, 0, "/big", NULL);
	map(s, GU, WEB, 5, 0x3000, 0x1000, 0x500, "/mid", NULL);
	map(s, GU, WEB, 5, 0x9000, 0x2000, 0, "/tail", NULL);
	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		struct location loc = resolve(s, WEB, 5, GU, want[i].ip);

		CHECK_EQ(loc.offset, want[i].offset);
		CHECK_STR(loc.dso ? loc.dso->short_name : "-", want[i].dso ? want[i].dso : "-");
	}
	/* Over all of it, over nothing, over the end of the address space. */
	map(s, GU, WEB, 5, 0, 0x100000, 0, "/all", NULL);
	map(s, GU, WEB, 5, 0x5000, 0, 0, "/nothing", NULL);
	map(s, GU, WEB, 5, 0xfffffffffffff000, 0x2000, 0, "/wrap", NULL);
	CHECK_STR(dso_at(s, WEB, 5, GU, 0x3800), "all");
	CHECK_STR(dso_at(s, WEB, 5, GU, 0x5000), "all");
	CHECK_STR(dso_at(s, WEB, 5, GU, 0xfffffffffffff800), "wrap");
	session_free(s);
}

/* Against a plain table of pages: a parent and a child that go different ways. */
static void test_random_maps(void)
{
	enum { PAGES = 64 };
	struct session *s = open_session(NULL);
	int model[2][PAGES];
	unsigned seed = 12345;
	char name[16];

	memset(model, -1, sizeof(model));
	for (int i = 0; i < 2000; i++) {
		unsigned who = i < 200 ? 0 : (seed >> 8) % 2, from, len;

		if (i == 200) {
			task(s, PERF_RECORD_FORK, WEB, 31, 31, 30, 30);
			memcpy(model[1], model[0], sizeof(model[0]));
		}
		seed = seed * 1103515245 + 12345;
		from = (seed >> 16) % PAGES;
		seed = seed * 1103515245 + 12345;
		len = 1 + (seed >> 16) % 8;
		snprintf(name, sizeof(name), "/n%d", i % 100);
		map(s, GU, WEB, 30 + who, from * 0x1000, len * 0x1000, 0, name, NULL);
		for (unsigned p = from; p < from + len && p < PAGES; p++)
			model[who][p] = i % 100;
		for (unsigned p = 0; p < PAGES; p++) {
			const char *got = dso_at(s, WEB, 30 + who, GU, p * 0x1000 + 5);

			snprintf(name, sizeof(name), "n%d", model[who][p]);
			if (model[who][p] < 0 ? got != NULL : !got || strcmp(got, name) != 0) {
				CHECK_STR(got, name);
				session_free(s);
				return;
			}
		}
	}
	session_free(s);
}

static void test_bad_private(void)
{
	static const char *const bad[] = {
		"",
		"{",
		"[]",
		"17",
		"{\"machine\":-1,\"name\":\"x\"}",
		"{\"machine\":\"3000001\"}",
		"{\"machine\":99999999999,\"name\":\"x\"}",
		"{\"machine\":5,\"name\":17,\"uuid\":[]}",
		"{\"machine\":5,\"pid\":1,\"path\":{}}",
		"[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
	};
	struct session *s = open_session(NULL);

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		private(s, "vm", bad[i]);
		private(s, "cgroup", bad[i]);
		private(s, "stats", bad[i]);
		private(s, "other", bad[i]);
	}
	CHECK_STR(thread_at(s, 5, 1, 1)->machine->name, "guest pid 5");
	private(s, "stats", "{\"machine\":5,\"lost\":3}");
	CHECK_STR(thread_at(s, 5, 1, 1)->machine->stats_json, "{\"machine\":5,\"lost\":3}");
	session_free(s);
}

static void print_address(struct session *s, struct thread *t, uint8_t mode, uint64_t ip)
{
	struct location loc;

	session_resolve(s, t, mode, ip, &loc);
	printf("%s", loc.sym ? session_symbol_name(s, loc.sym) : "[unknown]");
	if (loc.sym)
		printf("+0x%" PRIx64, loc.offset);
	printf(" (%s)\n", loc.dso ? loc.dso->long_name : "[unknown]");
}

static int print_record(void *ctx, const struct perfdata_record *rec)
{
	uint8_t mode = rec->cpumode, next;
	struct session *s = ctx;
	struct thread *t;

	session_process(s, rec);
	if (rec->type != PERF_RECORD_SAMPLE)
		return 0;
	t = session_thread(s, rec);
	if (!rec->chain)
		print_address(s, t, mode, rec->ip);
	for (uint64_t i = 0; rec->chain && i < rec->chain_len; i++) {
		next = session_chain_mode(rec->cpumode, rec->chain[i]);
		if (next)
			mode = next;
		else
			print_address(s, t, mode, rec->chain[i]);
	}
	return 0;
}

static int print_file(const char *path, const char *store)
{
	struct symbol_paths paths = {.store = store};
	const struct perfdata_reader_build_id *ids;
	struct session *s = session_new(&paths);
	struct perfdata_reader *r = NULL;
	struct vmprof_err err;
	int ret = perfdata_reader_open(&r, path, &err);

	if (!ret) {
		size_t n = perfdata_reader_build_ids(r, &ids);

		for (size_t i = 0; i < n; i++)
			session_add_build_id(s, &ids[i]);
		ret = perfdata_reader_run(r, print_record, s, &err);
		perfdata_reader_close(r);
	}
	if (ret)
		fprintf(stderr, "session: %s\n", err.msg);
	session_free(s);
	return ret ? 1 : 0;
}

static void ksymbol(struct session *s, int32_t machine, uint64_t start, uint64_t len,
		    const char *name, bool gone)
{
	/* the host's kernel says no mode in these */
	struct perfdata_record r = rec(PERF_RECORD_KSYMBOL, machine ? GK : 0, machine, 0, 0);

	r.ksymbol.start = start;
	r.ksymbol.len = len;
	r.ksymbol.name = name;
	r.ksymbol.unregister = gone;
	session_process(s, &r);
}

static void test_made_code(void)
{
	const uint64_t at = 0xffffffffc0001000;
	struct session *s = open_session(NULL);

	map(s, 1, 0, UINT32_MAX, 0xffffffff81000000, 0x7effffff, 0, "[kernel.kallsyms]_text", NULL);
	ksymbol(s, 0, at, 0x100, "bpf_prog_1_host", false);
	ksymbol(s, WEB, at, 0x100, "bpf_prog_2_web", false);
	ksymbol(s, WEB, at + 0x1000, 0x180, "bpf_prog_2_web", false); /* the same once more */
	CHECK_STR(sym_at(s, 0, 1, 1, at), "bpf_prog_1_host");
	CHECK_STR(dso_at(s, 0, 1, 1, at + 0xff), "bpf_prog_1_host");
	CHECK_STR(sym_at(s, WEB, 100, GK, at + 8), "bpf_prog_2_web");
	CHECK_EQ(resolve(s, WEB, 100, GK, at + 0x1008).offset, 8);
	CHECK_STR(sym_at(s, WEB, 100, GK, at + 0x117f), "bpf_prog_2_web");
	CHECK(!sym_at(s, DB, 100, GK, at));
	CHECK(!dso_at(s, WEB, 100, GK, at + 0x100));
	ksymbol(s, WEB, at, 0x100, "bpf_prog_2_web", true);
	ksymbol(s, WEB, at + 0x80, 0x100, "bpf_prog_3_web", false); /* in its place */
	CHECK_STR(sym_at(s, WEB, 100, GK, at + 0x90), "bpf_prog_3_web");
	ksymbol(s, WEB, at, 0, "empty", false);
	ksymbol(s, WEB, UINT64_MAX - 4, 0x100, "too long", false);
	ksymbol(s, WEB, at, 0x10, "", false);
	CHECK_STR(sym_at(s, WEB, 100, GK, at + 8), "bpf_prog_2_web");
	/* A name that something else has already. */
	sym_at(s, 0, 1, 1, 0xffffffff81000010);
	ksymbol(s, 0, at, 0x10, "[kernel.kallsyms]", false);
	sym_at(s, 0, 1, 1, at);
	session_free(s);
}

int main(int argc, char **argv)
{
	char cmd[128];

	if (argc >= 3 && !strcmp(argv[1], "resolve"))
		return print_file(argv[2], argv[3]);
	if (!mkdtemp(dir))
		return 1;
	test_two_vms();
	test_chain_modes();
	test_fork_and_exec();
	test_states();
	test_overlaps();
	test_random_maps();
	test_bad_private();
	test_made_code();
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd) ? 1 : test_done();
}
