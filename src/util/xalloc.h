// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocation that does not return NULL: out of memory prints one line and exits with status 1.
 * For sizes that come from input (a guest, a file), check them against a bound first: these are no
 * bound.
 */
#ifndef VMPROF_UTIL_XALLOC_H
#define VMPROF_UTIL_XALLOC_H

#include <stddef.h>

void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size); /* zeroed; n * size is checked */
void *xrealloc(void *p, size_t n);
void *xreallocarray(void *p, size_t n, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
size_t xsize_mul(size_t a, size_t b); /* overflow is out of memory */

/* Grows array @p of @size-byte elements with capacity *@cap so that it holds @n; returns it. */
void *xgrow(void *p, size_t *cap, size_t n, size_t size);

#endif
