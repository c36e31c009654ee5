// SPDX-License-Identifier: GPL-2.0-only
/*
 * Symbols out of ELF files, and small ELF files out of symbols. ELF files are hostile: a guest may
 * have supplied them.
 */
#ifndef VMPROF_SYMBOLIZE_ELFIMAGE_H
#define VMPROF_SYMBOLIZE_ELFIMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/err.h"

struct symbol {
	uint64_t start, end; /* in file-offset space: see symtab; end exclusive, > start */
	const char *name;    /* as in the file, not demangled; owned by the symtab */
	uint32_t order;	     /* of appearance in the file, which decides between equals */
	char binding;	     /* 'g', 'l', 'w' as perf -v prints it */
	bool inlined;	     /* no symbol of a file, but a function that DWARF has in others */
};

/* A PT_LOAD, for the way from a symbol's value to a file offset. */
struct elf_load {
	uint64_t vaddr, offset, size; /* size in memory */
	uint32_t flags;		      /* PF_X ... */
};

/*
 * The symbols of one DSO (functions, and data as perf has it), sorted by start, one an address.
 * Addresses are file offsets of a mapping (ip - map.start + map.pgoff), which is what perf maps
 * know; symbol values are translated by the PT_LOADs.
 */
struct symtab {
	struct symbol *syms;
	size_t n;
	uint8_t build_id[20];
	uint32_t build_id_len;
	uint16_t machine;      /* EM_*, 0 unknown */
	bool partial;	       /* exported symbols only, there may be more in another file */
	bool build_id_made_up; /* by vmprof, since the DSO has none */
	struct elf_load *loads;
	uint32_t nr_loads;
	char *path;    /* where it was read from, for -v */
	void *strings; /* backing store of the names */
	/* inside symtab.c */
	uint32_t *outer;   /* NULL: no symbol reaches into the next one */
	uint32_t *buckets; /* NULL: few symbols; see make_buckets() */
	size_t nr_buckets;
	unsigned bucket_shift;
	size_t cap;
	void *chunks;
};

/*
 * Reads .symtab, else .dynsym, of the ELF file at @path. @build_id (may be NULL): refuse another
 * one with -ESTALE and a sentence. Same-address aliases choose the name that perf chooses
 * (tools/perf/util/symbol.c, choose_best_symbol).
 */
int symtab_read_file(struct symtab **out, const char *path, const uint8_t *build_id,
		     uint32_t build_id_len, struct vmprof_err *err);
void symtab_free(struct symtab *t);					   /* NULL is fine */
const struct symbol *symtab_find(const struct symtab *t, uint64_t offset); /* NULL: none */

/* Reads @len bytes of an ELF file at @off, wherever it is. Short at the end; -errno, -ENODATA:
 * hole. */
typedef ssize_t elf_read_fn(void *ctx, uint64_t off, void *buf, size_t len);

/*
 * Symbols of an ELF file that is not a file here (a guest's page cache): reads only headers, notes
 * and symbol tables. -ENODATA if those parts have holes. A .symtab with holes is given up for
 * .dynsym (partial).
 */
int symtab_read_fn(struct symtab **out, elf_read_fn *read, void *ctx, uint64_t size,
		   const char *name, struct vmprof_err *err);

/*
 * Symbols by the dynamic section of a loaded image (@read takes addresses relative to the load
 * bias; .dynsym, .dynstr, .hash or .gnu.hash are in a PT_LOAD). For files whose pages are not all
 * there. The dynamic linker may have added the load bias to the pointers of the dynamic section:
 * found out by what lies there. The result is partial.
 */
int symtab_read_image(struct symtab **out, elf_read_fn *read, void *ctx, const char *name,
		      struct vmprof_err *err);

/*
 * For symbols that come from elsewhere (kallsyms): copies the name. end == start: of unknown size,
 * goes on to the next symbol. symtab_finish sorts, gives every symbol its end and drops aliases;
 * before it the table has no order.
 */
struct symtab *symtab_new(void);
void symtab_add(struct symtab *t, uint64_t start, uint64_t end, const char *name, char binding);
void symtab_finish(struct symtab *t);

/* The build id in the notes of an ELF file; returns its length, 0 none, -errno. */
int elf_build_id(const char *path, uint8_t id[20]);

/*
 * elfstore: a directory of small ELF files by build id in perf's --buildid-dir layout:
 *   DIR/<name>/<build id>/elf   and   DIR/.build-id/xx/yyy... -> ../../<name>/<build id>
 * @name is a path, each component made safe by file_safe_name() (so it cannot leave DIR); by our
 * convention the VM's name is its first component, so that one VM's symbols are not taken for
 * another's that claims the same build id. The link is the first one's that came; a table that is
 * not partial replaces one that is.
 *
 * A file is ET_DYN with .text (NOBITS, from offset and address 0), .note.gnu.build-id, .symtab and
 * .strtab, a PT_LOAD at 0 (libdwfl wants one), and .note.vmprof: owner "vmprof", type 1, descriptor
 *   u32 flags (enum elf_note_flags), u32 n, n x {u64 vaddr, offset, size; u32 flags, 0}
 * with the PT_LOADs of the DSO itself: a separate debug file, which has none that are right, needs
 * them.
 */
#define ELF_NOTE_OWNER "vmprof"
#define ELF_NOTE_TYPE  1
enum elf_note_flags {
	ELF_NOTE_PARTIAL = 1,	       /* .dynsym only */
	ELF_NOTE_BUILD_ID_MADE_UP = 2, /* the DSO had none */
};

int elfstore_put(const char *dir, const char *name, const uint8_t *build_id, uint32_t build_id_len,
		 const struct symtab *t, struct vmprof_err *err);
/* The same, whatever is there already. */
int elfstore_replace(const char *dir, const char *name, const uint8_t *build_id,
		     uint32_t build_id_len, const struct symtab *t, struct vmprof_err *err);
/* Path of the ELF with this build id, or -ENOENT. @path has PATH_MAX bytes. */
int elfstore_get(const char *dir, const uint8_t *build_id, uint32_t build_id_len, char *path);
/* The same as it was put under @name, whatever the link says. */
int elfstore_get_named(const char *dir, const char *name, const uint8_t *build_id,
		       uint32_t build_id_len, char *path);

/* The store that belongs to a profile: PROFILE.debug; a pipe's ("-") is perf.data.debug. To be
 * freed. */
char *elfstore_beside(const char *profile);

#endif
