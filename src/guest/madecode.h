// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/guest: code that the kernel makes as it runs and that is in none of its tables of
 * symbols: BPF programs and their trampolines (struct bpf_ksym), trampolines of ftrace, pages of
 * instructions that kprobes have replaced. All of it has frame pointers.
 */
#ifndef VMPROF_GUEST_MADECODE_H
#define VMPROF_GUEST_MADECODE_H

#include "guest/btf.h"
#include "guest/kernel.h"
#include "guest/ksyms.h"

struct made_codes;

/* NULL if the kernel has no such lists, or @b does not describe them. */
struct made_codes *made_codes_new(struct guest_virt *v, struct guest_as as, const struct btf *b,
				  const struct ksyms *syms);
void made_codes_free(struct made_codes *m); /* NULL is fine */

/* Reads the lists again unless that was done less than @max_age_ns ago. */
void made_codes_refresh(struct made_codes *m, uint64_t max_age_ns);
/* By address; NULL behind the last one. */
const struct guest_made_code *made_codes_nth(const struct made_codes *m, size_t i);
/* The one that has @addr, as far as the lists were read; NULL if none. */
const struct guest_made_code *made_codes_at(const struct made_codes *m, uint64_t addr);

#endif
