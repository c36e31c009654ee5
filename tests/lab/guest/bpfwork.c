// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two BPF programs, bpf_hot_a (75 %) and bpf_hot_b (25 %) of the same instructions, run by the
 * kernel's test call, for ever. Needs no library and no compiler for BPF.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/bpf.h>

enum { UNROLLED = 8, SHORT = 200, LONG = 3 * SHORT, REPEAT = 1000 };

static struct bpf_insn insn(uint8_t code, uint8_t dst, uint8_t src, int32_t imm)
{
	return (struct bpf_insn){.code = code, .dst_reg = dst, .src_reg = src, .imm = imm};
}

/* @n times: eight times r0 = r0 * C + r1. The kernel wants to see that it ends. */
static int load(const char *name, int n)
{
	static struct bpf_insn prog[2 * UNROLLED + 7];
	union bpf_attr attr = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER};
	unsigned at = 0;
	int fd;

	prog[at++] = insn(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 1);
	prog[at++] = insn(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_1, 0, 12345);
	prog[at++] = insn(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, n);
	for (unsigned i = 0; i < UNROLLED; i++) {
		prog[at++] = insn(BPF_ALU64 | BPF_MUL | BPF_K, BPF_REG_0, 0, 1664525);
		prog[at++] = insn(BPF_ALU64 | BPF_ADD | BPF_X, BPF_REG_0, BPF_REG_1, 0);
	}
	prog[at++] = insn(BPF_ALU64 | BPF_SUB | BPF_K, BPF_REG_2, 0, 1);
	prog[at] = insn(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_2, 0, 0);
	prog[at++].off = -(2 * UNROLLED + 2);
	prog[at++] = insn(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_0, 0, 1);
	prog[at++] = insn(BPF_JMP | BPF_EXIT, 0, 0, 0);
	attr.insns = (uintptr_t)prog;
	attr.insn_cnt = at;
	attr.license = (uintptr_t) "GPL";
	snprintf(attr.prog_name, sizeof(attr.prog_name), "%s", name);
	fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (fd < 0) {
		perror("BPF_PROG_LOAD");
		exit(1);
	}
	return fd;
}

static void run(int fd)
{
	static char packet[64];
	union bpf_attr attr = {.test = {
				       .prog_fd = (uint32_t)fd,
				       .data_in = (uintptr_t)packet,
				       .data_size_in = sizeof(packet),
				       .repeat = REPEAT + (uint32_t)(rand() % REPEAT),
			       }};

	if (syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr))) {
		perror("BPF_PROG_TEST_RUN");
		exit(1);
	}
}

int main(void)
{
	int a = load("bpf_hot_a", LONG), b = load("bpf_hot_b", SHORT);

	for (;;) {
		run(a);
		run(b);
	}
}
