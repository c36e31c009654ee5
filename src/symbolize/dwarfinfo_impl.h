// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside the reader of DWARF: dwarfinfo.c has files and units, dwarffunc.c functions.
 */
#ifndef VMPROF_SYMBOLIZE_DWARFINFO_IMPL_H
#define VMPROF_SYMBOLIZE_DWARFINFO_IMPL_H

#include <elfutils/libdw.h>

#include "symbolize/dwarfinfo.h"

/* Addresses that belong to something: end exclusive, > start. */
struct dwarf_range {
	uint64_t start, end;
	uint32_t id; /* of what has them: an index */
};

struct dwarf_ranges {
	struct dwarf_range *r; /* sorted by start, then by the larger end */
	size_t n, cap;
};

/* A function that was inlined. */
struct dwarf_call {
	Dwarf_Die die;
	const char *name; /* NULL unknown or not looked for */
	uint32_t caller;  /* index of the one that has it inlined */
	uint32_t depth;
	bool named; /* the name was looked for */
};

struct dwarf_function {
	struct dwarf_call *calls; /* [0] is the function itself */
	size_t nr_calls, calls_cap;
	struct dwarf_ranges ranges; /* of calls, not sorted */
	Dwarf_Die die;
	bool read;
};

struct dwarf_unit {
	Dwarf_Die die;
	const char *dir; /* NULL unknown or not looked for */
	bool read;
	struct dwarf_function *functions;
	size_t nr_functions, functions_cap;
	struct dwarf_ranges ranges; /* of functions */
};

struct dwarf_info {
	Elf *elf, *alt_elf;
	Dwarf *dwarf, *alt;
	struct dwarf_unit *units;
	size_t nr_units, units_cap;
	struct dwarf_ranges ranges; /* of units */
	/* What may still be read: of a file that is no lie it is always enough. */
	uint64_t entries_left, ranges_left;
};

/* Adds the addresses of @die, as long as there may be more. */
void dwarf_ranges_add(struct dwarf_info *d, struct dwarf_ranges *to, Dwarf_Die *die, uint32_t id);
void dwarf_ranges_sort(struct dwarf_ranges *r);
/* The one with the highest start that has @addr, NULL without one. */
const struct dwarf_range *dwarf_ranges_find(const struct dwarf_ranges *r, uint64_t addr);

/* As dwarf_info_find(), of a unit; the place of frames[0] is known already. */
size_t dwarf_unit_frames(struct dwarf_info *d, struct dwarf_unit *u, uint64_t addr,
			 struct dwarf_frame *frames);
void dwarf_unit_free(struct dwarf_unit *u);

#endif
