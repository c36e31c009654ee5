// SPDX-License-Identifier: GPL-2.0-only
#include "backend/clockevent.h"

#include <errno.h>

#include "util/text.h"

int clockevent_try(const char *backend, const struct event *e, struct vmprof_err *err)
{
	char name[128];

	escape_str(name, sizeof(name), e->name);
	if (!event_is_clock(e))
		return err_set(err, EOPNOTSUPP,
			       "event '%s' cannot be sampled by the %s backend for this VM; it has "
			       "cpu-clock and task-clock",
			       name, backend);
	if (!e->guest || e->host)
		return err_set(err, EINVAL,
			       "event '%s': the %s backend samples what the guest does (:G), and "
			       "not the host",
			       name, backend);
	return 0;
}
