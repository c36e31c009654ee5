// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sample: raw as a backend hands it over, complete as the guest layer returns it.
 */
#ifndef VMPROF_GUEST_SAMPLE_H
#define VMPROF_GUEST_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Where the CPU was; the numbers are perf's cpumode (PERF_RECORD_MISC_CPUMODE_MASK). */
enum sample_mode {
	SAMPLE_MODE_UNKNOWN = 0,
	SAMPLE_MODE_HOST_KERNEL = 1,
	SAMPLE_MODE_HOST_USER = 2,
	SAMPLE_MODE_HYPERVISOR = 3,
	SAMPLE_MODE_GUEST_KERNEL = 4,
	SAMPLE_MODE_GUEST_USER = 5,
};

enum guest_arch { GUEST_ARCH_X86_64, GUEST_ARCH_AARCH64 };

/* Index into guest_regs.gpr for x86-64: the hardware's numbering (ModRM), r8..r15 are 8..15. */
enum x86_gpr {
	X86_RAX,
	X86_RCX,
	X86_RDX,
	X86_RBX,
	X86_RSP,
	X86_RBP,
	X86_RSI,
	X86_RDI,
	X86_R8,
};

/*
 * A vCPU's registers. aarch64 uses gpr[0..30] for x0..x30; sp, pgtable (TTBR0), pgtable_kernel
 * (TTBR1) stand apart on every architecture.
 */
struct guest_regs {
	uint64_t ip;
	uint64_t sp;
	uint64_t fp;		 /* rbp, x29 */
	uint64_t flags;		 /* rflags, pstate */
	uint64_t pgtable;	 /* CR3 as it is, PCID and PTI bits included */
	uint64_t pgtable_kernel; /* TTBR1; x86: 0 */
	uint64_t gpr[32];
	/* x86-64 only */
	uint64_t cr0, cr4, efer;
	uint64_t gdt_base, idt_base, gs_base, kernel_gs_base;
	/* Where the hypervisor enters the guest's kernel, if that has no descriptor tables: the two
	 * bases above are 0 then. Else 0. */
	uint64_t kernel_entry;
	/* aarch64 only: TCR_EL1, VBAR_EL1, SP_EL0 (in EL1: the running task),
	 * TPIDR_EL1 (per-CPU), ELR_EL1 (where the exception was taken; 0 not known) */
	uint64_t tcr, vbar, sp_el0, tpidr_el1, elr;
	uint8_t cpl;	       /* 0..3; aarch64: 0 for EL1, 3 for EL0 */
	bool has_efer, has_gs; /* whether efer and the two gs bases are known */
	bool halted;	       /* the vCPU waits for an interrupt */
};

/* What a raw sample knows; the guest layer finds out the rest. */
enum raw_has {
	RAW_HAS_IP = 1 << 0,   /* ip alone */
	RAW_HAS_REGS = 1 << 1, /* regs, and so ip, mode, page table */
	RAW_HAS_MODE = 1 << 2,
	RAW_HAS_PROCESS = 1 << 3, /* pid, tid, comm: an agent in the guest said so */
	RAW_HAS_CHAIN = 1 << 4,
	RAW_HAS_HOST_CPU = 1 << 5,
	RAW_HAS_TASK = 1 << 6, /* task: of the same moment as regs */
	/* regs without those that tell the kernel and the CPU: gdt, idt and gs bases; x86-64 */
	RAW_HAS_GENERAL = 1 << 7,
	RAW_HAS_LINK = 1 << 8, /* link: with the chain */
};

/* Guest memory as it was at the moment of the registers. 8-byte aligned. */
struct raw_memory {
	uint64_t addr; /* in the address space of the registers; one that its kernel half can reach
			*/
	uint32_t len;  /* bytes */
	const uint64_t *word;
};

#define RAW_MEMORY_MAX 8

struct raw_sample {
	uint32_t has;	/* RAW_HAS_* */
	uint32_t event; /* index of the event as it was asked for at open */
	uint32_t vcpu;
	uint32_t host_cpu;
	uint64_t time;	 /* host CLOCK_MONOTONIC, ns */
	uint64_t period; /* events (ns for clocks) that this sample stands for */
	uint64_t ip;
	struct guest_regs regs;
	enum sample_mode mode;
	/* As the guest's initial pid namespace numbers them; of a sample of the host its own. */
	int32_t pid, tid;
	char comm[16];
	uint64_t task;				  /* what guest_wanted.current leads to */
	struct raw_memory memory[RAW_MEMORY_MAX]; /* stacks; valid like chain */
	uint32_t nr_memory;
	const uint64_t *chain; /* leaf first, no markers; valid until the backend's next read */
	uint32_t chain_len;
	/* aarch64: x30 of user mode. The chain's innermost user function may have its caller there
	 * and nowhere else. */
	uint64_t link;
};

/*
 * What a guest's own kernel has said of its processes, from a source that hears of it; in the order
 * of time, and with the samples.
 */
enum raw_told_type {
	RAW_TOLD_KNOWN, /* the process was there already, and all of its maps have been told */
	RAW_TOLD_FORK,	/* it begins, with the maps of its parent */
	RAW_TOLD_EXEC,	/* it is another program; its maps follow */
	RAW_TOLD_GONE,
	RAW_TOLD_MAP,  /* executable memory */
	RAW_TOLD_LOST, /* something that is missing, of whatever process; time alone means something
			*/
};

struct raw_told {
	enum raw_told_type type;
	uint64_t time; /* host CLOCK_MONOTONIC, ns */
	int32_t pid, ppid;
	uint64_t began; /* the guest's ns: tells the process from an earlier one of its number */
	char comm[16];	/* zero-terminated; not of MAP */
	/* MAP: */
	uint64_t start, end, pgoff;		 /* of user mode; pgoff in bytes */
	uint32_t prot, flags;			 /* PROT_*, MAP_* */
	uint64_t dev, ino, ino_generation, size; /* of the file, dev as stat() has it; 0 without */
	uint8_t build_id[20];
	uint32_t build_id_len; /* 0: not known */
	const char *path;      /* raw, zero-terminated, below 4096 bytes; until more is told */
};

/* How a call chain ended. Every sample with a chain has one for its kernel and its user part. */
enum chain_end {
	CHAIN_NONE, /* no chain was asked for, or none there (a user thread has no kernel part) */
	CHAIN_OUTERMOST,  /* reached the outermost frame */
	CHAIN_DEPTH,	  /* longer than the limit */
	CHAIN_UNREADABLE, /* stack memory not present or not mapped */
	CHAIN_NO_RULE,	  /* no unwind entry for an address */
	CHAIN_BAD_FRAME,  /* frame pointer or entry that cannot be: unaligned, going down, no code
			     there */
	CHAIN_TORN,	  /* the vCPU went on and popped frames while they were read */
	CHAIN_END_COUNT
};

/*
 * What of a guest's memory is worth having as of the moment of the registers, as a backend that can
 * copy it needs to know: where pointers to it lie. The CPU's own area is at gs base, that of the
 * two in the upper half, or TPIDR_EL1; aarch64 has the running task in SP_EL0 while the kernel
 * runs. Addresses are by the page table in use without the bits @root_clear.
 */
struct guest_wanted {
	uint64_t root_clear;
	uint64_t current;     /* offset in the CPU's area: the running task */
	uint64_t task_stack;  /* offset in the task: its kernel stack's lowest address */
	uint64_t thread_size; /* bytes of each kernel stack */
	uint64_t saved_sp;    /* offset in that stack: user mode's sp, as saved when it was left */
	/* Offset in the CPU's area: address of the word of its interrupt stack that has the
	 * interrupted stack pointer; 0: unknown. */
	uint64_t irq_stack;
	/* The area of each vCPU, for who does not know gs base; 0: not known. Valid until the
	 * guest is asked for something else. */
	const uint64_t *areas;
	uint32_t nr_areas;
};

#define SAMPLE_MAX_CHAIN 127 /* frames, both parts together: perf's default limit */

/* Why a sample could not be given to a process. */
enum sample_unattributed {
	SAMPLE_ATTRIBUTED,
	SAMPLE_NO_KERNEL,  /* guest kernel unknown (firmware, not Linux, no BTF) */
	SAMPLE_NO_PROCESS, /* current task unreadable, or it does not own the page table in use */
};

static inline bool sample_mode_is_guest(enum sample_mode mode)
{
	return mode == SAMPLE_MODE_GUEST_KERNEL || mode == SAMPLE_MODE_GUEST_USER;
}

struct sample {
	uint64_t time, period, ip;
	uint32_t event, vcpu, host_cpu;
	enum sample_mode mode;
	int32_t pid, tid; /* tgid and thread id in perf's words; -1 if unattributed */
	enum sample_unattributed unattributed;
	/* Registers or process changed under the reader and no consistent state was had; without
	 * registers: the address is not of the task that ran there. */
	bool torn;
	bool has_dso;	     /* in user mode: ip is in a DSO that is mapped */
	uint32_t dso;	     /* guest_dso.id */
	uint64_t dso_offset; /* of ip in its file */
	enum chain_end kernel_end, user_end;
	/* perf's form: PERF_CONTEXT_KERNEL before the kernel part, PERF_CONTEXT_USER before the
	 * user part, ip first; both markers and addresses, at most SAMPLE_MAX_CHAIN + 2 */
	uint64_t chain[SAMPLE_MAX_CHAIN + 2];
	uint32_t chain_len; /* 0 without a chain */
};

#endif
