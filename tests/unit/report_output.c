// SPDX-License-Identifier: GPL-2.0-only
/*
 * Folded lines, JSON and the flame graph: their shape, and that names cannot break out of it,
 * whatever a guest calls its programs.
 */
#include <json-c/json.h>

#include "perfdata/reader.h"
#include "report_make.h"

#define EVIL "x\";<script>alert(1)</script>]]>\x1b[31m\n&'"

static void fill(struct world *w)
{
	struct thread *guest, *host;

	world_init(w, 0);
	guest = world_thread(w, &w->vm, "nginx", 10, 10);
	host = world_thread(w, &w->host, EVIL, 20, 20);
	world_sample(w, guest, 3, 10, "main;work;do_syscall@[k];read@[k]");
	world_sample(w, guest, 1, 10, "main;work");
	world_sample(w, guest, 2, 10, "main;0x1234@lib.so;0x2234@lib.so");
	world_sample(w, host, 1, 10, "main;a<b>\x7f::c()");
}

static void test_folded(void)
{
	struct report_options opt = world_options();
	struct world w;
	char *text;

	fill(&w);
	text = world_print(&w, &opt, report_print_folded);
	CHECK_STR(
		text,
		"host;x\"\\x3b<script>alert(1)</script>]]>\\x1b[31m\\x0a&';main;a<b>\\x7f::c() 1\n"
		"web1;nginx;main;[lib.so];[lib.so] 2\n"
		"web1;nginx;main;work 1\n"
		"web1;nginx;main;work;do_syscall_[k];read_[k] 3\n");
	free(text);
	opt.filter.vms = "web1";
	opt.filter.symbols = "read";
	text = world_print(&w, &opt, report_print_folded);
	CHECK_STR(text, "web1;nginx;main;work;do_syscall_[k];read_[k] 3\n");
	free(text);
	world_free(&w);
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void test_flamegraph(void)
{
	struct report_options opt = world_options();
	struct world w;
	char *text, *again;

	fill(&w);
	opt.filter.vms = NULL;
	w.p.has_guests = false; /* no session, whose VMs the subtitle would list */
	text = world_print(&w, &opt, report_print_flamegraph);
	again = world_print(&w, &opt, report_print_flamegraph);
	CHECK_STR(text, again);
	CHECK_EQ(count(text, "<script>"), 1);
	CHECK_EQ(count(text, "</script>"), 1);
	CHECK_EQ(count(text, "]]>"), 2);
	CHECK(!strchr(text, '\x1b') && !strchr(text, '\x7f'));
	CHECK_EQ(count(text, "alert(1)"),
		 count(text, "&lt;script&gt;alert(1)&lt;/script&gt;]]&gt;"));
	/* two addresses in one library that nothing is known of are one frame */
	CHECK_EQ(count(text, "<title>[lib.so]\n"), 1);
	CHECK_EQ(count(text, "28.57%, 2 samples, event count 20"), 1);
	CHECK_EQ(count(text, "14.29%, 1 sample, event count 10"), 3);
	/* root, 2 commands, main twice, work, 2 kernel, lib, a<b> */
	CHECK_EQ(count(text, "<g class=\"f\""), 10);
	free(text);
	free(again);
	world_free(&w);
}

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;

	CHECK(json_object_object_get_ex(o, key, &v));
	return v;
}

static void test_json(void)
{
	struct report_options opt = world_options();
	struct json_object *root, *o, *row;
	struct session *s = session_new(NULL);
	struct world w;
	char *text;

	world_init(&w, 0);
	world_sample(&w, world_thread(&w, &w.host, "other", 9, 9), 6, 10, "main;f");
	world_sample(&w, world_thread(&w, &w.host, EVIL, 20, 20), 1, 10, "main;a<b>\x7f::c()");
	w.p.session = s; /* its machines: the host alone */
	opt.sort = "comm,sym";
	opt.filter.comms = EVIL;
	text = world_print(&w, &opt, report_print_json);
	root = o = json_tokener_parse(text);
	CHECK(o != NULL);
	if (o) {
		CHECK_EQ(json_object_get_int(member(o, "vmprof_report")), 1);
		CHECK(json_object_get_boolean(member(o, "complete")));
		o = json_object_array_get_idx(member(o, "events"), 0);
		CHECK_STR(json_object_get_string(member(o, "name")), "cpu-clock");
		CHECK_EQ(json_object_get_int(member(o, "samples")), 7);
		CHECK_EQ(json_object_array_length(member(o, "rows")), 2);
		row = json_object_array_get_idx(member(o, "rows"), 0);
		CHECK_STR(json_object_get_string(member(row, "comm")),
			  "x\";<script>alert(1)</script>]]>\\x1b[31m\\x0a&'");
		CHECK_STR(json_object_get_string(member(row, "symbol")), "a<b>\\x7f::c()");
		CHECK_STR(json_object_get_string(member(row, "mark")), ".");
		CHECK(json_object_get_double(member(row, "overhead")) > 14.28);
		CHECK_EQ(json_object_get_int(member(row, "children_event_count")), 10);
	}
	json_object_put(root);
	free(text);
	session_free(s);
	world_free(&w);
}

static void private_record(struct session *s, const char *word, const char *json)
{
	struct perfdata_record rec = {.is_private = true, .private = {word, json}};

	CHECK_EQ(session_process(s, &rec), 0);
}

/* What a VM's recorder has counted is in the summary, in JSON and in --stats. */
static void test_vm_counters(void)
{
	struct report_options opt = world_options();
	struct perfdata_reader_stats st = {.total = 4, .records[PERF_RECORD_SAMPLE] = 4};
	struct session *s = session_new(NULL);
	struct thread *t, *nobody;
	struct world w;
	char *text, *end;
	size_t size;
	FILE *f;

	world_init(&w, 0);
	private_record(s, "vm",
		       "{\"machine\":77,\"name\":\"web\\u001b[1m\",\"uuid\":\"u-1\",\"vcpus\":3,"
		       "\"kernel\":\"6.1.0-54\"}");
	private_record(s, "stats",
		       "{\"machine\":77,\"samples\":40,\"lost\":5,\"merged\":6,\"torn\":7,"
		       "\"user_end\":{\"outermost\":30},\"ended\":\"the VM\\nwent away\"}");
	t = world_thread(&w, session_machine_nth(s, 1), "nginx", 10, 10);
	nobody = world_thread(&w, session_machine_nth(s, 1), ":-1", -1, -1);
	world_sample(&w, t, 3, 10, "main;read@[k]");
	world_sample(&w, nobody, 1, 10, "0x1000@[k]");
	w.p.session = s;
	w.p.discarded_chains = 2;
	opt.quiet = false;
	opt.sort = "vm";
	opt.callgraph.mode = CALLGRAPH_NONE;
	text = world_print(&w, &opt, report_print);
	end = strstr(text, "# web\\x1b[1m  100.00%           4      3  6.1.0-54  100.00%    0.00%"
			   "         5             1             1\n");
	CHECK(end != NULL);
	CHECK(strstr(text, "# Total Lost Samples: 0\n#\n# Unusable call chains: 2\n#\n") != NULL);
	free(text);
	text = world_print(&w, &opt, report_print_json);
	CHECK(strstr(text, "\"lost\": 5, \"merged\": 6, \"torn\": 7}") != NULL);
	CHECK(strstr(text, "\"unattributed\": 1, \"unsymbolized\": 1, \"vcpus\": 3") != NULL);
	free(text);
	f = open_memstream(&text, &size);
	report_print_stats(&w.p, &st, f);
	fclose(f);
	CHECK_STR(text, "\nAggregated stats:\n"
			"           TOTAL events:          4\n"
			"          SAMPLE events:          4  (100.0%)\n"
			"cpu-clock stats:\n"
			"          SAMPLE events:          4\n"
			"VM web\\x1b[1m stats:\n"
			"            in this file:          4\n"
			"            unattributed:          1\n"
			"            unsymbolized:          1\n"
			"                 samples:         40\n"
			"                    lost:          5\n"
			"                  merged:          6\n"
			"                    torn:          7\n"
			"      user_end outermost:         30\n"
			"                   ended: the VM\\x0awent away\n");
	free(text);
	w.p.session = NULL;
	session_free(s);
	world_free(&w);
}

int main(void)
{
	test_folded();
	test_flamegraph();
	test_json();
	test_vm_counters();
	return test_done();
}
