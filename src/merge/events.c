// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of the output: what counts the same thing is one, so that shares are of the whole system.
 * How often it was sampled does not matter, as a sample says its period. Ids are new ones.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/impl.h"
#include "util/xalloc.h"

/* The kernel's numbers for these mean the same everywhere; others are of a kernel or a CPU. */
static bool is_common(uint32_t type)
{
	return type == PERF_TYPE_HARDWARE || type == PERF_TYPE_SOFTWARE ||
	       type == PERF_TYPE_HW_CACHE;
}

static bool same_event(const struct merge_event *a, const struct perfdata_evsel *b)
{
	const struct perf_event_attr *x = &a->attr, *y = &b->attr;

	if (x->exclude_user != y->exclude_user || x->exclude_kernel != y->exclude_kernel)
		return false;
	if (is_common(x->type))
		return x->type == y->type && x->config == y->config;
	return !is_common(y->type) && !strcmp(a->name, b->name);
}

/* By the input's events. To be freed. */
static bool *events_with_samples(const struct merge_input *in)
{
	bool *sampled = xcalloc(perfdata_reader_nr_evsels(in->header) + 1, sizeof(*sampled));
	struct merge_combo *c;

	for (size_t i = 0; (c = hashmap_next(&in->combos, &i, NULL));)
		sampled[c->event] = true;
	return sampled;
}

/* perf's event for side-band only. */
static bool is_dummy(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_DUMMY;
}

#define USER_COPY (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

/* Copies of user registers and stack, of as many inputs as copied the same registers. */
static bool has_copies_of(const struct merge_event *o, const struct perf_event_attr *attr)
{
	return (attr->sample_type & USER_COPY) == USER_COPY &&
	       attr->sample_regs_user == o->attr.sample_regs_user;
}

static void add_copies(struct merge_event *o, const struct perf_event_attr *attr)
{
	if ((attr->sample_type & USER_COPY) != USER_COPY || !attr->sample_stack_user)
		return;
	if (!o->attr.sample_regs_user)
		o->attr.sample_regs_user = attr->sample_regs_user;
	if (has_copies_of(o, attr) && attr->sample_stack_user > o->attr.sample_stack_user)
		o->attr.sample_stack_user = attr->sample_stack_user;
}

static uint32_t event_of(struct merge *m, const struct perfdata_evsel *e)
{
	struct merge_event *o;

	for (size_t i = 0; i < m->nr_events; i++)
		if (same_event(&m->events[i], e))
			return (uint32_t)i;
	m->events = xgrow(m->events, &m->cap_events, m->nr_events + 1, sizeof(*m->events));
	o = &m->events[m->nr_events];
	*o = (struct merge_event){.name = xstrdup(e->name), .attr = e->attr};
	o->attr.branch_sample_type = o->attr.sample_regs_user = o->attr.sample_regs_intr = 0;
	o->attr.sample_stack_user = o->attr.aux_sample_size = o->attr.aux_watermark = 0;
	o->attr.aux_output = o->attr.write_backward = 0;
	/*
	 * perf refuses a file with tracepoints and without their formats, of which a file has room
	 * for one kernel's. Their name is what counts.
	 */
	if (o->attr.type == PERF_TYPE_TRACEPOINT)
		o->attr.type = PERF_TYPE_RAW;
	return (uint32_t)m->nr_events++;
}

/* Whether these can be a group: they stand in a row, and none is in another one. */
static bool can_group(const struct merge *m, const uint32_t *events, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (events[i] != events[0] + i || m->events[events[i]].in_group)
			return false;
	return true;
}

static void add_group(struct merge *m, const struct merge_input *in, const struct perfdata_group *g)
{
	uint32_t *events = xcalloc(g->nr, sizeof(*events));
	struct merge_event *leader;

	for (uint32_t i = 0; i < g->nr; i++)
		events[i] = event_of(m, perfdata_reader_evsel(in->header, g->leader + i));
	leader = &m->events[events[0]];
	if (can_group(m, events, g->nr)) {
		leader->group_size = g->nr;
		leader->group_name = g->name ? xstrdup(g->name) : NULL;
		for (uint32_t i = 0; i < g->nr; i++)
			leader[i].in_group = true;
	} else if (leader->group_size != g->nr) {
		merge_warn("%s: its group of %" PRIu32 " events is none in the output: an event of "
			   "it is in another group",
			   in->shown, g->nr);
	}
	free(events);
}

/* Those of groups come first, since they must stand in a row. */
static void add_groups(struct merge *m, const struct merge_input *in)
{
	struct perfdata_group g = {0};

	while (perfdata_reader_next_group(in->header, &g) &&
	       m->nr_events + g.nr <= MERGE_EVENTS_MAX)
		add_group(m, in, &g);
}

static int add_events(struct merge *m, struct merge_input *in, struct vmprof_err *err)
{
	size_t n = perfdata_reader_nr_evsels(in->header);
	bool *sampled = events_with_samples(in);
	int ret = 0;

	in->events = xcalloc(n + 1, sizeof(*in->events));
	for (size_t i = 0; i < n && !ret; i++) {
		const struct perfdata_evsel *e = perfdata_reader_evsel(in->header, i);

		in->events[i] = UINT32_MAX;
		if (is_dummy(&e->attr) && !sampled[i])
			continue;
		if (m->nr_events >= MERGE_EVENTS_MAX) {
			ret = err_set(err, E2BIG, "%s: more than %d different events", in->shown,
				      MERGE_EVENTS_MAX);
			continue;
		}
		in->events[i] = event_of(m, e);
		m->events[in->events[i]].chains |= !!(e->attr.sample_type & PERF_SAMPLE_CALLCHAIN);
		add_copies(&m->events[in->events[i]], &e->attr);
	}
	free(sampled);
	return ret;
}

static uint64_t id_key(uint32_t event, const struct merge_vm *vm, int32_t vcpu)
{
	return (uint64_t)event << 40 | (uint64_t)vm->index << 16 | (uint16_t)(vcpu + 1);
}

uint64_t merge_event_id(const struct merge *m, uint32_t event, const struct merge_vm *vm)
{
	uint64_t id = 0;

	if (event < m->nr_events)
		id = (uintptr_t)hashmap_get(&m->id_by_key, id_key(event, vm, vm->pid ? 0 : -1));
	return id ? id : vm->id;
}

/* The output's id for an event, VM and vCPU. */
static uint64_t id_of(struct merge *m, uint32_t event, const struct merge_vm *vm, int32_t vcpu)
{
	uint64_t key = id_key(event, vm, vcpu);
	struct merge_event *e = &m->events[event];
	uint64_t id = (uintptr_t)hashmap_get(&m->id_by_key, key);

	if (id)
		return id;
	id = m->nr_ids + 1;
	hashmap_set(&m->id_by_key, key, (void *)(uintptr_t)id);
	m->ids = xgrow(m->ids, &m->cap_ids, m->nr_ids + 1, sizeof(*m->ids));
	m->ids[m->nr_ids++] = (struct perfdata_id_entry){
		.id = id,
		.idx = e->nr_ids,
		.cpu = UINT64_MAX,
		.tid = UINT64_MAX,
		.machine_pid = (uint64_t)vm->pid,
		.vcpu = vm->pid && vcpu < 0 ? UINT32_MAX : (uint64_t)(vcpu < 0 ? 0 : vcpu),
	};
	e->ids = xgrow(e->ids, &e->cap_ids, e->nr_ids + 1, sizeof(*e->ids));
	e->ids[e->nr_ids++] = id;
	return id;
}

static int add_ids(struct merge *m, struct merge_input *in, struct vmprof_err *err)
{
	struct merge_combo *c;

	for (size_t i = 0; (c = hashmap_next(&in->combos, &i, NULL));) {
		uint32_t event = in->events[c->event];

		if (m->nr_ids >= MERGE_IDS_MAX)
			return err_set(err, E2BIG,
				       "%s: more than %d different events, VMs and vCPUs",
				       in->shown, MERGE_IDS_MAX);
		c->out_id = id_of(m, event, c->source->vm, c->source->vm->pid ? c->vcpu : -1);
		c->flat = !m->events[event].chains;
		c->copies = m->events[event].attr.sample_stack_user;
		c->regs = m->events[event].attr.sample_regs_user;
	}
	return 0;
}

int merge_plan_events(struct merge *m, struct vmprof_err *err)
{
	int ret = 0;

	for (size_t i = 0; i < m->nr_inputs; i++)
		add_groups(m, &m->inputs[i]);
	for (size_t i = 0; i < m->nr_inputs && !ret; i++)
		ret = add_events(m, &m->inputs[i], err);
	if (!ret && !m->nr_events)
		ret = err_set(err, ENODATA, "the inputs have no events");
	/* each event has one of the host, each VM one for its side-band */
	for (size_t i = 0; i < m->nr_events && !ret; i++)
		id_of(m, (uint32_t)i, m->vms[0], -1);
	for (size_t i = 0; i < m->nr_inputs && !ret; i++)
		ret = add_ids(m, &m->inputs[i], err);
	for (size_t i = 1; i < m->nr_vms && !ret; i++)
		m->vms[i]->id = id_of(m, 0, m->vms[i], 0);
	if (!ret)
		m->vms[0]->id = id_of(m, 0, m->vms[0], -1);
	return ret;
}

void merge_free_events(struct merge *m)
{
	for (size_t i = 0; i < m->nr_events; i++) {
		free(m->events[i].name);
		free(m->events[i].group_name);
		free(m->events[i].ids);
	}
	free(m->events);
	free(m->ids);
	hashmap_free(&m->id_by_key);
}

void merge_parts_left_out(const struct merge_event *o, const struct perfdata_evsel *e, char *out,
			  size_t size)
{
	const uint64_t kept = has_copies_of(o, &e->attr) ? USER_COPY : 0;
	static const struct {
		uint64_t bit;
		const char *name;
	} parts[] = {
		{PERF_SAMPLE_ADDR, "ADDR"},
		{PERF_SAMPLE_RAW, "RAW"},
		{PERF_SAMPLE_BRANCH_STACK, "BRANCH_STACK"},
		{PERF_SAMPLE_REGS_USER, "REGS_USER"},
		{PERF_SAMPLE_STACK_USER, "STACK_USER"},
		{PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT, "WEIGHT"},
		{PERF_SAMPLE_DATA_SRC, "DATA_SRC"},
		{PERF_SAMPLE_TRANSACTION, "TRANSACTION"},
		{PERF_SAMPLE_REGS_INTR, "REGS_INTR"},
		{PERF_SAMPLE_PHYS_ADDR, "PHYS_ADDR"},
		{PERF_SAMPLE_AUX, "AUX"},
		{PERF_SAMPLE_CGROUP, "CGROUP"},
		{PERF_SAMPLE_DATA_PAGE_SIZE, "DATA_PAGE_SIZE"},
		{PERF_SAMPLE_CODE_PAGE_SIZE, "CODE_PAGE_SIZE"},
	};
	size_t at = 0;

	*out = 0;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (e->attr.sample_type & ~kept & parts[i].bit && at < size)
			at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "",
					       parts[i].name);
}
