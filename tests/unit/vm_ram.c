// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the machine types put RAM around the hole below 4 GiB; RAM of a process that stands in for
 * QEMU: merged mappings, ranges over the border of two blocks, holes, a file that is cut short, a
 * process that ends.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "util/buf.h"
#include "vm/proc.h"
#include "vm/qemu.h"
#include "vm/sigbus.h"
#include "vm/spec.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

static struct vm *parse(const char *line)
{
	struct qemu_accels accels;
	struct buf b = {0};
	struct vm *vm;

	buf_add(&b, line, strlen(line) + 1);
	for (size_t i = 0; i < b.len; i++)
		if (b.data[i] == ' ')
			b.data[i] = 0;
	vm = qemu_vm_new((char *)b.data, b.len, "/usr/bin/qemu-system-x86_64", &accels);
	buf_free(&b);
	return vm;
}

static void test_layout(void)
{
	static const struct {
		const char *args;
		struct ram_region r[5];
	} cases[] = {
		{"q -M q35 -m 512", {{0, 512 * MIB, 0, 0}}},
		{"q -M q35 -m 2815M", {{0, 2815 * MIB, 0, 0}}}, /* just below 0xb0000000 */
		{"q -M q35 -m 2816M", {{0, 2 * GIB, 0, 0}, {4 * GIB, 768 * MIB, 0, 2 * GIB}}},
		{"q -M q35 -m 3G", {{0, 2 * GIB, 0, 0}, {4 * GIB, GIB, 0, 2 * GIB}}},
		{"q -M pc-q35-7.2 -m 8G", {{0, 2 * GIB, 0, 0}, {4 * GIB, 6 * GIB, 0, 2 * GIB}}},
		{"q -M q35,max-ram-below-4g=1G -m 2G", {{0, GIB, 0, 0}, {4 * GIB, GIB, 0, GIB}}},
		{"q -M q35,max-ram-below-4g=3G -m 8G",
		 {{0, 2 * GIB, 0, 0}, {4 * GIB, 6 * GIB, 0, 2 * GIB}}},
		{"q -m 512", {{0, 512 * MIB, 0, 0}}},
		{"q -M pc -m 3583M", {{0, 3583 * MIB, 0, 0}}},
		{"q -M pc -m 3584M", {{0, 3 * GIB, 0, 0}, {4 * GIB, 512 * MIB, 0, 3 * GIB}}},
		{"q -M pc-i440fx-7.2 -m 8G", {{0, 3 * GIB, 0, 0}, {4 * GIB, 5 * GIB, 0, 3 * GIB}}},
		{"q -M pc-i440fx-1.7 -m 4G",
		 {{0, 3584 * MIB, 0, 0}, {4 * GIB, 512 * MIB, 0, 3584 * MIB}}},
		{"q -M pc,max-ram-below-4g=2G -m 4G",
		 {{0, 2 * GIB, 0, 0}, {4 * GIB, 2 * GIB, 0, 2 * GIB}}},
		{"q -M pc,max-ram-below-4g=4G -m 3968M", {{0, 3968 * MIB, 0, 0}}},
		{"q -M microvm -m 4G", {{0, 3 * GIB, 0, 0}, {4 * GIB, GIB, 0, 3 * GIB}}},
		/* the hole splits the second node */
		{"q -M q35 -m 4G -object memory-backend-ram,id=a,size=1G -object "
		 "memory-backend-ram,id=b,size=3G -numa node,memdev=a -numa node,memdev=b",
		 {{0, GIB, 0, 0}, {GIB, GIB, 1, 0}, {4 * GIB, 2 * GIB, 1, GIB}}},
		{"q -M q35 -m 4G,slots=2,maxmem=8G -object memory-backend-ram,id=d,size=512M "
		 "-object memory-backend-ram,id=e,size=1G -device pc-dimm,memdev=d "
		 "-device pc-dimm,memdev=e,addr=0x200000000",
		 {{0, 2 * GIB, 0, 0},
		  {4 * GIB, 2 * GIB, 0, 2 * GIB},
		  {6 * GIB, 512 * MIB, 1, 0},
		  {8 * GIB, GIB, 2, 0}}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ram_region r[RAM_REGIONS_MAX];
		struct vmprof_err err = {0};
		struct vm *vm = parse(cases[i].args);
		int want = 0, n = ram_layout(r, vm, &err);

		while (want < 5 && cases[i].r[want].len)
			want++;
		if (n != want || memcmp(r, cases[i].r, (size_t)want * sizeof(*r)) != 0) {
			fprintf(stderr, "layout of \"%s\": %d regions %s\n", cases[i].args, n,
				err.msg);
			for (int j = 0; j < n; j++)
				fprintf(stderr, "  %#llx %#llx block %u %#llx\n",
					(unsigned long long)r[j].gpa, (unsigned long long)r[j].len,
					r[j].block, (unsigned long long)r[j].off);
			test_failures++;
		}
		vm_free(vm);
	}
}

static void test_bad_layout(void)
{
	static const char *const cases[] = {
		"q -M nosuch -m 1G",
		/* a DIMM over RAM */
		"q -m 1G -object memory-backend-ram,id=d,size=1G -device "
		"pc-dimm,memdev=d,addr=4096",
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct ram_region r[RAM_REGIONS_MAX];
		struct vmprof_err err = {0};
		struct vm *vm = parse(cases[i]);

		CHECK(ram_layout(r, vm, &err) < 0);
		CHECK(err.code && err.msg[0]);
		vm_free(vm);
	}
}

/* ---------- a process in QEMU's place ---------- */

static pid_t start_child(void (*setup)(void))
{
	int p[2];
	char c;
	pid_t pid;

	if (pipe(p))
		exit(1);
	pid = fork();
	if (!pid) {
		setup();
		if (write(p[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	CHECK(read(p[0], &c, 1) == 1);
	close(p[0]);
	close(p[1]);
	return pid;
}

static void set_process(struct vm *vm, pid_t pid)
{
	struct proc_stat st;

	CHECK(!proc_stat(pid, &st));
	vm->pid = pid;
	vm->start_time = st.start_time;
	vm->name = strdup("child");
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* 96 MiB that the kernel has merged with 32 MiB below, as QEMU's RAM can be with a neighbour. */
static void setup_merged(void)
{
	uint8_t *p = mmap((void *)0x700000000000, 128 * MIB, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		_exit(1);
	p[32 * MIB + 4096] = 0x5a;
	p[64 * MIB] = 0x5b;
}

static void test_process(void)
{
	pid_t pid = start_child(setup_merged);
	struct vm *vm = parse("q -M q35 -m 96");
	struct vmprof_err err = {0};
	uint64_t start, len;
	struct vm_ram *ram;
	uint8_t b[2] = {1, 1};
	struct guest_mem_io io[2] = {{4096, b, 1, false}, {32 * MIB, b + 1, 1, false}};
	struct guest_mem *m;

	set_process(vm, pid);
	CHECK(!vm_ram_open(&ram, vm, &err));
	m = vm_ram_mem(ram);
	CHECK_STR(vm_ram_kind(ram), "process");
	CHECK(!m->ops->readv(m, io, 2) && io[0].ok && io[1].ok);
	CHECK(b[0] == 0x5a && b[1] == 0x5b);
	CHECK(m->ops->next_range(m, 0, &start, &len));
	CHECK(start <= 4096 && start + len > 4096);
	end_child(pid);
	CHECK_EQ(m->ops->readv(m, io, 2), -ESRCH);
	CHECK(!vm_alive(vm));
	vm_ram_close(ram);
	CHECK_EQ(vm_ram_open(&ram, vm, &err), -ESRCH);
	vm_free(vm);
}

static char ram_file[64];

static void setup_file(void)
{
	FILE *f = fopen(ram_file, "r+");
	uint8_t *p = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);

	p[8 * MIB] = 0x77;
	p[40 * MIB] = 0x78;
}

/* A file is mapped; only what was written is shown; its end goes away under the reader. */
static void test_file(void)
{
	struct vm *vm = parse("q -M q35 -m 64 -object memory-backend-file,id=m,size=64M,share=on "
			      "-machine memory-backend=m");
	struct vmprof_err err = {0};
	uint64_t start, len, total = 0;
	struct vm_ram *ram;
	struct guest_mem *m;
	const uint8_t *p;
	pid_t pid;
	int fd;

	strcpy(ram_file, "/tmp/vmprof-ram-XXXXXX");
	fd = mkstemp(ram_file);
	CHECK(fd >= 0 && !ftruncate(fd, 64 * MIB));
	pid = start_child(setup_file);
	set_process(vm, pid);
	CHECK(!vm_ram_open(&ram, vm, &err));
	m = vm_ram_mem(ram);
	CHECK_STR(vm_ram_kind(ram), "file");
	for (uint64_t at = 0; m->ops->next_range(m, at, &start, &len); at = start + len)
		total += len;
	CHECK(total >= 2 * 4096 && total < 4 * MIB);
	p = m->ops->map(m, 8 * MIB, 4096);
	CHECK(p && p[0] == 0x77);
	CHECK(!m->ops->map(m, 64 * MIB - 1, 2));
	p = m->ops->map(m, 40 * MIB, 24 * MIB);
	CHECK(p && p[0] == 0x78);
	CHECK(!ftruncate(fd, 16 * MIB));
	CHECK(p[4096] == 0 && p[0] == 0 && p[24 * MIB - 1] == 0); /* SIGBUS without the guard */
	p = m->ops->map(m, 8 * MIB, 4096);
	CHECK(p[0] == 0x77);
	vm_ram_close(ram);
	end_child(pid);
	close(fd);
	unlink(ram_file);
	vm_free(vm);
}

/* Outside of guarded ranges SIGBUS is what it was. */
static void test_foreign_sigbus(void)
{
	FILE *f = tmpfile();
	uint8_t *guarded, *other;
	int slot, status;
	pid_t pid;

	CHECK(!ftruncate(fileno(f), 2 * 4096));
	guarded = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(f), 0);
	other = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(f), 4096);
	slot = sigbus_guard(guarded, 4096, 4096, PROT_READ);
	CHECK(!ftruncate(fileno(f), 0));
	pid = fork();
	if (!pid) {
		close(STDERR_FILENO); /* the sanitizer's report is not wanted here */
		_exit(*(volatile uint8_t *)other);
	}
	waitpid(pid, &status, 0);
	CHECK(status != 0); /* a signal, or the sanitizer's report of it */
	CHECK(!sigbus_hit(slot));
	CHECK(*(volatile uint8_t *)guarded == 0);
	CHECK(sigbus_hit(slot));
	sigbus_unguard(slot);
	fclose(f);
}

int main(void)
{
	test_layout();
	test_bad_layout();
	test_process();
	test_file();
	test_foreign_sigbus();
	return test_done();
}
