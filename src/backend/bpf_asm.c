// SPDX-License-Identifier: GPL-2.0-only
#include "backend/bpf_asm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void bpf_asm_init(struct bpf_asm *a)
{
	a->n = a->nr_labels = a->nr_jumps = 0;
	a->full = false;
}

void bpf_emit(struct bpf_asm *a, uint8_t code, int dst, int src, int off, int32_t imm)
{
	if (a->n == BPF_ASM_MAX) {
		a->full = true;
		return;
	}
	a->insn[a->n++] = (struct bpf_insn){
		.code = code,
		.dst_reg = (uint8_t)dst & 15,
		.src_reg = (uint8_t)src & 15,
		.off = (int16_t)off,
		.imm = imm,
	};
}

void bpf_mov(struct bpf_asm *a, int dst, int src)
{
	bpf_emit(a, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

void bpf_mov_imm(struct bpf_asm *a, int dst, int32_t imm)
{
	bpf_emit(a, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, imm);
}

void bpf_load_imm64(struct bpf_asm *a, int dst, uint64_t imm)
{
	bpf_emit(a, BPF_LD | BPF_DW | BPF_IMM, dst, 0, 0, (int32_t)(uint32_t)imm);
	bpf_emit(a, 0, 0, 0, 0, (int32_t)(uint32_t)(imm >> 32));
}

void bpf_load_map(struct bpf_asm *a, int dst, int map_fd)
{
	bpf_emit(a, BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_FD, 0, map_fd);
	bpf_emit(a, 0, 0, 0, 0, 0);
}

void bpf_load_map_value(struct bpf_asm *a, int dst, int map_fd)
{
	bpf_emit(a, BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_VALUE, 0, map_fd);
	bpf_emit(a, 0, 0, 0, 0, 0);
}

void bpf_load(struct bpf_asm *a, int dst, int src, int off)
{
	bpf_emit(a, BPF_LDX | BPF_MEM | BPF_DW, dst, src, off, 0);
}

void bpf_store(struct bpf_asm *a, int dst, int off, int src)
{
	bpf_emit(a, BPF_STX | BPF_MEM | BPF_DW, dst, src, off, 0);
}

void bpf_store32(struct bpf_asm *a, int dst, int off, int src)
{
	bpf_emit(a, BPF_STX | BPF_MEM | BPF_W, dst, src, off, 0);
}

void bpf_alu(struct bpf_asm *a, int op, int dst, int src)
{
	bpf_emit(a, (uint8_t)(BPF_ALU64 | op | BPF_X), dst, src, 0, 0);
}

void bpf_alu_imm(struct bpf_asm *a, int op, int dst, int32_t imm)
{
	bpf_emit(a, (uint8_t)(BPF_ALU64 | op | BPF_K), dst, 0, 0, imm);
}

void bpf_call(struct bpf_asm *a, int helper)
{
	bpf_emit(a, BPF_JMP | BPF_CALL, 0, 0, 0, helper);
}

void bpf_exit(struct bpf_asm *a)
{
	bpf_emit(a, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

unsigned bpf_label(struct bpf_asm *a)
{
	if (a->nr_labels == BPF_ASM_LABELS_MAX) {
		a->full = true;
		return 0;
	}
	a->label[a->nr_labels] = -1;
	return a->nr_labels++;
}

void bpf_set_label(struct bpf_asm *a, unsigned label)
{
	a->label[label] = (int)a->n;
}

static void remember_jump(struct bpf_asm *a, unsigned label)
{
	if (a->nr_jumps == BPF_ASM_JUMPS_MAX) {
		a->full = true;
		return;
	}
	a->jump[a->nr_jumps].at = a->n;
	a->jump[a->nr_jumps++].label = label;
}

void bpf_call_label(struct bpf_asm *a, unsigned label)
{
	remember_jump(a, label);
	bpf_emit(a, BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 0);
}

void bpf_goto(struct bpf_asm *a, unsigned label)
{
	remember_jump(a, label);
	bpf_emit(a, BPF_JMP | BPF_JA, 0, 0, 0, 0);
}

void bpf_jump(struct bpf_asm *a, int op, int dst, int src, unsigned label)
{
	remember_jump(a, label);
	bpf_emit(a, (uint8_t)(BPF_JMP | op | BPF_X), dst, src, 0, 0);
}

void bpf_jump_imm(struct bpf_asm *a, int op, int dst, int32_t imm, unsigned label)
{
	remember_jump(a, label);
	bpf_emit(a, (uint8_t)(BPF_JMP | op | BPF_K), dst, 0, 0, imm);
}

static void resolve_jumps(struct bpf_asm *a)
{
	for (unsigned i = 0; i < a->nr_jumps; i++) {
		struct bpf_insn *insn = &a->insn[a->jump[i].at];
		int distance = a->label[a->jump[i].label] - (int)a->jump[i].at - 1;

		if (insn->code == (BPF_JMP | BPF_CALL))
			insn->imm = distance;
		else
			insn->off = (int16_t)distance;
	}
}

int bpf_syscall(int cmd, union bpf_attr *attr)
{
	long r = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return r < 0 ? -errno : (int)r;
}

int bpf_asm_load(struct bpf_asm *a, enum bpf_prog_type type, const char *name,
		 struct vmprof_err *err)
{
	static const char license[] = "GPL";
	union bpf_attr attr;
	int r;

	resolve_jumps(a);
	if (a->full)
		return err_set(err, E2BIG, "the BPF program %s is too long", name);
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = type;
	attr.insns = (uintptr_t)a->insn;
	attr.insn_cnt = a->n;
	attr.license = (uintptr_t)license;
	snprintf(attr.prog_name, sizeof(attr.prog_name), "%s", name);
	r = bpf_syscall(BPF_PROG_LOAD, &attr);
	return r < 0 ? err_sys(err, r, "the kernel does not take the BPF program %s", name) : r;
}
