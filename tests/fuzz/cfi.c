// SPDX-License-Identifier: GPL-2.0-only
/*
 * Call frame information as a guest or a file may supply it, and stacks: rows for addresses, and
 * walks by them, which must end and read no byte outside.
 *
 * The first byte chooses the architecture, the next 24 are sp, fp and the stack's seed; then comes
 * .eh_frame_hdr, with .eh_frame behind it, as linkers put them. The same bytes are .eh_frame and
 * .debug_frame without an index, too.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/cfi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HDR   0x400000ull
#define STEPS 64

struct input {
	const uint8_t *data;
	size_t size;
	uint64_t seed;
};

static int read_input(void *ctx, uint64_t vaddr, void *buf, size_t len)
{
	const struct input *in = ctx;

	if (vaddr - HDR > in->size || len > in->size - (vaddr - HDR))
		return -EFAULT;
	memcpy(buf, in->data + (vaddr - HDR), len);
	return 0;
}

/* Any value of the other registers. */
static uint64_t hash_of(const uint8_t *data, unsigned i)
{
	return (data[17 + i % 8] + i) * 0x9e3779b97f4a7c15ull >> (i % 3 * 16);
}

/* Any stack: words that lead back into the code, and others. */
static int read_stack(void *ctx, uint64_t addr, uint64_t *word)
{
	const struct input *in = ctx;
	uint64_t x = (addr ^ in->seed) * 0x9e3779b97f4a7c15ull;

	if (addr & 7)
		return -EFAULT;
	*word = x & 1 ? HDR - 0x1000 + (x >> 52) : x >> 16;
	return 0;
}

static void walk(struct cfi *c, enum unwind_arch arch, struct input *in, struct unwind_regs r)
{
	struct cfi_place p;
	uint64_t slot;

	for (int i = 0; i < STEPS; i++) {
		uint64_t *sp = &r.r[unwind_abis[arch].sp], before = *sp;

		if (cfi_find(c, r.ip, read_input, in, &p)) {
			unwind_step_fp(arch, &r, &slot, read_stack, in);
			return;
		}
		if (r.ip < p.function || r.ip >= p.end || p.end > p.function_end)
			abort();
		if (unwind_step(arch, &p.row, &r, &slot, read_stack, in) != UNWIND_STEPPED)
			return;
		if (*sp < before && !p.row.signal)
			abort();
	}
}

/* The places that the index names, and some around them. */
static void by_hdr(enum unwind_arch arch, struct input *in, struct unwind_regs r)
{
	struct cfi *c = cfi_new(arch, HDR);

	for (size_t at = 12; at + 4 <= in->size && at < 12 + 8 * 8; at += 8) {
		int32_t offset;

		memcpy(&offset, in->data + at, 4);
		for (uint64_t i = 0; i < 4; i++) {
			r.ip = HDR + (uint64_t)(int64_t)offset + i * 5;
			walk(c, arch, in, r);
		}
	}
	cfi_free(c);
}

/* Whatever may be an address in it: 8 bytes, or 4 relative to their own place. */
static void by_section(enum unwind_arch arch, bool debug_frame, struct input *in,
		       struct unwind_regs r)
{
	struct cfi_section s = {malloc(in->size + 1), in->size, debug_frame ? 0 : HDR, debug_frame};
	struct cfi *c;

	memcpy(s.bytes, in->data, in->size);
	c = cfi_new_section(arch, &s);
	for (size_t at = 0; at + 8 <= in->size && at < 64 * 4; at += 4) {
		int32_t offset;

		memcpy(&r.ip, in->data + at, 8);
		walk(c, arch, in, r);
		memcpy(&offset, in->data + at, 4);
		r.ip = s.vaddr + at + (uint64_t)(int64_t)offset;
		walk(c, arch, in, r);
	}
	cfi_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum unwind_arch arch = size && data[0] & 1 ? UNWIND_AARCH64 : UNWIND_X86_64;
	struct unwind_regs r = {0};
	struct input in;

	if (size < 25)
		return 0;
	for (unsigned i = 0; i < UNWIND_REGS; i++)
		unwind_set(&r, i, hash_of(data, i));
	memcpy(&r.r[unwind_abis[arch].sp], data + 1, 8);
	memcpy(&r.r[unwind_abis[arch].fp], data + 9, 8);
	memcpy(&in.seed, data + 17, 8);
	in.data = data + 25;
	in.size = size - 25;
	by_hdr(arch, &in, r);
	by_section(arch, false, &in, r);
	by_section(arch, true, &in, r);
	return 0;
}
