// SPDX-License-Identifier: GPL-2.0-only
/*
 * The reader on files made here. With arguments it is a helper of tests/cli/perfdata.bats:
 *   perfdata_read header|full FILE    the header's features
 *   perfdata_read stats FILE          records by type, samples by event, what was skipped
 *   perfdata_read samples FILE        a line a sample: pid/tid cpu time period event ip
 *   perfdata_read walk FILE           nothing: to be timed
 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "perfdata/reader.h"
#include "tests/unit/perfdata_scenario.h"
#include "tests/unit/test.h"

struct counts {
	struct perfdata_reader *r;
	uint64_t samples[64], none, chain, order;
	uint64_t last;
};

static int count(void *ctx, const struct perfdata_record *rec)
{
	struct counts *c = ctx;

	if (rec->time && rec->time < c->last)
		c->order++;
	if (rec->time)
		c->last = rec->time;
	if (rec->type != PERF_RECORD_SAMPLE)
		return 0;
	if (rec->evsel && rec->evsel->index < 64)
		c->samples[rec->evsel->index]++;
	else
		c->none++;
	for (uint64_t i = 0; i < rec->chain_len; i++)
		c->chain += rec->chain[i] & 1;
	return 0;
}

static int print_sample(void *ctx, const struct perfdata_record *rec)
{
	if (rec->type != PERF_RECORD_SAMPLE)
		return 0;
	printf("%d/%d ", (int)rec->pid, (int)rec->tid);
	if (rec->cpu != UINT32_MAX)
		printf("[%03u] ", rec->cpu);
	if (rec->time)
		printf("%" PRIu64 ".%09" PRIu64 ": ", rec->time / 1000000000,
		       rec->time % 1000000000);
	printf("%" PRIu64 " %s: %" PRIx64 "\n", rec->period, rec->evsel->name, rec->ip);
	return 0;
}

static int nothing(void *ctx, const struct perfdata_record *rec)
{
	return 0;
}

static void print_stats(const struct perfdata_reader *r, const struct counts *c)
{
	const struct perfdata_reader_stats *s = perfdata_reader_get_stats(r);

	printf("total %" PRIu64 "\n", s->total);
	for (int i = 0; i < 256; i++)
		if (s->records[i])
			printf("type %d %" PRIu64 "\n", i, s->records[i]);
	for (size_t i = 0; i < perfdata_reader_nr_evsels(r) && i < 64; i++)
		printf("event %s %" PRIu64 "\n", perfdata_reader_evsel(r, i)->name, c->samples[i]);
	printf("unknown %" PRIu64 " broken %" PRIu64 " no_event %" PRIu64 " late %" PRIu64
	       " lost %" PRIu64 " order %" PRIu64 "\n",
	       s->unknown, s->broken, s->no_event, s->out_of_order, s->lost, c->order);
}

static int helper(const char *verb, const char *path)
{
	struct vmprof_err err = {0};
	struct counts c = {0};
	int ret;

	ret = perfdata_reader_open(&c.r, path, &err);
	if (!ret && !strcmp(verb, "samples"))
		ret = perfdata_reader_run(c.r, print_sample, &c, &err);
	else if (!ret && !strcmp(verb, "stats"))
		ret = perfdata_reader_run(c.r, count, &c, &err);
	else if (!ret)
		ret = perfdata_reader_run(c.r, nothing, &c, &err);
	/* in a pipe some features come last */
	if (c.r && (!strcmp(verb, "header") || !strcmp(verb, "full")))
		perfdata_reader_print_header(c.r, stdout, !strcmp(verb, "full"));
	if (c.r && !strcmp(verb, "stats"))
		print_stats(c.r, &c);
	if (ret)
		fprintf(stderr, "perfdata_read: %s\n", err.msg);
	perfdata_reader_close(c.r);
	return ret ? 1 : 0;
}

/* ------------------------------------------------------------------ our own file, read again */

struct scene {
	unsigned samples[SCENARIO_VMS], comms, maps, forks, privates, host_kernel;
};

static int vm_of(const struct perfdata_record *rec)
{
	for (int i = 0; i < SCENARIO_VMS; i++)
		if ((uint32_t)rec->machine_pid == scenario_vms[i].machine)
			return i;
	return -1;
}

static void check_sample(struct scene *s, const struct perfdata_record *rec, int vm)
{
	unsigned n;

	CHECK(vm >= 0);
	if (vm < 0)
		return;
	n = s->samples[vm]++;
	CHECK_EQ(rec->pid, SCENARIO_PID);
	CHECK_EQ(rec->period, 1000000);
	CHECK_EQ(rec->cpu, n / 3 % SCENARIO_VCPUS);
	CHECK_EQ(rec->vcpu, n / 3 % SCENARIO_VCPUS);
	CHECK_EQ(rec->id, scenario_vms[vm].first_id + n / 3 % SCENARIO_VCPUS);
	CHECK_EQ(rec->cpumode,
		 n % 3 == 2 ? PERF_RECORD_MISC_GUEST_USER : PERF_RECORD_MISC_GUEST_KERNEL);
	CHECK_EQ(rec->chain_len, n % 3 ? 3 : 7);
	CHECK_EQ(rec->chain[1], rec->ip);
	CHECK_STR(rec->evsel->name, "cpu-clock");
}

static void check_map(struct scene *s, const struct perfdata_record *rec, int vm)
{
	if (rec->is_private) {
		char json[128];

		scenario_vm_json(&scenario_vms[s->privates], json, sizeof(json));
		CHECK_STR(rec->private.word, "vm");
		CHECK_STR(rec->private.json, json);
		s->privates++;
	} else if (rec->cpumode == PERF_RECORD_MISC_KERNEL) {
		CHECK_STR(rec->mmap.filename, "[kernel.kallsyms]_text");
		s->host_kernel++;
	} else {
		CHECK(vm >= 0);
		CHECK_EQ(rec->mmap.build_id_len, 20);
		CHECK_EQ(rec->mmap.build_id[0] & 0xf0, scenario_vms[vm < 0 ? 0 : vm].bid);
		CHECK(!rec->mmap.is_data);
		s->maps++;
	}
}

static int check_scene(void *ctx, const struct perfdata_record *rec)
{
	struct scene *s = ctx;
	int vm = vm_of(rec);

	switch (rec->type) {
	case PERF_RECORD_SAMPLE:
		check_sample(s, rec, vm);
		break;
	case PERF_RECORD_MMAP2:
		check_map(s, rec, vm);
		break;
	case PERF_RECORD_COMM:
		CHECK(vm >= 0);
		CHECK_STR(rec->comm.comm, scenario_vms[vm < 0 ? 0 : vm].comm);
		CHECK(rec->comm.exec);
		s->comms++;
		break;
	case PERF_RECORD_FORK:
		CHECK_EQ(rec->task.ppid, 1);
		s->forks++;
		break;
	}
	return 0;
}

static void check_features(struct perfdata_reader *r)
{
	const struct perfdata_reader_build_id *ids;

	CHECK_STR(perfdata_reader_feature_str(r, PERFDATA_FEAT_VERSION), "vmprof " VMPROF_VERSION);
	CHECK(perfdata_reader_feature_str(r, PERFDATA_FEAT_HOSTNAME));
	CHECK(!perfdata_reader_feature_str(r, PERFDATA_FEAT_CPUID));
	CHECK_EQ(perfdata_reader_nr_evsels(r), 1);
	CHECK_EQ(perfdata_reader_evsel(r, 0)->nr_ids, 5);
	CHECK_EQ(perfdata_reader_evsel(r, 0)->attr.clockid, CLOCK_MONOTONIC);
	CHECK_EQ(perfdata_reader_build_ids(r, &ids), 8);
	CHECK_EQ(ids[0].pid, 3000001);
	CHECK_EQ(ids[0].cpumode, PERF_RECORD_MISC_GUEST_KERNEL);
	CHECK_STR(ids[0].filename, "/boot/[web1.kernel]");
	CHECK_EQ(ids[7].id[19], 0xb3);
}

static void read_scene(const char *path)
{
	const struct perfdata_reader_build_id *ids;
	struct vmprof_err err = {0};
	struct perfdata_reader *r;
	struct scene s = {0};

	CHECK_EQ(perfdata_reader_open(&r, path, &err), 0);
	if (!r)
		return;
	if (perfdata_reader_build_ids(r, &ids))
		check_features(r);
	CHECK_EQ(perfdata_reader_run(r, check_scene, &s, &err), 0);
	/* of a pipe they come at the end */
	check_features(r);
	CHECK_EQ(s.samples[0], 12);
	CHECK_EQ(s.samples[1], 12);
	CHECK_EQ(s.comms, 2);
	CHECK_EQ(s.forks, 2);
	CHECK_EQ(s.maps, 8);
	CHECK_EQ(s.privates, 2);
	CHECK_EQ(s.host_kernel, 1);
	CHECK_EQ(perfdata_reader_get_stats(r)->first_time, SCENARIO_START + 1000000);
	CHECK_EQ(perfdata_reader_run(r, check_scene, &s, &err), -EINVAL);
	perfdata_reader_close(r);
}

static void test_own_file(const char *path)
{
	struct vmprof_err err = {0};

	CHECK_EQ(scenario_write(path, 4, &err), 0);
	read_scene(path);
}

static void test_own_pipe(const char *path)
{
	struct vmprof_err err = {0};
	pid_t child;
	int status;

	CHECK_EQ(mkfifo(path, 0600), 0);
	child = fork();
	if (!child)
		_exit(scenario_write(path, 4, &err) ? 1 : 0);
	read_scene(path);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

/* Text of the file does not reach the terminal as it is. */
static void test_escape(const char *path)
{
	struct perfdata_event ev = {.name = "cpu\033[2Jclock", .ids = (uint64_t[]){1}, .nr_ids = 1};
	char *argv[] = {"vmprof", "it's\033", NULL}, *text = NULL;
	struct perfdata_writer_config cfg = {
		.path = path, .events = &ev, .nr_events = 1, .argv = argv};
	struct vmprof_err err = {0};
	struct perfdata_writer *w;
	struct perfdata_reader *r;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	CHECK_EQ(perfdata_writer_open(&w, &cfg, &err), 0);
	CHECK_EQ(perfdata_writer_close(w, &err), 0);
	CHECK_EQ(perfdata_reader_open(&r, path, &err), 0);
	perfdata_reader_print_header(r, f, true);
	perfdata_reader_close(r);
	fclose(f);
	CHECK(!strchr(text, '\033'));
	CHECK(strstr(text, "# cmdline : vmprof it\\'s\\x1b \n"));
	CHECK(strstr(text, "name = cpu\\x1b[2Jclock, , id = { 1 }, size = 128"));
	free(text);
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/vmprof-perfdata-XXXXXX", path[64];

	if (argc == 3)
		return helper(argv[1], argv[2]);
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/f", dir);
	test_own_file(path);
	test_escape(path);
	unlink(path);
	test_own_pipe(path);
	unlink(path);
	snprintf(path, sizeof(path), "%s/f.old", dir);
	unlink(path);
	CHECK_EQ(rmdir(dir), 0);
	return test_done();
}
