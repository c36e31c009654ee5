// SPDX-License-Identifier: GPL-2.0-only
#include "guest/arm64_code.h"

static bool
is_store_record(uint32_t insn) /* stp x29, x30, [sp ...] with any offset and writeback */
{
	return (insn & 0xfe407fff) == 0xa8007bfd;
}

static bool is_load_record(uint32_t insn) /* ldp x29, x30, [sp ...] */
{
	return (insn & 0xfe407fff) == 0xa8407bfd;
}

static bool is_return(uint32_t insn) /* ret, retaa, retab */
{
	return (insn & 0xfffffc1f) == 0xd65f0000 || (insn & 0xfffffbff) == 0xd65f0bff;
}

static bool is_jump(uint32_t insn) /* b, br and its like, to somewhere else for good */
{
	return (insn & 0xfc000000) == 0x14000000 || (insn & 0xfefff000) == 0xd61f0000;
}

bool arm64_is_call(uint32_t insn, uint64_t pc, uint64_t *target)
{
	*target = 0;
	if ((insn & 0xfc000000) == 0x94000000) { /* bl */
		*target = pc + ((uint64_t)((int64_t)((uint64_t)insn << 38) >> 38) << 2);
		return true;
	}
	/* blr; blraa, blrab and those with zero as modifier */
	return (insn & 0xfffffc1f) == 0xd63f0000 || (insn & 0xfefff800) == 0xd63f0800;
}

enum arm64_frame arm64_frame_ahead(const uint32_t *insn, size_t n)
{
	uint64_t target;

	for (size_t i = 0; i < n; i++) {
		if (is_store_record(insn[i]) || is_return(insn[i]))
			return ARM64_FRAME_NONE;
		if (is_load_record(insn[i]) || arm64_is_call(insn[i], 0, &target))
			return ARM64_FRAME_RECORD;
		if (is_jump(insn[i])) /* to another function, or further down in this one */
			return (insn[i] & 0xfc000000) == 0x14000000 ? ARM64_FRAME_UNKNOWN
								    : ARM64_FRAME_NONE;
	}
	return ARM64_FRAME_UNKNOWN;
}

enum arm64_frame arm64_frame_behind(const uint32_t *insn, size_t n)
{
	bool other_way = false; /* what is before is not how it came here */
	uint64_t target;

	for (size_t i = n; i-- > 0;) {
		if (is_store_record(insn[i]) || arm64_is_call(insn[i], 0, &target))
			return ARM64_FRAME_RECORD;
		if (is_load_record(insn[i]) && !other_way)
			return ARM64_FRAME_NONE;
		other_way |= is_return(insn[i]) || is_jump(insn[i]);
	}
	return ARM64_FRAME_NONE;
}
