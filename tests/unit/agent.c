// SPDX-License-Identifier: GPL-2.0-only
/* The agent that records domains of Xen at their request: what it takes, what it does and what it
 * says, for domains that are friendly and for one that is not. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/records.h"
#include "agent/request.h"
#include "events/event.h"
#include "tests/unit/test.h"
#include "util/xalloc.h"

#if HAVE_XEN
#include "tests/unit/fakexenstore.h"
#endif

/* ---------- requests ---------- */

static int parse(struct agent_request *r, const char *text, struct vmprof_err *err)
{
	*err = (struct vmprof_err){0};
	return agent_request_parse(r, text, strlen(text), err);
}

static void test_requests(void)
{
	struct agent_request r;
	struct vmprof_err err;

	CHECK_EQ(parse(&r, "event=cpu-clock", &err), 0);
	CHECK_EQ(r.n, 1);
	CHECK_STR(r.event[0], "cpu-clock/period=1000000/");
	CHECK_EQ(parse(&r, "\n event=cpu-clock  period=100000 umask=0 kernel=0 user=1\n", &err), 0);
	CHECK_STR(r.event[0], "cpu-clock/period=100000/u");
	CHECK_EQ(parse(&r, "user=0 event=task-clock;event=cpu-clock period=0x989680", &err), 0);
	CHECK_EQ(r.n, 2);
	CHECK_STR(r.event[0], "task-clock/period=1000000/k");
	CHECK_STR(r.event[1], "cpu-clock/period=10000000/");
}

/* What goes to record's -e must be what record takes. */
static void test_specs_are_events(void)
{
	struct event_list l = {0};
	struct agent_request r;
	struct vmprof_err err;

	CHECK_EQ(parse(&r, "event=cpu-clock period=250000 kernel=0", &err), 0);
	CHECK_EQ(event_list_add(&l, r.event[0], &err), 0);
	CHECK_EQ(l.events[0].rate, 250000);
	CHECK(l.events[0].own_rate && !l.events[0].freq);
	CHECK(l.events[0].exclude_kernel && !l.events[0].exclude_user);
	event_list_free(&l);
}

static void test_refusals(void)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "without event="},
		{"event=cpu-clock;", "without event="},
		{"period=1000000", "without event="},
		{"start", "'start' is none of event=NAME"},
		{"event=cpu-clock vm=web2", "'vm' is none of event=NAME"},
		{"/local/domain/2/data=1", "'/local/domain/2/data' is none of"},
		{"event=cpu-clock --vm=2", "'--vm' is none of"},
		{"event=cpu-clock event=cpu-clock", "event= is there twice"},
		{"event=cpu-clock period=1000000 period=1000000", "period= is there twice"},
		{"event=cpu-clock period=99999", "from 100000 to 10000000000"},
		{"event=cpu-clock period=10000000001", "from 100000 to"},
		{"event=cpu-clock period=-1", "from 100000 to"},
		{"event=cpu-clock period= ", "from 100000 to"},
		{"event=cpu-clock period=1000000x", "from 100000 to"},
		{"event=cpu-clock period=99999999999999999999999", "from 100000 to"},
		{"event=cpu-clock user=2", "user= takes a number from 0 to 1"},
		{"event=cpu-clock user=0 kernel=0", "neither kernel nor user"},
		{"event=cpu-clock umask=1", "has no unit mask"},
		{"event=cpu-clock umask=256", "from 0 to 255"},
		{"event=", "takes a name"},
		{"event=../../../etc/passwd", "takes a name"},
		{"event=cpu-clock/period=1/", "takes a name"},
		{"event=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "takes a name"},
		{"event=no-such", "there is no event 'no-such'"},
		{"event=cycles", "it has cpu-clock and task-clock"},
		{"event=\033[2J", "takes a name"},
		{"\033[2J=1", "'\\x1b[2J' is none of"},
		{"event=cpu-clock;event=cpu-clock;event=cpu-clock;event=cpu-clock;event=cpu-clock",
		 "more than 4 events"},
	};
	struct agent_request r;
	struct vmprof_err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CHECK(parse(&r, bad[i].text, &err) < 0);
		if (!strstr(err.msg, bad[i].says))
			CHECK_STR(err.msg, bad[i].says);
	}
	CHECK_EQ(agent_request_parse(&r, "event=cpu-clock\0 ", 17, &err), -EINVAL);
	CHECK(strstr(err.msg, "zero bytes"));
}

static void test_sizes(void)
{
	char text[AGENT_REQUEST_MAX + 1];
	struct agent_request r;
	struct vmprof_err err;

	memset(text, ' ', sizeof(text));
	memcpy(text, "event=cpu-clock", 15);
	CHECK_EQ(agent_request_parse(&r, text, AGENT_REQUEST_MAX, &err), 0);
	CHECK_EQ(agent_request_parse(&r, text, AGENT_REQUEST_MAX + 1, &err), -E2BIG);
	memset(text, ';', sizeof(text));
	CHECK(agent_request_parse(&r, text, AGENT_REQUEST_MAX, &err) < 0);
}

#if HAVE_XEN
/* ---------- a host ---------- */

#define MS 1000000ull

static struct {
	uint32_t domid[32];
	unsigned n;
	int start_error;
	unsigned starts, stops, complaints;
	uint32_t started_domid;
	struct agent_request started;
	pid_t last_pid, stopped;
} host;

static int host_domains(void *ctx, void (*add)(void *arg, uint32_t domid), void *arg,
			struct vmprof_err *err)
{
	for (unsigned i = 0; i < host.n; i++)
		add(arg, host.domid[i]);
	return 0;
}

static int host_start(void *ctx, uint32_t domid, const struct agent_request *request, pid_t *pid,
		      struct vmprof_err *err)
{
	if (host.start_error)
		return err_set(err, host.start_error, "the secret of dom0");
	host.starts++;
	host.started_domid = domid;
	host.started = *request;
	*pid = host.last_pid = 1000 + (pid_t)host.starts;
	return 0;
}

static void host_stop(void *ctx, pid_t pid)
{
	host.stops++;
	host.stopped = pid;
}

static void host_say(void *ctx, uint32_t domid, const char *state)
{
}

static void host_complain(void *ctx, uint32_t domid, const char *sentence)
{
	host.complaints++;
}

static const struct agent_host fake_host = {
	NULL, host_domains, host_start, host_stop, host_say, host_complain,
};

static uint64_t now;
static struct agent agent;

static void add_domain(uint32_t domid)
{
	host.domid[host.n++] = domid;
	make_domain(domid);
}

static void lose_domain(uint32_t domid)
{
	for (unsigned i = 0; i < host.n; i++)
		if (host.domid[i] == domid)
			host.domid[i--] = host.domid[--host.n];
	end_domain(domid);
}

/* Lets @ms pass, with the agent at work whenever it wants to be. */
static void pass(unsigned ms)
{
	uint64_t end = now + ms * MS, next;
	struct vmprof_err err;

	do {
		CHECK_EQ(agent_work(&agent, now, &next, &err), 0);
		if (store.first < store.end) /* its descriptor would be readable */
			next = now;
		now = next <= end ? (next > now ? next : now + 1) : end;
	} while (now < end);
}

static void begin_test(void)
{
	struct vmprof_err err;

	new_store();
	memset(&host, 0, sizeof(host));
	now = 1;
	CHECK_EQ(agent_open(&agent, &fake_xenstore, &fake_host, &err), 0);
}

static void end_test(void)
{
	agent_close(&agent);
	CHECK_EQ(store.handles, 0);
	for (unsigned i = 0; i < host.n; i++)
		CHECK_STR(state_of(host.domid[i]), "");
	new_store();
}

static void test_start_and_stop(void)
{
	begin_test();
	add_domain(1);
	add_domain(2);
	pass(300);
	CHECK_STR(state_of(1), "ready");
	CHECK_STR(state_of(2), "ready");
	pass(2000);
	guest_write(2, "event=cpu-clock user=1 kernel=0");
	pass(1); /* at once: it has asked for nothing for long */
	CHECK_STR(state_of(2), "running");
	CHECK_STR(state_of(1), "ready");
	CHECK_EQ(host.starts, 1);
	CHECK_EQ(host.started_domid, 2);
	CHECK_STR(host.started.event[0], "cpu-clock/period=1000000/u");
	pass(5000);
	CHECK_EQ(host.starts, 1);
	guest_write(2, "event=cpu-clock user=1 kernel=0"); /* the same is no change */
	pass(5000);
	CHECK_EQ(host.starts, 1);
	CHECK_EQ(host.stops, 0);
	guest_rm(2);
	pass(1);
	CHECK_EQ(host.stops, 1);
	CHECK_EQ(host.stopped, host.last_pid);
	CHECK_STR(state_of(2), "running"); /* it is not over before it is */
	agent_ended(&agent, host.last_pid, false);
	CHECK_STR(state_of(2), "ready");
	end_test();
}

static void test_changes(void)
{
	begin_test();
	add_domain(1);
	pass(2000);
	guest_write(1, "event=cpu-clock");
	pass(2000);
	guest_write(1, "event=cpu-clock period=5000000");
	pass(2000);
	CHECK_EQ(host.stops, 1);
	CHECK_EQ(host.starts, 1);
	guest_write(1, "event=cpu-clock period=7000000"); /* while the first one still ends */
	pass(2000);
	CHECK_EQ(host.stops, 1);
	agent_ended(&agent, host.last_pid, false);
	CHECK_EQ(host.starts, 2);
	CHECK_STR(host.started.event[0], "cpu-clock/period=7000000/");
	CHECK_STR(state_of(1), "running");
	guest_write(1, ""); /* taken back, as a shell's user does it */
	pass(2000);
	agent_ended(&agent, host.last_pid, false);
	CHECK_STR(state_of(1), "ready");
	guest_write(1, "event=cycles");
	pass(2000);
	CHECK(strstr(state_of(1), "refused: event 'cycles'"));
	guest_write(1, "event=cpu-clock");
	pass(2000);
	CHECK_STR(state_of(1), "running");
	agent_ended(&agent, host.last_pid, true);
	CHECK_STR(state_of(1), "ended: the record has come to its limit of time");
	pass(5000);
	CHECK_EQ(host.starts, 3); /* and is not begun again by itself */
	end_test();
}

/* A request that was there before the agent counts: what is wanted is what is written. */
static void test_agent_comes_later(void)
{
	begin_test();
	add_domain(3);
	guest_write(3, "event=cpu-clock");
	pass(10);
	CHECK_STR(state_of(3), "running");
	CHECK_EQ(agent_stop(&agent), 1);
	CHECK_EQ(host.stops, 1);
	CHECK_EQ(agent_stop(&agent), 1);
	CHECK_EQ(host.stops, 1);
	agent_ended(&agent, host.last_pid, false);
	CHECK_EQ(agent_stop(&agent), 0);
	CHECK_EQ(host.starts, 1);
	end_test();
}

static void test_domain_dies(void)
{
	pid_t old;

	begin_test();
	add_domain(4);
	pass(2000);
	guest_write(4, "event=cpu-clock");
	pass(2000);
	old = host.last_pid;
	lose_domain(4);
	pass(1000);
	CHECK_EQ(host.stops, 1);
	CHECK(!node_at("/local/domain/4")); /* nothing is made again */
	add_domain(4); /* another one with its number, before the record ended */
	guest_write(4, "event=task-clock");
	pass(3000);
	CHECK_EQ(host.starts, 1);
	agent_ended(&agent, old, true);
	pass(1000);
	CHECK_EQ(host.starts, 2);
	CHECK_STR(host.started.event[0], "task-clock/period=1000000/");
	CHECK_STR(state_of(4), "running");
	agent_ended(&agent, old, true); /* of no domain any more */
	CHECK_STR(state_of(4), "running");
	/* It dies between Xen's list and the answer. */
	take_node("/local/domain/4");
	agent_ended(&agent, host.last_pid, true);
	CHECK(!node_at("/local/domain/4"));
	lose_domain(4);
	pass(1000);
	CHECK_EQ(store.nr_watches, 2); /* of all domains; none of a single one is left */
	CHECK_EQ(agent.n, 0);
	end_test();
}

static void test_what_dom0_cannot(void)
{
	begin_test();
	add_domain(1);
	pass(2000);
	host.start_error = ENOSPC;
	guest_write(1, "event=cpu-clock");
	pass(2000);
	CHECK_STR(state_of(1), "refused: dom0 cannot record; its log says why");
	CHECK_EQ(host.complaints, 1);
	host.start_error = EDQUOT;
	guest_write(1, "event=cpu-clock ");
	pass(2000);
	CHECK_STR(state_of(1), "refused: the secret of dom0");
	CHECK_EQ(host.complaints, 1);
	host.start_error = 0;
	guest_write(1, "event=cpu-clock");
	pass(2000);
	agent_ended(&agent, host.last_pid, false);
	CHECK(strstr(state_of(1), "ended: the record has failed"));
	end_test();
}

static void test_as_many_as_may_be(void)
{
	begin_test();
	for (uint32_t i = 1; i <= AGENT_RECORDS_MAX + 1; i++) {
		add_domain(i);
		guest_write(i, "event=cpu-clock");
	}
	pass(3000);
	CHECK_EQ(host.starts, AGENT_RECORDS_MAX);
	CHECK(strstr(state_of(AGENT_RECORDS_MAX + 1), "refused: as many domains"));
	CHECK_STR(state_of(AGENT_RECORDS_MAX), "running");
	agent_ended(&agent, host.last_pid, true);
	guest_write(AGENT_RECORDS_MAX + 1, "event=task-clock");
	pass(3000);
	CHECK_STR(state_of(AGENT_RECORDS_MAX + 1), "running");
	end_test();
}

static void test_transactions(void)
{
	begin_test();
	add_domain(1);
	pass(2000);
	store.conflicts = 3;
	guest_write(1, "event=cpu-clock");
	pass(2000);
	CHECK_STR(state_of(1), "running");
	store.conflicts = 1000; /* no end of them is no reason to wait for ever */
	guest_rm(1);
	pass(2000);
	agent_ended(&agent, host.last_pid, false);
	CHECK_STR(state_of(1), "running");
	store.conflicts = 0;
	end_test();
}

/* ---------- a domain that means harm ---------- */

static void test_garbage(void)
{
	char value[FAKE_VALUE];
	uint32_t x = 1;

	begin_test();
	add_domain(1);
	pass(2000);
	memset(value, 'e', sizeof(value));
	guest_write_bytes(1, "vmprof/request", value, sizeof(value));
	pass(2000);
	CHECK_STR(state_of(1), "refused: a request has at most 512 bytes");
	CHECK(agent.domains != NULL);
	for (unsigned round = 0; round < 500; round++) {
		const char *state;

		for (unsigned i = 0; i < 300; i++) {
			x = x * 1664525 + 1013904223;
			value[i] = (char)(x >> 24);
		}
		memcpy(value, "event=", round % 3 ? 0 : 6);
		guest_write_bytes(1, "vmprof/request", value, 1 + round % 300);
		pass(1001);
		state = state_of(1);
		CHECK(!strncmp(state, "refused: ", 9));
		for (const char *s = state; *s; s++)
			CHECK((unsigned char)*s >= ' ' && *s != 0x7f);
	}
	CHECK_EQ(host.starts, 0);
	end_test();
}

/* What it writes elsewhere below its own "data" is nothing to the agent, nor to other domains. */
static void test_other_paths(void)
{
	unsigned reads;

	begin_test();
	add_domain(1);
	add_domain(2);
	pass(3000);
	reads = store.reads;
	guest_write_bytes(1, "vmprof/state", "running", 7);
	guest_write_bytes(1, "vmprof/requests", "event=cpu-clock", 15);
	guest_write_bytes(1, "local/domain/2/data/vmprof/request", "event=cpu-clock", 15);
	pass(3000);
	CHECK_EQ(store.reads, reads);
	guest_write_bytes(1, "vmprof/request/2", "event=cpu-clock", 15);
	pass(3000);
	CHECK_EQ(store.reads, reads + 1); /* it is below, and the request itself is not there */
	CHECK_EQ(host.starts, 0);
	CHECK_STR(state_of(1), "ready");
	CHECK_STR(state_of(2), "ready");
	/* Tokens that the agent has not given out name no domain. */
	fire("/local/domain/2/data/vmprof/request", "");
	fire("/local/domain/2/data/vmprof/request", "2x");
	fire("/local/domain/2/data/vmprof/request", "77");
	pass(3000);
	CHECK_EQ(store.reads, reads + 1);
	end_test();
}

static void test_floods(void)
{
	unsigned reads;

	begin_test();
	add_domain(1);
	add_domain(2);
	pass(3000);
	reads = store.reads;
	/* Of writes: the other domain is served among them, and each second costs one look. */
	for (unsigned i = 0; i < 100000; i++)
		guest_write(1, "event=cpu-clock");
	guest_write(2, "event=task-clock");
	for (unsigned i = 0; i < 100000; i++)
		guest_write(1, i & 1 ? "event=cycles" : "event=cpu-clock");
	pass(900);
	CHECK_STR(state_of(2), "running");
	CHECK(store.reads - reads < 10);
	/* Of changes: one a second is seen. */
	host.starts = host.stops = 0;
	for (unsigned i = 0; i < 1000; i++) {
		char text[64];

		snprintf(text, sizeof(text), "event=cpu-clock period=%u", 100000 + i);
		guest_write(1, text);
		pass(10);
		if (host.stops)
			agent_ended(&agent, host.stopped, false);
	}
	CHECK(host.starts <= 11);
	CHECK(host.starts >= 5);
	end_test();
}

/* ---------- records ---------- */

static char folder[] = "/tmp/vmprof-agent.XXXXXX";

static char *text_of(const char *name)
{
	char path[256], *text = xcalloc(1, 4096);
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	if (fd >= 0) {
		CHECK(read(fd, text, 4095) >= 0);
		close(fd);
	}
	return text;
}

static struct vm *domain(uint32_t domid, const char *name, const char *uuid)
{
	struct vm *vm = xcalloc(1, sizeof(*vm));

	vm->hypervisor = VM_HYPERVISOR_XEN;
	vm->domid = domid;
	vm->name = xstrdup(name);
	snprintf(vm->uuid, sizeof(vm->uuid), "%s", uuid);
	return vm;
}

/* A program in vmprof's place, that says what it was started with and with which limit. */
static void make_program(char *path, size_t size)
{
	FILE *f;

	snprintf(path, size, "%s/program", folder);
	f = fopen(path, "w");
	CHECK(f);
	fputs("#!/bin/sh\nprintf '%s\\n' \"$*\"\nulimit -f\nls /proc/self/fd | wc -l\n", f);
	fclose(f);
	CHECK(!chmod(path, 0700));
}

#define UUID1 "5f0c4d0e-7a1c-4d7b-9c55-3a1f9e6b0b01"
#define UUID2 "5f0c4d0e-7a1c-4d7b-9c55-3a1f9e6b0b02"

static void test_records(void)
{
	struct vm *vms[] = {domain(3, "../../we b", UUID1), domain(4, UUID1, UUID2),
			    domain(5, "4", UUID2), domain(6, "six", ""), domain(7, "6", "")};
	struct vm_list list = {.vms = vms, .n = 5};
	char program[256], expected[512], command[128], *text;
	struct records_options o = {.program = program,
				    .output = folder,
				    .max_time_ns = 1500 * MS,
				    .max_bytes = 1 << 20,
				    .chains = true};
	struct agent_request r;
	struct vmprof_err err;
	int status = -1;
	struct stat st;
	pid_t pid;

	CHECK(mkdtemp(folder));
	make_program(program, sizeof(program));
	CHECK_EQ(parse(&r, "event=cpu-clock;event=task-clock user=0", &err), 0);
	/* Its UUID is another one's name, its number nobody's. */
	CHECK_EQ(records_start(&o, &list, vms[0], &r, &pid, &err), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	snprintf(expected, sizeof(expected),
		 "record --backend=xen --realtime=0 --duration 1500ms -o %s/%s/perf.data -g "
		 "-e cpu-clock/period=1000000/ -e task-clock/period=1000000/k --vm 3\n",
		 folder, "_._.._we_b.3.1");
	text = text_of("_._.._we_b.3.1/log");
	CHECK(!strncmp(text, expected, strlen(expected)));
	if (strncmp(text, expected, strlen(expected)) != 0)
		CHECK_STR(text, expected);
	/* 1 MiB in blocks of 512 bytes; 0 to 2 and the one that ls has open. */
	CHECK_STR(text + strlen(expected), "2048\n4\n");
	free(text);
	snprintf(expected, sizeof(expected), "%s/_._.._we_b.3.1", folder);
	CHECK(!stat(expected, &st) && (st.st_mode & 07777) == 0700);
	/* Neither UUID nor number is this one's alone: another one must not be recorded for it. */
	CHECK_EQ(records_start(&o, &list, vms[1], &r, &pid, &err), -ENOTUNIQ);
	CHECK_EQ(records_start(&o, &list, vms[3], &r, &pid, &err), -ENOTUNIQ);
	/* As many as are kept, and no more. */
	for (unsigned i = 2; i <= RECORDS_KEPT; i++) {
		CHECK_EQ(records_start(&o, &list, vms[0], &r, &pid, &err), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
	}
	CHECK_EQ(records_start(&o, &list, vms[0], &r, &pid, &err), -EDQUOT);
	CHECK_STR(err.msg, "dom0 keeps 16 records of this domain, and has them");
	/* A program that cannot be run is a record that has failed. */
	snprintf(program, sizeof(program), "%s/none", folder);
	CHECK_EQ(records_start(&o, &list, vms[4], &r, &pid, &err), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 127);
	for (size_t i = 0; i < 5; i++)
		vm_free(vms[i]);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	CHECK(!system(command));
}
#endif

int main(void)
{
	test_requests();
	test_specs_are_events();
	test_refusals();
	test_sizes();
#if HAVE_XEN
	test_start_and_stop();
	test_changes();
	test_agent_comes_later();
	test_domain_dies();
	test_what_dom0_cannot();
	test_as_many_as_may_be();
	test_transactions();
	test_garbage();
	test_other_paths();
	test_floods();
	test_records();
#endif
	return test_done();
}
