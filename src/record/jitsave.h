// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of code that programs of a guest have made themselves, out of the /tmp/perf-PID.map that
 * they write while they run: read as it grows, kept, and saved now and then and at the end. One a
 * VM, used by the thread that owns the guest.
 */
#ifndef VMPROF_RECORD_JITSAVE_H
#define VMPROF_RECORD_JITSAVE_H

#include "guest/guest.h"
#include "symbolize/elfimage.h"

struct jitsave;

struct jitsave *jitsave_new(void);
void jitsave_free(struct jitsave *j); /* NULL is fine */

/* Memory of a process (guest_dso.owner) that samples lie in; @name and @id as symsave.h has them.
 */
void jitsave_add(struct jitsave *j, const struct guest_dso *dso, const char *name,
		 const uint8_t *id, uint8_t id_len);
/* Reads some of what the maps have more than the last time. @all: not some, and all of them. */
void jitsave_work(struct jitsave *j, struct guest *g, uint64_t now, bool all);

/*
 * Hands out each map: addresses are the process's own. Of several names for one address the last
 * one counts. @t has no symbols if there is no map; it is not the callee's. *@stored is: it stays
 * with the map, and is 0 at first.
 */
typedef void jitsave_fn(void *ctx, const char *name, const uint8_t *id, uint8_t id_len,
			const struct symtab *t, uint64_t *stored);
void jitsave_each(struct jitsave *j, jitsave_fn *fn, void *ctx);
/*
 * The same of those that have grown since, but of none too often: what a recorder that is killed
 * leaves behind. They are read on behind this.
 */
void jitsave_grown(struct jitsave *j, uint64_t now, jitsave_fn *fn, void *ctx);
/* The process has ended: the rest of its map is read, and handed out, the next time. */
void jitsave_exit(struct jitsave *j, int32_t pid);

#endif
