// SPDX-License-Identifier: GPL-2.0-only
#include "report/filter.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/text.h"
#include "util/xalloc.h"

#define MAX_CPUS 8192

unsigned filter_needs(const struct report_filter *f)
{
	return f->pids || f->tids ? PROFILE_BY_THREAD : 0;
}

static bool vm_matches(const char *vms, const struct machine *m)
{
	if (machine_is_host(m))
		return list_has(vms, "host") || list_has(vms, "[host]");
	return list_has(vms, m->name) || (m->uuid && *m->uuid && list_has(vms, m->uuid));
}

static bool number_matches(const char *list, int32_t v)
{
	char s[16];

	snprintf(s, sizeof(s), "%" PRId32, v);
	return list_has(list, s);
}

bool filter_machine(const struct report_filter *f, const struct machine *m)
{
	return !f->vms || vm_matches(f->vms, m);
}

bool filter_context(const struct report_filter *f, const struct context *ctx)
{
	return filter_machine(f, ctx->machine) && (!f->comms || list_has(f->comms, ctx->comm)) &&
	       (!f->pids || number_matches(f->pids, ctx->thread->pid)) &&
	       (!f->tids || number_matches(f->tids, ctx->thread->tid));
}

bool filter_location(const struct report_filter *f, const struct dso *dso, const char *name)
{
	if (f->dsos &&
	    (!dso || (!list_has(f->dsos, dso->short_name) && !list_has(f->dsos, dso->long_name))))
		return false;
	if (!f->symbols && !f->symbol_part)
		return true;
	return name && (!f->symbols || list_has(f->symbols, name)) &&
	       (!f->symbol_part || strstr(name, f->symbol_part));
}

bool filter_frame(const struct report_filter *f, struct profile *p, uint32_t frame)
{
	const char *name = NULL;

	if (f->symbols || f->symbol_part)
		name = profile_frame_name(p, frame);
	return filter_location(f, p->frames[frame].dso, name);
}

bool filter_stack(const struct report_filter *f, struct profile *p, const struct stack *s)
{
	return filter_context(f, &p->contexts[s->context]) && filter_frame(f, p, s->leaf);
}

int cpu_list_parse(struct cpu_list *l, const char *list, struct vmprof_err *err)
{
	char text[64], *end;

	l->has = xcalloc(MAX_CPUS, 1);
	for (const char *s = list;; s = end + 1) {
		unsigned long first, last;

		if (!isdigit((unsigned char)*s))
			break;
		first = last = strtoul(s, &end, 10);
		if (*end == '-' && isdigit((unsigned char)end[1]))
			last = strtoul(end + 1, &end, 10);
		if (last >= MAX_CPUS || first > last || (*end && *end != ','))
			break;
		memset(l->has + first, 1, last - first + 1);
		if (!*end)
			return 0;
	}
	cpu_list_free(l);
	return err_set(err, EINVAL, "'%s' is no list of CPUs; write it like 0,2-3",
		       escape_str(text, sizeof(text), list));
}

bool cpu_list_has(const struct cpu_list *l, uint32_t cpu)
{
	return cpu < MAX_CPUS && l->has[cpu];
}

void cpu_list_free(struct cpu_list *l)
{
	free(l->has);
	l->has = NULL;
}
