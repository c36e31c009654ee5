// SPDX-License-Identifier: GPL-2.0-only
#include "report/summary.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "util/text.h"
#include "util/xalloc.h"

static uint64_t json_number(struct json_object *o, const char *key, uint64_t otherwise)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, key, &v) || !json_object_is_type(v, json_type_int))
		return otherwise;
	return json_object_get_uint64(v);
}

static void describe(struct profile *p, struct vm_summary *s)
{
	const struct machine *m = s->machine;
	struct json_object *o = m->vm_json ? json_tokener_parse(m->vm_json) : NULL, *v;

	if (json_object_is_type(o, json_type_object)) {
		s->vcpus = json_number(o, "vcpus", 0);
		if (json_object_object_get_ex(o, "kernel", &v) &&
		    json_object_is_type(v, json_type_string))
			escape_str(s->kernel, sizeof(s->kernel), json_object_get_string(v));
	}
	json_object_put(o);
	for (uint32_t i = 0, seen = 0; i < p->vcpu_keys.n; i++) {
		if (*keyset_key(&p->vcpu_keys, i) >> 32 != m->index)
			continue;
		if (++seen > s->vcpus)
			s->vcpus = seen;
	}

	o = m->stats_json ? json_tokener_parse(m->stats_json) : NULL;
	s->lost = s->merged = s->torn = UINT64_MAX;
	if (json_object_is_type(o, json_type_object)) {
		s->lost = json_number(o, "lost", UINT64_MAX);
		s->merged = json_number(o, "merged", UINT64_MAX);
		s->torn = json_number(o, "torn", UINT64_MAX);
	}
	json_object_put(o);
	if (machine_is_host(m) && p->host_lost)
		s->lost = p->host_lost;
}

static bool is_kernel(uint8_t cpumode)
{
	return cpumode == PERF_RECORD_MISC_KERNEL || cpumode == PERF_RECORD_MISC_GUEST_KERNEL;
}

static bool is_user(uint8_t cpumode)
{
	return cpumode == PERF_RECORD_MISC_USER || cpumode == PERF_RECORD_MISC_GUEST_USER;
}

static void add(struct profile *p, struct vm_summary *v, const struct stack *s)
{
	v->samples += s->samples;
	v->period += s->period;
	if (is_kernel(s->cpumode))
		v->kernel_period += s->period;
	if (is_user(s->cpumode))
		v->user_period += s->period;
	if (p->contexts[s->context].thread->pid < 0)
		v->unattributed += s->samples;
	if (!p->frames[s->leaf].sym)
		v->unsymbolized += s->samples;
}

struct vm_summary *summary_by_vm(struct profile *p, uint32_t event,
				 const struct report_filter *filter, size_t *n)
{
	size_t nr = session_nr_machines(p->session), kept = 0;
	struct vm_summary *all = xcalloc(nr, sizeof(*all));
	struct stack s;

	for (uint32_t i = 0; i < profile_nr_stacks(p); i++) {
		profile_stack(p, i, &s);
		if ((s.event == event || event == SUMMARY_ALL_EVENTS) &&
		    filter_stack(filter, p, &s))
			add(p, &all[p->contexts[s.context].machine->index], &s);
	}
	for (size_t i = 0; i < nr; i++) {
		const struct machine *m = session_machine_nth(p->session, i);

		all[i].machine = m;
		if (!filter_machine(filter, m) ||
		    (!all[i].samples && !m->vm_json && !m->stats_json))
			continue;
		all[i].name = profile_vm_name(p, m);
		describe(p, &all[i]);
		all[kept++] = all[i];
	}
	*n = kept;
	return all;
}

static void print_count(uint64_t v, int width, FILE *f)
{
	if (v == UINT64_MAX)
		fprintf(f, "  %*s", width, "-");
	else
		fprintf(f, "  %*" PRIu64, width, v);
}

static void print_percent(uint64_t part, uint64_t total, int width, FILE *f)
{
	fprintf(f, "  %*.2f%%", width - 1, total ? 100.0 * (double)part / (double)total : 0.0);
}

static void print_dots(unsigned n, const char *before, FILE *f)
{
	fputs(before, f);
	while (n--)
		fputc('.', f);
}

static const struct {
	const char *header;
	unsigned width; /* 0: of the widest text */
} heads[] = {
	{"VM", 0},	{"Share", 7}, {"Samples", 10}, {"vCPUs", 5},	     {"Kernel", 0},
	{"Kernel%", 7}, {"User%", 7}, {"Lost", 8},     {"Unattributed", 12}, {"Unsymbolized", 12}};

#define NR_HEADS (sizeof(heads) / sizeof(*heads))

static void print_heads(unsigned name_width, unsigned kernel_width, FILE *f)
{
	for (size_t i = 0; i < NR_HEADS; i++) {
		unsigned w = heads[i].width ? heads[i].width : i ? kernel_width : name_width;

		fprintf(f, "%s%*s", i ? "  " : "# ", heads[i].width ? (int)w : -(int)w,
			heads[i].header);
	}
	fputc('\n', f);
	for (size_t i = 0; i < NR_HEADS; i++) {
		unsigned w = heads[i].width ? heads[i].width : i ? kernel_width : name_width;

		print_dots(w, i ? "  " : "# ", f);
	}
	fputs("\n#\n", f);
}

void report_print_summary(struct report *r, uint32_t event, FILE *f)
{
	struct profile *p = r->profile;
	uint64_t total = r->opt.relative ? 0 : p->events[event].period;
	unsigned name_width = 2, kernel_width = 6;
	size_t n;
	struct vm_summary *vms = summary_by_vm(p, event, &r->opt.filter, &n);

	for (size_t i = 0; i < n; i++) {
		if (r->opt.relative)
			total += vms[i].period;
		if (strlen(vms[i].name) > name_width)
			name_width = (unsigned)strlen(vms[i].name);
		if (strlen(vms[i].kernel) > kernel_width)
			kernel_width = (unsigned)strlen(vms[i].kernel);
	}
	fprintf(f, "# VM summary of event '%s'\n#\n", p->events[event].name);
	print_heads(name_width, kernel_width, f);
	for (size_t i = 0; i < n; i++) {
		const struct vm_summary *v = &vms[i];

		fprintf(f, "# %-*s", (int)name_width, v->name);
		print_percent(v->period, total, 7, f);
		print_count(v->samples, 10, f);
		print_count(v->vcpus ? v->vcpus : UINT64_MAX, 5, f);
		fprintf(f, "  %-*s", (int)kernel_width, *v->kernel ? v->kernel : "-");
		print_percent(v->kernel_period, v->period, 7, f);
		print_percent(v->user_period, v->period, 7, f);
		print_count(v->lost, 8, f);
		print_count(v->unattributed, 12, f);
		print_count(v->unsymbolized, 12, f);
		fputc('\n', f);
	}
	fputs("#\n", f);
	free(vms);
}
