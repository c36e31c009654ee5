/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The shared log: memory that a VM and its host both see (an ivshmem-plain device, whose file the
 * host maps). Through it the host says what it wants to be sampled, the guest's kernel puts its
 * row, and its handler writes samples, with no call from one to the other.
 *
 *   page 0            struct vmprof_log_host    written by the host only
 *   page 1            struct vmprof_log_guest   written by the guest only
 *   ring_offset on    ring n at ring_offset + n * ring_stride: of the guest's CPU n (core/ring.h,
 *                     records of core/sample.h), header page and data
 *   side_offset on    one more such ring, of the guest's kernel and not of a handler: what becomes
 *                     of its processes and which files they have mapped
 *
 * Neither side trusts the other. Each copies what the other one has written, checks the copy
 * (core/log.h) and uses nothing but that; sizes of rings it keeps to itself. A page here has 4096
 * bytes, whatever the kernels' pages have.
 *
 * Where the delivery is by NMIs (x86), the host counts in page 0 those that it has sent to
 * each vCPU, and the guest in page 1 which of them it has taken: while the numbers differ one is
 * under way. The vCPU's place is its APIC id.
 *
 * The same log without a host: who opens /dev/vmprof_guest in the guest and maps it gets memory
 * that is his own, in which he is what the host is above, for source perf. There is one such owner
 * at a time, and as long as a request of his is served the host's are refused, and the other way
 * round.
 *
 * A request is made by writing all fields and then request, which goes up by one; the guest has
 * dealt with it when answered is that number. Nothing else waits for the other side.
 */
#ifndef VMPROF_LOG_H
#define VMPROF_LOG_H

#include <linux/ioctl.h>

#include "../core/core.h"

#define VMPROF_LOG_MAGIC      0x31474f4c504d56ull /* "VMPLOG1", little-endian */
#define VMPROF_LOG_VERSION    2
#define VMPROF_LOG_PAGE	      4096
#define VMPROF_LOG_EVENTS_MAX 8	  /* of one request */
#define VMPROF_LOG_CHAIN_MAX  127 /* addresses of a call chain */
#define VMPROF_LOG_RINGS_MAX  512
#define VMPROF_LOG_WHY	      128
#define VMPROF_LOG_SIDE_MAX                                                                        \
	(4u << 20) /* bytes of the ring at side_offset, as the host makes it                       \
		    */

#define VMPROF_LOG_NMI	     2048 /* in pages 0 and 1: u32[VMPROF_LOG_NMI_SLOTS] */
#define VMPROF_LOG_NMI_SLOTS 512
/* In rax of a vmmcall, from the guest's kernel: the NMI at hand is not the guest's. */
#define VMPROF_LOG_NMI_FOREIGN 0x766d4e4du

/* The PCI device that has the log: ivshmem-plain. */
#define VMPROF_LOG_PCI_VENDOR 0x1af4
#define VMPROF_LOG_PCI_DEVICE 0x1110
#define VMPROF_LOG_PCI_BAR    2

/* What makes the guest's handler run. */
enum vmprof_source {
	VMPROF_SOURCE_PERF,   /* an event of the guest's own perf, on each of its CPUs */
	VMPROF_SOURCE_DIRECT, /* a physical counter that the host lends */
	VMPROF_SOURCE_INJECT, /* the same, or a timer; its interrupts go to the host, which raises
				 the guest's */
	VMPROF_SOURCES,
};

/* vmprof_log_event.flags: VMP_COUNT_USER, VMP_COUNT_KERNEL of core/table.h, and of source perf: */
#define VMPROF_LOG_FREQ 0x100 /* period is how many samples there are to be a second */

struct vmprof_log_event {
	u32 type; /* perf's; lent: PERF_TYPE_RAW on arm64, PERF_TYPE_SOFTWARE on x86 */
	u32 flags;
	u64 config;
	u64 period; /* lent: VMPROF_LOG_PERIOD_MIN to 2^31 */
};

#define VMPROF_LOG_PERIOD_MIN 1000
#define VMPROF_LOG_PERIOD_MAX (1ull << 31)

struct vmprof_log_host {
	u64 magic;
	u32 version;
	u32 request; /* 0: none yet */
	u64 ring_offset;
	u64 ring_stride;
	u64 side_offset;
	u32 ring_size; /* bytes of data of a ring, a power of 2 */
	u32 rings;
	u32 side_size; /* as ring_size; 0: there is no such ring */
	u32 source;    /* enum vmprof_source */
	u32 chain;     /* addresses of a call chain at most; 0: none */
	u32 nr;	       /* events; 0: stop */
	struct vmprof_log_event events[VMPROF_LOG_EVENTS_MAX];
};

enum vmprof_guest_state {
	VMPROF_GUEST_IDLE,
	VMPROF_GUEST_READY,   /* its row is put: the host may lend it the counters */
	VMPROF_GUEST_REFUSED, /* see why */
};

enum vmprof_guest_clock {
	VMPROF_CLOCK_CNTVCT = 1, /* arm64's virtual counter */
	VMPROF_CLOCK_TSC,
};

/* The guest's row and what is known of it. */
struct vmprof_log_guest {
	u64 magic;
	u32 version;
	u32 answered;  /* the request that the rest is about */
	u32 state;     /* enum vmprof_guest_state */
	u32 clock;     /* enum vmprof_guest_clock: what times of samples are read from */
	u64 frequency; /* ticks of it a second; 0: not known */
	/* direct: where the handler is, in the guest's kernel; inject: the number of the interrupt
	 * that the host is to raise; not 0 */
	u64 handler;
	u32 cpus;
	u32 nr;
	u32 side; /* 1: its processes and their maps are told in the ring at side_offset */
	u32 reserved;
	struct vmprof_log_event events[VMPROF_LOG_EVENTS_MAX];
	/* A sentence, zero-terminated: on what is refused, else on why side is 0. */
	char why[VMPROF_LOG_WHY];
};

/*
 * The guest's own user. open(): EPERM without CAP_PERFMON, EBUSY if it has an owner. mmap(): shared
 * and from offset 0 on, once, as much as the log shall have; it is zeroed. There is nobody who
 * looks for requests: VMPROF_GUEST_IOC_LOOK, with no argument, returns when the one that stands is
 * answered. close(), or the owner's death, withdraws it.
 */
#define VMPROF_GUEST_DEVICE   "/dev/vmprof_guest"
#define VMPROF_GUEST_LOG_MAX  (256u << 20) /* bytes */
#define VMPROF_GUEST_IOC_LOOK _IO('V', 0x78)

#endif
