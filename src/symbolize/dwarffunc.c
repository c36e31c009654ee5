// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions of a unit and what is inlined into them. Entries are walked forwards only, whatever
 * their references to siblings say, so that a walk ends; a lie can make it see entries twice, which
 * the number of entries that a file may have read bounds.
 */
#if HAVE_LIBDW

#include <dwarf.h>
#include <stdlib.h>

#include "symbolize/dwarfinfo_impl.h"
#include "util/xalloc.h"

enum {
	MAX_DEPTH = 256,     /* of entries in each other; libdw walks them again for each */
	MAX_REFERENCES = 16, /* from an entry to the one that has its name */
};

static bool first_child(struct dwarf_info *d, Dwarf_Die *die, Dwarf_Die *child)
{
	if (!d->entries_left)
		return false;
	d->entries_left--;
	return dwarf_haschildren(die) > 0 && !dwarf_child(die, child) &&
	       dwarf_dieoffset(child) > dwarf_dieoffset(die);
}

static bool next_sibling(struct dwarf_info *d, Dwarf_Die *die)
{
	Dwarf_Off offset = dwarf_dieoffset(die);

	if (!d->entries_left)
		return false;
	d->entries_left--;
	return !dwarf_siblingof(die, die) && dwarf_dieoffset(die) > offset;
}

/* ---------- functions ---------- */

static void add_function(struct dwarf_info *d, struct dwarf_unit *u, Dwarf_Die *die)
{
	size_t n = u->ranges.n;

	dwarf_ranges_add(d, u, &u->ranges, die, (uint32_t)u->nr_functions);
	if (u->ranges.n == n)
		return;
	u->functions =
		xgrow(u->functions, &u->functions_cap, u->nr_functions + 1, sizeof(*u->functions));
	u->functions[u->nr_functions++] = (struct dwarf_function){.die = *die};
}

static bool is_function_part(int tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block ||
	       tag == DW_TAG_inlined_subroutine;
}

/*
 * Where functions with code can be. Types have but declarations of their functions, and say where
 * they end; only of those inside a function (lambdas, too) the code is there.
 */
static bool holds_functions(int tag, bool in_function)
{
	if (tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type)
		return in_function;
	return tag == DW_TAG_namespace || tag == DW_TAG_module || is_function_part(tag);
}

static void find_functions(struct dwarf_info *d, struct dwarf_unit *u, Dwarf_Die *parent,
			   unsigned depth, bool in_function)
{
	Dwarf_Die die;

	if (depth == MAX_DEPTH || !first_child(d, parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_subprogram)
			add_function(d, u, &die);
		if (holds_functions(tag, in_function))
			find_functions(d, u, &die, depth + 1, in_function || is_function_part(tag));
	} while (next_sibling(d, &die));
}

/* ---------- what is inlined ---------- */

static uint32_t add_call(struct dwarf_function *f, Dwarf_Die *die, uint32_t caller)
{
	f->calls = xgrow(f->calls, &f->calls_cap, f->nr_calls + 1, sizeof(*f->calls));
	f->calls[f->nr_calls] = (struct dwarf_call){
		.die = *die,
		.caller = caller,
		.depth = f->nr_calls ? f->calls[caller].depth + 1 : 0,
	};
	return (uint32_t)f->nr_calls++;
}

static void find_calls(struct dwarf_info *d, struct dwarf_unit *u, struct dwarf_function *f,
		       Dwarf_Die *parent, uint32_t caller, unsigned depth)
{
	Dwarf_Die die;

	if (depth == MAX_DEPTH || !first_child(d, parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_lexical_block) {
			find_calls(d, u, f, &die, caller, depth + 1);
		} else if (tag == DW_TAG_inlined_subroutine) {
			uint32_t call = add_call(f, &die, caller);

			dwarf_ranges_add(d, u, &f->ranges, &die, call);
			find_calls(d, u, f, &die, call, depth + 1);
		}
	} while (next_sibling(d, &die));
}

/* The name that linkers know, else the one in the source, of the entry or what it refers to. */
static const char *name_of(Dwarf_Die *die)
{
	static const unsigned references[] = {DW_AT_abstract_origin, DW_AT_specification};
	Dwarf_Die at = *die;
	Dwarf_Attribute attr;
	const char *name = NULL, *linkage;

	for (unsigned i = 0; i < MAX_REFERENCES; i++) {
		Dwarf_Attribute *ref = NULL;

		if (dwarf_attr(&at, DW_AT_linkage_name, &attr) ||
		    dwarf_attr(&at, DW_AT_MIPS_linkage_name, &attr)) {
			linkage = dwarf_formstring(&attr);
			if (linkage)
				return linkage;
		}
		if (!name && dwarf_attr(&at, DW_AT_name, &attr))
			name = dwarf_formstring(&attr);
		for (size_t r = 0; r < 2 && !ref; r++)
			ref = dwarf_attr(&at, references[r], &attr);
		if (!ref || !dwarf_formref_die(ref, &at))
			break;
	}
	return name;
}

static const char *call_name(struct dwarf_call *c)
{
	if (!c->named)
		c->name = name_of(&c->die);
	c->named = true;
	return c->name;
}

static uint32_t number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;
	Dwarf_Word v;

	return dwarf_attr(die, name, &attr) && !dwarf_formudata(&attr, &v) && v <= INT32_MAX
		       ? (uint32_t)v
		       : 0;
}

static void call_place(struct dwarf_unit *u, struct dwarf_call *c, struct dwarf_frame *frame)
{
	frame->line = number_of(&c->die, DW_AT_call_line);
	frame->dir = u->dir;
	frame->file = dwarf_unit_file(u, number_of(&c->die, DW_AT_call_file));
}

/* ---------- lookups ---------- */

static void read_unit(struct dwarf_info *d, struct dwarf_unit *u)
{
	if (u->read)
		return;
	u->read = true;
	dwarf_split_find(d, u);
	find_functions(d, u, dwarf_unit_functions(u), 0, false);
	dwarf_ranges_sort(&u->ranges);
}

static void read_function(struct dwarf_info *d, struct dwarf_unit *u, struct dwarf_function *f)
{
	if (f->read)
		return;
	f->read = true;
	find_calls(d, u, f, &f->die, add_call(f, &f->die, 0), 0);
}

static uint32_t innermost_call(const struct dwarf_function *f, uint64_t addr)
{
	uint32_t call = 0;

	for (size_t i = 0; i < f->ranges.n; i++) {
		const struct dwarf_range *r = &f->ranges.r[i];

		if (addr - r->start < r->end - r->start &&
		    f->calls[r->id].depth > f->calls[call].depth)
			call = r->id;
	}
	return call;
}

size_t dwarf_unit_frames(struct dwarf_info *d, struct dwarf_unit *u, uint64_t addr,
			 struct dwarf_frame *frames)
{
	const struct dwarf_range *r;
	struct dwarf_function *f;
	uint32_t call;
	size_t n = 0;

	read_unit(d, u);
	r = dwarf_ranges_find(&u->ranges, addr);
	if (!r)
		return 0;
	f = &u->functions[r->id];
	read_function(d, u, f);
	for (call = innermost_call(f, addr); call; call = f->calls[call].caller) {
		if (n < DWARF_MAX_FRAMES - 1) {
			frames[n++].function = call_name(&f->calls[call]);
			call_place(u, &f->calls[call], &frames[n]);
		}
	}
	frames[n++].function = call_name(&f->calls[0]);
	return n;
}

void dwarf_unit_free(struct dwarf_unit *u)
{
	for (size_t i = 0; i < u->nr_functions; i++) {
		free(u->functions[i].calls);
		free(u->functions[i].ranges.r);
	}
	free(u->functions);
	free(u->ranges.r);
	dwarf_split_free(u->split);
}

#endif
