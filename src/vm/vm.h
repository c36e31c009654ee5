// SPDX-License-Identifier: GPL-2.0-only
/*
 * The virtual machines of this host: who they are, from /proc, command lines and libvirt's run-time
 * XML, or from Xen. Nothing here looks into a guest.
 */
#ifndef VMPROF_VM_VM_H
#define VMPROF_VM_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "guest/mem.h"
#include "guest/sample.h"
#include "util/err.h"

/* The program that runs the VM. */
enum vm_hypervisor {
	VM_HYPERVISOR_QEMU,
	VM_HYPERVISOR_CROSVM,
	VM_HYPERVISOR_FIRECRACKER,
	VM_HYPERVISOR_CLOUD_HYPERVISOR,
	VM_HYPERVISOR_KVMTOOL,
	VM_HYPERVISOR_OTHER, /* one that is not known, with a VM of KVM */
	VM_HYPERVISOR_XEN,   /* no program: the host itself runs on Xen */
};
enum vm_accel { VM_ACCEL_UNKNOWN, VM_ACCEL_TCG, VM_ACCEL_KVM, VM_ACCEL_XEN };

struct vm_vcpu {
	uint32_t index;
	pid_t tid; /* 0: not known (QEMU without debug-threads=on, say); several vCPUs may share one
		    */
};

struct vm {
	/* As the hypervisor has it; for a VM without one "qemu-PID", "firecracker-PID",
	 * "domain-DOMID". Not escaped.
	 */
	char *name;
	bool named;    /* whether the name is the hypervisor's */
	char uuid[37]; /* lower case; "" if the VM has none */
	enum vm_hypervisor hypervisor;
	enum vm_accel accel;
	bool single_thread;  /* TCG: all vCPUs in one thread (-accel tcg,thread=single) */
	pid_t pid;	     /* of the process that runs it; 0: a domain of Xen has none */
	uint32_t domid;	     /* of a domain of Xen */
	uint64_t start_time; /* of the process, /proc/PID/stat field 22: tells a reused pid */
	char *arch;	     /* "x86_64", "aarch64": of the guest */
	/* "q35", "pc", "virt", alias as given; NULL: QEMU's default. Of a domain of Xen: "pv",
	 * "pvh", "hvm" */
	char *machine;
	char *binary;	 /* path of the hypervisor's executable as /proc/PID/exe has it */
	uint64_t memory; /* bytes of RAM asked for with -m; 0 unknown */
	struct vm_vcpu *vcpus;
	uint32_t nr_vcpus;
	char *qmp_path; /* unix socket of a QMP monitor, or NULL */
	/* Bytes of the memory of its first ivshmem-plain device; 0: it has none, or shares it not
	 */
	uint64_t shared_size;
	char *shared_path;  /* mem-path of that memory, or NULL */
	bool libvirt;	    /* started by libvirt */
	bool libvirt_state; /* libvirt's own state of it was read: root's, or libvirt_user's */
	uint32_t libvirt_user;
	bool paused_at_start; /* -S */
	/* Parts of QEMU's command line that the RAM's layout depends on; see ram.c. Opaque. */
	struct vm_ram_spec *ram_spec;
};

struct vm_list {
	struct vm **vms; /* sorted by name, then pid */
	size_t n;
	struct vmprof_err xen; /* why this host's domains are not among them, or not by name;
				  .code 0: they are, or there is no Xen */
};

/**
 * vm_list_get - all VMs that run on this host
 * @hidden: how many processes look like a hypervisor but could not be read (permissions); may be
 * NULL
 */
int vm_list_get(struct vm_list *list, unsigned *hidden, struct vmprof_err *err);
void vm_list_free(struct vm_list *list);
void vm_free(struct vm *vm);

/**
 * vm_list_find - the one VM that @spec names: a name, a UUID, a pid (a domain's number), or "name"
 * with several matches
 *
 * Returns it (it still belongs to the list), or NULL with a sentence: unknown (the known ones are
 * listed), or ambiguous (UUIDs and pids of the candidates are listed).
 */
struct vm *vm_list_find(const struct vm_list *list, const char *spec, struct vmprof_err *err);
/*
 * The one VM that there is, for a user who has named none. NULL with a sentence if there are
 * several, or none; @hidden as vm_list_get() has told it.
 */
struct vm *vm_list_only(const struct vm_list *list, unsigned hidden, struct vmprof_err *err);

/* 1 the VM's process (its domain) still runs and is the same one, 0 it is gone. */
int vm_alive(const struct vm *vm);

/*
 * The number that a VM has on its host, and in files: the pid of its process, or of its domain the
 * number. vm_number_name(): "pid", "domain".
 */
int32_t vm_number(const struct vm *vm);
const char *vm_number_name(const struct vm *vm);

enum guest_arch vm_guest_arch(const struct vm *vm); /* x86-64 if it is one that is not known */

const char *vm_accel_name(enum vm_accel accel); /* "tcg", "kvm", ... */
/* "qemu", "firecracker", ...; "kvm" for one that is not known. For people: "QEMU", "Firecracker".
 */
const char *vm_hypervisor_name(enum vm_hypervisor h);
const char *vm_hypervisor_title(enum vm_hypervisor h);

#define VM_VERSION_SIZE 32
/*
 * QEMU's version ("7.2.22"), out of the program's file. false (and "") if it may not be read or
 * does not say.
 */
bool vm_qemu_version(const struct vm *vm, char version[VM_VERSION_SIZE]);

/* Xen's, of the Xen that this host runs on ("4.17.7"). */
bool vm_xen_version(char version[VM_VERSION_SIZE]);

/*
 * The sentence for @code (errno, either sign) from an access to @what ("the memory") of the VM's
 * process: gone, or which permission is missing. Returns -errno.
 */
int vm_access_error(const struct vm *vm, int code, const char *what, struct vmprof_err *err);
/* -EACCES with the sentence for a VM whose accel is VM_ACCEL_UNKNOWN. */
int vm_accel_error(const struct vm *vm, struct vmprof_err *err);

/*
 * The VM's RAM (ram.c): memfd and file mappings are mapped read-only, others are read with
 * process_vm_readv. Several RAM blocks and the hole below 4 GiB are in.
 */
struct vm_ram;
int vm_ram_open(struct vm_ram **out, const struct vm *vm, struct vmprof_err *err);
void vm_ram_close(struct vm_ram *ram);
struct guest_mem *vm_ram_mem(struct vm_ram *ram);
/* Where in QEMU's address space guest-physical memory is; by gpa. Returns how many of @max are set.
 */
struct vm_ram_region {
	uint64_t gpa, len, hva;
};
unsigned vm_ram_regions(const struct vm_ram *ram, struct vm_ram_region *regions, unsigned max);
const char *vm_ram_kind(const struct vm_ram *ram); /* "memfd", "file", "process" for list and -v */

#endif
