// SPDX-License-Identifier: GPL-2.0-only
/*
 * All of a VM of arm64: looks at its clock, does fixed work in user mode, then in its kernel, and
 * so on. Says "@begin KIND" a second before and "@end KIND TICKS" a second behind, TICKS being
 * those of the virtual counter that the work took: whoever profiles it has these seconds to begin
 * and to end.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "work.h"

#define ROOM                                                                                       \
	16384 /* of stack above the work's frames: copies of it are as long as was asked for       \
	       */

static char buffer[65536];

static uint64_t ticks(void)
{
	uint64_t t;

	__asm__ volatile("isb\n mrs %0, cntvct_el0" : "=r"(t));
	return t;
}

/* At any moment x20 is the counter of some instructions ago; an iteration takes one tick. */
WORK_FUNCTION static uint64_t look(uint64_t x)
{
	uint64_t n = 5000000;

	__asm__ volatile("1: isb\n"
			 "mrs x20, cntvct_el0\n"
			 "subs %0, %0, #1\n"
			 "b.ne 1b\n"
			 : "+r"(n)
			 :
			 : "x20", "cc");
	return x;
}

WORK_FUNCTION static uint64_t user(uint64_t x)
{
	for (int i = 0; i < 300; i++)
		x = spin(x, 10000);
	return x;
}

WORK_FUNCTION static uint64_t kernel(uint64_t x)
{
	int zero = open("/dev/zero", O_RDONLY);

	for (int i = 0; i < 2000; i++)
		if (read(zero, buffer, sizeof(buffer)) != sizeof(buffer))
			x = 0;
	close(zero);
	return x;
}

WORK_FUNCTION static uint64_t work(const char *kind, uint64_t (*what)(uint64_t), uint64_t x)
{
	uint64_t start;

	printf("@begin %s\n", kind);
	sleep(1);
	start = ticks();
	x = what(x);
	start = ticks() - start;
	sleep(1);
	printf("@end %s %llu\n", kind, (unsigned long long)start);
	return x;
}

int main(void)
{
	volatile char room[ROOM];
	uint64_t x = 88172645463325252;

	memset((char *)room, 1, sizeof(room));
	setlinebuf(stdout);
	if (mount("dev", "/dev", "devtmpfs", 0, NULL))
		perror("@bad devtmpfs");
	user(x);
	printf("@up\n");
	for (;;) {
		x = work("look", look, x);
		x = work("user", user, x);
		x = work("kernel", kernel, x);
	}
}
