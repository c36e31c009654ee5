// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of registers as perf prints them, by the number that the kernel gives them in
 * attr.sample_regs_* (arch/X/include/uapi/asm/perf_regs.h).
 */
#ifndef VMPROF_REPORT_REGNAMES_H
#define VMPROF_REPORT_REGNAMES_H

struct regnames;

/* By uname's machine of the recorded host; NULL is this host. Never NULL. */
const struct regnames *regnames_of(const char *machine);
const char *regnames_get(const struct regnames *names, unsigned reg); /* "unknown" if it has none */

#endif
