// SPDX-License-Identifier: GPL-2.0-only
/*
 * A position-independent program with shared libraries and one more that it opens itself:
 * main > outer > { own_hot > plugin_spin 75 %, plugin_work > plugin_hot 25 % } > spin, for ever.
 * plugin_* and spin are in plugin.so.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "work.h"

typedef uint64_t (*work_fn)(uint64_t x, unsigned rounds);

static work_fn plugin_spin, plugin_work;

WORK_FUNCTION static uint64_t own_hot(uint64_t x, unsigned n)
{
	return plugin_spin(x, 3 * n) | 1;
}

WORK_FUNCTION static uint64_t outer(uint64_t x)
{
	unsigned n = rounds(x);

	x = own_hot(x, n);
	return plugin_work(x, n) | 2;
}

int main(void)
{
	void *library = dlopen("/srv/lab/plugin.so", RTLD_NOW);
	volatile uint64_t x = 88172645463325252;

	if (library) {
		plugin_spin = (work_fn)dlsym(library, "plugin_spin");
		plugin_work = (work_fn)dlsym(library, "plugin_work");
	}
	if (!plugin_spin || !plugin_work) {
		fprintf(stderr, "libsplit: %s\n", dlerror());
		return 1;
	}
	for (;;)
		x = outer(x);
}
