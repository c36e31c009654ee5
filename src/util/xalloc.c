// SPDX-License-Identifier: GPL-2.0-only
#include "util/xalloc.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *p)
{
	if (!p) {
		fputs("vmprof: out of memory\n", stderr);
		exit(1);
	}
	return p;
}

size_t xsize_mul(size_t a, size_t b)
{
	size_t r;

	if (__builtin_mul_overflow(a, b, &r))
		checked(NULL);
	return r;
}

void *xmalloc(size_t n)
{
	return checked(malloc(n ? n : 1));
}

void *xcalloc(size_t n, size_t size)
{
	return checked(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *p, size_t n)
{
	return checked(realloc(p, n ? n : 1));
}

void *xreallocarray(void *p, size_t n, size_t size)
{
	return xrealloc(p, xsize_mul(n, size));
}

char *xstrdup(const char *s)
{
	return checked(strdup(s));
}

char *xstrndup(const char *s, size_t n)
{
	return checked(strndup(s, n));
}

char *xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	return checked(s);
}

void *xgrow(void *p, size_t *cap, size_t n, size_t size)
{
	size_t c = *cap ? *cap : 16;

	if (n <= *cap)
		return p;
	while (c < n)
		c = xsize_mul(c, 2);
	p = xreallocarray(p, c, size);
	*cap = c;
	return p;
}
