// SPDX-License-Identifier: GPL-2.0-only
#include "util/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/xalloc.h"

void buf_free(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}

void buf_reset(struct buf *b)
{
	b->len = 0;
}

void *buf_grow(struct buf *b, size_t n)
{
	void *p;

	/* of nothing at all there is a place, too */
	if (!b->data || n > b->cap - b->len) {
		size_t cap = b->cap ? b->cap : 256;

		while (cap - b->len < n)
			cap = xsize_mul(cap, 2);
		b->data = xrealloc(b->data, cap);
		b->cap = cap;
	}
	p = b->data + b->len;
	b->len += n;
	return p;
}

void buf_add(struct buf *b, const void *p, size_t n)
{
	if (n)
		memcpy(buf_grow(b, n), p, n);
}

void buf_zero(struct buf *b, size_t n)
{
	if (n)
		memset(buf_grow(b, n), 0, n);
}

void buf_u16(struct buf *b, uint16_t v)
{
	buf_add(b, &v, sizeof(v));
}

void buf_u32(struct buf *b, uint32_t v)
{
	buf_add(b, &v, sizeof(v));
}

void buf_u64(struct buf *b, uint64_t v)
{
	buf_add(b, &v, sizeof(v));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	size_t start = b->len, room = 128; /* mostly enough, so that it is formatted once */
	va_list ap;
	int n;

	for (;;) {
		char *p = buf_grow(b, room);

		va_start(ap, fmt);
		n = vsnprintf(p, room, fmt, ap);
		va_end(ap);
		b->len = start + (n < 0 ? 0 : (size_t)n); /* the NUL is no content */
		if (n < 0 || (size_t)n < room)
			return;
		b->len = start;
		room = (size_t)n + 1;
	}
}

int write_all(int fd, const void *p, size_t len)
{
	const char *at = p;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}
