// SPDX-License-Identifier: GPL-2.0-only
#include "unwind/cfi_record.h"

#include <errno.h>
#include <stdlib.h>

#include "util/xalloc.h"

enum {
	MAX_RECORD = 1 << 16, /* bytes of a description */
	HEAD = 20,	      /* bytes of length and id, at most */
	WIDE = 0xffffffff,    /* a length of 64 bits follows */
};

/* Length and id; *len: of what is behind them. */
static int take_head(const struct cfi_from *from, struct dwarf_cursor *c, struct cfi_record *out,
		     uint64_t *len)
{
	uint64_t size = dwarf_uint(c, 4);
	bool wide = size == (uint32_t)WIDE;
	/* In .eh_frame the id has 32 bits in either case. */
	unsigned id_size = wide && from->debug_frame ? 8 : 4;

	if (wide)
		size = dwarf_uint(c, 8);
	out->id_vaddr = c->vaddr;
	out->id = dwarf_uint(c, id_size);
	if (c->bad || size < id_size)
		return -EIO;
	if (from->debug_frame)
		out->is_cie = out->id == (id_size == 8 ? UINT64_MAX : UINT32_MAX);
	else
		out->is_cie = !out->id;
	*len = size - id_size;
	return 0;
}

int cfi_record_start(const struct cfi_from *from, struct dwarf_cursor *c, struct cfi_record *out)
{
	uint64_t len;

	if (take_head(from, c, out, &len) || len > (uint64_t)(c->end - c->p))
		return -EIO;
	out->body = *c;
	out->body.end = c->p + len;
	dwarf_skip(c, len);
	return 0;
}

uint64_t cfi_record_cie(const struct cfi_from *from, const struct cfi_record *r)
{
	return from->debug_frame ? r->id : r->id_vaddr - r->id;
}

/* The record at @vaddr, into @buf of @max bytes. */
static int read_record(const struct cfi_from *from, uint64_t vaddr, uint8_t *buf, size_t max,
		       struct cfi_record *out)
{
	uint8_t head[HEAD];
	struct dwarf_cursor at = {head, head + sizeof(head), vaddr, false};
	/* A short record may be the last thing that there is. */
	int rc = from->read(from->ctx, vaddr, head, sizeof(head));
	uint64_t len;

	if (rc) {
		at.end = head + 8;
		rc = from->read(from->ctx, vaddr, head, 8);
	}
	if (rc)
		return rc;
	if (take_head(from, &at, out, &len) || len > max)
		return -EIO;
	rc = from->read(from->ctx, at.vaddr, buf, len);
	out->body = (struct dwarf_cursor){buf, buf + len, at.vaddr, false};
	return rc;
}

/* The letters behind 'z' say what the augmentation data has. */
static void parse_augmentation(struct cfi_cie *cie, const char *letters, struct dwarf_cursor *c)
{
	uint64_t len = dwarf_uleb(c);
	struct dwarf_cursor data = *c;

	dwarf_skip(c, len);
	data.end = c->p;
	for (const char *l = letters; *l; l++) {
		uint8_t encoding;

		if (*l == 'R') {
			cie->pointer_encoding = (uint8_t)dwarf_uint(&data, 1);
		} else if (*l == 'L') {
			dwarf_uint(&data, 1);
		} else if (*l == 'P') {
			encoding = (uint8_t)dwarf_uint(&data, 1);
			dwarf_pointer(&data, encoding & ~DW_EH_PE_INDIRECT, 0);
		} else if (*l == 'S') {
			cie->signal = true;
		} else if (*l != 'B' && *l != 'G') { /* of aarch64, without data */
			c->bad = true;
		}
	}
	c->bad |= data.bad;
}

/* Since version 4 of .debug_frame: addresses of 8 bytes, and no segments. */
static bool is_plain(struct dwarf_cursor *c)
{
	return dwarf_uint(c, 1) == 8 && !dwarf_uint(c, 1);
}

static int parse_cie(struct cfi_cie *cie, struct cfi_record *r)
{
	struct dwarf_cursor *c = &r->body;
	uint8_t version = (uint8_t)dwarf_uint(c, 1);
	const char *augmentation = dwarf_string(c);

	if (!r->is_cie || (version != 1 && version != 3 && version != 4) ||
	    (version == 4 && !is_plain(c)))
		return -EIO;
	cie->code_align = dwarf_uleb(c);
	cie->data_align = dwarf_sleb(c);
	cie->ra_register = version == 1 ? dwarf_uint(c, 1) : dwarf_uleb(c);
	cie->has_augmentation_data = augmentation[0] == 'z';
	if (cie->has_augmentation_data)
		parse_augmentation(cie, augmentation + 1, c);
	else if (augmentation[0])
		return -EIO;
	cie->initial = *c;
	return c->bad ? -EIO : 0;
}

int cfi_read_cie(const struct cfi_from *from, uint64_t vaddr, uint8_t buf[CFI_MAX_CIE],
		 struct cfi_cie *cie)
{
	struct cfi_record r;
	int rc = read_record(from, vaddr, buf, CFI_MAX_CIE, &r);

	*cie = (struct cfi_cie){.arch = from->arch};
	return rc ? rc : parse_cie(cie, &r);
}

void cfi_take_range(const struct cfi_cie *cie, struct dwarf_cursor *c, uint64_t *start,
		    uint64_t *len)
{
	*start = dwarf_pointer(c, cie->pointer_encoding, 0);
	*len = dwarf_pointer(c, cie->pointer_encoding & DW_EH_PE_FORMAT, 0);
}

static int evaluate(const struct cfi_cie *cie, struct cfi_record *r, uint64_t pc,
		    struct cfi_place *out)
{
	uint64_t len;
	int rc;

	cfi_take_range(cie, &r->body, &out->function, &len);
	out->function_end = out->function + len;
	if (cie->has_augmentation_data)
		dwarf_skip(&r->body, dwarf_uleb(&r->body));
	if (r->body.bad || out->function_end < out->function)
		return -EIO;
	if (pc - out->function >= len)
		return -ENOENT;
	rc = cfi_run(cie, r->body, out->function, pc, &out->row, &out->end);
	if (!rc && out->end > out->function_end)
		out->end = out->function_end;
	return rc;
}

int cfi_evaluate(const struct cfi_from *from, uint64_t vaddr, uint64_t pc, struct cfi_place *out)
{
	uint8_t cie_bytes[CFI_MAX_CIE], *bytes = xmalloc(MAX_RECORD);
	struct cfi_cie cie;
	struct cfi_record r;
	int rc = read_record(from, vaddr, bytes, MAX_RECORD, &r);

	if (!rc && r.is_cie)
		rc = -EIO;
	if (!rc)
		rc = cfi_read_cie(from, cfi_record_cie(from, &r), cie_bytes, &cie);
	if (!rc)
		rc = evaluate(&cie, &r, pc, out);
	free(bytes);
	return rc;
}
