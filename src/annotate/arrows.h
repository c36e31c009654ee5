// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lines beside the code of a function, from each jump within it to its target.
 */
#ifndef VMPROF_ANNOTATE_ARROWS_H
#define VMPROF_ANNOTATE_ARROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* An instruction as far as arrows go. */
struct arrow_line {
	uint64_t addr, target;
	bool jumps; /* to target */
};

struct arrows;

/*
 * @lines by address. Short jumps are nearest to the code; those for which there is no room, and
 * very long ones, are left out.
 */
struct arrows *arrows_new(const struct arrow_line *lines, size_t n);
void arrows_free(struct arrows *a); /* NULL is fine */
/* What is beside line @i; nothing if the function has no arrows. */
void arrows_print(const struct arrows *a, size_t i, FILE *f);

#endif
