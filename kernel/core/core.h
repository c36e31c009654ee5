/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of kernel/core stand on: types, errors, shared words. They are built into the
 * host's and the guest's kernel module, into programs and into unit tests, the same lines
 * everywhere: so no header of the kernel and none of libc is included here, nothing is allocated
 * and nothing sleeps.
 */
#ifndef VMPROF_CORE_H
#define VMPROF_CORE_H

/* The kernel's own names, where they may be defined already; C11 lets a typedef be repeated. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

/* What a function of kernel/core returns but 0, negative. Its caller knows the words (and the
 * errno) for it. */
enum vmp_error {
	VMP_EINVAL = 1, /* a value that makes no sense */
	VMP_EBUSY,	/* the VM has a row already */
	VMP_EFULL,	/* no room: in the table, or in the ring */
	VMP_ENOENT,	/* no row of that VM */
	VMP_ECOUNTERS,	/* one VM wants more counters at once than a CPU has */
	VMP_ECORRUPT,	/* the other side of a ring has written nonsense into it */
};

/* A word that the other side of a ring reads and writes: once, whole, and in order with what it
 * guards. */
#define vmp_load_acquire(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define vmp_load(p)		__atomic_load_n((p), __ATOMIC_RELAXED)
#define vmp_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define vmp_store(p, v)		__atomic_store_n((p), (v), __ATOMIC_RELAXED)

#endif
