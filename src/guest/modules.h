// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of loaded modules, and their symbols.
 */
#ifndef VMPROF_GUEST_MODULES_H
#define VMPROF_GUEST_MODULES_H

#include "guest/btf.h"
#include "guest/kernel.h"
#include "guest/ksyms.h"

struct modules;

/* @list: address of the list head "modules". NULL if @b does not describe modules. */
struct modules *modules_new(struct guest_virt *v, struct guest_as as, const struct btf *b,
			    uint64_t list);
void modules_free(struct modules *m); /* NULL is fine */

/* Reads the list again unless that was done less than @max_age_ns ago. */
void modules_refresh(struct modules *m, uint64_t max_age_ns);
size_t modules_count(const struct modules *m);
/* By address of text; NULL behind the last one. */
const struct guest_module *modules_nth(const struct modules *m, size_t i);
const struct guest_module *modules_by_name(const struct modules *m, const char *name);
/* The one whose text has @addr, as far as the list was read; NULL if none. */
const struct guest_module *modules_at(const struct modules *m, uint64_t addr);

/* Symbols of the module of that name: 0, -ENOENT, -ESRCH. @out is empty and becomes finished. */
int modules_symbols(struct modules *m, const char *name, struct ksyms *out);

#endif
