/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a handler of a counter's interrupt writes into a VM's ring (ring.h): a sample of the guest.
 */
#ifndef VMPROF_CORE_SAMPLE_H
#define VMPROF_CORE_SAMPLE_H

#include "ring.h"

/* vmp_sample.flags: which fields mean something, and what is known of the place */
#define VMP_SAMPLE_KERNEL     0x1  /* the guest was in its kernel (CPL 0, EL1); else in a program */
#define VMP_SAMPLE_SP	      0x2  /* sp and fp */
#define VMP_SAMPLE_PAGE_TABLE 0x4  /* page_table */
#define VMP_SAMPLE_TASK	      0x8  /* task */
#define VMP_SAMPLE_MEMORY     0x10 /* segments may follow */
#define VMP_SAMPLE_REGS	      0x20 /* a struct vmp_regs follows */

/*
 * 96 bytes, then a struct vmp_regs if the flag says so, then nr_segments times a struct vmp_segment
 * with its bytes.
 */
struct vmp_sample {
	struct vmp_record header; /* VMP_REC_SAMPLE */
	u64 time;		  /* ns, CLOCK_MONOTONIC of whoever writes */
	u64 vm;			  /* the VM's id in the table */
	u32 vcpu;
	u32 cpu;   /* of the host; of the guest, if that writes */
	u32 event; /* its place in the VM's row */
	u32 flags; /* VMP_SAMPLE_... */
	u64 period;
	u64 ip;
	u64 sp;
	u64 fp;		/* rbp, x29 */
	u64 page_table; /* CR3, TTBR0_EL1 as they were */
	u64 task;	/* address of the running task's task_struct */
	u32 nr_segments;
	u32 reserved;
};

_Static_assert(sizeof(struct vmp_sample) == 96, "the layout is part of the interface");

/* The other registers of that moment. */
enum vmp_system_x86 { VMP_X86_CR0, VMP_X86_CR4, VMP_X86_EFER };
/* SP_EL0 is the running task's address while the guest is in its kernel, as Linux has it. */
enum vmp_system_arm64 {
	VMP_ARM64_TTBR1,
	VMP_ARM64_TCR,
	VMP_ARM64_VBAR,
	VMP_ARM64_SP_EL0,
	VMP_ARM64_TPIDR_EL1,
	VMP_ARM64_ELR,
};

struct vmp_regs {
	u64 gpr[31];   /* x86-64: the first 16, as instructions number them; arm64: x0 to x30 */
	u64 flags;     /* RFLAGS; PSTATE */
	u64 system[6]; /* by enum vmp_system_... of the architecture */
};

_Static_assert(sizeof(struct vmp_regs) == 304, "the layout is part of the interface");

/* Guest memory as it was at the sample: this, then size bytes, a multiple of 8. */
struct vmp_segment {
	u64 addr; /* virtual */
	u32 size;
	u32 reserved;
};

/*
 * What the handler in a guest writes (uapi/vmprof_log.h): it knows the task and has the guest's own
 * unwinder, and needs no registers to be kept.
 */

/* 56 bytes, then nr_chain times a u64: the callers, innermost first. */
struct vmp_guest_sample {
	struct vmp_record header; /* VMP_REC_GUEST_SAMPLE */
	u64 time;		  /* ticks of the guest's clock, as its row says */
	u64 ip;
	u64 period;
	u32 cpu;   /* of the guest */
	u32 event; /* its place in the row */
	u32 pid, tgid;
	u32 flags; /* VMP_SAMPLE_KERNEL */
	u32 nr_chain;
};

_Static_assert(sizeof(struct vmp_guest_sample) == 56, "the layout is part of the interface");

/* In a chain: the addresses behind it are of user mode. No address of code is that one. */
#define VMP_CHAIN_USER (~0ull - 511)

/*
 * arm64: the address behind it is x30's, of user mode: the caller of the innermost function of user
 * mode if that one has not saved it, as functions that call nothing do not; else nothing. It comes
 * before the others of user mode.
 */
#define VMP_CHAIN_LINK (~0ull - 510)

/* What a thread is called, before its first sample on a CPU since another one's, and when the name
 * has changed. */
struct vmp_guest_task {
	struct vmp_record header; /* VMP_REC_GUEST_TASK */
	u64 time;
	u32 pid, tgid;
	char comm[16]; /* zero-terminated */
};

_Static_assert(sizeof(struct vmp_guest_task) == 40, "the layout is part of the interface");

/*
 * What the guest's kernel writes into the ring for side-band (uapi/vmprof_log.h), in the order of
 * time. A process is told from an earlier one of its number by when it began.
 */

enum vmp_process_what {
	VMP_PROCESS_KNOWN, /* it was there before; its maps have all been told */
	VMP_PROCESS_FORK,  /* it begins, with the maps of its parent */
	VMP_PROCESS_EXEC,  /* another program, comm, without maps; those that it has follow */
	VMP_PROCESS_GONE,  /* it has ended, and been waited for */
	VMP_PROCESS_WHATS,
};

struct vmp_guest_process {
	struct vmp_record header; /* VMP_REC_GUEST_PROCESS */
	u64 time;
	u64 began; /* ns of the guest's CLOCK_MONOTONIC */
	u32 tgid, parent;
	u32 what; /* enum vmp_process_what */
	u32 reserved;
	char comm[16]; /* of its first thread; zero-terminated */
};

_Static_assert(sizeof(struct vmp_guest_process) == 56, "the layout is part of the interface");

/* vmp_guest_map.flags */
#define VMP_MAP_READ	 0x1
#define VMP_MAP_WRITE	 0x2
#define VMP_MAP_EXEC	 0x4
#define VMP_MAP_SHARED	 0x8
#define VMP_MAP_FLAGS	 0xf

#define VMP_MAP_PATH_MAX 4096 /* with its zero */

/* Executable memory of a process, or what has become executable. The file's path follows as the
 * process sees it, or a name in brackets, or "//anon"; zero-terminated, and zeros up to the
 * record's end. Longer than VMP_MAP_PATH_MAX it is "//toolong". */
struct vmp_guest_map {
	struct vmp_record header; /* VMP_REC_GUEST_MAP */
	u64 time;
	u64 began; /* the process, as above */
	u64 start, end;
	u64 offset; /* of start in the file, in bytes; 0 without one */
	u64 ino, size;
	u32 dev, generation; /* of the file, as its kernel has them; 0, and the two above, without
			      */
	u32 tgid;
	u32 flags;	  /* VMP_MAP_... */
	u32 build_id_len; /* 0: not found */
	u8 build_id[20];
};

_Static_assert(sizeof(struct vmp_guest_map) == 104, "the layout is part of the interface");

#endif
