// SPDX-License-Identifier: GPL-2.0-only
/*
 * Build ids out of the page cache. The kernel's own reader of them is not for modules. What a file
 * says is whatever its owner likes: it is copied, and no offset of it leaves the copy.
 */
#include <linux/elf.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/uaccess.h>

#include "guest.h"

#define BUILD_ID    3 /* a note of GNU's: NT_GNU_BUILD_ID */
#define MAX_HEADERS 64
#define MAX_NOTES   32

/* The first page of a file. */
struct first {
	const u8 *page;
};

/* Without faults: pages of secret memory are not mapped in the kernel. */
static bool get(const struct first *f, u64 offset, void *to, size_t size)
{
	return offset <= PAGE_SIZE && size <= PAGE_SIZE - offset &&
	       !copy_from_kernel_nofault(to, f->page + offset, size);
}

static u32 in_notes(const struct first *f, u64 at, u64 end, u8 id[20])
{
	struct elf64_note note;
	char name[4];
	u32 n;

	for (n = 0; n < MAX_NOTES && at < end && get(f, at, &note, sizeof(note)); n++) {
		at += sizeof(note);
		if (note.n_type == BUILD_ID && note.n_namesz == sizeof(name) && note.n_descsz &&
		    note.n_descsz <= 20 && get(f, at, name, sizeof(name)) &&
		    !memcmp(name, "GNU", sizeof(name)))
			return get(f, at + sizeof(name), id, note.n_descsz) ? note.n_descsz : 0;
		at += ALIGN((u64)note.n_namesz, 4) + ALIGN((u64)note.n_descsz, 4);
	}
	return 0;
}

static u32 in_file(const struct first *f, u8 id[20])
{
	struct elf64_phdr segment;
	struct elf64_hdr header;
	u32 i, len = 0;

	if (!get(f, 0, &header, sizeof(header)) || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(segment))
		return 0;
	for (i = 0; !len && i < header.e_phnum && i < MAX_HEADERS; i++) {
		if (!get(f, header.e_phoff + (u64)i * sizeof(segment), &segment, sizeof(segment)))
			return 0;
		if (segment.p_type == PT_NOTE && segment.p_filesz < PAGE_SIZE)
			len = in_notes(f, segment.p_offset, segment.p_offset + segment.p_filesz,
				       id);
	}
	return len;
}

u32 vg_build_id(struct address_space *file, u8 id[20])
{
	struct page *page = find_get_page(file, 0);
	struct first first;
	u32 len = 0;

	if (!page)
		return 0;
	first.page = page_address(page);
	if (PageUptodate(page))
		len = in_file(&first, id);
	put_page(page);
	return len;
}
