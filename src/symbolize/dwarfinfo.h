// SPDX-License-Identifier: GPL-2.0-only
/*
 * Source lines and inlined functions out of the debugging information of one ELF file, read by
 * libdw. What is looked up by address is indexed where it is first asked for: units when the file
 * is opened, functions and lines of a unit, what was inlined into a function. The file is hostile:
 * sizes, depths, references and the number of entries that are read are bounded. Source: the DWARF
 * standard, versions 2 to 5; DWZ's alternate files as in version 5's supplementary ones; for split
 * files of DWARF 4 https://gcc.gnu.org/wiki/DebugFission and DebugFissionDWP.
 */
#ifndef VMPROF_SYMBOLIZE_DWARFINFO_H
#define VMPROF_SYMBOLIZE_DWARFINFO_H

#include "symbolize/elffile.h"

struct dwarf_info;

/* One function at an address: the innermost is where the address is, the next has it inlined. */
struct dwarf_frame {
	const char *function; /* linkage name, else name; NULL unknown */
	const char *file;     /* path; NULL unknown */
	const char *dir;      /* what a relative path is relative to; NULL unknown */
	uint32_t line;	      /* of the address, then of the call in that function; 0 unknown */
};

enum { DWARF_MAX_FRAMES = 128 }; /* more are left out, the outermost function is not */

/* Has the file DWARF that could be read? */
bool dwarf_info_is_in(const struct elf_file *f);

/*
 * @fd is @f's, and @alt_fd that of its alternate file (elf_alt_link()), -1 without one; both may be
 * closed behind this. 0 or -errno with a sentence; -ENOSYS without libdw.
 */
int dwarf_info_open(struct dwarf_info **out, const struct elf_file *f, int fd, int alt_fd,
		    struct vmprof_err *err);
void dwarf_info_close(struct dwarf_info *d); /* NULL is fine */

/*
 * Opens the @i-th file that could be the one that the compiler has split a unit's functions off to
 * (-gsplit-dwarf): @name and @dir are DW_AT_dwo_name and DW_AT_comp_dir, strings of a hostile file
 * (@dir may be NULL); @name NULL is the package of all of them (.dwp). A descriptor, which is then
 * closed; -ENOENT: nothing there; -ERANGE: there are no more. Whether it is the right one, its
 * identifier tells.
 */
typedef int dwarf_split_fn(void *ctx, const char *name, const char *dir, unsigned i);

/* Without it units have but what was not split off: their lines. */
void dwarf_info_set_split(struct dwarf_info *d, dwarf_split_fn *open, void *ctx);
/* The name of the first file that was looked for and not found, NULL: none was missed. */
const char *dwarf_info_missing(const struct dwarf_info *d);

/*
 * What is at @addr, as the file numbers it, innermost first, into @frames, which has room for
 * DWARF_MAX_FRAMES; returns their number, 0 if nothing is known. The last one is the function that
 * was called. Strings live as long as @d.
 */
size_t dwarf_info_find(struct dwarf_info *d, uint64_t addr, struct dwarf_frame *frames);

/* Only where the innermost frame is, without its name, for which functions need not be read. */
bool dwarf_info_line(struct dwarf_info *d, uint64_t addr, struct dwarf_frame *frame);

#endif
