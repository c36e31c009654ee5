// SPDX-License-Identifier: GPL-2.0-only
#include "vm/kvm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "util/text.h"
#include "util/xalloc.h"
#include "vm/proc.h"
#include "vm/qemu.h"

#define FDS_MAX	  65536	    /* descriptors of one process that are looked at */
#define KVM_RUN	  0xae80ull /* linux/kvm.h */
#define MIB	  (1ull << 20)
#define LINE_SIZE 256

/* ---------- monitors ---------- */

static const struct monitor {
	const char *comm; /* as /proc has it, at most 15 characters */
	enum vm_hypervisor hypervisor;
	const char *thread;		 /* how its vCPUs' threads are called; %u is the vCPU */
	const char *name[2], *memory[2]; /* options */
	const char *uuid;		 /* option with a key "uuid" in its value */
} monitors[] = {
	{"firecracker", VM_HYPERVISOR_FIRECRACKER, "fc_vcpu %u", {"--id"}, {NULL}, NULL},
	{"cloud-hyperviso",
	 VM_HYPERVISOR_CLOUD_HYPERVISOR,
	 "vcpu%u",
	 {NULL},
	 {"--memory"},
	 "--platform"},
	{"crosvm", VM_HYPERVISOR_CROSVM, "crosvm_vcpu%u", {"--name"}, {"--mem", "-m"}, NULL},
	{"lkvm", VM_HYPERVISOR_KVMTOOL, "kvm-vcpu-%u", {"--name", "-n"}, {"--mem", "-m"}, NULL},
	{"kvmtool", VM_HYPERVISOR_KVMTOOL, "kvm-vcpu-%u", {"--name", "-n"}, {"--mem", "-m"}, NULL},
};

/* One that is not known may do as the others do. */
static const struct monitor other = {"",  VM_HYPERVISOR_OTHER, NULL, {"--name", "--id"}, {NULL},
				     NULL};

static const struct monitor *monitor_of(const char *comm, const char *exe)
{
	const char *base = strrchr(exe, '/') ? strrchr(exe, '/') + 1 : exe;

	for (size_t i = 0; i < sizeof(monitors) / sizeof(*monitors); i++)
		if (!strcmp(comm, monitors[i].comm) ||
		    !strncmp(base, monitors[i].comm, strlen(monitors[i].comm)))
			return &monitors[i];
	return &other;
}

bool kvm_is_monitor(const char *comm)
{
	return monitor_of(comm, "") != &other;
}

/* ---------- command line ---------- */

/* The value of an option: "--id web1" or "--id=web1". NULL: it is not there. */
static const char *option(const char *args, size_t len, const char *name)
{
	const char *value = NULL;
	size_t n = name ? strlen(name) : 0;

	for (const char *a = args; name && a < args + len; a += strlen(a) + 1) {
		if (strncmp(a, name, n) != 0)
			continue;
		if (a[n] == '=')
			value = a + n + 1;
		else if (!a[n] && a + n + 1 < args + len)
			value = a + n + 1;
	}
	return value;
}

static const char *one_of(const char *args, size_t len, const char *const names[2])
{
	const char *v = option(args, len, names[0]);

	return v ? v : option(args, len, names[1]);
}

/* "size=1G,shared=on", "1024", "size=512" (crosvm: MiB); 0: unknown. */
static uint64_t memory_size(const char *value)
{
	char *size = value ? qemu_opts_get(value, "size", "size") : NULL;
	uint64_t bytes = 0;

	if (size && qemu_parse_size(size, MIB, &bytes))
		bytes = 0;
	free(size);
	return bytes;
}

static void take_uuid(struct vm *vm, const char *value)
{
	char *uuid = value ? qemu_opts_get(value, NULL, "uuid") : NULL;

	if (uuid)
		vm_set_uuid(vm, uuid);
	free(uuid);
}

static char *host_arch(void)
{
	struct utsname u;

	return xstrdup(uname(&u) ? "x86_64" : u.machine);
}

struct vm *kvm_vm_new(const struct kvm_fds *fds, const char *args, size_t len, const char *comm,
		      const char *exe)
{
	const struct monitor *m = monitor_of(comm, exe);
	const char *name = one_of(args, len, m->name);
	struct vm *vm = xcalloc(1, sizeof(*vm));

	vm->hypervisor = m->hypervisor;
	vm->accel = VM_ACCEL_KVM;
	vm->arch = host_arch();
	vm->binary = xstrdup(exe);
	vm->named = name && *name;
	vm->name = xstrdup(vm->named ? name : "");
	vm->memory = memory_size(one_of(args, len, m->memory));
	take_uuid(vm, option(args, len, m->uuid));
	vm_set_nr_vcpus(vm, fds->nr_vcpus);
	return vm;
}

/* ---------- descriptors ---------- */

struct fd_walk {
	const char *dir;
	struct kvm_fds *fds;
	unsigned looked;
};

/* The vCPU whose descriptor this is, or -1. */
static int64_t vcpu_of_link(const char *link)
{
	unsigned vcpu;
	int end = 0;

	if (sscanf(link, "anon_inode:kvm-vcpu:%u%n", &vcpu, &end) != 1 || link[end] ||
	    vcpu >= KVM_VCPUS_MAX)
		return -1;
	return vcpu;
}

static bool read_fd_link(const char *dir, uint64_t fd, char *link, size_t size)
{
	char path[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/fd/%" PRIu64, dir, fd);
	n = readlink(path, link, size - 1);
	link[n > 0 ? n : 0] = 0;
	return n > 0;
}

static int look_at_fd(void *ctx, pid_t fd)
{
	struct fd_walk *w = ctx;
	char link[64];
	int64_t vcpu;

	if (++w->looked > FDS_MAX)
		return 1;
	if (!read_fd_link(w->dir, (uint64_t)fd, link, sizeof(link)))
		return 0;
	vcpu = vcpu_of_link(link);
	if (vcpu >= w->fds->nr_vcpus)
		w->fds->nr_vcpus = (uint32_t)vcpu + 1;
	if (!strcmp(link, "anon_inode:kvm-vm") && (w->fds->vm_fd < 0 || fd < w->fds->vm_fd))
		w->fds->vm_fd = fd;
	return 0;
}

int kvm_fds_read(struct kvm_fds *fds, const char *dir)
{
	struct fd_walk w = {.dir = dir, .fds = fds};
	char path[PATH_MAX];
	int r;

	*fds = (struct kvm_fds){.vm_fd = -1};
	snprintf(path, sizeof(path), "%s/fd", dir);
	r = proc_each_number(path, look_at_fd, &w);
	return r < 0 ? r : 0;
}

/* ---------- threads ---------- */

/* The first line of a file; "" if it cannot be read. */
static void read_line(char line[LINE_SIZE], const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void read_line(char line[LINE_SIZE], const char *fmt, ...)
{
	char path[PATH_MAX];
	ssize_t n = -1;
	va_list ap;
	int fd;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		n = read(fd, line, LINE_SIZE - 1);
		close(fd);
	}
	line[n > 0 ? n : 0] = 0;
	line[strcspn(line, "\n")] = 0;
}

static void by_debugfs(struct vm *vm, const char *debug)
{
	for (uint32_t i = 0; debug && i < vm->nr_vcpus; i++) {
		char line[LINE_SIZE];

		if (vm->vcpus[i].tid)
			continue;
		read_line(line, "%s/vcpu%u/pid", debug, i);
		vm->vcpus[i].tid = (pid_t)strtol(line, NULL, 10);
		if (vm->vcpus[i].tid < 0)
			vm->vcpus[i].tid = 0;
	}
}

struct thread_walk {
	struct vm *vm;
	const char *dir;
};

static void set_thread(struct vm *vm, int64_t vcpu, pid_t tid)
{
	if (vcpu >= 0 && vcpu < vm->nr_vcpus && !vm->vcpus[vcpu].tid)
		vm->vcpus[vcpu].tid = tid;
}

/* Any monitor's way of naming threads, since it is not always known which one it is. */
static int64_t vcpu_of_name(const char *name)
{
	static const char *const others[] = {"CPU %u/KVM", "vcpu-%u", "vcpu %u", "vCPU %u"};
	const size_t nr_others = sizeof(others) / sizeof(*others);
	const size_t n = sizeof(monitors) / sizeof(*monitors);

	for (size_t i = 0; i < n + nr_others; i++) {
		const char *fmt = i < n ? monitors[i].thread : others[i - n];
		const char *hole = strstr(fmt, "%u");
		size_t before = (size_t)(hole - fmt);
		unsigned long v;
		char *end;

		if (strncmp(name, fmt, before) != 0 || name[before] < '0' || name[before] > '9')
			continue;
		v = strtoul(name + before, &end, 10);
		if (!strcmp(end, hole + 2) && v < KVM_VCPUS_MAX)
			return (int64_t)v;
	}
	return -1;
}

static int by_name(void *ctx, pid_t tid)
{
	struct thread_walk *w = ctx;
	char line[LINE_SIZE];

	read_line(line, "%s/task/%d/comm", w->dir, tid);
	set_thread(w->vm, vcpu_of_name(line), tid);
	return 0;
}

/*
 * "16 0xd 0xae80 ...": number and arguments of the system call that a thread waits in. A thread in
 * guest mode says "running".
 */
static int by_syscall(void *ctx, pid_t tid)
{
	struct thread_walk *w = ctx;
	char line[LINE_SIZE], link[64];
	uint64_t fd, request;

	read_line(line, "%s/task/%d/syscall", w->dir, tid);
	if (sscanf(line, "%*d %" SCNx64 " %" SCNx64, &fd, &request) != 2 || request != KVM_RUN ||
	    !read_fd_link(w->dir, fd, link, sizeof(link)))
		return 0;
	set_thread(w->vm, vcpu_of_link(link), tid);
	return 0;
}

bool vm_threads_known(const struct vm *vm)
{
	for (uint32_t i = 0; i < vm->nr_vcpus; i++)
		if (!vm->vcpus[i].tid)
			return false;
	return true;
}

void kvm_find_threads(struct vm *vm, const char *dir, const char *debug)
{
	struct thread_walk w = {vm, dir};
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/task", dir);
	by_debugfs(vm, debug);
	if (!vm_threads_known(vm))
		proc_each_number(path, by_name, &w);
	if (!vm_threads_known(vm))
		proc_each_number(path, by_syscall, &w);
}
