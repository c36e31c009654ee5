// SPDX-License-Identifier: GPL-2.0-only
/*
 * /tmp/perf-PID.map, which programs that make code as they run write: "START SIZE NAME" a line, the
 * numbers in hexadecimal (tools/perf/Documentation/jit-interface.txt).
 */
#ifndef VMPROF_SYMBOLIZE_PERFMAP_H
#define VMPROF_SYMBOLIZE_PERFMAP_H

#include "symbolize/elfimage.h"

enum { PERF_MAP_MAX_LINE = 4096 };

struct perf_map_entry {
	uint64_t start, end;
	const char *name; /* in the line */
};
/* One line, with or without its newline, which is cut off. False if it says nothing. */
bool perf_map_parse(char *line, struct perf_map_entry *e);

/* What perf, and all of vmprof, calls the memory that a process makes code in. Returns @name. */
char *jit_name(char *name, size_t size, int32_t pid);

bool is_perf_map(const char *path); /* the name perf gives to the code that a process has made */
/*
 * The file at @path, which must belong to root or to this user. 0 or -errno with a sentence.
 */
int perf_map_read(struct symtab **out, const char *path, struct vmprof_err *err);

#endif
