// SPDX-License-Identifier: GPL-2.0-only
#include "record/events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>

#include "util/text.h"
#include "util/xalloc.h"

#define CLOCK_PERIOD_MIN 100000 /* ns */

/* Cycles become cpu-clock where there is no PMU, as perf does it; other errors stay errors. */
static bool can_fall_back(const struct event *e, int rc)
{
	return e->type == PERF_TYPE_HARDWARE && e->config == PERF_COUNT_HW_CPU_CYCLES &&
	       (rc == -ENOENT || rc == -EOPNOTSUPP || rc == -ENODEV || rc == -ENXIO);
}

static int fit_one(struct event *e, const struct vmprof_backend *b, const struct vm *vm,
		   char *fell_back, size_t size, struct vmprof_err *err)
{
	const char *asked = e->name;
	char shown[128];
	int rc = b->try_event(vm, e, err);

	if (!can_fall_back(e, rc)) {
		e->name = rc ? NULL : xstrdup(e->name);
		return rc;
	}
	event_make_clock(e);
	snprintf(fell_back, size,
		 "the %s event is not supported by the %s backend for this %s, falling back to %s",
		 escape_str(shown, sizeof(shown), asked), b->name, vm ? "VM" : "machine", e->name);
	return b->try_event(vm, e, err);
}

/* Clocks are interrupts of their own: more of them than these stop a machine. */
static int check_rate(const struct event *e, struct vmprof_err *err)
{
	char shown[128];

	if (!event_is_clock(e) || e->freq || e->rate >= CLOCK_PERIOD_MIN)
		return 0;
	return err_set(
		err, EINVAL,
		"event '%s', period %llu: a period below %d ns of CPU time is more than %d Hz",
		escape_str(shown, sizeof(shown), e->name), (unsigned long long)e->rate,
		CLOCK_PERIOD_MIN, 1000000000 / CLOCK_PERIOD_MIN);
}

struct perf_event_attr events_file_attr(const struct event *ev)
{
	struct perf_event_attr attr = {
		.type = ev->type,
		.config = ev->config,
		.config1 = ev->config1,
		.config2 = ev->config2,
		.exclude_user = ev->exclude_user,
		.exclude_kernel = ev->exclude_kernel,
		.exclude_hv = 1,
		.exclude_host = !ev->host,
		.exclude_guest = !ev->guest,
		.precise_ip = ev->precise & 3u,
		.pinned = ev->pinned,
		.exclusive = ev->exclusive,
	};

	/* Its fields are not recorded, and readers want those of an event that says it has some. */
	if (ev->type == PERF_TYPE_TRACEPOINT) {
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_DUMMY;
	}
	if (ev->freq) {
		attr.freq = 1;
		attr.sample_freq = ev->rate;
	} else {
		attr.sample_period = ev->rate;
	}
	return attr;
}

int events_fit(const struct event_list *l, const struct vmprof_backend *b, const struct vm *vm,
	       struct event_list *out, char *fell_back, size_t size, struct vmprof_err *err)
{
	*fell_back = 0;
	out->n = 0;
	for (unsigned i = 0; i < l->n; i++) {
		struct event *e = &out->events[out->n++];
		int rc;

		*e = l->events[i];
		rc = fit_one(e, b, vm, fell_back, size, err);
		rc = rc ? rc : check_rate(e, err);
		if (rc) {
			event_list_free(out);
			return rc;
		}
	}
	return 0;
}
