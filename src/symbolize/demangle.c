// SPDX-License-Identifier: GPL-2.0-only
#include "symbolize/demangle.h"

#if HAVE_LIBIBERTY

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <libiberty/demangle.h>

#include "util/buf.h"

enum {
	MAX_MANGLED = 16 << 10,
	MAX_READABLE = 64 << 10, /* a few bytes of substitutions can stand for gigabytes */
};

struct output {
	struct buf b;
	jmp_buf too_long;
};

/*
 * The demanglers cannot be told to stop. With the callback they keep all their state on the stack,
 * so that jumping out leaks nothing.
 */
static void take(const char *s, size_t len, void *opaque)
{
	struct output *o = opaque;

	if (o->b.len + len > MAX_READABLE)
		longjmp(o->too_long, 1);
	buf_add(&o->b, s, len);
}

static char *run(const char *mangled)
{
	struct output *volatile o = calloc(1, sizeof(*o));
	char *s = NULL;

	if (!o)
		return NULL;
	if (!setjmp(o->too_long) &&
	    (rust_demangle_callback(mangled, DMGL_NO_OPTS, take, o) ||
	     (!strncmp(mangled, "_Z", 2) &&
	      cplus_demangle_v3_callback(mangled, DMGL_NO_OPTS, take, o)))) {
		buf_add(&o->b, "", 1);
		s = (char *)o->b.data;
	} else {
		buf_free(&o->b);
	}
	free(o);
	return s;
}

char *demangle(const char *name)
{
	static const char plt[] = "@plt";
	size_t len;
	char *bare, *s;

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R'))
		return NULL;
	len = strnlen(name, MAX_MANGLED);
	if (len == MAX_MANGLED)
		return NULL;
	if (len < sizeof(plt) || strcmp(name + len - 4, plt) != 0)
		return run(name);
	bare = strndup(name, len - 4);
	s = bare ? run(bare) : NULL;
	free(bare);
	if (s) {
		bare = malloc(strlen(s) + sizeof(plt));
		if (bare)
			strcat(strcpy(bare, s), plt);
		free(s);
		s = bare;
	}
	return s;
}

#else

#include <stddef.h>

char *demangle(const char *name)
{
	return NULL;
}

#endif
