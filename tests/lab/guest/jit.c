// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that makes its code itself and says so in /tmp/perf-PID.map, as a JIT does: main calls
 * hot_a (75 %) and hot_b (25 %) in memory without a file. hot_b is written down later than hot_a,
 * and at the address of something that was there before. -DAPART: with a root directory, of which
 * /tmp is a link, and a pid namespace of its own, as in a container, and the code in a memfd.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

#define TEXT_(x) #x
#define TEXT(x)	 TEXT_(x)
#define NAME(x)	 TEXT(W(x))

/* A frame, a loop of as many rounds as the argument says, back. */
static const uint8_t loop[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};

static void need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

#ifdef APART
static void go_apart(void)
{
	pid_t pid;

	need(!unshare(CLONE_NEWPID | CLONE_NEWNS), "unshare");
	need(!mkdir("/run/apart", 0755) && !mkdir("/run/apart/var", 0755) &&
		     !mkdir("/run/apart/var/tmp", 0755) &&
		     !symlink("/../var/./tmp", "/run/apart/tmp"),
	     "directories");
	pid = fork();
	need(pid >= 0, "fork");
	if (pid) {
		waitpid(pid, NULL, 0);
		exit(1);
	}
	need(!mount("apart", "/run/apart/var/tmp", "tmpfs", 0, NULL), "mount");
	need(!chroot("/run/apart") && !chdir("/"), "chroot");
}

static uint8_t *code_memory(void)
{
	int fd = memfd_create("code", 0);

	need(fd >= 0 && !ftruncate(fd, 8192), "memfd");
	return mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd, 0);
}
#else
static void go_apart(void)
{
}

static uint8_t *code_memory(void)
{
	return mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
}
#endif

static void say(FILE *map, const uint8_t *code, size_t size, const char *name)
{
	fprintf(map, "%lx %zx %s\n", (unsigned long)code, size, name);
	fflush(map);
}

int main(void)
{
	void (*hot[2])(uint64_t rounds);
	uint64_t x = 88172645463325252;
	char path[64];
	uint8_t *code;
	FILE *map;

	go_apart();
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	need(map != NULL, path);
	code = code_memory();
	need(code != MAP_FAILED, "mmap");
	for (int i = 0; i < 2; i++) {
		memcpy(code + 4096 * i, loop, sizeof(loop));
		hot[i] = (void (*)(uint64_t))(code + 4096 * i);
	}
	say(map, code, sizeof(loop), NAME(hot_a));
	say(map, code + 4096, 64, "thrown_away");
	for (unsigned turn = 0;; turn++) {
		unsigned n = W(rounds)(x = W(spin)(x, 1));

		hot[0](3 * n);
		hot[1](n);
		if (turn == 1000)
			say(map, code + 4096, sizeof(loop), NAME(hot_b));
	}
}
