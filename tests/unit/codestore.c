// SPDX-License-Identifier: GPL-2.0-only
/*
 * Code beside the symbols of a profile: runs do not overlap, what is put comes back and stays when
 * more is put, damaged files and those of another build are refused.
 *   codestore scenario DIR     helper of tests/cli/annotate.bats: code for perfdata_write's file
 */
#include <errno.h>
#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbolize/codestore.h"
#include "tests/unit/perfdata_scenario.h"
#include "tests/unit/test.h"

static char dir[] = "/tmp/vmprof-codestore-XXXXXX";
static const uint8_t id[20] = {0xab, 1}, other[20] = {0xab, 2};

static void test_runs(void)
{
	struct code_runs r = {0};
	const struct code_run *run;
	uint8_t a[64], b[64];

	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	code_runs_add(&r, 0x1010, a, 16);
	code_runs_add(&r, 0x1000, b, 64); /* before and behind it */
	CHECK_EQ(r.n, 3);
	CHECK_EQ(r.bytes, 64);
	run = code_runs_find(&r, 0x101f);
	CHECK(run && run->bytes[0x1f - 0x10] == 'a');
	run = code_runs_find(&r, 0x1020);
	CHECK(run && run->start == 0x1020 && run->len == 32 && run->bytes[0] == 'b');
	CHECK(!code_runs_find(&r, 0x1040));
	CHECK(!code_runs_find(&r, 0xfff));
	code_runs_add(&r, UINT64_MAX - 8, a, 16); /* wraps */
	CHECK_EQ(r.n, 3);
	code_runs_free(&r);
	for (uint64_t i = 0; i < CODESTORE_MAX_RUNS + 10; i++)
		code_runs_add(&r, i * 2, a, 1);
	CHECK_EQ(r.n, CODESTORE_MAX_RUNS);
	code_runs_free(&r);
}

static int put(const char *name, uint64_t start, const char *bytes)
{
	struct code_runs r = {0};
	struct vmprof_err err;
	int ret;

	code_runs_add(&r, start, (const uint8_t *)bytes, strlen(bytes));
	ret = codestore_put(dir, name, id, sizeof(id), EM_X86_64, &r, &err);
	code_runs_free(&r);
	return ret;
}

static void test_file(void)
{
	struct code_runs r;
	struct vmprof_err err;
	char path[PATH_MAX];
	uint16_t machine;

	CHECK_EQ(codestore_get(dir, "web1/../k", id, 20, path), -ENOENT);
	CHECK_EQ(put("web1/../k", 0x2000, "first"), 0);
	CHECK_EQ(put("web1/../k", 0x2003, "SECOND"), 0); /* the newer one wins */
	CHECK_EQ(codestore_get(dir, "web1/../k", id, 20, path), 0);
	CHECK(!strncmp(path, dir, strlen(dir)) && !strstr(path, "/../"));
	CHECK_EQ(codestore_read(&r, path, id, 20, &machine, &err), 0);
	CHECK_EQ(machine, EM_X86_64);
	CHECK_EQ(r.n, 2);
	if (r.n == 2)
		CHECK(!memcmp(r.run[0].bytes, "fir", 3) && !memcmp(r.run[1].bytes, "SECOND", 6));
	code_runs_free(&r);
	CHECK_EQ(codestore_read(&r, path, other, 20, NULL, &err), -ESTALE);
	CHECK_EQ(r.n, 0);
}

/* Cut anywhere it is refused, or has no more than it had. */
static void test_damage(void)
{
	char path[PATH_MAX];
	struct code_runs r;

	CHECK_EQ(codestore_get(dir, "web1/../k", id, 20, path), 0);
	for (off_t size = 700; size >= 0; size--) {
		if (truncate(path, size))
			break;
		if (!codestore_read(&r, path, id, 20, NULL, NULL))
			CHECK(r.bytes <= 9);
		code_runs_free(&r);
	}
}

/*
 * The kernels of both VMs have one function at sys_read, patched in two ways: a static key that is
 * off is a no-op of five bytes, one that is on a jump.
 */
static int put_scenario(const char *store)
{
	static const uint8_t code[SCENARIO_VMS][8] = {
		{0x0f, 0x1f, 0x44, 0x00, 0x00, 0x31, 0xc0, 0xc3},
		{0xe9, 0x02, 0x00, 0x00, 0x00, 0x31, 0xc0, 0xc3},
	};

	for (unsigned i = 0; i < SCENARIO_VMS; i++) {
		struct code_runs r = {0};
		struct vmprof_err err;
		char name[128];
		uint8_t bid[20];

		snprintf(name, sizeof(name), "%s/boot/[%s.kernel]", scenario_vms[i].name,
			 scenario_vms[i].name);
		scenario_bid(&scenario_vms[i], 0, bid);
		code_runs_add(&r, 0x2000, code[i], sizeof(code[i]));
		CHECK_EQ(codestore_put(store, name, bid, 20, EM_X86_64, &r, &err), 0);
		code_runs_free(&r);
	}
	return test_done();
}

int main(int argc, char **argv)
{
	char cmd[128];

	if (argc == 3 && !strcmp(argv[1], "scenario"))
		return put_scenario(argv[2]);
	if (!mkdtemp(dir))
		return 1;
	test_runs();
	test_file();
	test_damage();
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd) ? 1 : test_done();
}
