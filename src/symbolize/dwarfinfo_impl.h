// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside the reader of DWARF: dwarfinfo.c has files and units, dwarffunc.c functions,
 * dwarfsplit.c what of a unit is in another file.
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

struct dwarf_split;

struct dwarf_unit {
	Dwarf_Die die;
	struct dwarf_split *split; /* NULL: functions are in this file, or not to be had */
	const char *dir;	   /* NULL unknown or not looked for */
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
	struct dwarf_ranges ranges;	 /* of units */
	struct dwarf_splitter *splitter; /* NULL: no file is looked for */
	/* What may still be read: of a file that is no lie it is always enough. */
	uint64_t entries_left, ranges_left;
};

/* What a compressed section claims to become, else its size. */
uint64_t dwarf_section_size(const struct elf_file *f, const struct elf_section *s);
/* 0, or -errno and a sentence if the sections claim more than is taken. */
int dwarf_check_sizes(const struct elf_file *f, struct vmprof_err *err);

/* Adds @start to @end, as long as there may be more. */
void dwarf_range_add(struct dwarf_info *d, struct dwarf_ranges *to, uint64_t start, uint64_t end,
		     uint32_t id);
/* The same of all addresses of @die, which is an entry of @u's file, or of what was split off. */
void dwarf_ranges_add(struct dwarf_info *d, struct dwarf_unit *u, struct dwarf_ranges *to,
		      Dwarf_Die *die, uint32_t id);
void dwarf_ranges_sort(struct dwarf_ranges *r);
/* The one with the highest start that has @addr, NULL without one. */
const struct dwarf_range *dwarf_ranges_find(const struct dwarf_ranges *r, uint64_t addr);

/* As dwarf_info_find(), of a unit; the place of frames[0] is known already. */
size_t dwarf_unit_frames(struct dwarf_info *d, struct dwarf_unit *u, uint64_t addr,
			 struct dwarf_frame *frames);
void dwarf_unit_free(struct dwarf_unit *u);

/* ---------- dwarfsplit.c ---------- */

/* Sets @u->split if the unit's functions are in another file, and that is found. */
void dwarf_split_find(struct dwarf_info *d, struct dwarf_unit *u);
/* Where @u's functions are: its own entry, or the other file's. */
Dwarf_Die *dwarf_unit_functions(struct dwarf_unit *u);
/* Of the numbers of files in those entries. NULL: unknown. */
const char *dwarf_unit_file(struct dwarf_unit *u, uint32_t file);
/* dwarf_ranges_add() of an entry of @u->split. */
void dwarf_split_ranges(struct dwarf_info *d, struct dwarf_unit *u, struct dwarf_ranges *to,
			Dwarf_Die *die, uint32_t id);
void dwarf_split_free(struct dwarf_split *s); /* NULL is fine */
void dwarf_splitter_free(
	struct dwarf_splitter *s); /* NULL is fine; behind all dwarf_split_free() */

#endif
