/* SPDX-License-Identifier: GPL-2.0-only */
/* A guest that is no Linux: QEMU loads it as a multiboot kernel and it counts for ever. */
	.code32
	.text
	.balign 4
	.long 0x1badb002, 0, -0x1badb002
	.globl _start
_start:
	incl %eax
	jmp _start
