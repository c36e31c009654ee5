// SPDX-License-Identifier: GPL-2.0-only
/*
 * The order in which perf lists entries. Its comparison is no order (whether depth counts depends
 * on both entries), so that what comes out is what its red-black tree makes of it: elements put in
 * one after the other, rebalanced bottom-up, read from left to right.
 */
#ifndef VMPROF_REPORT_RBORDER_H
#define VMPROF_REPORT_RBORDER_H

#include <stdbool.h>
#include <stdint.h>

/* Reorders the @n numbers of @ids. @first: does the new element @a go before @b? */
void rborder(uint32_t *ids, uint32_t n, bool (*first)(uint32_t a, uint32_t b, const void *ctx),
	     const void *ctx);

#endif
