// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files whose names the user, or a profile, has given.
 */
#ifndef VMPROF_UTIL_OPENFILE_H
#define VMPROF_UTIL_OPENFILE_H

#include <stdbool.h>
#include <sys/stat.h>

/* Can it be read to an end without waiting for anybody: a regular file, or /dev/null? */
bool is_plain_file(const struct stat *st);

/* Opened for reading: a descriptor (close-on-exec), or -errno; -EINVAL of what is no plain file. */
int open_plain_file(const char *path);

#endif
