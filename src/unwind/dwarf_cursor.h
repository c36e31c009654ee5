// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/unwind: bytes of DWARF data, read one after the other within bounds. Reading behind
 * the end gives zeros and sets ->bad, which is checked once at the end of something. Formats: DWARF
 * 5, 7.6; pointer encodings: Linux Standard Base 5.0, 10.5.
 */
#ifndef VMPROF_UNWIND_DWARF_CURSOR_H
#define VMPROF_UNWIND_DWARF_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwarf_cursor {
	const uint8_t *p, *end;
	uint64_t vaddr; /* of @p */
	bool bad;
};

/* DW_EH_PE_*: the low four bits are the format, then what it is relative to. */
enum {
	DW_EH_PE_ABSPTR = 0x00,
	DW_EH_PE_ULEB128 = 0x01,
	DW_EH_PE_UDATA2 = 0x02,
	DW_EH_PE_UDATA4 = 0x03,
	DW_EH_PE_UDATA8 = 0x04,
	DW_EH_PE_SLEB128 = 0x09,
	DW_EH_PE_SDATA2 = 0x0a,
	DW_EH_PE_SDATA4 = 0x0b,
	DW_EH_PE_SDATA8 = 0x0c,
	DW_EH_PE_FORMAT = 0x0f,
	DW_EH_PE_PCREL = 0x10,
	DW_EH_PE_DATAREL = 0x30,
	DW_EH_PE_RELATIVE = 0x70,
	DW_EH_PE_INDIRECT = 0x80,
	DW_EH_PE_OMIT = 0xff,
};

/* Little-endian numbers of 1, 2, 4 or 8 bytes. */
uint64_t dwarf_uint(struct dwarf_cursor *c, unsigned size);
int64_t dwarf_sint(struct dwarf_cursor *c, unsigned size);
uint64_t dwarf_uleb(struct dwarf_cursor *c);
int64_t dwarf_sleb(struct dwarf_cursor *c);
/* A NUL-terminated string; "" if there is no end. */
const char *dwarf_string(struct dwarf_cursor *c);
void dwarf_skip(struct dwarf_cursor *c, uint64_t n);

/*
 * A pointer in an encoding. @data: what DW_EH_PE_DATAREL is relative to. Indirect ones are not
 * followed: they are personality routines, which nobody asks for here.
 */
uint64_t dwarf_pointer(struct dwarf_cursor *c, uint8_t encoding, uint64_t data);

#endif
