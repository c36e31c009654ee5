// SPDX-License-Identifier: GPL-2.0-only
/*
 * Saves the code of the functions that samples lie in, as it is in the guest's memory: a kernel
 * patches itself, and its file, if there is one, does not say how. One a VM, used by the thread
 * that owns the guest; part of symsave, which knows where functions begin and end.
 */
#ifndef VMPROF_RECORD_CODESAVE_H
#define VMPROF_RECORD_CODESAVE_H

#include "guest/guest.h"
#include "symbolize/elfimage.h"

struct codesave;

/* What the code is stored under: as its symbols are. */
struct codesave_key {
	const char *name;
	const uint8_t *id;
	uint8_t id_len;
};

struct codesave *codesave_new(void);
void codesave_free(struct codesave *c); /* NULL is fine */

/* A kernel's or module's mapping at @start, with symbols relative to that. */
void codesave_kernel(struct codesave *c, uint64_t start, uint64_t len,
		     const struct codesave_key *key, const struct symtab *t);
/* All kernels until now are gone. */
void codesave_reset(struct codesave *c);
void codesave_dso(struct codesave *c, uint32_t dso_id, const struct codesave_key *key,
		  const struct symtab *t);
/* Memory that a program makes code in (guest_dso.owner): pages of it are saved, by address. */
void codesave_made(struct codesave *c, uint32_t dso_id, const struct codesave_key *key);

/* A kernel's function is read at once; a program's waits for its symbols, see codesave_work(). */
void codesave_hit(struct codesave *c, struct guest *g, const struct sample *s);
/* Reads the code of what waits and has symbols by now. */
void codesave_work(struct codesave *c, struct guest *g);

/* Writes all below @dir, under @vm. 0 or -errno with a sentence. */
int codesave_write(struct codesave *c, const char *dir, const char *vm, struct vmprof_err *err);

#endif
