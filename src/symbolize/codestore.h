// SPDX-License-Identifier: GPL-2.0-only
/*
 * Code of functions that samples hit, in the store beside a profile (elfimage.h):
 *   DIR/<name>/<build id>/code
 * beside the file of symbols, elf. It is an ELF file of sections alone: .note.gnu.build-id and, for
 * each run of code, a .text at the address that the symbols have for it. So objdump -d reads it,
 * and perf, which takes elf, never looks at it.
 */
#ifndef VMPROF_SYMBOLIZE_CODESTORE_H
#define VMPROF_SYMBOLIZE_CODESTORE_H

#include "symbolize/elfimage.h"

enum { CODESTORE_MAX_RUNS = 16384, CODESTORE_MAX_BYTES = 64 << 20 };

struct code_run {
	uint64_t start, len; /* in the space of the symbols */
	uint8_t *bytes;
};

struct code_runs {
	struct code_run *run; /* by start, none over another */
	size_t n, cap;
	uint64_t bytes; /* of all */
};

/* Copies @bytes in; what is there already wins. Runs and bytes beyond the bounds are left out. */
void code_runs_add(struct code_runs *r, uint64_t start, const uint8_t *bytes, uint64_t len);
/* The run that has @start, or NULL. */
const struct code_run *code_runs_find(const struct code_runs *r, uint64_t start);
void code_runs_free(struct code_runs *r);

/*
 * Writes @r, and what a file there has besides. @machine: EM_*. 0 or -errno with a sentence.
 */
int codestore_put(const char *dir, const char *name, const uint8_t *build_id, uint32_t build_id_len,
		  uint16_t machine, const struct code_runs *r, struct vmprof_err *err);
/* Path of the file that was put under @name, or -ENOENT. @path has PATH_MAX bytes. */
int codestore_get(const char *dir, const char *name, const uint8_t *build_id, uint32_t build_id_len,
		  char *path);
/* All of a file; *@machine may be NULL. -ESTALE if its build id is another one. */
int codestore_read(struct code_runs *r, const char *path, const uint8_t *build_id,
		   uint32_t build_id_len, uint16_t *machine, struct vmprof_err *err);

#endif
