// SPDX-License-Identifier: GPL-2.0-only
/*
 * Saves, while a VM is recorded, the symbols that only its memory can tell: its kernel and modules
 * out of kallsyms, its programs and libraries out of the page cache, as small ELF files in the
 * store beside the profile (symbolize/elfimage.h, elfstore). One a VM, used by the thread that owns
 * the guest.
 */
#ifndef VMPROF_RECORD_SYMSAVE_H
#define VMPROF_RECORD_SYMSAVE_H

#include "guest/guest.h"

struct symsave;

/*
 * @dir: the store, made when the first file is put there; NULL: nothing is saved, ids are still
 * made. @vm: name of the VM; its files are kept apart from other VMs' under it.
 */
struct symsave *symsave_new(const char *dir, const char *vm);
void symsave_free(struct symsave *s); /* NULL is fine */

/*
 * The build id for a kernel's or module's mapping @ev (GUEST_EVENT_KERNEL or _MODULE): its own,
 * else one made from name and symbols, the same in every run. The kernel's symbols are saved at
 * once, a module's as well; values are relative to ev->start. @name is the path that the mapping is
 * recorded under. Returns the length of @id, always > 0.
 */
uint8_t symsave_kernel(struct symsave *s, struct guest *g, const struct guest_event *ev,
		       const char *name, uint8_t id[20]);

/* The build id for a user mapping: its own, else one made from path, device, inode and size; for
 * memory of a process from that. */
uint8_t symsave_build_id(struct symsave *s, const struct guest_dso *dso, uint8_t id[20]);

/*
 * Saves a user DSO's symbols: .symtab from the page cache, else .dynsym from there or from the
 * loaded image; for memory that code was made in what its program writes about it, as it comes
 * (jitsave.h). @name is the path that its mappings are recorded under. Once a DSO; costs
 * milliseconds. What could not be had is counted.
 */
void symsave_dso(struct symsave *s, struct guest *g, const struct guest_dso *dso, const char *name);

/* The code of functions that samples lie in (codesave.h): of each sample; after a reboot; now and
 * then; at the end, when it is written. */
void symsave_hit(struct symsave *s, struct guest *g, const struct sample *sample);
void symsave_reset(struct symsave *s);
void symsave_work(struct symsave *s, struct guest *g);
/* A process has ended: what it has said of its code is saved the next time that there is work. */
void symsave_exit(struct symsave *s, int32_t pid);
void symsave_finish(struct symsave *s, struct guest *g);

struct symsave_stats {
	uint64_t full;	      /* DSOs with .symtab (kernel and modules: with kallsyms) */
	uint64_t dynamic;     /* with .dynsym only */
	uint64_t none;	      /* no symbols could be had */
	char last_error[256]; /* why the store could not be written; "" if it could */
};
void symsave_get_stats(const struct symsave *s, struct symsave_stats *st);

#endif
