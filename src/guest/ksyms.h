// SPDX-License-Identifier: GPL-2.0-only
/*
 * A table of symbols, by address and by name: the kernel's own, and one a module.
 */
#ifndef VMPROF_GUEST_KSYMS_H
#define VMPROF_GUEST_KSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/buf.h"

#define KSYMS_MAX_SYMBOLS (1u << 20)
#define KSYMS_MAX_NAMES	  (64u << 20) /* bytes */
#define KSYMS_MAX_NAME	  512	      /* KSYM_NAME_LEN of 6.1 and later */

struct ksyms_entry {
	uint64_t addr;
	uint32_t name; /* offset in names */
	char type;     /* kallsyms letter */
};

struct ksyms {
	struct ksyms_entry *syms; /* after ksyms_finish(): by address, equal ones as added */
	size_t n, cap;
	struct buf names;
	uint32_t *by_name; /* index + 1 into syms; 0 empty */
	size_t mask;
};

/* -E2BIG when a bound is hit: the symbol is not taken. */
int ksyms_add(struct ksyms *t, uint64_t addr, char type, const char *name, size_t len);
/* Sorts and makes the index of names; no more symbols can be added. */
void ksyms_finish(struct ksyms *t);
void ksyms_free(struct ksyms *t); /* leaves an empty table */

const char *ksyms_name(const struct ksyms *t, const struct ksyms_entry *s);
/* Of several with this name a global one, else the first; NULL if there is none. */
const struct ksyms_entry *ksyms_by_name(const struct ksyms *t, const char *name);
/* The first of those with the highest address at or below @addr; NULL if @addr is below all. */
const struct ksyms_entry *ksyms_at(const struct ksyms *t, uint64_t addr);

#endif
