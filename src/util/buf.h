// SPDX-License-Identifier: GPL-2.0-only
/*
 * A growing byte buffer. A failed allocation ends the program with a sentence (xalloc.h): no caller
 * has a better idea, and the file on disk is readable at any time.
 */
#ifndef VMPROF_UTIL_BUF_H
#define VMPROF_UTIL_BUF_H

#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *data;
	size_t len; /* bytes used */
	size_t cap; /* bytes allocated */
};

void buf_free(struct buf *b);  /* leaves an empty, usable buffer */
void buf_reset(struct buf *b); /* len = 0, memory is kept */

/* Makes room for @n more bytes and returns where they go; len grows by @n. Contents undefined. */
void *buf_grow(struct buf *b, size_t n);
void buf_add(struct buf *b, const void *p, size_t n);
void buf_zero(struct buf *b, size_t n);
void buf_u16(struct buf *b, uint16_t v);
void buf_u32(struct buf *b, uint32_t v);
void buf_u64(struct buf *b, uint64_t v);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* All @len bytes to a file, whatever interrupts; 0 or -errno. */
int write_all(int fd, const void *p, size_t len);

#endif
