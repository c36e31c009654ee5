// SPDX-License-Identifier: GPL-2.0-only
/*
 * VMs of any monitor, by what a made-up /proc/PID has: descriptors of vCPUs, command lines, names
 * of threads, what threads wait for; KVM's debugfs.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/test.h"
#include "vm/kvm.h"

static char root[] = "/tmp/vmprof-proc.XXXXXX";

static void make_dirs(char *full)
{
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(full, 0755);
		*p = '/';
	}
}

static void put(const char *path, const char *text)
{
	char full[512];
	int fd;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	make_dirs(full);
	fd = open(full, O_CREAT | O_TRUNC | O_WRONLY, 0644);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void put_fd(int pid, int fd, const char *target)
{
	char full[512];

	snprintf(full, sizeof(full), "%s/%d/fd/%d", root, pid, fd);
	make_dirs(full);
	CHECK(!symlink(target, full));
}

static void put_thread(int pid, int tid, const char *comm, const char *syscall)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/task/%d/comm", pid, tid);
	put(path, comm);
	snprintf(path, sizeof(path), "%d/task/%d/syscall", pid, tid);
	put(path, syscall);
}

/* A process with a VM of @vcpus vCPUs, with descriptors 10, 11 and so on. */
static void make_vm(int pid, unsigned vcpus)
{
	char link[64];

	put_fd(pid, 0, "/dev/null");
	put_fd(pid, 4, "/dev/kvm");
	put_fd(pid, 9, "anon_inode:kvm-vm");
	for (unsigned i = 0; i < vcpus; i++) {
		snprintf(link, sizeof(link), "anon_inode:kvm-vcpu:%u", i);
		put_fd(pid, 10 + (int)i, link);
	}
}

static const char *dir_of(int pid)
{
	static char dir[128];

	snprintf(dir, sizeof(dir), "%s/%d", root, pid);
	return dir;
}

static struct vm *look(int pid, const char *args, size_t len, const char *comm, const char *exe)
{
	struct kvm_fds fds;
	char debug[128];
	struct vm *vm;

	CHECK(!kvm_fds_read(&fds, dir_of(pid)));
	vm = kvm_vm_new(&fds, args, len, comm, exe);
	snprintf(debug, sizeof(debug), "%s/debug/%d-%d", root, pid, fds.vm_fd);
	kvm_find_threads(vm, dir_of(pid), debug);
	return vm;
}

#define ARGS(s) s, sizeof(s)

static void test_monitors(void)
{
	static const struct {
		const char *comm, *exe, *args;
		size_t len;
		enum vm_hypervisor hypervisor;
		const char *thread, *name, *uuid;
		uint64_t mib;
	} cases[] = {
		{"firecracker", "/jail/firecracker", ARGS("./fc\0--api-sock\0/x\0--id\0web1"),
		 VM_HYPERVISOR_FIRECRACKER, "fc_vcpu 0\n", "web1", "", 0},
		{"firecracker-v1.", "/usr/bin/firecracker-v1.7", ARGS("fc\0--id=web2"),
		 VM_HYPERVISOR_FIRECRACKER, "fc_vcpu 0\n", "web2", "", 0},
		{"cloud-hyperviso", "/usr/bin/cloud-hypervisor",
		 ARGS("ch\0--memory\0size=1G,shared=on\0--platform\0"
		      "uuid=0D4D8A1E-0000-4000-8000-00000000abcd,x=y"),
		 VM_HYPERVISOR_CLOUD_HYPERVISOR, "vcpu0\n", NULL,
		 "0d4d8a1e-0000-4000-8000-00000000abcd", 1024},
		{"crosvm", "/usr/bin/crosvm",
		 ARGS("crosvm\0run\0--name\0vm3\0--mem\0"
		      "512\0k"),
		 VM_HYPERVISOR_CROSVM, "crosvm_vcpu0\n", "vm3", "", 512},
		{"lkvm", "/opt/lkvm",
		 ARGS("lkvm\0run\0-n\0db1\0-m\0"
		      "256"),
		 VM_HYPERVISOR_KVMTOOL, "kvm-vcpu-0\n", "db1", "", 256},
		{"mine", "/opt/mine", ARGS("mine\0--frob"), VM_HYPERVISOR_OTHER, "vcpu-0\n", NULL,
		 "", 0},
		/* the last argument is an option without its value */
		{"firecracker", "", ARGS("fc\0--id"), VM_HYPERVISOR_FIRECRACKER, "fc_vcpu 0\n",
		 NULL, "", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int pid = 100 + (int)i;
		struct vm *vm;

		make_vm(pid, 1);
		put_thread(pid, pid, cases[i].comm, "running\n");
		put_thread(pid, pid + 1000, cases[i].thread, "running\n");
		vm = look(pid, cases[i].args, cases[i].len, cases[i].comm, cases[i].exe);
		CHECK_EQ(vm->hypervisor, cases[i].hypervisor);
		CHECK_EQ(vm->accel, VM_ACCEL_KVM);
		CHECK_EQ(vm->named, cases[i].name != NULL);
		CHECK_STR(vm->name, cases[i].name ? cases[i].name : "");
		CHECK_STR(vm->uuid, cases[i].uuid);
		CHECK_EQ(vm->memory, cases[i].mib << 20);
		CHECK_EQ(vm->nr_vcpus, 1);
		CHECK_EQ(vm->vcpus[0].tid, pid + 1000);
		vm_free(vm);
	}
}

/* A monitor that gives its threads no names: those that wait in KVM_RUN are known, no others. */
static void test_by_syscall(void)
{
	struct vm *vm;

	make_vm(300, 4);
	put_thread(300, 300, "mine\n", "7 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n");
	put_thread(300, 301, "mine\n", "16 0xb 0xae80 0x0 0x0 0x0 0x0 0x7ffd 0x7fff\n");
	put_thread(300, 302, "mine\n", "running\n");
	put_thread(300, 303, "mine\n", "16 0xd 0xae03 0x0 0x0 0x0 0x0 0x7ffd 0x7fff\n");
	put_thread(300, 304, "mine\n", "16 0x9 0xae80 0x0 0x0 0x0 0x0 0x7ffd 0x7fff\n");
	put_thread(300, 305, "mine\n", "16 0xffffffffffffffff 0xae80\n");
	vm = look(300, ARGS("mine"), "mine", "/opt/mine");
	CHECK_EQ(vm->nr_vcpus, 4);
	CHECK_EQ(vm->vcpus[0].tid, 0);
	CHECK_EQ(vm->vcpus[1].tid, 301);
	CHECK_EQ(vm->vcpus[2].tid, 0);
	CHECK_EQ(vm->vcpus[3].tid, 0);
	CHECK(!vm_threads_known(vm));
	vm_free(vm);
}

/* KVM's own word comes first. */
static void test_by_debugfs(void)
{
	struct vm *vm;

	make_vm(310, 2);
	put_thread(310, 310, "vcpu0\n", "running\n");
	put_thread(310, 311, "x\n", "running\n");
	put_thread(310, 312, "vcpu1\n", "running\n");
	put("debug/310-9/vcpu0/pid", "311\n");
	put("debug/310-9/vcpu1/pid", "rubbish\n");
	vm = look(310, ARGS("cloud-hypervisor"), "cloud-hyperviso", "/opt/ch");
	CHECK_EQ(vm->vcpus[0].tid, 311);
	CHECK_EQ(vm->vcpus[1].tid, 312);
	CHECK(vm_threads_known(vm));
	vm_free(vm);
}

static void test_no_vm(void)
{
	struct kvm_fds fds;

	put_fd(320, 1, "anon_inode:[eventfd]");
	put_fd(320, 2, "/dev/kvm");
	put_fd(320, 3, "anon_inode:kvm-vcpu:");
	put_fd(320, 4, "anon_inode:kvm-vcpu:1x");
	put_fd(320, 5, "anon_inode:kvm-vcpu:4096");
	put_fd(320, 6, "anon_inode:kvm-vcpu:99999999999");
	put_fd(320, 7, "/tmp/anon_inode:kvm-vcpu:1");
	CHECK(!kvm_fds_read(&fds, dir_of(320)));
	CHECK_EQ(fds.nr_vcpus, 0);
	CHECK_EQ(fds.vm_fd, -1);
	CHECK(kvm_fds_read(&fds, dir_of(999)) < 0);
	CHECK(kvm_is_monitor("firecracker") && kvm_is_monitor("cloud-hyperviso"));
	CHECK(!kvm_is_monitor("bash") && !kvm_is_monitor(""));
}

int main(void)
{
	char command[64];

	if (!mkdtemp(root))
		return 1;
	test_monitors();
	test_by_syscall();
	test_by_debugfs();
	test_no_vm();
	snprintf(command, sizeof(command), "rm -rf %s", root);
	CHECK(!system(command));
	return test_done();
}
