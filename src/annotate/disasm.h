// SPDX-License-Identifier: GPL-2.0-only
/*
 * Machine code to text, as objdump prints it: AT&T syntax, numbers in hexadecimal, no suffix where
 * a register tells the size. By capstone: libopcodes, which objdump and perf use, is GPL-3 and not
 * to be linked with GPL-2.0-only, and its interface changes with each release of binutils.
 */
#ifndef VMPROF_ANNOTATE_DISASM_H
#define VMPROF_ANNOTATE_DISASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/err.h"

struct disasm;

struct disasm_line {
	uint64_t addr;
	unsigned len;	   /* bytes */
	bool branch, call; /* branch: a jump, conditional or not */
	bool has_target;   /* of a branch or call with its address in it, or of data by pc */
	uint64_t target;
	char text[200]; /* mnemonic and operands, without the target of a branch or call */
};

/* @machine: EM_*. 0, -ENOTSUP with a sentence. */
int disasm_open(struct disasm **out, uint16_t machine, bool is64, struct vmprof_err *err);
void disasm_close(struct disasm *d); /* NULL is fine */
/*
 * The instruction at @bytes (@len > 0 of them), which is at @addr. What is none is "(bad)", as long
 * as the shortest instruction.
 */
void disasm_next(struct disasm *d, const uint8_t *bytes, size_t len, uint64_t addr,
		 struct disasm_line *out);

#endif
