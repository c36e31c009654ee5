// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/events: small files below a root directory, bounded, whatever they turn out to be.
 */
#ifndef VMPROF_EVENTS_SYSFS_H
#define VMPROF_EVENTS_SYSFS_H

#include <stdbool.h>
#include <stddef.h>

#define SYSFS_TEXT_MAX 4096 /* sysfs gives a page at most */
#define SYSFS_PMUS     "/sys/bus/event_source/devices"

/* May @name be a component of a path: not empty, no slash, no leading dot, no control character? */
bool sysfs_is_name(const char *name);

/*
 * The text of the file named by @fmt below @root, without blanks at its end. 0 or -errno (-EFBIG:
 * more than a sysfs file can be).
 */
int sysfs_read(char text[SYSFS_TEXT_MAX], const char *root, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The first @size - 1 bytes of what may be a larger file. 0 or -errno. */
int sysfs_read_start(char *text, size_t size, const char *root, const char *path);

/* Calls @fn for each name in a directory, in the order of names, until it returns not 0; that is
 * returned. -errno if the directory cannot be read. At most 8192 names are looked at. */
int sysfs_each(const char *root, const char *dir, int (*fn)(void *ctx, const char *name),
	       void *ctx);

#endif
