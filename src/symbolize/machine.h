// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who was running, and what was mapped where, as the records of a file tell it: machines (the host
 * and each guest), threads, maps, DSOs. Turns an address of a sample into DSO and symbol.
 */
#ifndef VMPROF_SYMBOLIZE_MACHINE_H
#define VMPROF_SYMBOLIZE_MACHINE_H

#include "perfdata/reader.h"
#include "symbolize/elfimage.h"

struct dso {
	uint32_t index;		/* dense, for tables */
	const char *long_name;	/* path as recorded */
	const char *short_name; /* last component, what reports show */
	const char *name;	/* what is shown of a single frame: the path but for modules */
	uint8_t build_id[20];
	uint32_t build_id_len;
	bool kernel;		   /* kernel or module */
	bool loaded;		   /* symbols were looked for */
	struct symtab *symtab;	   /* NULL: none found */
	const char *symbol_source; /* path, or sentence why there are none; for -v and --stats */
};

struct map {
	uint64_t start, end, pgoff;
	uint32_t prot, flags;
	struct dso *dso;
};

struct thread {
	struct machine *machine;
	int32_t pid, tid;
	const char *comm; /* interned; ":TID" while unknown, as perf shows it */
	const char
		*recorded_comm; /* the same with the VM's name before it, if the file has it so */
	const char *cgroup;	/* interned; NULL unknown */
};

struct machine {
	uint32_t index;			  /* 0 host, then in order of appearance */
	int32_t pid;			  /* -1 host, 0 default guest, else the machine pid */
	const char *name;		  /* "host", the VM's name, or "guest pid N" */
	const char *uuid;		  /* "" unknown */
	const char *stats_json, *vm_json; /* last private record of these words, or NULL */
};

/* One address, resolved. The map is valid until the next session_process(). */
struct location {
	uint64_t ip;
	const struct map *map;	  /* NULL: nothing is known to be there */
	struct dso *dso;	  /* NULL then */
	const struct symbol *sym; /* NULL: no symbol covers it */
	uint64_t offset;	  /* of ip in sym; without sym of ip in dso (file offset) */
	char level;		  /* perf's mark: 'k' '.' 'g' 'u', 'H' for all else */
};

struct session; /* all machines of a file */

static inline bool is_kernel_cpumode(uint8_t cpumode)
{
	return cpumode == PERF_RECORD_MISC_KERNEL || cpumode == PERF_RECORD_MISC_GUEST_KERNEL;
}

struct symbol_path {
	const char *vm; /* NULL: for all, and for the host */
	const char *path;
};

/*
 * Where symbols are looked for. The strings and lists are copied by session_new(). A user DSO's are
 * taken from the first file with its build id that has a full .symtab, in this order: --symfs (the
 * path, its debug link and DIR/usr/lib/debug/.build-id), /usr/lib/debug/.build-id, buildid_dir,
 * store; for the host the path itself and its debug link at last. Without a full one the first with
 * .dynsym, and .gnu_debugdata where it has that; but before that servers are asked, if the user has
 * named some in DEBUGINFOD_URLS.
 */
struct symbol_paths {
	struct symbol_path symfs[32], vmlinux[32], kallsyms[32];
	unsigned nr_symfs, nr_vmlinux, nr_kallsyms;
	/* of all guests, where no list names the VM: perf's --guestvmlinux and so on; or NULL */
	const char *guest_vmlinux, *guest_kallsyms;
	const char *guest_modules; /* copy of /proc/modules */
	const char *guest_mount;   /* below it for each guest pid the guest's root directory */
	const char *store;	   /* directory beside the profile (elfstore), or NULL */
	const char *buildid_dir;   /* perf's --buildid-dir, default ~/.debug */
	const char *host_release;  /* of the recorded host's kernel, where known */
	bool no_demangle;
};

struct session *session_new(const struct symbol_paths *paths);
void session_free(struct session *s);

/* Side-band records change the session; others are ignored. Call for every record in order. */
int session_process(struct session *s, const struct perfdata_record *rec);
/* Build ids of the BUILD_ID feature, for maps whose records have none. */
void session_add_build_id(struct session *s, const struct perfdata_reader_build_id *id);

/*
 * Whose sample it is. Never NULL: unknown threads are made, as perf does. A thread stays valid,
 * also when it has exited; its comm is the one at the time, and changes with later records.
 */
struct machine *session_machine(struct session *s, const struct perfdata_record *rec);
struct thread *session_thread(struct session *s, const struct perfdata_record *rec);

/* @cpumode: the sample's, or what a chain marker has set (session_chain_mode). */
void session_resolve(struct session *s, struct thread *t, uint8_t cpumode, uint64_t ip,
		     struct location *loc);
/*
 * The state that the mappings are in: a number that no other address space and no other state of
 * this one has. What an address was resolved to holds as long as the number is the same.
 */
uint32_t session_maps_state(const struct thread *t, uint8_t cpumode);
/* The map alone, which needs no symbols; NULL as in a location. */
const struct map *session_find_map(struct session *s, struct thread *t, uint8_t cpumode,
				   uint64_t ip);
/* The cpumode after chain marker @marker (>= PERF_CONTEXT_MAX) in a sample of @cpumode; 0: not one.
 */
uint8_t session_chain_mode(uint8_t cpumode, uint64_t marker);

/* Name of a symbol as it is shown: demangled (cached) unless no_demangle. */
const char *session_symbol_name(struct session *s, const struct symbol *sym);

/*
 * What was compiled to the code at an address, by the DSO's DWARF: the innermost function first,
 * which each next one has inlined. None where no DWARF is found; there is no need to ask whether
 * there is any.
 */
struct source_frame {
	const struct symbol *sym; /* has .inlined; NULL of the last one, which is the function that
				     is called and has a symbol in the file */
	const char *file;	  /* raw path; NULL unknown */
	uint32_t line;		  /* of the address; of others that of the call; 0 unknown */
};
struct source {
	size_t n;
	struct source_frame frames[];
};
/*
 * @offset: as symbols and maps of the DSO count. Found once for each address, and valid as long as
 * the session.
 */
const struct source *session_source(struct session *s, const struct dso *dso, uint64_t offset);

/*
 * Opens a source file that a source_frame of @dso names, for reading; what it is must be looked at.
 * A guest names files of its own: they are looked for below its --symfs only. -1: not here.
 */
int session_open_source(struct session *s, const struct dso *dso, const char *path);

/*
 * The code of a function, out of the first file that has it: for guests what the recorder saved of
 * their memory, then the files that symbols are looked for in; for kernels a vmlinux.
 */
struct dso_code {
	uint8_t *bytes;
	size_t len;	  /* less than the symbol's size if the file ends, or at a bound */
	uint64_t addr;	  /* of the first byte, as the DSO's own file numbers it; kernels: as
			     their symbols */
	uint16_t machine; /* EM_* */
	bool is64;
	bool from_memory; /* of the running guest, patched as it was */
	char section[64]; /* escaped; "" unknown */
	char *path;	  /* where it was read from */
};
/* 0 or -errno with a sentence; then dso_code_free() is not needed. */
int session_read_code(struct session *s, const struct dso *dso, const struct symbol *sym,
		      struct dso_code *out, struct vmprof_err *err);
void dso_code_free(struct dso_code *c);

/*
 * What a merged file says of its making: "merge" and "input" records (vmprof.data(5)), in the order
 * of the file. The text is a JSON object.
 */
struct session_mark {
	const char *word, *json;
};
size_t session_marks(const struct session *s, const struct session_mark **marks);

/*
 * Paths for symbols that the user has given and that were of no use where they were tried, or, of
 * directories, had wrong files; to be asked for when all has been resolved. *@i begins with 0;
 * false: no more. The strings live as long as the session.
 */
struct bad_path {
	const char *option, *path; /* "--vmlinux" */
	unsigned used, refused;	   /* how many files of it were taken, and were not */
	const char *why;	   /* the first was not; never NULL */
};
bool session_bad_path(const struct session *s, size_t *i, struct bad_path *out);

size_t session_nr_machines(const struct session *s);
struct machine *session_machine_nth(const struct session *s, size_t i);
size_t session_nr_dsos(const struct session *s);
struct dso *session_dso_nth(const struct session *s, size_t i);
const struct machine *session_dso_machine(const struct dso *dso);

/* ---------- files of processes that run here, for who has their maps ---------- */

/* The host's DSO of this path. */
struct dso *session_host_dso(struct session *s, const char *path);
/*
 * aarch64: has the function at @offset of the DSO's file its caller in x30 and nowhere else, so
 * that no frame record tells? @distance: how far what is in x30 is from @offset. False also where
 * nothing is known of it.
 */
bool dso_link_is_caller(struct dso *dso, uint64_t offset, uint64_t distance);

/* ---------- runningkernel.c: the kernel that runs here ---------- */

/* Its build id; returns its length, 0 unknown. */
uint32_t running_kernel_build_id(uint8_t id[20]);
/*
 * Its symbols without its modules', relative to its start, to be freed before @s is. NULL: this
 * user may not see them.
 */
struct symtab *running_kernel_symtab(struct session *s);

/* Where it and its modules are, by address. */
struct running_map {
	uint64_t start, end;
	uint8_t id[20];
	uint32_t id_len;
	char *name; /* "[kernel.kallsyms]"; a module's file, or "[NAME]" */
};
struct running_maps {
	struct running_map *map;
	size_t n, cap;
};
/* 0 or -errno with a sentence (who may not see addresses: -EPERM). */
int running_maps_read(struct running_maps *m, struct vmprof_err *err);
void running_maps_free(struct running_maps *m);

#endif
