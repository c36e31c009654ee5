// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <string.h>

#include "report/script.h"
#include "util/buf.h"
#include "util/text.h"

static const struct {
	const char *name;
	uint32_t field;
} field_names[] = {
	{"comm", SCRIPT_COMM},
	{"tid", SCRIPT_TID},
	{"pid", SCRIPT_PID},
	{"time", SCRIPT_TIME},
	{"cpu", SCRIPT_CPU},
	{"event", SCRIPT_EVENT},
	{"trace", SCRIPT_TRACE},
	{"ip", SCRIPT_IP},
	{"sym", SCRIPT_SYM},
	{"symoff", SCRIPT_SYMOFF},
	{"dso", SCRIPT_DSO},
	{"srcline", SCRIPT_SRCLINE},
	{"period", SCRIPT_PERIOD},
	{"addr", SCRIPT_ADDR},
	{"brstack", SCRIPT_BRSTACK},
	{"brstacksym", SCRIPT_BRSTACKSYM},
	{"brstackoff", SCRIPT_BRSTACKOFF},
	{"data_src", SCRIPT_DATA_SRC},
	{"weight", SCRIPT_WEIGHT},
	{"ins_lat", SCRIPT_INS_LAT},
	{"iregs", SCRIPT_IREGS},
	{"uregs", SCRIPT_UREGS},
	{"phys_addr", SCRIPT_PHYS_ADDR},
	{"data_page_size", SCRIPT_DATA_PAGE_SIZE},
	{"code_page_size", SCRIPT_CODE_PAGE_SIZE},
	{"misc", SCRIPT_MISC},
	{"bpf-output", SCRIPT_BPF_OUTPUT},
	{"flags", SCRIPT_FLAGS},
	{"machine_pid", SCRIPT_MACHINE_PID},
	{"vcpu", SCRIPT_VCPU},
	{"vm", SCRIPT_VM},
};
#define NR_FIELDS (sizeof(field_names) / sizeof(*field_names))

static const struct {
	const char *name;
	unsigned type;
} type_names[] = {
	{"hw", PERF_TYPE_HARDWARE},	 {"sw", PERF_TYPE_SOFTWARE},
	{"trace", PERF_TYPE_TRACEPOINT}, {"raw", PERF_TYPE_RAW},
	{"break", PERF_TYPE_BREAKPOINT}, {"synth", SCRIPT_TYPE_SYNTH},
};
#define NR_TYPE_NAMES	(sizeof(type_names) / sizeof(*type_names))

#define PERF_TYPE_SYNTH (INT32_MAX + 1u)

unsigned script_type_of(const struct perf_event_attr *attr)
{
	if (attr->type == PERF_TYPE_SYNTH)
		return SCRIPT_TYPE_SYNTH;
	return attr->type < PERF_TYPE_MAX ? attr->type : SCRIPT_TYPE_OTHER;
}

void script_fields_init(struct script_fields *f)
{
	const uint32_t who = SCRIPT_COMM | SCRIPT_TID | SCRIPT_CPU | SCRIPT_TIME | SCRIPT_EVENT;

	memset(f, 0, sizeof(*f));
	for (unsigned i = 0; i < SCRIPT_TYPES; i++)
		f->types[i].fields = who | SCRIPT_FRAME | SCRIPT_PERIOD;
	f->types[SCRIPT_TYPE_SYNTH].fields &= ~(uint32_t)SCRIPT_PERIOD;
	f->types[PERF_TYPE_TRACEPOINT].fields = who | SCRIPT_TRACE;
	f->types[PERF_TYPE_SOFTWARE].fields |= SCRIPT_BPF_OUTPUT;
	f->types[PERF_TYPE_RAW].fields |= SCRIPT_ADDR | SCRIPT_DATA_SRC | SCRIPT_WEIGHT |
					  SCRIPT_INS_LAT | SCRIPT_PHYS_ADDR |
					  SCRIPT_DATA_PAGE_SIZE | SCRIPT_CODE_PAGE_SIZE;
}

static uint32_t find_field(const char *name, size_t len)
{
	for (size_t i = 0; i < NR_FIELDS; i++)
		if (!strncmp(field_names[i].name, name, len) && !field_names[i].name[len])
			return field_names[i].field;
	return 0;
}

static int unknown_field(const char *name, size_t len, struct vmprof_err *err)
{
	struct buf known = {0};
	char raw[32], text[128];
	int ret;

	for (size_t i = 0; i < NR_FIELDS; i++)
		buf_printf(&known, "%s%s", i ? ", " : "", field_names[i].name);
	buf_add(&known, "", 1);
	if (len >= sizeof(raw))
		len = sizeof(raw) - 1;
	memcpy(raw, name, len);
	raw[len] = 0;
	ret = err_set(err, EINVAL, "--fields knows no '%s'; there are: %s",
		      escape_str(text, sizeof(text), raw), (char *)known.data);
	buf_free(&known);
	return ret;
}

enum change { CHANGE_NONE, CHANGE_SET, CHANGE_ADD, CHANGE_REMOVE };

static void change_field(struct script_type *t, uint32_t field, enum change change)
{
	if (change == CHANGE_REMOVE) {
		t->fields &= ~field;
		t->set &= ~field;
	} else {
		t->fields |= field;
		t->set |= field;
	}
	t->chosen = true;
}

static bool field_fits(unsigned type, uint32_t field)
{
	if (field == SCRIPT_BPF_OUTPUT && type == PERF_TYPE_SOFTWARE)
		return true;
	return !(field & (SCRIPT_TRACE | SCRIPT_BPF_OUTPUT)) || type == PERF_TYPE_TRACEPOINT;
}

/* The types that @arg is for, as bits; its list of fields to *list. 0: no such type. */
static uint32_t types_of(const char *arg, const char **list)
{
	const char *colon = strchr(arg, ':');

	*list = colon ? colon + 1 : arg;
	if (!colon)
		return (1u << SCRIPT_TYPES) - 1;
	for (size_t i = 0; i < NR_TYPE_NAMES; i++)
		if (!strncmp(arg, type_names[i].name, (size_t)(colon - arg)) &&
		    !type_names[i].name[colon - arg])
			return 1u << type_names[i].type;
	return 0;
}

static int change_fields(struct script_fields *f, uint32_t types, const char *name, size_t len,
			 enum change change, struct vmprof_err *err)
{
	bool one = !(types & (types - 1));
	uint32_t field = find_field(name, len);

	if (!field)
		return unknown_field(name, len, err);
	for (unsigned i = 0; i < SCRIPT_TYPES; i++) {
		if (!(types & 1u << i))
			continue;
		if (field_fits(i, field))
			change_field(&f->types[i], field, change);
		else if (one)
			return err_set(err, EINVAL, "'%.*s' is only there for tracepoints%s",
				       (int)len, name,
				       field == SCRIPT_TRACE ? "" : " and software events");
	}
	return 0;
}

int script_fields_parse(struct script_fields *f, const char *arg, struct vmprof_err *err)
{
	enum change change = CHANGE_NONE, now;
	const char *list;
	uint32_t types = types_of(arg, &list);
	char text[128];
	size_t len;
	int ret = 0;

	if (!types)
		return err_set(err, EINVAL,
			       "--fields '%s' is for no type of events; there are hw, sw, trace, "
			       "raw, break and synth",
			       escape_str(text, sizeof(text), arg));
	if (!*list && list == arg)
		return err_set(err, EINVAL, "--fields without a field");
	for (unsigned i = 0; i < SCRIPT_TYPES && !strpbrk(list, "+-"); i++)
		if (types & 1u << i)
			f->types[i] = (struct script_type){.chosen = true};
	for (; *list && !ret; list += len + (list[len] == ',')) {
		now = *list == '+' ? CHANGE_ADD : *list == '-' ? CHANGE_REMOVE : CHANGE_SET;
		if (change != CHANGE_NONE && (change == CHANGE_SET) != (now == CHANGE_SET))
			return err_set(err, EINVAL,
				       "--fields '%s' mixes fields with and without + or -",
				       escape_str(text, sizeof(text), arg));
		change = now;
		list += now != CHANGE_SET;
		len = strcspn(list, ",");
		ret = change_fields(f, types, list, len, now, err);
	}
	return ret;
}

/* What a field needs in the samples. */
static const struct {
	uint32_t fields;
	uint64_t sample_type;
	const char *name;
} needs[] = {
	{SCRIPT_IP, PERF_SAMPLE_IP, "address"},
	{SCRIPT_TID | SCRIPT_PID, PERF_SAMPLE_TID, "process"},
	{SCRIPT_TIME, PERF_SAMPLE_TIME, "time"},
	{SCRIPT_CPU, PERF_SAMPLE_CPU, "CPU"},
	{SCRIPT_ADDR, PERF_SAMPLE_ADDR, "data address"},
	{SCRIPT_DATA_SRC, PERF_SAMPLE_DATA_SRC, "data source"},
	{SCRIPT_WEIGHT, PERF_SAMPLE_WEIGHT_TYPE, "weight"},
	{SCRIPT_INS_LAT, PERF_SAMPLE_WEIGHT_STRUCT, "instruction latency"},
	{SCRIPT_IREGS, PERF_SAMPLE_REGS_INTR, "registers"},
	{SCRIPT_UREGS, PERF_SAMPLE_REGS_USER, "registers of user space"},
	{SCRIPT_PHYS_ADDR, PERF_SAMPLE_PHYS_ADDR, "physical address"},
	{SCRIPT_DATA_PAGE_SIZE, PERF_SAMPLE_DATA_PAGE_SIZE, "size of the data page"},
	{SCRIPT_CODE_PAGE_SIZE, PERF_SAMPLE_CODE_PAGE_SIZE, "size of the code page"},
};

static const char *field_name(uint32_t fields)
{
	for (size_t i = 0; i < NR_FIELDS; i++)
		if (field_names[i].field & fields)
			return field_names[i].name;
	return "";
}

static int check_event(struct script_type *t, const struct perfdata_evsel *e,
		       struct vmprof_err *err)
{
	char text[128];

	for (size_t i = 0; i < sizeof(needs) / sizeof(*needs); i++) {
		uint32_t wanted = t->fields & needs[i].fields;

		if (!wanted || e->attr.sample_type & needs[i].sample_type)
			continue;
		if (t->set & wanted)
			return err_set(err, EINVAL,
				       "samples of '%s' have no %s: field '%s' cannot be printed",
				       escape_str(text, sizeof(text), e->name), needs[i].name,
				       field_name(t->set & wanted));
		t->fields &= ~wanted;
	}
	/* Without addresses there is nothing to name; perf makes an error of that. */
	if (!(e->attr.sample_type & (PERF_SAMPLE_IP | PERF_SAMPLE_ADDR)))
		t->fields &= ~(uint32_t)(SCRIPT_FRAME | SCRIPT_SRCLINE);
	if (t->fields & SCRIPT_SYMOFF && !(t->fields & SCRIPT_SYM))
		return err_set(err, EINVAL, "field 'symoff' is only there with 'sym'");
	return 0;
}

bool script_is_dummy(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_SOFTWARE && a->config == PERF_COUNT_SW_DUMMY;
}

bool script_is_bpf_output(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_SOFTWARE && a->config == PERF_COUNT_SW_BPF_OUTPUT;
}

static const struct perfdata_evsel *first_of_type(const struct perfdata_reader *r, unsigned type)
{
	for (size_t i = 0; i < perfdata_reader_nr_evsels(r); i++) {
		const struct perfdata_evsel *e = perfdata_reader_evsel(r, i);

		if (script_type_of(&e->attr) == type && !script_is_dummy(&e->attr))
			return e;
	}
	return NULL;
}

/* Tracepoints have no frames unless one was recorded with call chains. */
static void add_tracepoint_chains(struct script_fields *f, const struct perfdata_reader *r)
{
	struct script_type *t = &f->types[PERF_TYPE_TRACEPOINT];

	for (size_t i = 0; i < perfdata_reader_nr_evsels(r) && !t->chosen; i++) {
		const struct perf_event_attr *a = &perfdata_reader_evsel(r, i)->attr;

		if (a->type == PERF_TYPE_TRACEPOINT && a->sample_type & PERF_SAMPLE_CALLCHAIN)
			t->fields |= SCRIPT_FRAME;
	}
}

static bool has_bpf_output(const struct perfdata_reader *r)
{
	for (size_t i = 0; i < perfdata_reader_nr_evsels(r); i++)
		if (script_is_bpf_output(&perfdata_reader_evsel(r, i)->attr))
			return true;
	return false;
}

int script_fields_settle(struct script_fields *f, const struct perfdata_reader *r, bool chains,
			 struct vmprof_err *err)
{
	int ret = 0;

	if (!perfdata_reader_nr_evsels(r))
		return 0;
	for (unsigned i = 0; i < SCRIPT_TYPES && !ret; i++) {
		const struct perfdata_evsel *e = first_of_type(r, i);

		if (e && f->types[i].fields)
			ret = check_event(&f->types[i], e, err);
	}
	/* it is of each sample of the most common events, and nearly nobody's */
	for (unsigned i = 0; i < SCRIPT_TYPES && !has_bpf_output(r); i++)
		f->types[i].fields &= ~(uint32_t)SCRIPT_BPF_OUTPUT;
	if (!ret && chains)
		add_tracepoint_chains(f, r);
	return ret;
}
