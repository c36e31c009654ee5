// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/vm: QEMU's command line. It is read as hostile input: whoever started the process
 * chose it.
 */
#ifndef VMPROF_VM_QEMU_H
#define VMPROF_VM_QEMU_H

#include "vm/vm.h"

#define QEMU_ARGS_MAX  (4u << 20) /* bytes */
#define QEMU_VCPUS_MAX 1024

/*
 * Value of @key in an option string like "web1,debug-threads=on" or in its JSON form; the last one
 * wins, as with QEMU. @implied is the key of a first value without "=", NULL if there is none. A
 * bare "key" is "on". Returns a string to free, or NULL.
 */
char *qemu_opts_get(const char *opts, const char *implied, const char *key);

/* QEMU's sizes: "512", "1.5G", "0x1000k"; @unit for a bare number. 0 or -EINVAL. */
int qemu_parse_size(const char *s, uint64_t unit, uint64_t *bytes);

/*
 * Is this the command line of a QEMU that emulates a machine? @args are NUL-separated and end with
 * one, @exe is the program's path or "" if it is not known.
 */
bool qemu_is_vm(const char *args, size_t len, const char *exe);

/* Accelerators in the order in which QEMU tries them. */
struct qemu_accels {
	enum vm_accel try[4];
	unsigned n;
};

/*
 * A new VM from a command line; name, uuid, arch, machine, memory, vCPUs (tids 0), qmp_path and
 * RAM are filled in, pid and accel are not.
 */
struct vm *qemu_vm_new(const char *args, size_t len, const char *exe, struct qemu_accels *accels);

/* Takes @text over as the VM's UUID if it is one. */
void vm_set_uuid(struct vm *vm, const char *text);
/* Number of vCPUs becomes @n (at most QEMU_VCPUS_MAX); new ones have no thread. */
void vm_set_nr_vcpus(struct vm *vm, uint32_t n);

/*
 * libvirt's run-time state of a domain (the text of its XML): vCPU threads, monitor socket, UUID.
 * Returns false, and changes nothing, if it is not about this process.
 */
bool libvirt_apply(struct vm *vm, const char *xml, size_t len);
/* The same from the file that libvirt keeps, if it is there and may be read. */
void libvirt_look_up(struct vm *vm);

#endif
