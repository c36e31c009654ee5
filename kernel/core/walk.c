// SPDX-License-Identifier: GPL-2.0-only
#include "walk.h"

#define BITS(high, low) ((~0ull >> (63 - (high))) & (~0ull << (low)))

/* ------------------------------------------------------------------ x86 */

#define X86_PRESENT 0x1
#define X86_LARGE   0x80 /* in levels 2 and 3: this entry is a page */

int vmp_walk_x86(const struct vmp_phys *phys, u64 cr3, u32 levels, u64 vaddr, u64 *gpa)
{
	u64 table = cr3 & BITS(51, 12), entry = 0;
	u32 level;

	for (level = levels; level; level--) {
		u32 shift = 3 + 9 * level;

		if (phys->read(phys, table + (vaddr >> shift & 0x1ff) * 8, &entry) ||
		    !(entry & X86_PRESENT))
			return -VMP_ENOENT;
		if (level == 1 || (level < 4 && (entry & X86_LARGE))) {
			*gpa = (entry & BITS(51, shift)) | (vaddr & BITS(shift - 1, 0));
			return 0;
		}
		table = entry & BITS(51, 12);
	}
	return -VMP_ENOENT;
}

/* ------------------------------------------------------------------ arm64 */

#define TCR_TG0	 14 /* 2 bits: 0 4K, 1 64K, 2 16K */
#define TCR_TG1	 30 /* 2 bits: 1 16K, 2 4K, 3 64K */
#define TCR_T1SZ 16 /* 6 bits, as T0SZ at 0 */
#define TCR_DS	 59 /* 52-bit addresses with 4K and 16K granules */

/* log2 of the granule; 0: a reserved value */
static u32 granule(u64 tcr, int upper)
{
	static const u8 low[4] = {12, 16, 14, 0}, high[4] = {0, 14, 12, 16};

	return upper ? high[tcr >> TCR_TG1 & 3] : low[tcr >> TCR_TG0 & 3];
}

/* The output address of a descriptor. Where addresses have 52 bits, the top ones are in low bits.
 */
static u64 output(u64 entry, u32 page_shift, u32 low, u64 tcr)
{
	if (page_shift == 16)
		return (entry & BITS(47, low)) | (entry & BITS(15, 12)) << 36;
	if (tcr >> TCR_DS & 1)
		return (entry & BITS(49, low)) | (entry & BITS(9, 8)) << 42;
	return entry & BITS(47, low);
}

int vmp_walk_arm64(const struct vmp_phys *phys, const struct vmp_arm64_tables *tables, u64 vaddr,
		   u64 *gpa)
{
	int upper = vaddr >> 55 & 1; /* bit 55 chooses, since the top byte may be a tag */
	u64 table = upper ? tables->ttbr1 : tables->ttbr0, entry;
	u32 bits = 64 - (tables->tcr >> (upper ? TCR_T1SZ : 0) & 0x3f);
	u32 page_shift = granule(tables->tcr, upper), stride, levels, level;

	if (!page_shift || bits <= page_shift || bits > 52)
		return -VMP_ENOENT;
	if (((vaddr ^ (upper ? ~0ull : 0)) & BITS(55, bits)) != 0)
		return -VMP_ENOENT;
	stride = page_shift - 3;
	levels = (bits - page_shift + stride - 1) / stride;
	/* TTBR: bits 47:1 are the address, bits 5:2 its top ones where it has 52 bits. */
	table = bits > 48 || page_shift == 16 ? (table & BITS(47, 6)) | (table & BITS(5, 2)) << 46
					      : table & BITS(47, 4);
	for (level = levels; level; level--) {
		u32 shift = page_shift + stride * (level - 1);
		u32 top = level == levels ? bits - 1 : shift + stride - 1;

		if (phys->read(phys, table + ((vaddr & BITS(top, shift)) >> shift) * 8, &entry) ||
		    !(entry & 1))
			return -VMP_ENOENT;
		if (level == 1 || !(entry & 2)) { /* a page, or a block */
			if (level == 1 ? !(entry & 2) : level > 3)
				return -VMP_ENOENT;
			*gpa = output(entry, page_shift, shift, tables->tcr) |
			       (vaddr & BITS(shift - 1, 0));
			return 0;
		}
		table = output(entry, page_shift, page_shift, tables->tcr);
	}
	return -VMP_ENOENT;
}
