// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>

#include "export/export.h"

#if HAVE_ZLIB
#include <zlib.h>

static ssize_t gzip_write(void *gz, const char *data, size_t n)
{
	int written = gzwrite(gz, data, (unsigned)n);

	return written > 0 ? written : 0; /* 0 is an error */
}

static int gzip_close(void *gz)
{
	int ret = gzclose(gz);

	if (ret != Z_OK && ret != Z_ERRNO)
		errno = EIO;
	return ret == Z_OK ? 0 : -1;
}

FILE *export_gzip(int fd)
{
	cookie_io_functions_t io = {.write = gzip_write, .close = gzip_close};
	gzFile gz = gzdopen(fd, "wb");
	FILE *f = gz ? fopencookie(gz, "w", io) : NULL;

	if (!gz)
		errno = ENOMEM;
	if (gz && !f)
		gzclose(gz);
	return f;
}

bool export_has_gzip(void)
{
	return true;
}
#else
FILE *export_gzip(int fd)
{
	errno = ENOSYS;
	return NULL;
}

bool export_has_gzip(void)
{
	return false;
}
#endif
