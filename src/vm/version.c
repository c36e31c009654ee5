// SPDX-License-Identifier: GPL-2.0-only
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/xalloc.h"
#include "vm/vm.h"

#define PIECE	   (1u << 20)
#define BINARY_MAX (256u << 20)
#define OVERLAP	   64

/* What "--version" prints stands in the program as one string; the program is not run. */
static const char mark[] = "QEMU emulator version ";

static bool find_version(const uint8_t *buf, size_t len, char version[VM_VERSION_SIZE])
{
	const uint8_t *p = memmem(buf, len, mark, sizeof(mark) - 1);
	size_t n = 0;

	if (!p)
		return false;
	p += sizeof(mark) - 1;
	while (n + 1 < VM_VERSION_SIZE && p < buf + len && (isdigit(*p) || *p == '.'))
		version[n++] = (char)*p++;
	version[n] = 0;
	return n != 0;
}

bool vm_qemu_version(const struct vm *vm, char version[VM_VERSION_SIZE])
{
	uint8_t *buf = xmalloc(PIECE + OVERLAP);
	bool found = false;
	char path[32];
	off_t at = 0;
	ssize_t n;
	int fd;

	version[0] = 0;
	snprintf(path, sizeof(path), "/proc/%d/exe", vm->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && !found && at < BINARY_MAX) {
		n = pread(fd, buf, PIECE + OVERLAP, at);
		if (n <= 0)
			break;
		found = find_version(buf, (size_t)n, version);
		at += PIECE;
	}
	if (fd >= 0)
		close(fd);
	free(buf);
	return found;
}
