// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/backend: enough of an assembler to write a BPF program at run time.
 */
#ifndef VMPROF_BACKEND_BPF_ASM_H
#define VMPROF_BACKEND_BPF_ASM_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"

#define BPF_ASM_MAX	   4096 /* the longest program of kernels before 5.2 */
#define BPF_ASM_LABELS_MAX 512
#define BPF_ASM_JUMPS_MAX  1024

struct bpf_asm {
	struct bpf_insn insn[BPF_ASM_MAX];
	unsigned n;
	int label[BPF_ASM_LABELS_MAX]; /* where it stands; -1: not yet */
	unsigned nr_labels;
	struct {
		unsigned at, label;
	} jump[BPF_ASM_JUMPS_MAX];
	unsigned nr_jumps;
	bool full;
};

void bpf_asm_init(struct bpf_asm *a);
void bpf_emit(struct bpf_asm *a, uint8_t code, int dst, int src, int off, int32_t imm);

void bpf_mov(struct bpf_asm *a, int dst, int src);
void bpf_mov_imm(struct bpf_asm *a, int dst, int32_t imm);
void bpf_load_imm64(struct bpf_asm *a, int dst, uint64_t imm);
void bpf_load_map(struct bpf_asm *a, int dst, int map_fd);
/* The address of the first value of an array. */
void bpf_load_map_value(struct bpf_asm *a, int dst, int map_fd);
void bpf_load(struct bpf_asm *a, int dst, int src, int off);  /* 64 bits */
void bpf_store(struct bpf_asm *a, int dst, int off, int src); /* 64 bits */
void bpf_store32(struct bpf_asm *a, int dst, int off, int src);
void bpf_alu(struct bpf_asm *a, int op, int dst, int src); /* BPF_ADD ... */
void bpf_alu_imm(struct bpf_asm *a, int op, int dst, int32_t imm);
void bpf_call(struct bpf_asm *a, int helper);
/* Calls code of the same program: it has r1 to r5, returns r0, and has r6 to r9 of its own. */
void bpf_call_label(struct bpf_asm *a, unsigned label);
void bpf_exit(struct bpf_asm *a);

/* Jumps and calls go forward only: a label is made, jumped to, and set where it is to stand. */
unsigned bpf_label(struct bpf_asm *a);
void bpf_set_label(struct bpf_asm *a, unsigned label);
void bpf_goto(struct bpf_asm *a, unsigned label);
void bpf_jump(struct bpf_asm *a, int op, int dst, int src, unsigned label); /* BPF_JEQ ... */
void bpf_jump_imm(struct bpf_asm *a, int op, int dst, int32_t imm, unsigned label);

/* Loads the program; its descriptor, or -errno with a sentence. */
int bpf_asm_load(struct bpf_asm *a, enum bpf_prog_type type, const char *name,
		 struct vmprof_err *err);

int bpf_syscall(int cmd, union bpf_attr *attr); /* -errno */

#endif
