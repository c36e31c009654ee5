// SPDX-License-Identifier: GPL-2.0-only
#include "backend/xen_pmu.h"

#if HAVE_XEN
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xen/pmu.h>

#include "util/text.h"

/* One call whose argument is @size bytes at @arg, in and out: 0 or errno. */
static int ask(const struct xen *xen, xencall_handle *h, unsigned call, unsigned op, void *arg,
	       size_t size)
{
	void *buffer = xen->call->alloc_buffer(h, size);
	int code = ENOMEM;

	if (!buffer)
		return code;
	memcpy(buffer, arg, size);
	code = xen->call->call2(h, call, op, (uintptr_t)buffer) < 0 ? errno : 0;
	memcpy(arg, buffer, size);
	xen->call->free_buffer(h, buffer);
	return code;
}

void xen_pmu_ask(const struct xen *xen, struct xen_pmu_answers *a)
{
	struct xen_pmu_params mode = {.version = {XENPMU_VER_MAJ, XENPMU_VER_MIN}}, feature = mode;
	xencall_handle *h = xen->call->call_open(NULL, 0);

	*a = (struct xen_pmu_answers){0};
	if (!h) {
		a->mode_error = a->feature_error = a->oprof_error = errno;
		return;
	}
	a->mode_error = ask(xen, h, __HYPERVISOR_xenpmu_op, XENPMU_mode_get, &mode, sizeof(mode));
	a->mode = mode.val;
	a->feature_error =
		ask(xen, h, __HYPERVISOR_xenpmu_op, XENPMU_feature_get, &feature, sizeof(feature));
	a->features = feature.val;
	a->oprof_error =
		ask(xen, h, __HYPERVISOR_xenoprof_op, XENOPROF_init, &a->oprof, sizeof(a->oprof));
	xen->call->call_close(h);
}

static const char *mode_name(uint64_t mode)
{
	switch (mode) {
	case XENPMU_MODE_OFF:
		return "off";
	case XENPMU_MODE_SELF:
		return "self (domains count for themselves)";
	case XENPMU_MODE_HV:
		return "hv (domains count for themselves, dom0 for Xen too)";
	case XENPMU_MODE_ALL:
		return "all (dom0 counts for everybody)";
	default:
		return "one that vmprof does not know";
	}
}

void xen_pmu_text(const struct xen_pmu_answers *a, char *text, size_t size)
{
	char mode[96], features[64], oprof[128], cpu[sizeof(a->oprof.cpu_type) + 1], shown[64];

	if (a->mode_error)
		snprintf(mode, sizeof(mode), "%s", strerror(a->mode_error));
	else
		snprintf(mode, sizeof(mode), "%s", mode_name(a->mode));
	if (a->feature_error)
		snprintf(features, sizeof(features), "%s", strerror(a->feature_error));
	else
		snprintf(features, sizeof(features), "%#" PRIx64, a->features);
	snprintf(cpu, sizeof(cpu), "%.*s", (int)sizeof(a->oprof.cpu_type), a->oprof.cpu_type);
	if (a->oprof_error)
		snprintf(oprof, sizeof(oprof), "%s", strerror(a->oprof_error));
	else
		snprintf(oprof, sizeof(oprof), "%d counters of %s", a->oprof.num_events,
			 escape_str(shown, sizeof(shown), cpu));
	snprintf(text, size,
		 "no hardware events: Xen answers XENPMU_mode_get: %s; XENPMU_feature_get: %s; "
		 "XENOPROF_init: %s",
		 mode, features, oprof);
}
#endif
