// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file with all features of our own writer, cut at every byte, through what the commands make of
 * one: no crash, and always a sentence. With LONG=1 each length goes through each command, else
 * they take turns, and a few are merged.
 */
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "merge/merge.h"
#include "tests/unit/every_command.h"
#include "tests/unit/perfdata_build.h"
#include "tests/unit/perfdata_scenario.h"
#include "tests/unit/test.h"

#define MERGE_STEP 61 /* a merge looks for the kernel, which takes long */

static FILE *null;
static bool all;

static void read_file(const char *path, struct buf *image)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	CHECK(fd >= 0 && !fstat(fd, &st));
	CHECK_EQ(read(fd, buf_grow(image, (size_t)st.st_size), (size_t)st.st_size), st.st_size);
	close(fd);
}

static void run_command(size_t i, int fd, bool whole)
{
	const struct report_options opt = {.max_stack = 127, .children = true};
	struct perfdata_reader *r;
	struct vmprof_err err;
	int ret = open_fd(&r, fd, &err);

	if (!ret)
		ret = every_command[i](r, &opt, null, &err);
	CHECK_EQ(ret, whole ? 0 : -EBADMSG);
	CHECK(whole || strstr(err.msg, "/proc/self/fd/"));
	perfdata_reader_close(r);
}

static void run_merge(const char *dir, int fd)
{
	char in[64], out[PATH_MAX];
	char *inputs[] = {in};
	struct merge_options opt = {.output = out, .inputs = inputs, .nr_inputs = 1, .quiet = true};
	struct merge_result result;
	struct vmprof_err err;
	int said = dup(STDERR_FILENO), ret;

	snprintf(in, sizeof(in), "/proc/self/fd/%d", fd);
	snprintf(out, sizeof(out), "%s/out", dir);
	dup2(fileno(null), STDERR_FILENO); /* what it says of each file */
	ret = merge_run(&opt, &result, &err);
	dup2(said, STDERR_FILENO);
	close(said);
	CHECK(ret == 0 || (ret == -EBADMSG && strstr(err.msg, in)));
	CHECK(ret || !access(out, R_OK));
	unlink(out);
}

static void test_cut(const char *dir, const struct buf *image)
{
	for (size_t n = 0; n <= image->len; n++) {
		int fd = temp_fd(image->data, n);

		for (size_t i = 0; i < EVERY_COMMAND; i++)
			if (all || n == image->len || n % EVERY_COMMAND == i)
				run_command(i, fd, n == image->len);
		if (all || n == image->len || n % MERGE_STEP == 0)
			run_merge(dir, fd);
		close(fd);
	}
}

int main(void)
{
	char dir[] = "/tmp/vmprof-cut-XXXXXX", path[PATH_MAX];
	struct buf image = {0};
	struct vmprof_err err;

	all = getenv("LONG") && atoi(getenv("LONG"));
	null = fopen("/dev/null", "we");
	if (!null || !mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/whole", dir);
	CHECK_EQ(scenario_write(path, 1, &err), 0);
	read_file(path, &image);
	test_cut(dir, &image);
	unlink(path);
	rmdir(dir);
	fclose(null);
	buf_free(&image);
	return test_done();
}
