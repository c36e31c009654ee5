// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: virtual memory, the kernel's symbols and its types. Users of guest.h do not
 * need this.
 */
#ifndef VMPROF_GUEST_KERNEL_H
#define VMPROF_GUEST_KERNEL_H

#include "guest/guest.h"

/* ---------- virt.c: guest-virtual memory with a software TLB ---------- */

/* One address space; cheap to copy. */
struct guest_as {
	uint64_t root; /* physical address of the top page table: CR3 without PCID and PTI bits;
			  arm64_root() of TTBR0 */
	bool la57;
};

/* What the two halves of all address spaces (bit 55 of an address) have in common. */
struct guest_paging {
	struct guest_paging_half {
		uint8_t page_shift; /* 12, 14, 16; 0: not known yet, nothing can be translated */
		uint8_t va_bits;    /* aarch64: of an address, in this half */
		bool tagged;	    /* aarch64: bits 63..56 are no part of the address (TBI) */
	} half[2];
	bool lpa2, pa52;      /* aarch64: tables with output addresses of 52 bits */
	uint64_t kernel_root; /* aarch64: the upper half's top table in every address space */
};

struct guest_virt; /* the TLB and the counters; one a guest */

struct guest_virt *guest_virt_new(struct guest_mem *mem, enum guest_arch arch);
void guest_virt_free(struct guest_virt *v);
enum guest_arch guest_virt_arch(const struct guest_virt *v);
/* aarch64, before anything is read: arm64_paging_set()'s; what was cached is forgotten. */
void guest_virt_set_paging(struct guest_virt *v, const struct guest_paging *p);
const struct guest_paging *guest_virt_paging(const struct guest_virt *v);
/* Bytes of the smallest page of the kernel's half. */
uint64_t guest_virt_page_size(const struct guest_virt *v);
/* Forget translations of one address space, or (root 0) of all: the guest may have remapped. */
void guest_virt_flush(struct guest_virt *v, uint64_t root);
/* The same of some pages. */
void guest_virt_forget(struct guest_virt *v, struct guest_as as, uint64_t va, uint64_t len);

/* 0, -EFAULT (not mapped, not RAM, non-canonical, more levels than there can be), -ESRCH */
int guest_virt_translate(struct guest_virt *v, struct guest_as as, uint64_t va, uint64_t *gpa);
/* The same out of the page tables as they are now, whatever is cached; the cache learns of it. */
int guest_virt_walk(struct guest_virt *v, struct guest_as as, uint64_t va, uint64_t *gpa);

/*
 * A cached translation may be stale; a page that then turns out wrong is the reader's to notice
 * (compare with what must hold), flush and read once more. Reads cross pages.
 */
int guest_virt_read(struct guest_virt *v, struct guest_as as, uint64_t va, void *buf, size_t len);

struct guest_virt_io {
	uint64_t va;
	void *buf;
	uint32_t len;
	bool ok;
};
/* Several ranges of one address space, in as few readv calls as can be. 0 or -ESRCH; see .ok. */
int guest_virt_readv(struct guest_virt *v, struct guest_as as, struct guest_virt_io *io, int n);

/* At most @size bytes with the NUL; a longer or unterminated string is cut. 0 or -EFAULT. */
int guest_virt_read_str(struct guest_virt *v, struct guest_as as, uint64_t va, char *buf,
			size_t size);
/* All of a large range that can be read; pages that cannot become zeros. Bytes read, or -ESRCH. */
int64_t guest_virt_read_sparse(struct guest_virt *v, struct guest_as as, uint64_t va, void *buf,
			       size_t len);
void guest_virt_stats(struct guest_virt *v, uint64_t *reads, uint64_t *bytes);

/* ---------- kernel.c: the kernel that runs: symbols, types, modules ---------- */

struct guest_kernel;

/* Finds the kernel through its exception vectors and page tables; see
 * guest_identify() for what is returned. */
int guest_kernel_find(struct guest_kernel **out, struct guest_mem *mem, struct guest_virt *v,
		      const struct guest_regs *regs, struct vmprof_err *err);
/*
 * The same without registers, by a look through all of RAM. Of several kernels (one that was
 * rebooted leaves its memory behind) it is the one whose clock goes on, if any does.
 */
int guest_kernel_scan(struct guest_kernel **out, struct guest_mem *mem, struct guest_virt *v,
		      struct vmprof_err *err);
void guest_kernel_free(struct guest_kernel *k);
/* Is the kernel still in memory where it was found? (no: reboot, kexec) */
bool guest_kernel_in_memory(struct guest_kernel *k);
/* Does the kernel that was found still run under these registers? (no: reboot, kexec) */
bool guest_kernel_alive(struct guest_kernel *k, const struct guest_regs *regs);

/*
 * Are these two finds, @a the earlier one, of one boot of one kernel? After a sample that said "not
 * alive" (a vCPU in firmware or not yet started, a system management interrupt) keep the old one
 * until another find has succeeded, and only if they are not the same throw away what is known of
 * processes.
 */
bool guest_kernel_same(struct guest_kernel *a, struct guest_kernel *b);

void guest_kernel_describe(struct guest_kernel *k, struct guest_kernel_info *info);
struct guest_as guest_kernel_as(struct guest_kernel *k); /* whose kernel half is complete */
enum guest_arch guest_kernel_arch(const struct guest_kernel *k);
uint64_t guest_kernel_page_size(const struct guest_kernel *k); /* bytes of the smallest page */

/* By name; 0 if there is none. Per-CPU symbols have their offset as value (ok to be 0: use found).
 */
uint64_t guest_kernel_sym(struct guest_kernel *k, const char *name, bool *found);
/* Code at this address: kernel text, module text, or made as the kernel runs? */
bool guest_kernel_is_text(struct guest_kernel *k, uint64_t addr);
/* The symbol at or before @addr, for tests and messages; NULL if outside. */
const char *guest_kernel_symbolize(struct guest_kernel *k, uint64_t addr, uint64_t *off);
uint64_t guest_kernel_percpu(struct guest_kernel *k,
			     uint32_t cpu); /* __per_cpu_offset[cpu], 0: none */
/* Guest CPU number of the vCPU with these registers (GDT's CPUNODE entry,
 * TPIDR_EL1); -1 unknown. */
int guest_kernel_cpu(struct guest_kernel *k, const struct guest_regs *regs);

/*
 * Modules; text is what is executable. The list is read again when an address is in none, at most
 * every 100 ms, and when it is older than a second. What was returned is valid until the next call
 * of guest_kernel_module(); a module that stays loaded stays where it is.
 */
struct guest_module {
	char name[56]; /* MODULE_NAME_LEN */
	uint64_t text, text_len;
	uint8_t build_id[20];
	uint32_t build_id_len;
	uint32_t id; /* stable; grows by one for each module seen */
	/* ORC of this module; 0 if none */
	uint64_t orc_ip, orc;
	uint32_t num_orcs;
};
const struct guest_module *guest_kernel_module(struct guest_kernel *k, uint64_t addr);
/* For i = 0.. until NULL. */
const struct guest_module *guest_kernel_module_nth(struct guest_kernel *k, size_t i);
int guest_kernel_each_symbol(struct guest_kernel *k, const char *module,
			     int (*fn)(void *ctx, const struct guest_symbol *sym), void *ctx);

/*
 * Code that the kernel has made as it runs: BPF programs and the like (madecode.h). The lists are
 * read again when an address is in no known code, as those of modules are; the same holds for what
 * was returned.
 */
struct guest_made_code {
	uint64_t start, end;
	const char *name; /* bounded; raw bytes of the guest */
	uint32_t id;	  /* stable; grows by one for each seen */
	/* Where its frame is made ("push %rbp; mov %rsp,%rbp"), as far as is known; else start. */
	uint64_t push;
};
const struct guest_made_code *guest_kernel_made_code(struct guest_kernel *k, uint64_t addr);
/* For i = 0.. until NULL. */
const struct guest_made_code *guest_kernel_made_code_nth(struct guest_kernel *k, size_t i);

/* ---------- types, out of BTF ---------- */

/*
 * Offset in bytes of a member, looked for through typedefs, qualifiers and unnamed members; @member
 * may go down with dots ("f_path.dentry"). Returns -ENOENT if BTF is missing or has no such member.
 */
int guest_kernel_member(struct guest_kernel *k, const char *type, const char *member);
/* Size in bytes of a struct, or -ENOENT. */
int guest_kernel_sizeof(struct guest_kernel *k, const char *type);
/* Value of an enumerator; -ENOENT if there is none. */
int guest_kernel_enum(struct guest_kernel *k, const char *enumerator, int64_t *value);

#endif
