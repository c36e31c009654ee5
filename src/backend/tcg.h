// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside the tcg backend: the vCPU state of QEMU's translator as it lies in QEMU's memory.
 *
 * "env" is the address of a vCPU's CPUX86State or CPUARMState, which the code that QEMU generates
 * reaches through one fixed host register. Where in env the registers are follows from cpu.h in
 * target/i386 or target/arm and has been the same for many years up to cr[4], and up to pstate;
 * whatever lies behind differs from version to version and is looked for by the values that must be
 * there. Nothing is believed unchecked: a candidate that does not look like such a CPU in every
 * respect is none.
 */
#ifndef VMPROF_BACKEND_TCG_H
#define VMPROF_BACKEND_TCG_H

#include "backend/backend.h"
#include "backend/perf_ring.h"
#include "util/err.h"
#include "vm/proc.h"
#include "vm/vm.h"

#define TCG_ENV_HEAD  0x800   /* bytes from env that have all registers but x86's MSRs */
#define TCG_ENV_SIZE  0x8000  /* bytes from env in which the MSRs lie */
#define TCG_CPU_FRONT 0x10000 /* bytes in front of env in which CPUState's own members lie */

struct tcg_layout {
	enum guest_arch arch;
	/* x86-64: */
	uint32_t shift; /* of all behind the general registers: 0x80 where QEMU has 32 of them */
	uint32_t efer;	/* offset in env; 0 not known (no vCPU has been in long mode) */
	uint32_t kernel_gs; /* offset in env; 0 not known (no guest has set up SYSCALL) */
	/* aarch64, offsets in env, all known once a kernel runs; tpidr_el1 when it has CPUs' data
	 */
	uint32_t tcr, ttbr0, ttbr1, vbar, sp_el0, midr, tpidr_el1;
	uint64_t midr_value; /* of the CPU that showed them: all are of the same kind */
	/* How far in front of env; 0 not known. */
	uint32_t cpu_index, halted, thread_id;
};

/* ---------- tcg_state.c: bytes only ---------- */

/* Could these TCG_ENV_HEAD bytes be a CPUX86State? Cheap for what is not. */
bool tcg_env_plausible(const uint8_t *env, uint32_t shift);

/* Offset of EFER, or of MSR_KERNEL_GS_BASE in TCG_ENV_SIZE bytes; 0 if it cannot be told yet. */
uint32_t tcg_env_find_efer(const uint8_t *env, uint32_t shift);
uint32_t tcg_env_find_kernel_gs(const uint8_t *env, uint32_t from);

/*
 * Registers out of TCG_ENV_HEAD bytes. Returns 0, or -EIO for values that a running x86 cannot
 * have. halted and kernel_gs_base are the caller's to fill in.
 */
int tcg_env_decode(struct guest_regs *regs, const uint8_t *env, const struct tcg_layout *l);

/*
 * Members of CPUState, which lies in front of env: @front has @len bytes that end where env starts,
 * one for each of @n candidates, of which at least @need are vCPUs. The others are vCPUs that QEMU
 * made and threw away again: the state is still in the heap. Fills cpu_index and halted of @l.
 */
bool tcg_front_find_index(struct tcg_layout *l, const uint8_t *const *front, uint32_t len,
			  unsigned n, unsigned need);
/* The index of the vCPU with this front; -1 if it is none. */
int64_t tcg_front_index(const struct tcg_layout *l, const uint8_t *front, uint32_t len);
/* The same for thread_id: a number for which @is_tid holds in each. */
bool tcg_front_find_tid(struct tcg_layout *l, const uint8_t *const *front, uint32_t len, unsigned n,
			bool (*is_tid)(void *ctx, uint32_t v), void *ctx);

/* The same as tcg_env_plausible() and tcg_env_decode(), whichever the architecture. */
bool tcg_state_plausible(const uint8_t *env, const struct tcg_layout *l);
int tcg_state_decode(struct guest_regs *regs, const uint8_t *env, const struct tcg_layout *l);

/* ---------- tcg_state_arm64.c: the same for CPUARMState ---------- */

/*
 * Where the registers are that lie at no fixed place, out of TCG_ENV_HEAD bytes of a vCPU that runs
 * a kernel with page tables. false: it does not, or this is none. Cheap for what is none.
 */
bool tcg_arm64_find(struct tcg_layout *l, const uint8_t *env);
/* ->tpidr_el1, where that could not be told yet; 0 if it still cannot. */
uint32_t tcg_arm64_find_tpidr(const uint8_t *env, const struct tcg_layout *l);
/* Could these bytes be a CPUARMState with that layout? Also of one that runs no kernel. */
bool tcg_arm64_plausible(const uint8_t *env, const struct tcg_layout *l);
int tcg_arm64_decode(struct guest_regs *regs, const uint8_t *env, const struct tcg_layout *l);
uint32_t tcg_arm64_sp(void); /* offset in env of the stack pointer in use */

/* Offsets in env of control register @n, and of gs base. */
uint32_t tcg_env_cr(const struct tcg_layout *l, unsigned n);
uint32_t tcg_env_gs_base(const struct tcg_layout *l);

/* ---------- tcg_find.c: QEMU's memory ---------- */

struct tcg_cpu {
	uint64_t env; /* 0 not known */
	pid_t tid;    /* 0 not known */
};

struct tcg_cpus {
	struct tcg_cpu *cpu; /* by vCPU index */
	uint32_t n;
	struct tcg_layout layout;
};

/*
 * Finds the vCPUs: by the shape of their state in QEMU's memory, which works for those that do not
 * run, and where that does not find all of them, by the register that has env while generated code
 * runs. 0, -ESRCH, -EPERM, or -ENOENT (none found), with a sentence.
 */
int tcg_find_cpus(struct tcg_cpus *cpus, const struct vm *vm, const struct proc_maps *maps,
		  struct vmprof_err *err);

/* Is there nothing left of it that a guest may set up later? */
bool tcg_layout_complete(const struct tcg_layout *l);
/* What is still unknown of the layout, and can be told from vCPU @env by now. */
void tcg_complete_layout(struct tcg_layout *l, pid_t pid, uint64_t env);

/* ---------- tcg_tick.c: what an event on a vCPU thread tells ---------- */

/* Where the translator puts the code that it generates. */
struct tcg_code {
	struct {
		uint64_t start, end;
	} range[64];
	unsigned n;
};

void tcg_code_find(struct tcg_code *code, const struct proc_maps *maps);

/* A sample of an event with tcg_attr(); what the kernel writes. */
struct tcg_tick {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t value; /* of the counter, ns */
	uint64_t abi;	/* 0: no registers of user mode follow */
	uint64_t areg0, user_ip;
};

/* CPU time of a thread, one record every @period ns. */
void tcg_attr(struct perf_event_attr *attr, uint64_t period);

/* The record as a tick; false if it is none. */
bool tcg_tick_parse(struct tcg_tick *t, const struct perf_event_header *h);

/* env of the vCPU whose code the thread ran at the tick; 0 if it ran other code of QEMU. */
uint64_t tcg_tick_env(const struct tcg_tick *t, const struct tcg_code *code);

/*
 * Watches all threads of QEMU for up to @ms and calls @fn(ctx, env, tid) for what may be a vCPU's
 * env as seen in thread tid, until it returns true. 0 or -errno with a sentence.
 */
int tcg_watch(const struct vm *vm, const struct tcg_code *code, unsigned ms,
	      bool (*fn)(void *ctx, uint64_t env, pid_t tid), void *ctx, struct vmprof_err *err);

/* ---------- tcg_probe.c ---------- */

/* Does its QEMU keep the guest's instruction pointer? 0, or -errno with a sentence. */
int tcg_check_version(const struct vm *vm, struct vmprof_err *err);
void tcg_probe(const struct vm *vm, struct backend_caps *caps);
int tcg_try_event(const struct vm *vm, const struct event *e, struct vmprof_err *err);

#endif
