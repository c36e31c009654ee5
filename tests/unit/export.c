// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exports of a profile with two VMs that have the same pids, and of names that would break out of
 * JSON: what is in them, that it is well-formed, and that nothing is of what a filter leaves out.
 * tests/cli/export.bats has the same of files, and the programs that read them.
 */
#include <json-c/json.h>

#include "export/export.h"
#include "export/protobuf.h"
#include "report_make.h"
#include "util/xalloc.h"

#define EVIL	  "x\";\\</script>\x1b[31m\n\xff&'"
#define EVIL_TEXT "x\";\\</script>\\x1b[31m\\x0a\\xff&'"

static struct machine db = {.index = 2, .pid = 78, .name = EVIL, .uuid = ""};

static void sample(struct export *x, uint64_t time, uint32_t stack)
{
	struct stack s;

	profile_stack(x->profile, stack, &s);
	export_sample(x, &(struct perfdata_record){.time = time, .period = s.period / s.samples},
		      stack);
}

/* What @f writes of web1, of the VM with the evil name, and of the host; to be freed. */
static char *write_world(const struct export_format *f, const char *vms, size_t *size)
{
	struct export_event event = {.name = "cpu-clock", .wanted = true, .is_time = true};
	const struct report_filter filter = {.vms = vms};
	struct world w;
	struct export x = {.profile = &w.p,
			   .events = &event,
			   .nr_events = 1,
			   .nr_wanted_events = 1,
			   .title = "test.data",
			   .keep_samples = true};
	struct stack s;
	char *text = NULL;
	FILE *out = open_memstream(&text, size);

	world_init(&w, PROFILE_BY_THREAD);
	world_sample(&w, world_thread(&w, &w.vm, "nginx", 10, 11), 2, 10, "main;read@[k]");
	world_sample(&w, world_thread(&w, &db, EVIL, 10, 11), 1, 10, "main;" EVIL "@" EVIL);
	world_sample(&w, world_thread(&w, &w.host, "qemu", 20, 20), 1, 5, "0x1234@lib.so");
	x.wanted = xcalloc(profile_nr_stacks(&w.p), sizeof(*x.wanted));
	for (uint32_t i = 0; i < profile_nr_stacks(&w.p); i++) {
		profile_stack(&w.p, i, &s);
		x.wanted[i] = filter_stack(&filter, &w.p, &s);
		if (x.wanted[i])
			sample(&x, 100 + i, i);
		if (x.wanted[i] && s.samples > 1)
			sample(&x, 1000, i);
	}
	x.first_time = 100;
	x.last_time = 1000;
	f->write(&x, out);
	fclose(out);
	free(x.wanted);
	free(x.samples);
	world_free(&w);
	return text;
}

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;

	CHECK(json_object_object_get_ex(o, key, &v));
	return v;
}

static struct json_object *item(struct json_object *array, size_t i)
{
	return json_object_array_get_idx(array, i);
}

static const char *string(struct json_object *o, const char *key)
{
	return json_object_get_string(member(o, key));
}

static struct json_object *parse(const char *text, size_t size)
{
	struct json_tokener *tok = json_tokener_new();
	struct json_object *o;

	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	o = json_tokener_parse_ex(tok, text, (int)size + 1);
	CHECK_EQ(json_tokener_get_error(tok), json_tokener_success);
	json_tokener_free(tok);
	return o;
}

static void test_speedscope(void)
{
	struct json_object *root, *profiles;
	size_t size;
	char *text = write_world(&export_speedscope, NULL, &size);

	root = parse(text, size);
	profiles = member(root, "profiles");
	CHECK_EQ(json_object_array_length(profiles), 3);
	CHECK_STR(string(item(profiles, 0), "name"), "host, cpu-clock");
	CHECK_STR(string(item(profiles, 1), "name"), "web1, cpu-clock");
	CHECK_STR(string(item(profiles, 2), "name"), EVIL_TEXT ", cpu-clock");
	/* two samples of one stack, one behind the other */
	CHECK_STR(json_object_to_json_string_ext(member(item(profiles, 1), "weights"), 0), "[20]");
	CHECK_EQ(json_object_get_int64(member(root, "activeProfileIndex")), 1);
	json_object_put(root);
	free(text);
	text = write_world(&export_speedscope, "web1", &size);
	CHECK(!strstr(text, "script") && !strstr(text, "qemu"));
	CHECK(strstr(text, "\"read_[k]\"") != NULL);
	free(text);
}

static void test_firefox(void)
{
	struct json_object *root, *threads, *t, *samples;
	size_t size;
	char *text = write_world(&export_firefox, NULL, &size);

	root = parse(text, size);
	threads = member(root, "threads");
	CHECK_EQ(json_object_array_length(threads), 3);
	CHECK_STR(string(item(threads, 0), "pid"), "host");
	CHECK_STR(string(item(threads, 1), "tid"), "web1:10/11");
	CHECK_STR(string(item(threads, 1), "pid"), "77");
	t = item(threads, 2);
	CHECK_STR(string(t, "tid"), EVIL_TEXT ":10/11");
	CHECK_STR(string(t, "name"), EVIL_TEXT);
	CHECK_STR(string(t, "processName"), EVIL_TEXT);
	samples = member(item(threads, 1), "samples");
	CHECK_STR(json_object_to_json_string_ext(member(samples, "time"), 0),
		  "[0.000000,0.000900]");
	CHECK_STR(json_object_to_json_string_ext(member(samples, "weight"), 0),
		  "[0.000010,0.000010]");
	CHECK_STR(json_object_to_json_string_ext(member(samples, "threadCPUDelta"), 0), "[10,10]");
	json_object_put(root);
	free(text);
	text = write_world(&export_firefox, "web1", &size);
	CHECK(!strstr(text, "script") && !strstr(text, "qemu") && !strstr(text, "lib.so"));
	free(text);
}

static bool holds(const char *data, size_t size, const char *what)
{
	return memmem(data, size, what, strlen(what)) != NULL;
}

static void test_pprof(void)
{
	size_t size;
	char *data = write_world(&export_pprof, NULL, &size);

	CHECK(holds(data, size, "web1") && holds(data, size, "read_[k]"));
	CHECK(holds(data, size, EVIL_TEXT));
	CHECK(!memchr(data, '\x1b', size) || !holds(data, size, "\x1b[31m"));
	free(data);
	data = write_world(&export_pprof, "web1", &size);
	CHECK(!holds(data, size, "script") && !holds(data, size, "qemu"));
	free(data);
}

static void test_protobuf(void)
{
	static const uint8_t expected[] = {0x08, 0x96, 0x01, 0x12, 0x02, 'h',  'i',
					   0x1a, 0x0b, 0x20, 0xff, 0xff, 0xff, 0xff,
					   0xff, 0xff, 0xff, 0xff, 0xff, 0x01};
	struct buf b = {0}, part = {0};

	pb_number(&b, 1, 150);
	pb_number(&b, 5, 0);
	pb_bytes(&b, 2, "hi", 2);
	pb_number(&part, 4, UINT64_MAX);
	pb_message(&b, 3, &part);
	CHECK_EQ(b.len, sizeof(expected));
	CHECK(!memcmp(b.data, expected, sizeof(expected)));
	buf_free(&b);
	buf_free(&part);
}

int main(void)
{
	test_protobuf();
	test_pprof();
	test_speedscope();
	test_firefox();
	return test_done();
}
