// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "backend/clockevent.h"
#include "backend/tcg.h"
#include "util/text.h"

static const char *const event_names[] = {"cpu-clock", "task-clock", NULL};

/*
 * Before 7.2 generated code stored the guest's instruction pointer only where it left the chain of
 * translated blocks: a loop showed the address at which it was entered.
 */
int tcg_check_version(const struct vm *vm, struct vmprof_err *err)
{
	char version[VM_VERSION_SIZE], name[96];
	unsigned major, minor;

	if (!vm_qemu_version(vm, version) || sscanf(version, "%u.%u", &major, &minor) != 2 ||
	    major > 7 || (major == 7 && minor >= 2))
		return 0;
	return err_set(
		err, ENOTSUP,
		"%s runs in QEMU %s, which does not keep the guest's instruction pointer up to "
		"date in translated code: 7.2 or later is needed",
		escape_str(name, sizeof(name), vm->name), version);
}

static int check_memory(const struct vm *vm, struct vmprof_err *err)
{
	struct proc_maps maps;
	uint64_t word;
	int r = proc_maps_read(&maps, vm->pid);

	if (r)
		return vm_access_error(vm, r, "the memory", err);
	for (size_t i = 0; i < maps.n; i++) {
		if (!maps.map[i].read || maps.map[i].path[0] == '[')
			continue;
		r = proc_read_memory(vm->pid, maps.map[i].start, &word, sizeof(word));
		if (r != -EFAULT)
			break;
	}
	proc_maps_free(&maps);
	return r ? vm_access_error(vm, r, "the memory", err) : 0;
}

static int check_perf(const struct vm *vm, struct vmprof_err *err)
{
	struct perf_event_attr attr;
	struct perf_ring ring;
	int r;

	tcg_attr(&attr, 1000000);
	r = perf_ring_open(&ring, &attr, vm->pid, 0, err);
	perf_ring_close(&ring);
	return r;
}

int tcg_try_event(const struct vm *vm, const struct event *e, struct vmprof_err *err)
{
	return clockevent_try("tcg", e, err);
}

void tcg_probe(const struct vm *vm, struct backend_caps *caps)
{
	struct vmprof_err err = {0};
	char name[96], arch[32];

	*caps = (struct backend_caps){
		.events = event_names, .registers = true, .peek = true, .memory = true};
	escape_str(name, sizeof(name), vm->name);
	if (vm->accel == VM_ACCEL_UNKNOWN)
		vm_accel_error(vm, &err);
	else if (vm->accel != VM_ACCEL_TCG)
		err_set(&err, ENOTSUP,
			"%s runs under %s: the tcg backend reads the state of QEMU's translator, "
			"which "
			"does not run then",
			name, vm_accel_name(vm->accel));
	else if (strcmp(vm->arch, "x86_64") != 0 && strcmp(vm->arch, "aarch64") != 0)
		err_set(&err, ENOTSUP,
			"%s is a %s guest: the tcg backend knows x86_64 and aarch64 guests only",
			name, escape_str(arch, sizeof(arch), vm->arch));
	else if (!tcg_check_version(vm, &err) && !check_memory(vm, &err))
		check_perf(vm, &err);
	caps->usable = !err.code;
	snprintf(caps->why_not, sizeof(caps->why_not), "%s", err.msg);
}
