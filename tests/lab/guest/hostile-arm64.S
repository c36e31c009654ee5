/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest that is no Linux and means harm: what it does with the counters that are lent to it says
 * the word at MODE (QEMU: -device loader). It prints a dot now and then, so that it is known to run.
 */
#define UART	0x09000000
#define MODE	0x42000000
#define SOON	-1000		/* cycles to the next overflow: 250 instructions */
#define PERIOD	-100000

#define TAME	0		/* as it should be */
#define SILENT	1		/* returns from the interrupt without acknowledging it, so that it comes again;
				   not at once, since QEMU takes minutes for a second of that */
#define MASKED	2		/* keeps FIQs masked */
#define STORM	3		/* lets the next interrupt come at once */
#define GREEDY	4		/* writes all registers that it can name, and reads what is not its own */

#define MAIR	0xff00		/* 0: device, 1: memory */
#define TCR	(25 | 1 << 23 | 3 << 12 | 1 << 10 | 1 << 8 | 2 << 32) /* 39 bits, pages of 4 KiB, no TTBR1 */

	.text
	.globl	_start
_start:
	adr	x0, vectors
	msr	vbar_el1, x0
	/* Addresses are translated, each to itself, as by any guest that has a handler. */
	adrp	x0, tables
	msr	ttbr0_el1, x0
	msr	ttbr1_el1, x0
	mov	x0, #MAIR
	msr	mair_el1, x0
	ldr	x0, =TCR
	msr	tcr_el1, x0
	isb
	mrs	x0, sctlr_el1
	orr	x0, x0, #1
	msr	sctlr_el1, x0
	isb
	mov	x20, #UART
	mov	x21, #MODE
	ldr	x21, [x21]
	adr	x1, greeting
1:	ldrb	w0, [x1], #1
	cbz	w0, 2f
	str	w0, [x20]
	b	1b
2:	cmp	x21, #MASKED
	b.eq	work
	msr	daifclr, #1
work:
	mov	x1, #0x200000
1:	subs	x1, x1, #1
	b.ne	1b
	mov	w0, #'.'
	str	w0, [x20]
	cmp	x21, #GREEDY
	b.ne	work
	mov	x1, #-1
	msr	pmevtyper0_el0, x1
	msr	pmevtyper5_el0, x1
	msr	pmccfiltr_el0, x1
	msr	pmccntr_el0, x1
	msr	pmcntenset_el0, x1
	msr	pmintenset_el1, x1
	msr	pmuserenr_el0, x1
	msr	pmselr_el0, x1
	msr	pmcr_el0, x1
	mov	x2, #SOON
	msr	pmevcntr0_el0, x2
	msr	S3_0_C12_C12_6, x1	/* ICC_IGRPEN0_EL1 */
	msr	S3_0_C12_C8_4, x1	/* ICC_AP0R0_EL1 */
	msr	S3_0_C12_C8_3, xzr	/* ICC_BPR0_EL1 */
	mrs	x2, S3_0_C12_C8_0	/* ICC_IAR0_EL1 */
	msr	S3_0_C12_C8_1, x2	/* ICC_EOIR0_EL1 */
	msr	S3_0_C12_C11_1, x2	/* ICC_DIR_EL1 */
	msr	S3_0_C4_C6_0, xzr	/* ICC_PMR_EL1 */
	mrs	x2, S3_4_C1_C1_1	/* MDCR_EL2: undefined here */
	b	work

greeting:
	.asciz	"@up\n"

	.balign	2048
vectors:
	.org	vectors + 0x200		/* undefined: the next one */
	mrs	x10, elr_el1
	add	x10, x10, #4
	msr	elr_el1, x10
	eret
	.org	vectors + 0x280
	b	.
	.org	vectors + 0x300		/* FIQ */
	mov	x10, #2000
	cmp	x21, #SILENT
	b.eq	2f
	mrs	x10, pmovsclr_el0
	msr	pmovsclr_el0, x10
	mov	x11, #SOON
	mov	x12, #(PERIOD & 0xffff)
	movk	x12, #((PERIOD >> 16) & 0xffff), lsl #16
	cmp	x21, #STORM
	csel	x10, x11, x12, eq
	msr	pmevcntr0_el0, x10
	isb
	eret
2:	subs	x10, x10, #1
	b.ne	2b
	eret
	.org	vectors + 0x380
	b	.

	.ltorg
	.balign	4096
tables:				/* a GiB each: of devices, of memory */
	.quad	0x00000401
	.quad	0x40000705
	.fill	510, 8, 0
