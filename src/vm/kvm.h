// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/vm: VMs by what KVM itself shows of them in /proc, whoever runs them. A VM is a
 * process with descriptors of vCPUs ("anon_inode:kvm-vcpu:3", virt/kvm/kvm_main.c); its monitor's
 * name and command line tell the rest. Each function takes the process's directory ("/proc/4711"),
 * so that tests can make one up.
 */
#ifndef VMPROF_VM_KVM_H
#define VMPROF_VM_KVM_H

#include "vm/vm.h"

#define KVM_VCPUS_MAX 4096

/* What a process's descriptors say. */
struct kvm_fds {
	int vm_fd;	   /* of the VM, -1 none; of several the first */
	uint32_t nr_vcpus; /* highest number + 1; 0: it has no vCPU */
};

/* 0, or -errno: it cannot be told. */
int kvm_fds_read(struct kvm_fds *fds, const char *dir);

/*
 * A new VM from the process's program and command line (@args: NUL-separated, ends with one): its
 * name where the monitor was given one, hypervisor, memory, vCPUs (tids 0); not its pid.
 */
struct vm *kvm_vm_new(const struct kvm_fds *fds, const char *args, size_t len, const char *comm,
		      const char *exe);

/*
 * Which thread runs which vCPU, for those whose thread is not known: KVM's own word in debugfs
 * (@debug: "/sys/kernel/debug/kvm/4711-12"), else the names that monitors give their threads, else
 * threads that just wait in KVM_RUN on a vCPU's descriptor. What is not found out stays 0.
 */
void kvm_find_threads(struct vm *vm, const char *dir, const char *debug);

/* Is it known of all vCPUs which thread runs them? */
bool vm_threads_known(const struct vm *vm);

/* Is this the name of a monitor that is known, "firecracker" say: a process worth being counted as
 * hidden if its descriptors may not be looked at. */
bool kvm_is_monitor(const char *comm);

#endif
