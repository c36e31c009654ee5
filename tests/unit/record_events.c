// SPDX-License-Identifier: GPL-2.0-only
/* Events that were asked for, fitted to a backend that has only clocks. */
#include <errno.h>
#include <linux/perf_event.h>

#include "record/events.h"
#include "tests/unit/test.h"

static int clocks_only(const struct vm *vm, const struct event *e, struct vmprof_err *err)
{
	return event_is_clock(e) ? 0 : err_set(err, EOPNOTSUPP, "no %s here", e->name);
}

static int nothing(const struct vm *vm, const struct event *e, struct vmprof_err *err)
{
	return err_set(err, EACCES, "not allowed");
}

static const struct vmprof_backend clocks = {.name = "clocks", .try_event = clocks_only};
static const struct vmprof_backend locked = {.name = "locked", .try_event = nothing};
static char said[256];

static int fit(const struct event_list *l, const struct vmprof_backend *b, struct event_list *out,
	       struct vmprof_err *err)
{
	return events_fit(l, b, NULL, out, said, sizeof(said), err);
}

static void test_fall_back(void)
{
	struct event_list l = {.n = 0}, out;
	struct vmprof_err err;

	CHECK(!event_list_add(&l, "cycles:up,task-clock", &err));
	event_list_set_rate(&l, false, 1000000);
	CHECK(!fit(&l, &clocks, &out, &err));
	CHECK_EQ(out.n, 2);
	CHECK_STR(out.events[0].name, "cpu-clock:up");
	CHECK(out.events[0].exclude_kernel && !out.events[0].precise);
	CHECK_EQ(out.events[0].type, PERF_TYPE_SOFTWARE);
	CHECK_EQ(out.events[0].rate, 1000000);
	CHECK(strstr(said, "cycles:up") && strstr(said, "falling back to cpu-clock:up"));
	CHECK(!event_same(&l.events[0], &out.events[0]));
	CHECK(event_same(&l.events[1], &out.events[1]));
	event_list_free(&out);
	/* not allowed is not absent */
	CHECK_EQ(fit(&l, &locked, &out, &err), -EACCES);
	CHECK(!*said && out.n == 0);
	event_list_free(&l);
}

static void test_refused(void)
{
	struct event_list l = {.n = 0}, out;
	struct vmprof_err err;

	CHECK(!event_list_add(&l, "cpu-clock,instructions", &err));
	event_list_set_rate(&l, true, 100);
	CHECK_EQ(fit(&l, &clocks, &out, &err), -EOPNOTSUPP);
	CHECK(strstr(err.msg, "no instructions here"));
	CHECK_EQ(out.n, 0);
	event_list_free(&l);

	CHECK(!event_list_add(&l, "cpu-clock", &err));
	event_list_set_rate(&l, false, 99999);
	CHECK_EQ(fit(&l, &clocks, &out, &err), -EINVAL);
	CHECK(strstr(err.msg, "below 100000 ns"));
	event_list_set_rate(&l, false, 100000);
	CHECK(!fit(&l, &clocks, &out, &err));
	event_list_free(&out);
	event_list_free(&l);
}

int main(void)
{
	test_fall_back();
	test_refused();
	return test_done();
}
