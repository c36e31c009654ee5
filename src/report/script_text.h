// SPDX-License-Identifier: GPL-2.0-only
/*
 * Text to the end of a buffer, without printf: what is printed for each of millions of samples.
 */
#ifndef VMPROF_REPORT_SCRIPT_TEXT_H
#define VMPROF_REPORT_SCRIPT_TEXT_H

#include <stdio.h>
#include <string.h>

#include "util/buf.h"

static inline void text_char(struct buf *b, char c)
{
	*(char *)buf_grow(b, 1) = c;
}

static inline void text_bytes(struct buf *b, const char *s, size_t len)
{
	memcpy(buf_grow(b, len), s, len);
}

static inline void text_str(struct buf *b, const char *s)
{
	text_bytes(b, s, strlen(s));
}

static inline void text_pad(struct buf *b, char c, size_t len, size_t width)
{
	if (len < width)
		memset(buf_grow(b, width - len), c, width - len);
}

/* As %*s, in bytes. */
static inline void text_right(struct buf *b, const char *s, size_t len, size_t width)
{
	text_pad(b, ' ', len, width);
	text_bytes(b, s, len);
}

/* As %*lx and %0*lu with c = '0'. */
static inline void text_number(struct buf *b, uint64_t v, unsigned base, char c, size_t width)
{
	char digits[20], *p = digits + sizeof(digits);
	size_t len;

	do
		*--p = "0123456789abcdef"[v % base];
	while (v /= base);
	len = (size_t)(digits + sizeof(digits) - p);
	text_pad(b, c, len, width);
	text_bytes(b, p, len);
}

static inline void text_hex(struct buf *b, uint64_t v, size_t width)
{
	text_number(b, v, 16, ' ', width);
}

static inline void text_dec(struct buf *b, uint64_t v, size_t width)
{
	text_number(b, v, 10, ' ', width);
}

static inline void text_dec0(struct buf *b, uint64_t v, size_t width)
{
	text_number(b, v, 10, '0', width);
}

/* As %*d. */
static inline void text_int(struct buf *b, int32_t v, size_t width)
{
	char text[16];
	int len;

	if (v >= 0) {
		text_dec(b, (uint64_t)v, width);
		return;
	}
	len = snprintf(text, sizeof(text), "%d", v);
	text_right(b, text, (size_t)len, width);
}

#endif
