// SPDX-License-Identifier: GPL-2.0-only
/*
 * Debugging information as a guest may supply it: the input is an ELF file, of which every address
 * that a symbol or a segment could mean is looked up. What it says was split off is in it, too, in
 * a package's form if it has an index.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/dwarfinfo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int open_itself(void *fd, const char *name, const char *dir, unsigned i)
{
	return i ? -ERANGE : dup(*(int *)fd);
}

static void look_up(struct dwarf_info *d, const struct elf_file *f)
{
	struct dwarf_frame frames[DWARF_MAX_FRAMES], place;

	for (size_t i = 0; i < f->nr_segments && i < 4; i++)
		for (uint64_t at = 0; at < 4096; at += 9) {
			uint64_t addr = f->segments[i].vaddr + at;
			size_t n = dwarf_info_find(d, addr, frames);

			if (n > DWARF_MAX_FRAMES ||
			    (n && dwarf_info_line(d, addr, &place) && !place.file))
				abort();
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	struct dwarf_info *d = NULL;
	struct vmprof_err err;
	struct elf_file f;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (!elf_file_open(&f, elf_read_fd, &fd, size, "input", true, &err)) {
		if (!dwarf_info_open(&d, &f, fd, -1, &err)) {
			dwarf_info_set_split(d, open_itself, &fd);
			look_up(d, &f);
		}
		dwarf_info_close(d);
		elf_file_close(&f);
	}
	close(fd);
	return 0;
}
