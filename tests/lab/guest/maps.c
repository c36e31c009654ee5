// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program with an executable mapping of each kind: its own, libraries, one opened with dlopen, a
 * file from its second page on whose name has a space, a file that is gone, a memfd, memory without
 * a file, the heap, the stack. Says what it cannot do, then spins.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "work.h"

#define PAGE 4096

static void need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* Maps the pages of @fd from the second one on. */
static void map_file(int fd, int flags, const char *what)
{
	need(fd >= 0 && !ftruncate(fd, 3 * PAGE), what);
	need(mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, flags, fd, PAGE) != MAP_FAILED, what);
	close(fd);
}

static int new_file(const char *path)
{
	return open(path, O_RDWR | O_CREAT, 0755);
}

static void make_executable(void *addr, const char *what)
{
	void *page = (void *)((uintptr_t)addr & -(uintptr_t)PAGE);

	need(!mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), what);
}

int main(int argc, char **argv)
{
	volatile uint64_t x = 88172645463325252;

	need(dlopen("/srv/lab/plugin.so", RTLD_NOW) != NULL, "plugin.so");
	map_file(new_file("/tmp/a name"), MAP_PRIVATE, "file");
	map_file(new_file("/tmp/gone"), MAP_SHARED, "deleted file");
	need(!unlink("/tmp/gone"), "unlink");
	map_file(memfd_create("code", 0), MAP_SHARED, "memfd");
	need(mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		  0) != MAP_FAILED,
	     "memory");
	make_executable(sbrk(0) - PAGE, "heap");
	make_executable(argv, "stack");
	for (;;)
		x = spin(x, 30000);
}
