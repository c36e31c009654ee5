// SPDX-License-Identifier: GPL-2.0-only
/*
 * Merging: which VMs are one, how clocks are aligned and when that is refused, whose samples count
 * where a VM was sampled from two sides, that nothing is lost without a word, merges of merges.
 */
#include "merge/impl.h"
#include "tests/unit/merge_make.h"

static struct vmprof_err last_err;

/* Merges up to 4 inputs (NULL ends) into @out with the options @o; returns what merge_run() does.
 */
static int merge(struct merge_options o, const char *out, char *a, char *b, char *c)
{
	char *inputs[] = {a, b, c, NULL};
	struct merge_result result;

	o.output = in_dir(out);
	o.inputs = inputs;
	o.quiet = true;
	while (inputs[o.nr_inputs])
		o.nr_inputs++;
	last_err = (struct vmprof_err){0};
	return merge_run(&o, &result, &last_err);
}

static const struct merge_options defaults, prefer_host = {.prefer_host = true},
					    no_align = {.no_align = true};

static char *labelled(const char *label, const char *path)
{
	return keep(xasprintf("%s=%s", label, path));
}

static const struct seen *merged(const char *out)
{
	return look(in_dir(out));
}

/* The host and two guests, whose pids, programs and maps are alike. */
static void test_apart(void)
{
	char *host = make_file("host", &(struct made){.first = 10 * SECOND, .step = 10, .n = 100});
	char *web = make_file("web", &(struct made){.hostname = "a",
						    .boot = BOOT + 9 * SECOND,
						    .first = SECOND,
						    .step = 10,
						    .n = 60,
						    .comm = "nginx"});
	char *db = make_file("db", &(struct made){.hostname = "b",
						  .boot = BOOT + 8 * SECOND,
						  .first = 2 * SECOND,
						  .step = 10,
						  .n = 41,
						  .comm = "postgres"});
	const struct seen *s;

	CHECK_EQ(merge(defaults, "out", host, labelled("web1", web), labelled("db1", db)), 0);
	s = merged("out");
	CHECK_EQ(s->samples, 201);
	CHECK_EQ(s->n, 3);
	CHECK_EQ(s->events, 1);
	CHECK(s->aligned);
	CHECK_EQ(samples_of(s, "host"), 100);
	CHECK_EQ(samples_of(s, "web1"), 60);
	CHECK_EQ(samples_of(s, "db1"), 41);
	CHECK_STR(vm_of(s, "host")->comm, "prog");
	CHECK_STR(vm_of(s, "web1")->comm, "web1:nginx");
	CHECK_STR(vm_of(s, "db1")->comm, "db1:postgres");
	CHECK(vm_of(s, "web1")->pid != vm_of(s, "db1")->pid);
	CHECK(vm_of(s, "web1")->pid > 4194304);
	/* the guests' clocks began 9 and 8 seconds after the host's */
	CHECK_EQ(vm_of(s, "host")->first, 10 * SECOND);
	CHECK_EQ(vm_of(s, "web1")->first, 10 * SECOND);
	CHECK_EQ(vm_of(s, "db1")->first, 10 * SECOND);
	/* 40, the last of db's, is in user space; 59 of web's in the kernel */
	CHECK_STR(vm_of(s, "db1")->dso, "/bin/prog");
	CHECK_STR(vm_of(s, "web1")->dso, "/boot/[web1.kernel]");
}

/* One VM in two files; and one that a recorder on the host has named. */
static void test_one(void)
{
	char *one = make_file("one", &(struct made){.first = SECOND, .step = 10, .n = 10});
	char *two = make_file("two", &(struct made){.first = 3 * SECOND, .step = 10, .n = 20});
	char *rec = make_file("rec", &(struct made){.machine = 4242,
						    .name = "web1",
						    .comm = "web1:nginx",
						    .first = 5 * SECOND,
						    .step = 10,
						    .n = 30});
	const struct seen *s;

	CHECK_EQ(merge(defaults, "out", labelled("web1", one), labelled("web1", two), rec), 0);
	s = merged("out");
	CHECK_EQ(s->n, 2);
	CHECK_EQ(samples_of(s, "web1"), 60);
	CHECK_EQ(vm_of(s, "web1")->pid, 4242);
	CHECK_STR(vm_of(s, "web1")->comm, "web1:nginx");
	CHECK(strstr(s->stats[1], "\"samples\":60"));

	/* a label renames the one VM of a file from the host */
	CHECK_EQ(merge(defaults, "out", labelled("other", rec), NULL, NULL), 0);
	s = merged("out");
	CHECK_EQ(samples_of(s, "other"), 30);
	CHECK_STR(vm_of(s, "other")->comm, "other:nginx");
}

/* Names decide, but not against UUIDs; two hosts are not one. */
static void test_identity(void)
{
	struct made f = {.machine = 10, .name = "vm", .uuid = "u1", .first = 1, .step = 1, .n = 3};
	char *a = make_file("a", &f), *b, *c;
	const struct seen *s;

	f.uuid = "u2";
	f.machine = 11;
	b = make_file("b", &f);
	CHECK(merge(defaults, "no", a, b, NULL) < 0);
	CHECK(strstr(last_err.msg, "two VMs are called vm"));
	CHECK(access(in_dir("no"), F_OK));

	/* renamed between two recordings, with the same process number as another one */
	f.uuid = "u1";
	f.name = "new";
	c = make_file("c", &f);
	CHECK_EQ(merge(defaults, "out", a, c, NULL), 0);
	s = merged("out");
	CHECK_EQ(s->n, 2);
	CHECK_EQ(samples_of(s, "vm"), 6);

	f = (struct made){.machine = 10, .name = "vm2", .first = 1, .step = 1, .n = 3};
	b = make_file("b", &f);
	CHECK_EQ(merge(defaults, "out", a, b, NULL), 0);
	s = merged("out");
	CHECK_EQ(s->n, 3);
	CHECK(vm_of(s, "vm")->pid != vm_of(s, "vm2")->pid);

	b = make_file("b", &(struct made){.hostname = "host2", .first = 1, .step = 1, .n = 3});
	CHECK(merge(defaults, "no", a, b, NULL) < 0);
	CHECK(strstr(last_err.msg, "two hosts (host1 and host2)"));
	CHECK_EQ(merge(defaults, "out", a, labelled("x", b), NULL), 0);
}

/* Which clocks can be brought to one, and which not. */
static void test_clocks(void)
{
	struct made f = {.first = 10 * SECOND, .step = 1, .n = 2};
	char *host = make_file("host", &f), *in;
	const struct merge_named by_label = {(char *)"web1", 7 * SECOND},
				 negative = {(char *)"web1", -20 * (int64_t)SECOND},
				 unknown = {(char *)"web2", 1};
	struct merge_options o = defaults;
	const struct seen *s;

	/* the same clock of the same boot; the time of day was set by 0.4 s meanwhile */
	f.boot = BOOT + SECOND * 4 / 10;
	in = make_file("in", &f);
	CHECK_EQ(merge(defaults, "out", host, in, NULL), 0);
	CHECK_EQ(vm_of(merged("out"), "host")->last, 10 * SECOND + 1);
	/* a guest's is never the host's, however near */
	CHECK_EQ(merge(defaults, "out", host, labelled("web1", in), NULL), 0);
	CHECK_EQ(vm_of(merged("out"), "web1")->first, 10 * SECOND + SECOND * 4 / 10);
	/* another boot of the host */
	f.boot = BOOT + 100 * SECOND;
	in = make_file("in", &f);
	CHECK_EQ(merge(defaults, "out", host, in, NULL), 0);
	CHECK_EQ(vm_of(merged("out"), "host")->last, 110 * SECOND + 1);
	/* CLOCK_REALTIME needs no more to be known */
	f = (struct made){.realtime = true, .first = BOOT + 12 * SECOND, .step = 1, .n = 2};
	in = make_file("in", &f);
	CHECK_EQ(merge(defaults, "out", host, labelled("web1", in), NULL), 0);
	CHECK_EQ(vm_of(merged("out"), "web1")->first, 12 * SECOND);

	/* perf's default clock */
	f = (struct made){.no_clock = true, .first = 10 * SECOND, .step = 1, .n = 2};
	in = make_file("in", &f);
	CHECK(merge(defaults, "no", host, labelled("web1", in), NULL) < 0);
	CHECK(strstr(last_err.msg, "--clock-offset web1=NS"));
	CHECK(strstr(last_err.msg, "--no-align"));
	CHECK(merge(defaults, "no", host, in, NULL) < 0);
	CHECK(access(in_dir("no"), F_OK));
	/* CLOCK_MONOTONIC of before perf 5.9 */
	f = (struct made){.boot = 1, .first = 10 * SECOND, .step = 1, .n = 2};
	CHECK(merge(defaults, "no", host, make_file("old", &f), NULL) < 0);

	o.offsets = &by_label;
	o.nr_offsets = 1;
	CHECK_EQ(merge(o, "out", host, labelled("web1", in), NULL), 0);
	CHECK_EQ(vm_of(merged("out"), "web1")->first, 17 * SECOND);
	o.offsets = &negative;
	CHECK(merge(o, "no", host, labelled("web1", in), NULL) < 0);
	CHECK(strstr(last_err.msg, "is the sign right"));
	o.offsets = &unknown;
	CHECK(merge(o, "no", host, labelled("web1", in), NULL) < 0);
	CHECK(strstr(last_err.msg, "no input has the label or path web2"));

	CHECK_EQ(merge(no_align, "out", host, labelled("web1", in), NULL), 0);
	s = merged("out");
	CHECK(!s->aligned);
	CHECK_EQ(s->samples, 4);
	/* and once not aligned it stays so */
	CHECK(merge(defaults, "no", in_dir("out"), NULL, NULL) < 0);
	CHECK(strstr(last_err.msg, "was merged with --no-align"));
	CHECK_EQ(merge(no_align, "again", in_dir("out"), NULL, NULL), 0);
}

/* A file of the host's VM web1 in which a recorder has noted clocks: "SECOND JSON" lines. */
struct noted {
	uint64_t time;
	const char *json; /* what follows the machine */
};

static char *make_noted(const char *name, const struct noted *noted, size_t n)
{
	char *path = in_dir(name);
	static const uint64_t ids[] = {7};
	const struct perfdata_id_entry entry = {7, 0, 0, 0, 4242, 0};
	const struct perfdata_event ev = {.name = "cpu-clock", .ids = ids, .nr_ids = 1};
	const struct perfdata_writer_config cfg = {.path = path,
						   .force = true,
						   .events = &ev,
						   .nr_events = 1,
						   .ids = &entry,
						   .nr_ids = 1};
	struct perfdata_id id = {.id = 7, .time = SECOND};
	struct perfdata_writer *w;
	struct vmprof_err err;
	struct buf b = {0};

	CHECK_EQ(perfdata_writer_open(&w, &cfg, &err), 0);
	perfdata_encode_private(&b, &id, "vm", "{\"machine\":4242,\"name\":\"web1\"}");
	for (size_t i = 0; i < n; i++) {
		char json[200];

		snprintf(json, sizeof(json), "{\"machine\":4242,%s}", noted[i].json);
		id.time = noted[i].time;
		perfdata_encode_private(&b, &id, "clock", json);
	}
	CHECK_EQ(perfdata_writer_append(w, &b, &err), 0);
	CHECK_EQ(perfdata_writer_close(w, &err), 0);
	buf_free(&b);
	return path;
}

/* A guest's file with samples at these two times of its own. */
static char *own_file(uint64_t first, uint64_t last)
{
	return labelled("web1", make_file("own", &(struct made){.no_clock = true,
								.first = first,
								.step = last - first,
								.n = 2}));
}

/* What record has noted of a guest's clock is better than the time of day. */
static void test_recorded(void)
{
	static const struct noted one[] = {{6 * SECOND, "\"offset\":3000000000,\"error\":1000"}};
	/* 100 us a second fast; a worse measurement, which does not count */
	static const struct noted drifts[] = {
		{13 * SECOND, "\"offset\":3000000000,\"error\":1000"},
		{14 * SECOND, "\"offset\":3000400000,\"error\":500000"},
		{23 * SECOND, "\"offset\":3001000000,\"error\":1000"},
		{23 * SECOND, "\"clockid\":1,\"offset\":7,\"error\":1000"},
		{33 * SECOND, "\"offset\":3002000000,\"error\":2000"},
	};
	char *rec = make_file("rec", &(struct made){.machine = 4242,
						    .name = "web1\"},{\"x\":\"",
						    .first = SECOND,
						    .step = 1,
						    .n = 1});

	/* hostile JSON in a name is no JSON, and no harm */
	CHECK_EQ(merge(defaults, "out", rec, NULL, NULL), 0);

	/* one measurement: further away the rate may be another one by 1000 ppm */
	rec = make_noted("noted", one, 1);
	CHECK_EQ(merge(defaults, "out", rec, own_file(3 * SECOND, 4 * SECOND), NULL), 0);
	CHECK_EQ(vm_of(merged("out"), "web1")->first, 6 * SECOND);
	CHECK(strstr(merged("out")->inputs, "\"error\":1001000"));
	CHECK(merge(defaults, "no", rec, own_file(3 * SECOND, 14 * SECOND), NULL) < 0);
	CHECK(strstr(last_err.msg, "may be 11 ms off"));
	/* it is of that VM and that clock only */
	CHECK(merge(defaults, "no", rec,
		    labelled("web2", make_file("in", &(struct made){.no_clock = true,
								    .first = SECOND,
								    .step = 1,
								    .n = 2})),
		    NULL) < 0);
	CHECK(strstr(last_err.msg, "nothing in the files says"));

	rec = make_noted("noted", drifts, 5);
	CHECK_EQ(merge(defaults, "out", rec, own_file(15 * SECOND, 29999 * SECOND / 1000), NULL),
		 0);
	CHECK_EQ(vm_of(merged("out"), "web1")->first, 18 * SECOND + 500050);
	CHECK_EQ(vm_of(merged("out"), "web1")->last, 32 * SECOND + 999 * SECOND / 1000 + 2000100);
	CHECK(strstr(merged("out")->inputs, "\"error\":2000"));
	/* what was merged can be merged again */
	CHECK_EQ(merge(defaults, "again", in_dir("out"), own_file(15 * SECOND, 16 * SECOND), NULL),
		 0);
}

/* A guest's clock that stood still, or began anew: between which samples is not known. */
static void test_pieces(void)
{
	/* the guest's time: 10 to 12, 13 to 15 (it was paused for 5 s), 1 to 2 (another boot) */
	static const struct noted noted[] = {
		{20 * SECOND, "\"offset\":10000000000,\"error\":1000"},
		{22 * SECOND, "\"offset\":10000000000,\"error\":1000"},
		{28 * SECOND, "\"offset\":15000000000,\"error\":1000"},
		{30 * SECOND, "\"offset\":15000000000,\"error\":1000"},
		{40 * SECOND, "\"offset\":39000000000,\"error\":1000"},
		{41 * SECOND, "\"offset\":39000000000,\"error\":1000"},
	};
	static const struct {
		uint64_t first, last, merged; /* 0: refused */
	} files[] = {
		{10 * SECOND, 12 * SECOND, 20 * SECOND}, {14 * SECOND, 15 * SECOND, 29 * SECOND},
		{11 * SECOND, 13 * SECOND, 0},		 {14 * SECOND, 16 * SECOND, 0},
		{SECOND, 2 * SECOND, 40 * SECOND},	 {12 * SECOND + 1, 13 * SECOND - 1, 0},
	};
	char *rec = make_noted("noted", noted, 6);

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		char *own = own_file(files[i].first, files[i].last);

		if (files[i].merged) {
			CHECK_EQ(merge(defaults, "out", rec, own, NULL), 0);
			CHECK_EQ(vm_of(merged("out"), "web1")->first, files[i].merged);
			continue;
		}
		CHECK(merge(defaults, "no", rec, own, NULL) < 0);
		CHECK(strstr(last_err.msg, "stood still, was set or began anew"));
	}
}

/*
 * The host has guest samples from 10.0 to 10.99 s, the guest its own from 10.5 to 11.49 s, 100
 * each. 50 of each are of the same time.
 */
static void test_duplicates(void)
{
	const uint64_t step = SECOND / 100;
	struct made f = {
		.machine = 4242, .name = "web1", .first = 10 * SECOND, .step = step, .n = 100};
	char *host = make_file("host", &f);
	char *own = labelled("web1", make_file("own", &(struct made){
							      .hostname = "web",
							      .boot = BOOT + 9 * SECOND,
							      .first = SECOND + SECOND / 2,
							      .step = step,
							      .n = 100,
						      }));
	const struct seen *s;

	CHECK_EQ(merge(defaults, "out", host, own, NULL), 0);
	s = merged("out");
	CHECK_EQ(samples_of(s, "web1"), 150);
	CHECK_EQ(s->n, 2);
	CHECK(strstr(s->stats[1], "\"samples\":150"));
	CHECK(strstr(s->stats[1], "\"duplicates\":50"));
	CHECK_EQ(vm_of(s, "web1")->first, 10 * SECOND);
	CHECK_EQ(vm_of(s, "web1")->last, 11 * SECOND + 49 * step);
	CHECK_EQ(merge(prefer_host, "out", host, own, NULL), 0);
	CHECK_EQ(samples_of(merged("out"), "web1"), 150);

	/* once more with what was merged: nothing new */
	CHECK_EQ(merge(defaults, "out", host, own, NULL), 0);
	CHECK_EQ(merge(defaults, "again", in_dir("out"), own, NULL), 0);
	s = merged("again");
	CHECK_EQ(samples_of(s, "web1"), 150);

	/* nobody can tell what is of the same time */
	CHECK_EQ(merge(no_align, "out", host, own, NULL), 0);
	CHECK_EQ(samples_of(merged("out"), "web1"), 100);

	/* another event is another matter */
	f.config = PERF_COUNT_SW_PAGE_FAULTS;
	host = make_file("host", &f);
	CHECK_EQ(merge(defaults, "out", host, own, NULL), 0);
	s = merged("out");
	CHECK_EQ(s->events, 2);
	CHECK_EQ(samples_of(s, "web1"), 200);
}

/* perf kvm knows a VM by its process, and no process of the guest. */
static void test_kvm(void)
{
	const struct merge_named is_web1 = {(char *)"web1", 4242}, wrong = {(char *)"web1", 4243};
	struct made f = {.machine = 4242, .kvm = true, .first = SECOND, .step = 10, .n = 40};
	char *kvm = make_file("kvm", &f);
	char *own = make_file(
		"own", &(struct made){.hostname = "w", .first = SECOND, .step = 10, .n = 20});
	char *rec = make_file(
		"rec",
		&(struct made){
			.machine = 4242, .name = "web1", .first = 9 * SECOND, .step = 10, .n = 5});
	struct merge_options o = defaults;
	const struct seen *s;

	CHECK_EQ(merge(defaults, "out", kvm, NULL, NULL), 0);
	s = merged("out");
	CHECK_EQ(samples_of(s, "guest pid 4242"), 40);
	CHECK_EQ(vm_of(s, "guest pid 4242")->nobody, 40);
	CHECK_EQ(merge(defaults, "again", in_dir("out"), NULL, NULL), 0);
	CHECK_EQ(samples_of(merged("again"), "guest pid 4242"), 40);

	/* with --machine its samples are the VM's, and yield to its own */
	CHECK_EQ(merge(defaults, "out", kvm, labelled("web1", own), NULL), 0);
	CHECK_EQ(merged("out")->samples, 60);
	o.machines = &is_web1;
	o.nr_machines = 1;
	CHECK_EQ(merge(o, "out", kvm, labelled("web1", own), NULL), 0);
	s = merged("out");
	CHECK_EQ(s->n, 2);
	CHECK_EQ(samples_of(s, "web1"), 40);
	CHECK_EQ(vm_of(s, "web1")->nobody, 20);
	o.machines = &wrong;
	CHECK(merge(o, "no", kvm, labelled("web1", own), NULL) < 0);
	CHECK(strstr(last_err.msg, "process 4243"));
	/* so they are where a recorder has said which VM that process is */
	CHECK_EQ(merge(defaults, "out", kvm, rec, NULL), 0);
	CHECK_EQ(samples_of(merged("out"), "web1"), 45);
}

/* What was counted adds up; what times may be wrong by does not. */
static void test_numbers(void)
{
	struct json_object *to = merge_json_parse("{\"samples\":5,\"clock_error\":136}");
	struct json_object *from =
		merge_json_parse("{\"samples\":7,\"clock_error\":90,\"lost\":1}");
	int64_t v;

	merge_json_add(to, from);
	CHECK(merge_json_int(to, "samples", &v) && v == 12);
	CHECK(merge_json_int(to, "lost", &v) && v == 1);
	CHECK(merge_json_int(to, "clock_error", &v) && v == 136);
	merge_json_add(from, to);
	CHECK(merge_json_int(from, "clock_error", &v) && v == 136);
	json_object_put(to);
	json_object_put(from);
}

/* Chains where some have none, what was lost, and a file of the other kind of order. */
static void test_contents(void)
{
	char *chains = make_file("chains", &(struct made){.first = 10, .step = 2, .n = 5});
	char *flat = make_file("flat", &(struct made){.hostname = "web",
						      .flat = true,
						      .first = 11,
						      .step = 2,
						      .n = 5,
						      .lost = 17});
	const struct seen *s;
	struct perfdata_reader *r;
	struct vmprof_err err;

	CHECK_EQ(merge(defaults, "out", chains, labelled("web1", flat), NULL), 0);
	s = merged("out");
	CHECK_EQ(s->samples, 10);
	CHECK_EQ(s->lost, 17);
	CHECK(strstr(s->stats[1], "\"lost\":17"));
	CHECK_EQ(merge(defaults, "out", labelled("web1", flat), NULL, NULL), 0);
	CHECK_EQ(merged("out")->samples, 5);
	CHECK_EQ(perfdata_reader_open(&r, in_dir("out"), &err), 0);
	CHECK(!(perfdata_reader_evsel(r, 0)->attr.sample_type & PERF_SAMPLE_CALLCHAIN));
	CHECK(!perfdata_reader_feature_str(r, PERFDATA_FEAT_HOSTNAME));
	perfdata_reader_close(r);
}

/* Names that want to be something else, and files that are the output. */
static void test_hostile(void)
{
	char *in = make_file("in", &(struct made){.first = 1, .step = 1, .n = 4});
	char *old = make_file("x.old", &(struct made){.first = 1, .step = 1, .n = 4});
	char *x = make_file("x", &(struct made){.first = 1, .step = 1, .n = 4});
	const struct seen *s;

	CHECK_EQ(merge(defaults, "out", labelled("\033[31m\"}..:", in), NULL, NULL), 0);
	s = merged("out");
	CHECK_EQ(samples_of(s, "\\x1b[31m\"}..:"), 4);
	CHECK(merge(defaults, "out", labelled("host", in), NULL, NULL) < 0);
	CHECK(merge(defaults, "in", in, NULL, NULL) < 0);
	CHECK(strstr(last_err.msg, "is an input and the output"));
	CHECK_EQ(symlink(in, in_dir("link")), 0);
	CHECK(merge(defaults, "link", in, NULL, NULL) < 0);
	CHECK(merge(defaults, "x", old, NULL, NULL) < 0);
	CHECK(strstr(last_err.msg, "would be written over"));
	CHECK(merge(defaults, "out", x, labelled("a", x), NULL) < 0);
	CHECK(strstr(last_err.msg, "the same file"));
	CHECK(merge(defaults, "out", in_dir("none"), NULL, NULL) < 0);
}

int main(void)
{
	if (!mkdtemp(merge_dir))
		return 1;
	test_apart();
	test_one();
	test_identity();
	test_clocks();
	test_recorded();
	test_pieces();
	test_duplicates();
	test_kvm();
	test_numbers();
	test_contents();
	test_hostile();
	if (!test_failures) {
		char *rm = keep(xasprintf("rm -rf %s", merge_dir));

		if (system(rm))
			return 1;
	}
	free_kept();
	return test_done();
}
