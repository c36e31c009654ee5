// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/symbolize: what a session knows behind machine.h's faces.
 */
#ifndef VMPROF_SYMBOLIZE_SESSION_H
#define VMPROF_SYMBOLIZE_SESSION_H

#include <limits.h>

#include "symbolize/machine.h"
#include "symbolize/maps.h"
#include "symbolize/perfmap.h"
#include "symbolize/symtab.h"
#include "symbolize/userstack.h"
#include "unwind/cfi.h"
#include "util/buf.h"
#include "util/hashmap.h"

enum { SYMBOL_CACHE = 1024 }; /* addresses a DSO remembers the symbols of; a power of two */

struct symbol_cache {
	uint64_t offset[SYMBOL_CACHE];
	const struct symbol *sym[SYMBOL_CACHE];
	bool used[SYMBOL_CACHE];
};

struct dso_priv {
	struct dso dso; /* first: a struct dso * is one of these */
	struct machine_priv *machine;
	struct dso_priv *next; /* same hash */
	uint64_t start;	       /* of its first mapping, for kernels and modules */
	bool is_symbol;	       /* see dso_set_symbol() */
	struct symbol_cache *cache;
	struct dso_cfi *cfi;	   /* NULL: was not needed */
	struct dso_source *source; /* NULL: was not needed */
};

struct process {
	struct machine_priv *machine;
	int32_t pid;
	struct maps maps;
	struct maps old;    /* of the program before exec, while that can still be in call chains */
	uint32_t state;	    /* of both: session_maps_state() */
	bool execed;	    /* the next map is the first of another program */
	const char *cgroup; /* copied to its threads as they are asked for */
};

struct thread_priv {
	struct thread t; /* first */
	struct process *process;
	bool exited, has_comm;
};

struct machine_priv {
	struct machine m; /* first */
	struct session *session;
	struct hashmap processes, threads; /* by pid, by tid */
	struct maps kernel;
	uint32_t kernel_state;
	bool named;	   /* by a private "vm" record */
	bool tried_kernel; /* for addresses without a kernel mapping */
};

struct kallsyms;

/* A path that the user has given, where it was tried. */
struct path_use {
	const char *option, *path, *why; /* why: the first refusal, or NULL */
	unsigned used, refused;
};

struct session {
	struct symbol_paths paths; /* strings are in @strings */
	struct strtab *strings;
	struct machine_priv **machines;
	size_t nr_machines, cap_machines;
	struct hashmap by_pid; /* guests */
	uint32_t last_state;   /* of mappings */
	struct dso_priv **dsos;
	size_t nr_dsos, cap_dsos;
	struct hashmap dso_by_key;
	struct hashmap build_ids;   /* BUILD_ID feature, by machine and name */
	struct process **processes; /* all that ever were: threads point to them */
	size_t nr_processes, cap_processes;
	struct thread_priv **threads;
	size_t nr_threads, cap_threads;
	struct symtab **tables; /* all that were read; several DSOs may have one */
	size_t nr_tables, cap_tables;
	struct kallsyms **kallsyms;
	size_t nr_kallsyms, cap_kallsyms;
	struct path_use *uses;
	size_t nr_uses, cap_uses;
	struct session_mark *marks;
	size_t nr_marks, cap_marks;
	struct debuginfod *debuginfod; /* NULL: was not needed */
	struct hashmap shown;	       /* demangled names by the name's address */
	uint64_t *user_stack;	       /* of the last sample that was asked for */
	size_t user_stack_cap;
	uint64_t user_stack_ends[USERSTACK_END_COUNT];
};

/* ---------- session.c ---------- */

/*
 * The entry of a list that is for @m, or NULL; one for its name wins over @guests (which is for all
 * guests, or NULL), that one over one for all.
 */
const char *session_path(const struct symbol_path *list, unsigned n, const struct machine_priv *m,
			 const char *guests);

/* What is known of a guest, and of a process: made where nothing is. */
struct machine_priv *session_guest(struct session *s, int32_t pid);
struct process *machine_process(struct machine_priv *m, int32_t pid);

/* ---------- pathuse.c ---------- */

/* @path is one of @s->paths; @option a literal. @why NULL: nothing was there. */
void session_path_used(struct session *s, const char *option, const char *path);
void session_path_refused(struct session *s, const char *option, const char *path, const char *why);

/* perf's names for what is a kernel and not a module; they end in the symbol they start at. */
bool session_is_kernel_name(const char *name);

/* ---------- private.c ---------- */

void session_private(struct session *s, const struct perfdata_record *rec);

/* ---------- dso.c ---------- */

struct dso_key {
	const char *name;
	bool kernel;
	const uint8_t *build_id; /* NULL unknown */
	uint32_t build_id_len;
};
struct dso_priv *session_dso(struct machine_priv *m, const struct dso_key *key);
void dso_free(struct dso_priv *d);
/* All that it has is one symbol of its own name, at 0; the longest @len of several calls counts. */
void dso_set_symbol(struct dso_priv *d, uint64_t len);
void session_free_build_ids(struct session *s);
/* The symbol at @offset, out of the cache where it is; loads the DSO's symbols if need be. */
const struct symbol *dso_find_symbol(struct dso_priv *d, uint64_t offset);

/* ---------- dsosource.c ---------- */

struct dso_source;
void dso_source_free(struct dso_source *src); /* NULL is fine */

/* ---------- dsoload.c: where symbols are ---------- */

/* Sets d->dso.symtab and symbol_source, once. */
void dso_load(struct dso_priv *d);
enum { DSO_FILES_MAX = 16 };

/* A file that has the DSO's build id, or that nothing speaks against. */
struct dso_file {
	int fd;
	struct elf_file f;
	char path[PATH_MAX], name[512]; /* name: for messages */
};

/* All of them for a user DSO, in the order of struct symbol_paths. */
struct dso_files {
	struct dso_priv *d;
	struct dso_file *c[DSO_FILES_MAX];
	size_t n;
	struct vmprof_err refused; /* the first file that was another one */
	unsigned tried;
};

void dso_files_find(struct dso_files *s, struct dso_priv *d);
/* The same; servers are asked if none has DWARF. */
void dso_files_find_debug(struct dso_files *s, struct dso_priv *d);
void dso_files_close(struct dso_files *s);
/* One that knows where in the file its addresses are, which debug files do not; NULL: none. */
const struct elf_file *dso_files_with_loads(const struct dso_files *s);
/*
 * The vDSO of this process, if it is @d. *@start must live as long as @f. 0 or -errno; then
 * elf_file_close() is not needed.
 */
int dso_open_vdso(const struct dso_priv *d, struct elf_file *f, uintptr_t *start);

/* The session owns @t from now on. */
void session_keep_table(struct session *s, struct symtab *t);
/* d->dso.symbol_source becomes this sentence. */
void dso_say(struct dso_priv *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Opens @path and its headers; @name is what f->name points to. 0 or -errno with a sentence. */
int elf_file_open_path(struct elf_file *f, int *fd, const char *path, char *name, size_t size,
		       struct vmprof_err *err);

/* ---------- dsocfi.c: how to get from a function's frame to its caller's ---------- */

/*
 * The row for the code at @offset in the DSO's file, as its maps number it. Addresses in @place are
 * those the file was linked at. 0; -ENOENT: there is no row; -ENXIO: the file is not here.
 */
int dso_find_row(struct dso_priv *d, enum unwind_arch arch, uint64_t offset,
		 struct cfi_place *place);
void dso_cfi_free(struct dso_cfi *c); /* NULL is fine */

/* ---------- debuginfod.c ---------- */

/*
 * The debug file of this build id from the servers in DEBUGINFOD_URLS, which libdebuginfod keeps in
 * its cache: a descriptor and *@path, to be freed. Negative if there is none, or no server named.
 */
int debuginfod_open(struct session *s, const uint8_t *id, uint32_t len, char **path);
void debuginfod_close(struct debuginfod *d); /* NULL is fine */

/* ---------- dsokernel.c ---------- */

void dso_load_kernel(struct dso_priv *d);
bool dso_is_module(const struct dso_priv *d);
/* Is it the kernel (or of the kernel) that runs here, as far as can be told? */
bool dso_is_running_kernel(const struct dso_priv *d);
/* The address that a table of link addresses has for the kernel's start; 0: it says none. */
uint64_t kernel_link_base(const struct symtab *t);
/* kernel_link_base() of the symbols of a vmlinux. 0 or -errno with a sentence. */
int kernel_link_base_of(const struct elf_file *f, uint64_t *base, struct vmprof_err *err);
/* Symbols of a kernel are relative to its link base, unless they are of link addresses. */
static inline uint64_t kernel_link_address(uint64_t symbol, uint64_t base)
{
	return symbol >> 63 ? symbol : symbol + base;
}
/* The @i-th path where the kernel's vmlinux may be, to be freed; NULL: there are no more. */
char *kernel_vmlinux_path(const struct dso_priv *d, unsigned i);
const char *machine_vmlinux(const struct machine_priv *m);
const char *machine_kallsyms(const struct machine_priv *m);
/* Maps the code of the vmlinux that was given where it was linked. False: none was given. */
bool machine_map_vmlinux(struct machine_priv *m);

/* ---------- guestkernel.c: kernels that no record tells of ---------- */

/* @given, or what is at @in_mount below the guest's root directory; NULL: neither, or the host. */
const char *session_guest_path(const struct machine_priv *m, const char *given,
			       const char *in_mount);
/* Has that guest a directory below --guestmount? */
bool session_is_mounted(const struct session *s, int32_t pid);
/* For a machine without a mapping of its kernel, once: what the user has given of it. */
void machine_map_kernel(struct machine_priv *m);

/* ---------- kallsyms.c ---------- */

struct kallsyms_entry {
	uint64_t addr;
	uint32_t name, module; /* in the names */
	char type;
};
const struct kallsyms *session_kallsyms(struct session *s, const char *path,
					struct vmprof_err *err);
struct kallsyms {
	const char *path;
	struct kallsyms_entry *entries;
	size_t n, cap;
	uint64_t text;	  /* _text, else _stext; 0 if hidden */
	struct buf names; /* of functions and modules, each with a NUL; at 0 the kernel's, "" */
};
static inline const char *kallsyms_name(const struct kallsyms *k, uint32_t at)
{
	return (const char *)k->names.data + at;
}
int kallsyms_read(struct kallsyms **out, const char *path, struct vmprof_err *err);
void kallsyms_free(struct kallsyms *k);
/*
 * Function symbols of @module ("" kernel), their addresses less @base; what is below is left out.
 * The names stay @k's.
 */
struct symtab *kallsyms_symtab(const struct kallsyms *k, const char *module, uint64_t base);

#endif
