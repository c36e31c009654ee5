// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: what few instructions of aarch64 say of calls and frames. A function that calls
 * others keeps x29 and x30 in a record that x29 points to while the frame is there: {the caller's
 * x29, return address}. Where there is no record yet, or no more, x30 has the return address.
 */
#ifndef VMPROF_GUEST_ARM64_CODE_H
#define VMPROF_GUEST_ARM64_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is this a call? *target: where it goes to, 0 if a register says that. */
bool arm64_is_call(uint32_t insn, uint64_t pc, uint64_t *target);

enum arm64_frame {
	ARM64_FRAME_UNKNOWN,
	ARM64_FRAME_NONE,   /* the return address is in x30 */
	ARM64_FRAME_RECORD, /* it is in the record */
};

/*
 * Has the function that has come to the first of @n instructions a frame? By what it is about to
 * do: only a function without one makes one, or returns without having undone it.
 */
enum arm64_frame arm64_frame_ahead(const uint32_t *insn, size_t n);
/* The same by what it has done: the last of @n instructions has been executed, if it came by here.
 */
enum arm64_frame arm64_frame_behind(const uint32_t *insn, size_t n);

/*
 * A return address without its authentication code: what is above @va_bits is a copy of bit 55,
 * which tells the half.
 */
static inline uint64_t arm64_strip(uint64_t va, unsigned va_bits)
{
	uint64_t high = ~0ull << va_bits;

	return va >> 55 & 1 ? va | high : va & ~high;
}

#endif
