// SPDX-License-Identifier: GPL-2.0-only
/*
 * Inside src/symbolize: the directories and files of a store (elfimage.h), whatever is in them.
 */
#ifndef VMPROF_SYMBOLIZE_STOREFILE_H
#define VMPROF_SYMBOLIZE_STOREFILE_H

#include <stddef.h>

#include "util/buf.h"

/*
 * DIR/NAME/HEX, or NAME/HEX if @dir is "": @name made safe, so that it cannot leave @dir. 0 or
 * -ENAMETOOLONG.
 */
int storefile_path(char *path, size_t size, const char *dir, const char *name, const char *hex);
/* @dir and all directories of @below in it. 0 or -errno. */
int storefile_make_dirs(const char *dir, const char *below);
/* The file becomes what @b is, at once or not at all. 0 or -errno. */
int storefile_write(const char *path, const struct buf *b);

#endif
