// SPDX-License-Identifier: GPL-2.0-only
/*
 * RAM of real QEMU processes (paused, with nothing in them but marks that QEMU's loader has put at
 * known guest-physical addresses): the marks are read where they were put, for one piece of RAM and
 * many, private and shared, below and above the hole; and a vCPU that never ran shows its reset
 * state.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "tests/unit/test.h"
#include "vm/vm.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

static char dir[64];

struct mark {
	uint64_t gpa;
	uint32_t value;
};

static const struct config {
	const char *name, *kind;
	unsigned vcpus;
	uint64_t top;
	const char *args; /* separated by blanks; @ is a scratch directory */
	struct mark marks[6];
} configs[] = {
	{"plain", "process", 1, 64 * MIB, "-M q35 -m 64", {{0x10000, 0x11}, {60 * MIB, 0x12}}},
	{"pc6g",
	 "process",
	 2,
	 7 * GIB,
	 "-M pc -m 6G -smp 2",
	 {{0x10000, 0x21}, {0xc0000000 - 64, 0x22}, {4 * GIB, 0x23}, {7 * GIB - 64, 0x24}}},
	{"q35-3g",
	 "process",
	 1,
	 5 * GIB,
	 "-M q35 -m 3G",
	 {{0x7fffff00, 0x31}, {4 * GIB + 64, 0x32}, {5 * GIB - 64, 0x33}}},
	{"below",
	 "process",
	 1,
	 4 * GIB + 512 * MIB,
	 "-M q35,max-ram-below-4g=1G -m 1536",
	 {{GIB - 64, 0x41}, {4 * GIB, 0x42}}},
	{"memfd",
	 "memfd",
	 1,
	 256 * MIB,
	 "-object memory-backend-memfd,id=m,size=256M -M q35,memory-backend=m -m 256",
	 {{0x10000, 0x51}, {255 * MIB, 0x52}}},
	{"file",
	 "file",
	 1,
	 256 * MIB,
	 "-object memory-backend-file,id=m,size=256M,share=on,mem-path=@/ram -M "
	 "pc,memory-backend=m "
	 "-m 256",
	 {{0x10000, 0x61}, {255 * MIB, 0x62}}},
	{"private-file",
	 "process",
	 1,
	 256 * MIB,
	 "-object memory-backend-file,id=m,size=256M,share=off,mem-path=@/ram2 -M "
	 "pc,memory-backend=m -m 256",
	 {{0x10000, 0x71}, {255 * MIB, 0x72}}},
	/* Nodes of the same size, in another order than their backends. */
	{"numa",
	 "process",
	 2,
	 128 * MIB,
	 "-M q35 -m 128 -smp 2 -object memory-backend-ram,id=b,size=64M -object "
	 "memory-backend-ram,id=a,size=64M -numa node,nodeid=0,cpus=0,memdev=a -numa "
	 "node,nodeid=1,cpus=1,memdev=b",
	 {{0x10000, 0x81}, {64 * MIB - 64, 0x82}, {64 * MIB, 0x83}, {127 * MIB, 0x84}}},
	{"numa-memfd",
	 "memfd",
	 2,
	 5 * GIB,
	 "-M q35 -m 3G -smp 2 -object memory-backend-memfd,id=b,size=1536M -object "
	 "memory-backend-memfd,id=a,size=1536M -numa node,nodeid=0,cpus=0,memdev=a -numa "
	 "node,nodeid=1,cpus=1,memdev=b",
	 {{0x10000, 0x91}, {1536 * MIB, 0x92}, {2 * GIB - 64, 0x93}, {4 * GIB, 0x94}}},
	{"microvm",
	 "process",
	 1,
	 64 * MIB,
	 "-M microvm -m 64",
	 {{0x10000, 0xa1}, {63 * MIB, 0xa2}}},
	{"single",
	 "process",
	 4,
	 64 * MIB,
	 "-M q35 -m 64 -smp 4 -accel tcg,thread=single",
	 {{0x10000, 0xb1}}},
};

static void exec_qemu(const struct config *c)
{
	static char args[8192], loader[6][64], name[64];
	char *argv[128] = {"qemu-system-x86_64", "-S",	  "-display", "none",
			   "-nodefaults",	 "-name", name,	      NULL};
	char *save = NULL, *o = args;
	int n = 7;

	snprintf(name, sizeof(name), "guest=unit-%s", c->name);
	for (const char *p = c->args; *p; p++)
		o += *p == '@' ? sprintf(o, "%s", dir) : (*o = *p, 1);
	*o = 0;
	for (char *a = strtok_r(args, " ", &save); a; a = strtok_r(NULL, " ", &save))
		argv[n++] = a;
	for (int i = 0; i < 6 && c->marks[i].value; i++) {
		snprintf(loader[i], sizeof(loader[i]), "loader,addr=%#llx,data=%#x,data-len=4",
			 (unsigned long long)c->marks[i].gpa, c->marks[i].value);
		argv[n++] = "-device";
		argv[n++] = loader[i];
	}
	argv[n] = NULL;
	execvp(argv[0], argv);
	_exit(127);
}

/* QEMU has started when its state shows all vCPUs in their reset state. */
static bool try_once(const struct config *c, struct vm *vm, bool last)
{
	struct backend_config cfg = {0};
	struct backend_session *s;
	struct vmprof_err err = {0};
	struct guest_regs regs;
	bool ok = true;

	if (backend_tcg.open(&s, vm, &cfg, &err)) {
		if (last)
			fprintf(stderr, "%s: %s\n", c->name, err.msg);
		return false;
	}
	ok = backend_tcg.nr_vcpus(s) == c->vcpus;
	for (uint32_t i = 0; i < c->vcpus && ok; i++)
		ok = !backend_tcg.peek(s, i, &regs) && regs.ip == 0xfffffff0 && regs.cpl == 0 &&
		     regs.cr0 == 0x60000010 && backend_tcg.vcpu_tid(s, i);
	for (int i = 0; i < 6 && c->marks[i].value && ok; i++) {
		struct guest_mem *m = backend_tcg.memory(s);
		uint32_t v = 0;
		struct guest_mem_io io = {c->marks[i].gpa, &v, sizeof(v), false};

		ok = !m->ops->readv(m, &io, 1) && io.ok && v == c->marks[i].value;
		if (!ok && last)
			fprintf(stderr, "%s: mark at %#llx is %#x\n", c->name,
				(unsigned long long)c->marks[i].gpa, v);
	}
	backend_tcg.close(s);
	return ok;
}

static void check_ranges(const struct config *c, struct guest_mem *m)
{
	uint64_t gpa = 0, start, len, total = 0;
	unsigned seen = 0;

	while (m->ops->next_range(m, gpa, &start, &len)) {
		CHECK(start >= gpa && len && start + len <= m->top);
		for (int i = 0; i < 6 && c->marks[i].value; i++)
			seen += c->marks[i].gpa >= start && c->marks[i].gpa < start + len;
		total += len;
		gpa = start + len;
	}
	for (int i = 0; i < 6 && c->marks[i].value; i++)
		seen--;
	CHECK_EQ(seen, 0);
	/* What was never used is left out; the host may have made huge pages of some that was. */
	CHECK(total < 64 * MIB + m->top / 4);
}

static void check_memory(const struct config *c, const struct vm *vm)
{
	struct vmprof_err err = {0};
	struct vm_ram *ram;
	struct guest_mem *m;
	uint8_t b[32];
	struct guest_mem_io io[3] = {
		{0x10000, b, 4, false}, {0, b, 4, false}, {0x10000, b, 4, false}};

	CHECK(!vm_ram_open(&ram, vm, &err));
	if (err.code)
		return;
	m = vm_ram_mem(ram);
	CHECK_STR(vm_ram_kind(ram), c->kind);
	CHECK_EQ(m->top, c->top);
	check_ranges(c, m);
	io[1].gpa = m->top - 2; /* over the end */
	CHECK_EQ(m->ops->readv(m, io, 3), 0);
	CHECK(io[0].ok && !io[1].ok && io[2].ok);
	CHECK(!m->ops->map(m, m->top - 2, 4));
	CHECK(!m->ops->map(m, UINT64_MAX - 2, 4));
	CHECK(!m->ops->map(m, 0, 0) == !strcmp(c->kind, "process"));
	vm_ram_close(ram);
}

static void run(const struct config *c)
{
	struct vmprof_err err = {0};
	pid_t pid = fork();
	bool ok = false;

	if (!pid)
		exec_qemu(c);
	for (int i = 0; i < 100 && !ok; i++) {
		struct vm_list list;
		char spec[16];
		struct vm *vm;

		usleep(50000);
		if (waitpid(pid, NULL, WNOHANG))
			break;
		CHECK(!vm_list_get(&list, NULL, &err));
		snprintf(spec, sizeof(spec), "%d", pid);
		vm = vm_list_find(&list, spec, &err);
		ok = vm && try_once(c, vm, i == 99);
		if (ok)
			check_memory(c, vm);
		vm_list_free(&list);
	}
	if (!ok)
		fprintf(stderr, "configuration %s failed\n", c->name);
	CHECK(ok);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool have_qemu(void)
{
	return !system("qemu-system-x86_64 --version >/dev/null 2>&1");
}

int main(int argc, char **argv)
{
	char cmd[80];

	if (!have_qemu())
		test_skip("qemu-system-x86_64 is not installed");
	if (geteuid())
		test_skip("must be root to look into a process");
	strcpy(dir, "/tmp/vmprof-unit-XXXXXX");
	CHECK(mkdtemp(dir));
	for (size_t i = 0; i < sizeof(configs) / sizeof(*configs); i++)
		if (argc < 2 || !strcmp(argv[1], configs[i].name))
			run(&configs[i]);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	CHECK(!system(cmd));
	return test_done();
}
