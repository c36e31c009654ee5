// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a guest is doing, out of its registers and its memory. One struct guest a VM, used by one
 * thread at a time. All that is read from the guest is hostile: sizes, counts, loops and strings
 * are bounded here, so that callers may trust shapes (not contents).
 */
#ifndef VMPROF_GUEST_GUEST_H
#define VMPROF_GUEST_GUEST_H

#include "guest/mem.h"
#include "guest/sample.h"
#include "util/err.h"

struct guest;

struct guest_config {
	enum guest_arch arch;
	bool chains;	    /* walk call chains */
	unsigned max_chain; /* frames; 0 for SAMPLE_MAX_CHAIN */
	uint32_t nr_vcpus;  /* for samples without registers: how many are looked at */
	/*
	 * Reads vCPU @vcpu's registers again, to see whether they changed while memory was read.
	 * NULL if the samples' registers are from the past and cannot be read again. 0 or -errno.
	 */
	int (*peek)(void *ctx, uint32_t vcpu, struct guest_regs *regs);
	void *peek_ctx;
};

int guest_open(struct guest **out, struct guest_mem *mem, const struct guest_config *cfg,
	       struct vmprof_err *err);
void guest_close(struct guest *g); /* NULL is fine */

/**
 * guest_identify - find the kernel from one vCPU's registers
 *
 * Called before the first sample, and again by guest_complete() from time to time while no kernel
 * is known, or when the known one is seen to be gone (reboot). Bounded: at most 2 s of CPU. @regs
 * is NULL where they cannot be had: then all of the guest's memory is looked through.
 *
 * Returns 0 when a Linux kernel is known, -ENOENT with a sentence when there is none (firmware,
 * another system, noise), -ESRCH when the VM is gone.
 */
int guest_identify(struct guest *g, const struct guest_regs *regs, struct vmprof_err *err);

/* What is known of the guest's kernel. Pointers are valid until the next call with @g. */
struct guest_kernel_info {
	bool known;	  /* a Linux kernel with symbols was found */
	bool has_types;	  /* BTF was found: processes, maps, modules; without it kernel symbols only
			   */
	char release[65]; /* "6.1.0-54-amd64", escaped */
	uint64_t text, end; /* run-time addresses of _text and of the end of the kernel's code */
	uint64_t kaslr;	    /* text - link address */
	uint8_t build_id[20];
	uint32_t build_id_len; /* 0 if none was found */
	uint32_t nr_symbols;
	uint32_t nr_modules;
	uint32_t nr_cpus;
	bool la57, pti;
	const char *why_not; /* sentence, when !known or !has_types */
};
void guest_kernel_info(struct guest *g, struct guest_kernel_info *info);

/**
 * guest_complete - raw sample to complete sample
 *
 * Always fills @out; what could not be found out is marked there and counted. Returns 0, or -ESRCH
 * if the VM is gone (@out then has what the raw sample had).
 */
int guest_complete(struct guest *g, const struct raw_sample *raw, struct sample *out);

/*
 * What the guest's own kernel has said of its processes, if a source hears of it: before the
 * samples that come later. Brings up side-band, too, but of processes that have had samples only.
 */
void guest_tell(struct guest *g, const struct raw_told *told);

/*
 * What a backend should copy with each sample's registers, if it can (raw_sample.task, .memory).
 * Samples may then be completed some milliseconds later. false: nothing, no kernel is known.
 */
bool guest_wanted(struct guest *g, struct guest_wanted *wanted);

/*
 * Side-band: what the file must know before the sample that guest_complete() has just returned.
 * Drain after each call of guest_identify() and guest_complete(). Strings are raw bytes of the
 * guest (NUL-terminated, bounded, not escaped), valid until the next call with @g.
 */
enum guest_event_type {
	GUEST_EVENT_KERNEL, /* the kernel's text mapping; dso.name "[kernel]" */
	GUEST_EVENT_MODULE, /* a module's text mapping; dso.name its name without ".ko" */
	GUEST_EVENT_CODE,   /* code that the kernel has made: start, len, name */
	GUEST_EVENT_FORK,   /* new process or thread: pid, tid, ppid */
	GUEST_EVENT_COMM,   /* name of a thread, after FORK and when it changes; exec when it is one
			     */
	GUEST_EVENT_MMAP,   /* an executable mapping of process pid */
	GUEST_EVENT_EXIT,   /* seen to be gone */
	GUEST_EVENT_CGROUP, /* name is the cgroup v2 (or first v1) path of process pid
			     */
	GUEST_EVENT_RESET,  /* another kernel runs now (reboot): all before is void */
};

/* A file mapped by the guest, the kernel or a module. ids are stable while the guest is open. */
struct guest_dso {
	uint32_t id;
	const char *
		path; /* as the guest's process names it; "[vdso]", "[heap]", "[stack]", "//anon" */
	uint8_t build_id[20];
	uint32_t build_id_len;		   /* 0: none found */
	uint64_t dev, ino, ino_generation; /* 0 for memory without a file */
	uint64_t size;			   /* bytes, 0 unknown */
	bool hit;			   /* a sample's ip or chain lay in it */
	/*
	 * Memory that a program may have made code in, without a file or in one of its own (memfd):
	 * the process whose it is, and when that started (the kernel's word). Else 0.
	 */
	int32_t owner;
	uint64_t owner_start;
};

struct guest_event {
	enum guest_event_type type;
	uint64_t time; /* of the sample that brought it up; 0 for "before all samples" */
	int32_t pid, tid, ppid;
	const char *name; /* COMM, CGROUP, CODE */
	bool exec;
	/* KERNEL, MODULE, MMAP; the first two of CODE */
	uint64_t start, len, pgoff; /* pgoff in bytes */
	uint32_t prot, flags;	    /* PROT_*, MAP_* */
	struct guest_dso dso;
};
bool guest_next_event(struct guest *g, struct guest_event *ev); /* false: no more */

/*
 * Symbols that only guest memory can tell.
 */
struct guest_symbol {
	uint64_t addr; /* run-time address */
	uint64_t size; /* to the next symbol where the guest says nothing */
	char type;     /* kallsyms letter: T t W w ... */
	const char *name;
};

/* Calls @fn for each symbol of the kernel (module NULL) or of a module, by address. 0 or -ENOENT.
 */
int guest_kernel_symbols(struct guest *g, const char *module,
			 int (*fn)(void *ctx, const struct guest_symbol *sym), void *ctx);

/* Bytes of the kernel's half of the address space, as they are now. 0 or -errno. */
int guest_kernel_read(struct guest *g, uint64_t addr, void *buf, size_t len);

/*
 * DSOs of processes that a sample has hit and that were not returned before; false: no more. The
 * kernel and its modules are not among them: guest_kernel_symbols() has theirs. Read them soon: the
 * guest may unmap them.
 */
bool guest_next_hit_dso(struct guest *g, struct guest_dso *dso);

/**
 * guest_dso_read - bytes of a DSO's file at @off, out of the guest's page cache
 *
 * @present: out, one bit a page of the range counted from off & ~4095, set where the page was
 * there; pages that were not there read as zeros. May be NULL: then a missing page is -ENODATA.
 * Returns the bytes read (less than @len at the end of the file) or -errno (-ENOENT no such dso).
 */
ssize_t guest_dso_read(struct guest *g, uint32_t dso_id, uint64_t off, void *buf, size_t len,
		       uint8_t *present);

/**
 * guest_dso_read_image - bytes as the DSO is mapped in some process: @vaddr relative to its load
 * bias
 *
 * For .dynsym and .eh_frame of files whose pages are not all in the page cache. 0 or -errno.
 */
int guest_dso_read_image(struct guest *g, uint32_t dso_id, uint64_t vaddr, void *buf, size_t len);

/* Bytes at an address of the memory of the process that owns the DSO, as they are now: code that it
 * has made there. 0 or -errno. */
int guest_made_read(struct guest *g, uint32_t dso_id, uint64_t addr, void *buf, size_t len);

/**
 * guest_perf_map_read - bytes at @off of /tmp/perf-PID.map, which the owner of a DSO has written
 * about the code that it makes
 *
 * As that process sees the path, with its number in its own pid namespace; only if it is the
 * process's own file, or root's. *@size: of the file as it is now. Once found, it can be read also
 * when the process has ended. Returns the bytes read (0 at the end) or -errno: -ENOENT there is
 * none, -ENODATA not in the page cache.
 */
ssize_t guest_perf_map_read(struct guest *g, uint32_t dso_id, uint64_t off, void *buf, size_t len,
			    uint64_t *size);

struct guest_stats {
	uint64_t samples;
	uint64_t torn; /* see struct sample */
	uint64_t
		shared; /* that have no registers, and code of several processes at their address */
	uint64_t unattributed[3]; /* by enum sample_unattributed; [0] is how many were attributed */
	uint64_t kernel_end[CHAIN_END_COUNT], user_end[CHAIN_END_COUNT];
	uint64_t processes, maps, vma_walks;
	uint64_t reads, read_bytes; /* calls of guest_mem_ops.readv, and what they read */
	uint64_t resets;	    /* reboots seen */
};
void guest_get_stats(struct guest *g, struct guest_stats *st);

#endif
