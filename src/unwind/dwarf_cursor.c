// SPDX-License-Identifier: GPL-2.0-only
#include "unwind/dwarf_cursor.h"

#include <string.h>

uint64_t dwarf_uint(struct dwarf_cursor *c, unsigned size)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->p) < size) {
		c->bad = true;
		c->p = c->end;
		return 0;
	}
	for (unsigned i = 0; i < size; i++)
		v |= (uint64_t)c->p[i] << (8 * i);
	c->p += size;
	c->vaddr += size;
	return v;
}

int64_t dwarf_sint(struct dwarf_cursor *c, unsigned size)
{
	unsigned shift = 64 - 8 * size;

	return (int64_t)(dwarf_uint(c, size) << shift) >> shift;
}

/* The bits of a number in LEB128; *width: how many there were. */
static uint64_t leb(struct dwarf_cursor *c, unsigned *width, uint8_t *last)
{
	uint64_t v = 0;

	*width = 0;
	do {
		*last = (uint8_t)dwarf_uint(c, 1);
		if (*width < 64)
			v |= (uint64_t)(*last & 0x7f) << *width;
		*width += 7;
	} while (*last & 0x80 && !c->bad);
	return v;
}

uint64_t dwarf_uleb(struct dwarf_cursor *c)
{
	unsigned width;
	uint8_t last;

	return leb(c, &width, &last);
}

int64_t dwarf_sleb(struct dwarf_cursor *c)
{
	unsigned width;
	uint8_t last;
	uint64_t v = leb(c, &width, &last);

	if (last & 0x40 && width < 64)
		v |= ~0ull << width;
	return (int64_t)v;
}

const char *dwarf_string(struct dwarf_cursor *c)
{
	const char *s = (const char *)c->p;
	const uint8_t *nul = memchr(c->p, 0, (size_t)(c->end - c->p));

	if (!nul) {
		c->bad = true;
		c->p = c->end;
		return "";
	}
	dwarf_skip(c, (uint64_t)(nul + 1 - c->p));
	return s;
}

void dwarf_skip(struct dwarf_cursor *c, uint64_t n)
{
	if (n > (uint64_t)(c->end - c->p)) {
		c->bad = true;
		n = (uint64_t)(c->end - c->p);
	}
	c->p += n;
	c->vaddr += n;
}

static uint64_t pointer_value(struct dwarf_cursor *c, uint8_t format)
{
	switch (format) {
	case DW_EH_PE_ABSPTR:
	case DW_EH_PE_UDATA8:
	case DW_EH_PE_SDATA8:
		return dwarf_uint(c, 8);
	case DW_EH_PE_ULEB128:
		return dwarf_uleb(c);
	case DW_EH_PE_SLEB128:
		return (uint64_t)dwarf_sleb(c);
	case DW_EH_PE_UDATA2:
		return dwarf_uint(c, 2);
	case DW_EH_PE_SDATA2:
		return (uint64_t)dwarf_sint(c, 2);
	case DW_EH_PE_UDATA4:
		return dwarf_uint(c, 4);
	case DW_EH_PE_SDATA4:
		return (uint64_t)dwarf_sint(c, 4);
	default:
		c->bad = true;
		return 0;
	}
}

uint64_t dwarf_pointer(struct dwarf_cursor *c, uint8_t encoding, uint64_t data)
{
	uint64_t at = c->vaddr, v;

	if (encoding == DW_EH_PE_OMIT)
		return 0;
	v = pointer_value(c, encoding & DW_EH_PE_FORMAT);
	switch (encoding & DW_EH_PE_RELATIVE) {
	case 0:
		return v;
	case DW_EH_PE_PCREL:
		return v + at;
	case DW_EH_PE_DATAREL:
		return v + data;
	default:
		c->bad = true;
		return 0;
	}
}
