// SPDX-License-Identifier: GPL-2.0-only
/*
 * kernelwork getpid|read|hash: one kind of system call for ever. hash has the kernel's wp512 module
 * hash zeroes, so that nearly all time is spent in a module's function.
 */
#include <fcntl.h>
#include <linux/if_alg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "work.h"

static char buffer[65536];

/* Into the kernel right from the caller's frame: the C library's functions have none. */
static inline __attribute__((always_inline)) long kernel(long nr, long a, const void *b, long c)
{
	long ret;

	WITH_FRAME;
#if defined(__x86_64__)
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
#else
	register long x8 __asm__("x8") = nr, x0 __asm__("x0") = a, x2 __asm__("x2") = c;
	register const void *x1 __asm__("x1") = b;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	ret = x0;
#endif
	return ret;
}

WORK_FUNCTION static void call_getpid(int fd)
{
	(void)fd;
	for (int i = 0; i < 1000; i++)
		kernel(SYS_getpid, 0, NULL, 0);
}

WORK_FUNCTION static void call_read(int fd)
{
	if (kernel(SYS_read, fd, buffer, sizeof(buffer)) != sizeof(buffer))
		perror("kernelwork: read");
}

WORK_FUNCTION static void call_hash(int fd)
{
	if (kernel(SYS_write, fd, buffer, sizeof(buffer)) != sizeof(buffer))
		perror("kernelwork: hash");
}

static int open_nothing(void)
{
	return -1;
}

static int open_zero(void)
{
	return open("/dev/zero", O_RDONLY);
}

static int open_hash(void)
{
	struct sockaddr_alg sa = {.salg_family = AF_ALG, .salg_type = "hash", .salg_name = "wp512"};
	int fd = socket(AF_ALG, SOCK_SEQPACKET, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return -1;
	return accept(fd, NULL, NULL);
}

static const struct kind {
	const char *name;
	int (*open)(void);
	void (*call)(int fd);
} kinds[] = {
	{"getpid", open_nothing, call_getpid},
	{"read", open_zero, call_read},
	{"hash", open_hash, call_hash},
};

int main(int argc, char **argv)
{
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct kind *k = &kinds[i];
		int fd;

		if (argc != 2 || strcmp(argv[1], k->name))
			continue;
		prctl(PR_SET_NAME, k->name);
		fd = k->open();
		if (fd < 0 && k->open != open_nothing) {
			perror("kernelwork");
			return 1;
		}
		for (;;)
			k->call(fd);
	}
	fprintf(stderr, "usage: kernelwork getpid|read|hash\n");
	return 2;
}
