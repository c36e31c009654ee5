// SPDX-License-Identifier: GPL-2.0-only
/*
 * The little that the guest layer wants of an ELF image: where its first byte is loaded, and its
 * build id. Everything is hostile: few, small, bounded reads.
 */
#include "guest/dso.h"

#include <errno.h>
#include <string.h>

#include "guest/notes.h"

#define MAX_NOTES 4096 /* bytes of one PT_NOTE segment that are looked at */

int guest_elf_phdrs(Elf64_Phdr phdr[GUEST_ELF_PHDRS], unsigned *n, guest_image_read read, void *ctx)
{
	Elf64_Ehdr ehdr;
	int rc = read(ctx, 0, &ehdr, sizeof(ehdr));

	*n = 0;
	if (rc)
		return rc;
	if (memcmp(ehdr.e_ident, ELFMAG, SELFMAG) || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_phentsize != sizeof(*phdr))
		return -ENOEXEC;
	*n = ehdr.e_phnum < GUEST_ELF_PHDRS ? ehdr.e_phnum : GUEST_ELF_PHDRS;
	return read(ctx, ehdr.e_phoff, phdr, *n * sizeof(*phdr));
}

int guest_elf_read(struct guest_elf *elf, bool memory, guest_image_read read, void *ctx)
{
	Elf64_Phdr phdr[GUEST_ELF_PHDRS];
	uint8_t notes[MAX_NOTES];
	unsigned n;
	int rc = guest_elf_phdrs(phdr, &n, read, ctx);

	memset(elf, 0, sizeof(*elf));
	if (rc)
		return rc;
	for (unsigned i = 0; i < n; i++)
		if (phdr[i].p_type == PT_LOAD) {
			/* What offset 0 is (or would be) loaded to. */
			elf->bias_vaddr = phdr[i].p_vaddr - phdr[i].p_offset;
			break;
		}
	for (unsigned i = 0; i < n; i++) {
		uint64_t len = phdr[i].p_filesz < MAX_NOTES ? phdr[i].p_filesz : MAX_NOTES;
		uint64_t at = memory ? phdr[i].p_vaddr - elf->bias_vaddr : phdr[i].p_offset;

		if (phdr[i].p_type != PT_NOTE || read(ctx, at, notes, len))
			continue;
		elf->build_id_len = notes_parse(notes, len, elf->build_id);
		if (elf->build_id_len)
			break;
	}
	return 0;
}
