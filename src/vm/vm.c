// SPDX-License-Identifier: GPL-2.0-only
#include "vm/vm.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util/buf.h"
#include "util/text.h"
#include "util/xalloc.h"
#include "vm/kvm.h"
#include "vm/proc.h"
#include "vm/qemu.h"
#include "vm/xen.h"

const char *vm_accel_name(enum vm_accel accel)
{
	static const char *const names[] = {"unknown", "tcg", "kvm", "xen"};

	return names[accel];
}

enum guest_arch vm_guest_arch(const struct vm *vm)
{
	return strcmp(vm->arch, "aarch64") ? GUEST_ARCH_X86_64 : GUEST_ARCH_AARCH64;
}

const char *vm_hypervisor_name(enum vm_hypervisor h)
{
	static const char *const names[] = {"qemu",    "crosvm", "firecracker", "cloud-hypervisor",
					    "kvmtool", "kvm",	 "xen"};

	return names[h];
}

const char *vm_hypervisor_title(enum vm_hypervisor h)
{
	static const char *const titles[] = {
		"QEMU", "crosvm", "Firecracker", "Cloud Hypervisor", "kvmtool", "unknown", "Xen"};

	return titles[h];
}

int32_t vm_number(const struct vm *vm)
{
	return vm->hypervisor == VM_HYPERVISOR_XEN ? (int32_t)vm->domid : vm->pid;
}

const char *vm_number_name(const struct vm *vm)
{
	return vm->hypervisor == VM_HYPERVISOR_XEN ? "domain" : "pid";
}

struct task_walk {
	struct vm *vm;
	enum vm_accel accel; /* as the threads' names tell it */
};

/* "CPU 3/TCG", "CPU 3/KVM", "ALL CPUs/TCG": with debug-threads=on. */
static int look_at_thread(void *ctx, pid_t tid)
{
	struct task_walk *w = ctx;
	unsigned index;
	char name[64], accel[4];

	proc_thread_name(w->vm->pid, tid, name);
	if (!strcmp(name, "ALL CPUs/TCG")) {
		w->vm->single_thread = true;
		w->accel = VM_ACCEL_TCG;
		for (uint32_t i = 0; i < w->vm->nr_vcpus; i++)
			w->vm->vcpus[i].tid = tid;
	} else if (sscanf(name, "CPU %u/%3[A-Z]", &index, accel) == 2 && index < QEMU_VCPUS_MAX) {
		for (enum vm_accel a = VM_ACCEL_TCG; a <= VM_ACCEL_XEN; a++)
			if (!strcasecmp(accel, vm_accel_name(a)))
				w->accel = a;
		if (index >= w->vm->nr_vcpus)
			vm_set_nr_vcpus(w->vm, index + 1);
		w->vm->vcpus[index].tid = tid;
	}
	return 0;
}

/* Which of the accelerators that QEMU was told to try is in use. */
static enum vm_accel settle_accel(const struct vm *vm, const struct qemu_accels *a,
				  enum vm_accel by_threads)
{
	int kvm = 0;

	if (by_threads != VM_ACCEL_UNKNOWN)
		return by_threads;
	if (a->n == 1)
		return a->try[0];
	for (unsigned i = 0; i < a->n; i++) {
		if (a->try[i] != VM_ACCEL_KVM)
			return kvm < 0 ? VM_ACCEL_UNKNOWN : a->try[i];
		kvm = proc_has_fd(vm->pid, "anon_inode:kvm-vm");
		if (kvm > 0)
			return VM_ACCEL_KVM;
	}
	return VM_ACCEL_UNKNOWN;
}

static void name_nameless(struct vm *vm)
{
	if (vm->named)
		return;
	free(vm->name);
	vm->name = xasprintf("%s-%d", vm_hypervisor_name(vm->hypervisor), vm->pid);
}

/* @fds: as read before, or NULL. */
static void find_kvm_threads(struct vm *vm, const struct kvm_fds *fds)
{
	char dir[32], debug[64];
	struct kvm_fds own;

	if (vm_threads_known(vm))
		return;
	snprintf(dir, sizeof(dir), "/proc/%d", vm->pid);
	if (!fds && kvm_fds_read(&own, dir))
		own = (struct kvm_fds){.vm_fd = -1};
	fds = fds ? fds : &own;
	snprintf(debug, sizeof(debug), "/sys/kernel/debug/kvm/%d-%d", vm->pid, fds->vm_fd);
	kvm_find_threads(vm, dir, debug);
}

static struct vm *vm_new(pid_t pid, const char *args, size_t len, const char *exe,
			 const struct proc_stat *st)
{
	struct qemu_accels accels;
	struct task_walk w = {qemu_vm_new(args, len, exe, &accels), VM_ACCEL_UNKNOWN};
	struct vm *vm = w.vm;
	char path[32];

	vm->pid = pid;
	vm->start_time = st->start_time;
	name_nameless(vm);
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	proc_each_number(path, look_at_thread, &w);
	vm->accel = settle_accel(vm, &accels, w.accel);
	libvirt_look_up(vm);
	if (vm->accel == VM_ACCEL_KVM)
		find_kvm_threads(vm, NULL);
	return vm;
}

/* A process that is no QEMU; NULL if there is no VM in it. */
static struct vm *kvm_process(pid_t pid, const char *args, size_t len, const char *exe,
			      const struct proc_stat *st, unsigned *hidden)
{
	struct kvm_fds fds;
	struct vm *vm;
	char dir[32];
	int r;

	snprintf(dir, sizeof(dir), "/proc/%d", pid);
	r = kvm_fds_read(&fds, dir);
	*hidden += r && r != -ENOENT && kvm_is_monitor(st->comm);
	if (r || !fds.nr_vcpus)
		return NULL;
	vm = kvm_vm_new(&fds, args, len, st->comm, exe);
	vm->pid = pid;
	vm->start_time = st->start_time;
	name_nameless(vm);
	find_kvm_threads(vm, &fds);
	return vm;
}

struct scan {
	struct vm_list *list;
	size_t cap;
	unsigned hidden;
};

static void add_vm(struct scan *s, struct vm *vm)
{
	struct vm_list *l = s->list;

	/* libvirt asks QEMU so what it can do: there is no VM in it */
	if (vm->machine && !strcmp(vm->machine, "none")) {
		vm_free(vm);
		return;
	}
	l->vms = xgrow(l->vms, &s->cap, l->n + 1, sizeof(*l->vms));
	l->vms[l->n++] = vm;
}

static int look_at_process(void *ctx, pid_t pid)
{
	struct scan *s = ctx;
	struct proc_stat st;
	struct vm *vm = NULL;
	char exe[512] = "";
	char *args;
	size_t len;
	int r = proc_stat(pid, &st);

	if (r == -EMFILE || r == -ENFILE)
		return r;
	if (r == -EACCES || r == -EPERM)
		s->hidden++; /* /proc is mounted with hidepid: all that is known is that it is there
			      */
	if (r || st.state == 'Z' || st.state == 'X')
		return 0;
	args = proc_read(pid, "cmdline", QEMU_ARGS_MAX, &len);
	if (!args) {
		s->hidden += !strncmp(st.comm, "qemu-system-", 12) ||
			     !strcmp(st.comm, "qemu-kvm") || kvm_is_monitor(st.comm);
		return 0;
	}
	proc_link(pid, "exe", exe, sizeof(exe));
	/* A process without memory (kernel thread, dying) has no command line. */
	if (len && qemu_is_vm(args, len, exe))
		vm = vm_new(pid, args, len, exe, &st);
	else if (len)
		vm = kvm_process(pid, args, len, exe, &st, &s->hidden);
	if (vm)
		add_vm(s, vm);
	free(args);
	return 0;
}

static int by_name_and_pid(const void *a, const void *b)
{
	const struct vm *x = *(struct vm *const *)a, *y = *(struct vm *const *)b;
	int r = strcmp(x->name, y->name);

	return r ? r : (vm_number(x) > vm_number(y)) - (vm_number(x) < vm_number(y));
}

static void add_domain(void *ctx, struct vm *vm)
{
	add_vm(ctx, vm);
}

/* QEMU is no VM under Xen but has the devices of a domain, which is listed as itself. */
static void drop_device_models(struct vm_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->n; i++) {
		struct vm *vm = list->vms[i];

		if (vm->hypervisor == VM_HYPERVISOR_QEMU && vm->accel == VM_ACCEL_XEN)
			vm_free(vm);
		else
			list->vms[kept++] = vm;
	}
	list->n = kept;
}

int vm_list_get(struct vm_list *list, unsigned *hidden, struct vmprof_err *err)
{
	struct scan s = {.list = list};
	int r;

	*list = (struct vm_list){0};
	r = proc_each_number("/proc", look_at_process, &s);
	if (r < 0)
		return err_sys(err, r, "cannot read /proc");
	if (xen_list(add_domain, &s, &list->xen))
		drop_device_models(list);
	if (list->n)
		qsort(list->vms, list->n, sizeof(*list->vms), by_name_and_pid);
	if (hidden)
		*hidden = s.hidden;
	return 0;
}

void vm_free(struct vm *vm)
{
	if (!vm)
		return;
	free(vm->name);
	free(vm->arch);
	free(vm->machine);
	free(vm->binary);
	free(vm->vcpus);
	free(vm->qmp_path);
	free(vm->shared_path);
	free(vm->ram_spec);
	free(vm);
}

void vm_list_free(struct vm_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		vm_free(list->vms[i]);
	free(list->vms);
	*list = (struct vm_list){0};
}

typedef bool (*matcher)(const struct vm *vm, const char *spec);

static bool match_name(const struct vm *vm, const char *spec)
{
	return !strcmp(vm->name, spec);
}

static bool match_uuid(const struct vm *vm, const char *spec)
{
	return vm->uuid[0] && !strcasecmp(vm->uuid, spec);
}

static bool match_number(const struct vm *vm, const char *spec)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", vm_number(vm));
	return !strcmp(number, spec);
}

static void say_unknown(const struct vm_list *list, const char *spec, struct vmprof_err *err)
{
	struct buf b = {0};
	char text[256];

	escape_str(text, sizeof(text), spec);
	for (size_t i = 0; i < list->n && b.len < 512; i++) {
		char name[128];

		escape_str(name, sizeof(name), list->vms[i]->name);
		buf_printf(&b, "%s%s", i ? ", " : "", name);
	}
	if (list->xen.code)
		err_set(err, ENOENT, "no VM '%s': %s", text, list->xen.msg);
	else if (!list->n)
		err_set(err, ENOENT, "no VM '%s': no VM runs on this host", text);
	else
		err_set(err, ENOENT,
			"no VM '%s'; running: %s. 'vmprof list' shows names, UUIDs and pids", text,
			(char *)b.data);
	buf_free(&b);
}

static void say_ambiguous(const struct vm_list *list, const char *spec, matcher match,
			  struct vmprof_err *err)
{
	struct buf b = {0};
	char text[256];
	unsigned n = 0;

	for (size_t i = 0; i < list->n; i++) {
		const struct vm *vm = list->vms[i];

		if (!match(vm, spec) || n++ > 15)
			continue;
		buf_printf(&b, "%s%s %d (%s%s)", b.len ? ", " : "", vm_number_name(vm),
			   vm_number(vm), vm->uuid[0] ? "UUID " : "no UUID", vm->uuid);
	}
	err_set(err, ENOTUNIQ, "%u VMs match '%s': %s. Name one of them by its pid or UUID", n,
		escape_str(text, sizeof(text), spec), (char *)b.data);
	buf_free(&b);
}

struct vm *vm_list_find(const struct vm_list *list, const char *spec, struct vmprof_err *err)
{
	static const matcher matchers[] = {match_name, match_uuid, match_number};

	for (size_t m = 0; m < sizeof(matchers) / sizeof(*matchers); m++) {
		struct vm *found = NULL;

		for (size_t i = 0; i < list->n; i++) {
			if (!matchers[m](list->vms[i], spec))
				continue;
			if (found) {
				say_ambiguous(list, spec, matchers[m], err);
				return NULL;
			}
			found = list->vms[i];
		}
		if (found)
			return found;
	}
	say_unknown(list, spec, err);
	return NULL;
}

struct vm *vm_list_only(const struct vm_list *list, unsigned hidden, struct vmprof_err *err)
{
	char names[512] = "", one[128];

	if (list->n == 1)
		return list->vms[0];
	for (size_t i = 0; i < list->n; i++) {
		size_t at = strlen(names);

		snprintf(names + at, sizeof(names) - at, "%s%s", at ? ", " : "",
			 escape_str(one, sizeof(one), list->vms[i]->name));
	}
	if (list->n)
		err_set(err, EINVAL,
			"%zu VMs run on this host (%s): name one or more with --vm, or take all "
			"with --all-vms",
			list->n, names);
	else if (list->xen.code)
		err_set(err, list->xen.code, "%s", list->xen.msg);
	else
		err_set(err, ENOENT, "no VM runs on this host%s",
			hidden ? " that this user may look at; try as root" : "");
	return NULL;
}

int vm_alive(const struct vm *vm)
{
	struct proc_stat st;
	int r;

	if (vm->hypervisor == VM_HYPERVISOR_XEN)
		return xen_alive(vm);
	r = proc_stat(vm->pid, &st);
	if (r)
		return r != -ESRCH; /* not known: no file can be opened, say */
	return st.start_time == vm->start_time && st.state != 'Z' && st.state != 'X';
}
