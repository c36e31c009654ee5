// SPDX-License-Identifier: GPL-2.0-only
/* report --timeline: samples of one time are in the order of CPU numbers, all others in that of
 * time; a guest's CPU stands for a host's that is not known. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perfdata_build.h"
#include "report/timeline.h"
#include "test.h"

static struct vmprof_err err;

#define TYPE (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

static void sample(struct build *b, uint64_t time, uint32_t cpu)
{
	begin_record(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put64(b, time * 16 + cpu); /* IP */
	put32(b, 7);
	put32(b, 7);
	put64(b, time);
	put32(b, cpu);
	put32(b, 0);
	end_record(b);
}

static char *timeline_of(const struct build *b, const struct timeline_options *opt)
{
	const struct symbol_paths paths = {0};
	char *text = NULL;
	struct perfdata_reader *r;
	struct session *s = session_new(&paths);
	struct timeline *t;
	struct buf image = {0};
	size_t size;
	int fd;
	FILE *f = open_memstream(&text, &size);

	build_image(b, &image);
	fd = temp_fd(image.data, image.len);
	CHECK_EQ(open_fd(&r, fd, &err), 0);
	CHECK_EQ(timeline_new(&t, s, r, opt, f, &err), 0);
	CHECK_EQ(perfdata_reader_run(r, timeline_record, t, &err), 0);
	timeline_flush(t);
	timeline_free(t);
	perfdata_reader_close(r);
	session_free(s);
	fclose(f);
	buf_free(&image);
	close(fd);
	return text;
}

static void sample_of(struct build *b, uint64_t id, uint64_t time, uint32_t cpu)
{
	begin_record(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_GUEST_USER);
	put64(b, id);
	put64(b, 0x1000);
	put32(b, 7);
	put32(b, 7);
	put64(b, time);
	put32(b, cpu);
	put32(b, 0);
	end_record(b);
}

/* The id says which vCPU it was. */
static void test_vcpu(void)
{
	const struct timeline_options opt = {.quiet = true};
	struct build b = {.sample_type = TYPE | PERF_SAMPLE_IDENTIFIER, .ids = {1}, .nr_events = 1};
	static const char *const cpus[] = {"005", "v02", "v05", "-"};
	size_t n = 0;
	char *text;

	begin_record(&b, PERFDATA_ID_INDEX, 0);
	put64(&b, 2);
	for (uint64_t id = 1; id <= 2; id++) {
		put64(&b, id);
		for (int i = 0; i < 3; i++)
			put64(&b, 0);
	}
	for (uint64_t vcpu = 2; vcpu <= 5; vcpu += 3) {
		put64(&b, 4711);
		put64(&b, vcpu);
	}
	end_record(&b);
	sample_of(&b, 2, 1, UINT32_MAX);
	sample_of(&b, 1, 1, UINT32_MAX);
	sample_of(&b, 1, 1, 5);
	sample_of(&b, 3, 2, UINT32_MAX);
	text = timeline_of(&b, &opt);
	for (char *line = strtok(text, "\n"); line && n < 4; line = strtok(NULL, "\n"), n++)
		CHECK(!strncmp(line + 19 + (n == 3 ? 2 : 0), cpus[n], strlen(cpus[n])));
	CHECK_EQ(n, 4);
	free(text);
	buf_free(&b.data);
}

int main(void)
{
	const struct timeline_options opt = {.quiet = true};
	struct build b = {.sample_type = TYPE, .ids = {1}, .nr_events = 1};
	static const char *const addresses[] = {"12", "13", "20", "21", "21", "23", "31"};
	char *text, *line;
	size_t n = 0;

	sample(&b, 1, 3);
	sample(&b, 2, 3);
	sample(&b, 2, 1);
	sample(&b, 1, 2);
	sample(&b, 2, 0);
	sample(&b, 3, 1);
	sample(&b, 2, 1);
	text = timeline_of(&b, &opt);
	for (line = strtok(text, "\n"); line && n < 7; line = strtok(NULL, "\n"), n++)
		CHECK_EQ(strtoul(line + 51, NULL, 16), strtoul(addresses[n], NULL, 16));
	CHECK(!line);
	CHECK_EQ(n, 7);
	free(text);
	buf_free(&b.data);
	test_vcpu();
	return test_done();
}
