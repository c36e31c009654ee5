// SPDX-License-Identifier: GPL-2.0-only
/*
 * What instructions of aarch64 say: calls, whether a function has its frame, the addresses that
 * code makes, return addresses with authentication codes. The words are what as(1) makes of the
 * text beside them.
 */
#include "guest/arm64_code.h"
#include "guest/hidden.h"
#include "tests/unit/test.h"

enum {
	STP_PRE = 0xa9be7bfd,	/* stp x29, x30, [sp, #-32]! */
	STP_OFF = 0xa9017bfd,	/* stp x29, x30, [sp, #16] */
	STP_OTHER = 0xa90153f3, /* stp x19, x20, [sp, #16] */
	LDP_POST = 0xa8c27bfd,	/* ldp x29, x30, [sp], #32 */
	RET = 0xd65f03c0,
	RETAA = 0xd65f0bff,
	BL = 0x94000003,      /* bl .+12 */
	BL_BACK = 0x97fffffe, /* bl .-8 */
	BLR = 0xd63f0020,     /* blr x1 */
	BLRAA = 0xd73f0822,   /* blraa x1, x2 */
	BLRAAZ = 0xd63f083f,  /* blraaz x1 */
	BR = 0xd61f0220,      /* br x17 */
	B = 0x14000004,	      /* b .+16 */
	NOP = 0xd503201f,
	MOV_FP = 0x910003fd,  /* mov x29, sp */
	ADRP_X1 = 0xb0000001, /* adrp x1, .+0x1000 */
	ADRP_X2 = 0xf0ffffe2, /* adrp x2, .-0x1000 */
	ADD_X1 = 0x910cc021,  /* add x1, x1, #0x330 */
	LDR_X2 = 0xf9400843,  /* ldr x3, [x2, #16] */
	LDR_W2 = 0xb9400843,  /* ldr w3, [x2, #8] */
	ADD_X5 = 0x910cc0a5,  /* add x5, x5, #0x330 */
};

static void test_calls(void)
{
	static const uint32_t none[] = {STP_PRE, RET, BR, B, NOP, ADRP_X1, LDR_X2};
	uint64_t target;

	CHECK(arm64_is_call(BL, 0x1000, &target));
	CHECK_EQ(target, 0x100c);
	CHECK(arm64_is_call(BL_BACK, 0xffff800008001000, &target));
	CHECK_EQ(target, 0xffff800008000ff8);
	CHECK(arm64_is_call(BLR, 0x1000, &target) && !target);
	CHECK(arm64_is_call(BLRAA, 0x1000, &target) && !target);
	CHECK(arm64_is_call(BLRAAZ, 0x1000, &target) && !target);
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		CHECK(!arm64_is_call(none[i], 0x1000, &target));
}

#define AHEAD(...)                                                                                 \
	arm64_frame_ahead((const uint32_t[]){__VA_ARGS__},                                         \
			  sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
#define BEHIND(...)                                                                                \
	arm64_frame_behind((const uint32_t[]){__VA_ARGS__},                                        \
			   sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void test_frames(void)
{
	CHECK_EQ(AHEAD(NOP, STP_PRE, MOV_FP, BL), ARM64_FRAME_NONE);
	CHECK_EQ(AHEAD(NOP, RET), ARM64_FRAME_NONE);
	CHECK_EQ(AHEAD(RETAA), ARM64_FRAME_NONE);
	CHECK_EQ(AHEAD(BR), ARM64_FRAME_NONE); /* a PLT slot, a tail call */
	CHECK_EQ(AHEAD(NOP, BL, RET), ARM64_FRAME_RECORD);
	CHECK_EQ(AHEAD(LDP_POST, RET), ARM64_FRAME_RECORD);
	CHECK_EQ(AHEAD(NOP, B, RET), ARM64_FRAME_UNKNOWN);
	CHECK_EQ(AHEAD(NOP, STP_OTHER), ARM64_FRAME_UNKNOWN);
	CHECK_EQ(BEHIND(NOP, NOP), ARM64_FRAME_NONE);
	CHECK_EQ(BEHIND(STP_PRE), ARM64_FRAME_RECORD);
	CHECK_EQ(BEHIND(STP_OTHER, STP_OFF, MOV_FP, NOP), ARM64_FRAME_RECORD);
	CHECK_EQ(BEHIND(STP_PRE, MOV_FP, LDP_POST), ARM64_FRAME_NONE);
	/* behind the end of another way out */
	CHECK_EQ(BEHIND(STP_PRE, MOV_FP, LDP_POST, RET, NOP), ARM64_FRAME_RECORD);
	CHECK_EQ(BEHIND(NOP, RET, NOP), ARM64_FRAME_NONE);
	CHECK_EQ(arm64_frame_behind(NULL, 0), ARM64_FRAME_NONE);
}

static void test_addresses(void)
{
	static const uint32_t code[] = {ADD_X5, ADRP_X1, NOP,	 ADRP_X2,
					ADD_X1, LDR_X2,	 LDR_W2, LDR_X2};
	uint64_t out[4];
	unsigned n =
		hidden_addresses((const uint8_t *)code, sizeof(code), 0xffff800008012340, out, 4);

	CHECK_EQ(n, 3);
	CHECK_EQ(out[0], 0xffff800008013330);
	CHECK_EQ(out[1], 0xffff800008011010);
	CHECK_EQ(out[2], 0xffff800008011008);
	CHECK_EQ(hidden_addresses((const uint8_t *)code, sizeof(code), 0, out, 1), 1);
	CHECK_EQ(hidden_addresses((const uint8_t *)code, 3, 0, out, 4), 0);
}

static void test_strip(void)
{
	CHECK_EQ(arm64_strip(0x0000aaaad5a4b740, 48), 0x0000aaaad5a4b740);
	CHECK_EQ(arm64_strip(0x002faaaad5a4b740, 48), 0x0000aaaad5a4b740);
	CHECK_EQ(arm64_strip(0xffffbb8a10a10800, 48), 0xffffbb8a10a10800);
	CHECK_EQ(arm64_strip(0xd8a5bb8a10a10800, 48), 0xffffbb8a10a10800);
	CHECK_EQ(arm64_strip(0x3f8fffc008a10800, 52), 0xffffffc008a10800);
}

int main(void)
{
	test_calls();
	test_frames();
	test_addresses();
	test_strip();
	return test_done();
}
