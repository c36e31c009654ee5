// SPDX-License-Identifier: GPL-2.0-only
/*
 * The headers of an ELF file: what is where. One parser for files on disk and in a guest's page
 * cache, 64 and 32 bit, little endian; nothing is believed before it was compared with the file's
 * size and a bound of our own. Source: the System V gABI, chapters 4 and 5.
 */
#ifndef VMPROF_SYMBOLIZE_ELFFILE_H
#define VMPROF_SYMBOLIZE_ELFFILE_H

#include <elf.h>

#include "symbolize/elfimage.h"

enum {
	ELF_MAX_SEGMENTS = 1024,
	ELF_MAX_SECTIONS = 1 << 18,
	ELF_MAX_SYMBOLS = 4 << 20,
	ELF_MAX_NOTES = 1 << 20, /* bytes of one note section */
	ELF_MAX_STRINGS = 256 << 20,
	ELF_MAX_PATH = 4096,
};

/* A program header, of either class. */
struct elf_segment {
	uint32_t type, flags;
	uint64_t offset, vaddr, filesz, memsz;
};

struct elf_section {
	const char *name; /* "" where the table has none */
	uint32_t type, link;
	uint64_t flags, addr, offset, size, entsize;
};

struct elf_file {
	elf_read_fn *read;
	void *ctx;
	uint64_t size;
	const char *name; /* as messages show it (escaped); owned by the caller */
	bool is64;
	uint16_t type, machine;
	struct elf_segment *segments;
	size_t nr_segments;
	struct elf_section *sections; /* [0] is the null section */
	size_t nr_sections;
	char *section_names;
	struct elf_load *loads; /* from .note.vmprof, else from the PT_LOADs */
	uint32_t nr_loads;
	uint32_t note_flags; /* enum elf_note_flags, 0 without .note.vmprof */
	bool has_note;
	uint8_t build_id[20];
	uint32_t build_id_len; /* 0: none; longer ones are cut, as perf cuts them */
	/*
	 * Made by objcopy --only-keep-debug: symbols are there, file offsets are not (they say
	 * where the data of a section would be in this file).
	 */
	bool debug_only;
};

/*
 * Reads headers and notes. @sections: false leaves out the section table (an image has none).
 * -EBADMSG not an ELF file that can be read, -ENODATA a hole, else what @read returned.
 */
int elf_file_open(struct elf_file *f, elf_read_fn *read, void *ctx, uint64_t size, const char *name,
		  bool sections, struct vmprof_err *err);
void elf_file_close(struct elf_file *f);

/* The first section of this name and type (SHT_NULL: any), or NULL. */
const struct elf_section *elf_file_section(const struct elf_file *f, const char *name,
					   uint32_t type);

/*
 * @len bytes at @off in new memory with a NUL behind them, at most @max. NULL and *@ret = -errno
 * otherwise. Allocates as the bytes come in, so that a size that lies costs nothing.
 */
void *elf_file_bytes(const struct elf_file *f, uint64_t off, uint64_t len, uint64_t max, int *ret);

/*
 * What is in a section, decompressed if it is compressed (zlib, zstd): new memory with a NUL behind
 * it, at most @max bytes, *@size of them. NULL and *@ret = -errno otherwise; -ENOSYS if this build
 * lacks the library.
 */
void *elf_section_data(const struct elf_file *f, const struct elf_section *sec, uint64_t max,
		       uint64_t *size, int *ret);

/*
 * The ELF file of function symbols in .gnu_debugdata ("mini debug info", xz), which distributions
 * leave in stripped files. *@size bytes of new memory; NULL: none, damaged, or no liblzma.
 */
uint8_t *elf_debug_data(const struct elf_file *f, uint64_t *size);
/* elf_read_fn of bytes in memory; ctx is a const struct elf_memory *. */
struct elf_memory {
	const uint8_t *bytes;
	uint64_t size;
};
ssize_t elf_read_memory(void *ctx, uint64_t off, void *buf, size_t len);

/*
 * Name of the separate debug file in .gnu_debuglink, one component of a path, and the CRC of its
 * bytes. False: none.
 */
bool elf_debug_link(const struct elf_file *f, char name[256], uint32_t *crc);
/*
 * Path and build id (cut as others are) of the alternate file in .gnu_debugaltlink, which has what
 * dwz has found in several debug files. The path may be any. False: none.
 */
bool elf_alt_link(const struct elf_file *f, char name[ELF_MAX_PATH], uint8_t id[20], uint32_t *len);
/* Has the open file this CRC? Reads all of it. False also without zlib. */
bool elf_has_crc(int fd, uint32_t crc);

/* All @len bytes or -errno (-ENODATA at a hole, -EBADMSG behind the end). */
int elf_read_all(elf_read_fn *read, void *ctx, uint64_t off, void *buf, size_t len);

/* One symbol of either class out of a table of @f; @i has been checked by the caller. */
void elf_file_symbol(const struct elf_file *f, const void *table, size_t i, Elf64_Sym *sym);
static inline size_t elf_file_symbol_size(const struct elf_file *f)
{
	return f->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

/* elf_read_fn of a file; ctx is an int * (descriptor). */
ssize_t elf_read_fd(void *ctx, uint64_t off, void *buf, size_t len);

#endif
