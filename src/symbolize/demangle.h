// SPDX-License-Identifier: GPL-2.0-only
#ifndef VMPROF_SYMBOLIZE_DEMANGLE_H
#define VMPROF_SYMBOLIZE_DEMANGLE_H

/*
 * The readable form of a C++ (Itanium ABI) or Rust (legacy and v0) name, without parameters as perf
 * shows it, to be freed; NULL if @name is none, or too long, or if this build has no libiberty.
 * "@plt" behind a name stays there.
 */
char *demangle(const char *name);

#endif
