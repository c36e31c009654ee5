// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that chose its names to do harm to whoever shows them: its path, its command and its
 * hot function have terminal escapes, markup, quotes, line ends, separators of folded stacks and
 * bytes that are no UTF-8.
 */
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "work.h"

#define PATH "/srv/lab/\033]0;own\a<script>alert(1)<\\script>;a b\n'&\"\xff 99"

uint64_t hot(uint64_t x) __asm__("\"\033[31mred<script>;x 7&\"");

__attribute__((noinline)) uint64_t hot(uint64_t x)
{
	return spin(x, 30000) | 1;
}

static int copy_self(void)
{
	int in = open("/proc/self/exe", O_RDONLY), out = open(PATH, O_CREAT | O_WRONLY, 0755);
	struct stat st;

	return in < 0 || out < 0 || fstat(in, &st) ||
	       sendfile(out, in, NULL, (size_t)st.st_size) != st.st_size || close(out);
}

int main(int argc, char **argv)
{
	volatile uint64_t x = 88172645463325252;

	if (argc == 1) {
		if (copy_self())
			return 1;
		execl(PATH, argv[0], "again", (char *)0);
		return 1;
	}
	prctl(PR_SET_NAME, "\033[2J;<b>\n 5\xff\"");
	for (;;)
		x = hot(x);
}
