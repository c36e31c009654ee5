// SPDX-License-Identifier: GPL-2.0-only
/* An event's attributes as perf prints them: ", name = value" for each that is not 0. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "perfdata/reader_impl.h"

struct bit_name {
	uint64_t bit;
	const char *name;
};

#define BIT(prefix, name)                                                                          \
	{                                                                                          \
		prefix##name, #name                                                                \
	}
static const struct bit_name sample_type[] = {
	BIT(PERF_SAMPLE_, IP),
	BIT(PERF_SAMPLE_, TID),
	BIT(PERF_SAMPLE_, TIME),
	BIT(PERF_SAMPLE_, ADDR),
	BIT(PERF_SAMPLE_, READ),
	BIT(PERF_SAMPLE_, CALLCHAIN),
	BIT(PERF_SAMPLE_, ID),
	BIT(PERF_SAMPLE_, CPU),
	BIT(PERF_SAMPLE_, PERIOD),
	BIT(PERF_SAMPLE_, STREAM_ID),
	BIT(PERF_SAMPLE_, RAW),
	BIT(PERF_SAMPLE_, BRANCH_STACK),
	BIT(PERF_SAMPLE_, REGS_USER),
	BIT(PERF_SAMPLE_, STACK_USER),
	BIT(PERF_SAMPLE_, IDENTIFIER),
	BIT(PERF_SAMPLE_, REGS_INTR),
	BIT(PERF_SAMPLE_, DATA_SRC),
	BIT(PERF_SAMPLE_, WEIGHT),
	BIT(PERF_SAMPLE_, PHYS_ADDR),
	BIT(PERF_SAMPLE_, AUX),
	BIT(PERF_SAMPLE_, CGROUP),
	BIT(PERF_SAMPLE_, DATA_PAGE_SIZE),
	BIT(PERF_SAMPLE_, CODE_PAGE_SIZE),
	BIT(PERF_SAMPLE_, WEIGHT_STRUCT),
	{0},
};

static const struct bit_name branch_sample_type[] = {
	BIT(PERF_SAMPLE_BRANCH_, USER),	     BIT(PERF_SAMPLE_BRANCH_, KERNEL),
	BIT(PERF_SAMPLE_BRANCH_, HV),	     BIT(PERF_SAMPLE_BRANCH_, ANY),
	BIT(PERF_SAMPLE_BRANCH_, ANY_CALL),  BIT(PERF_SAMPLE_BRANCH_, ANY_RETURN),
	BIT(PERF_SAMPLE_BRANCH_, IND_CALL),  BIT(PERF_SAMPLE_BRANCH_, ABORT_TX),
	BIT(PERF_SAMPLE_BRANCH_, IN_TX),     BIT(PERF_SAMPLE_BRANCH_, NO_TX),
	BIT(PERF_SAMPLE_BRANCH_, COND),	     BIT(PERF_SAMPLE_BRANCH_, CALL_STACK),
	BIT(PERF_SAMPLE_BRANCH_, IND_JUMP),  BIT(PERF_SAMPLE_BRANCH_, CALL),
	BIT(PERF_SAMPLE_BRANCH_, NO_FLAGS),  BIT(PERF_SAMPLE_BRANCH_, NO_CYCLES),
	BIT(PERF_SAMPLE_BRANCH_, TYPE_SAVE), BIT(PERF_SAMPLE_BRANCH_, HW_INDEX),
	BIT(PERF_SAMPLE_BRANCH_, PRIV_SAVE), {0},
};

static const struct bit_name read_format[] = {
	BIT(PERF_FORMAT_, TOTAL_TIME_ENABLED),
	BIT(PERF_FORMAT_, TOTAL_TIME_RUNNING),
	BIT(PERF_FORMAT_, ID),
	BIT(PERF_FORMAT_, GROUP),
	BIT(PERF_FORMAT_, LOST),
	{0},
};

/* The bits behind read_format, from the lowest; NULL: of precise_ip, which is two bits wide. */
static const char *const flags[] = {
	"disabled",
	"inherit",
	"pinned",
	"exclusive",
	"exclude_user",
	"exclude_kernel",
	"exclude_hv",
	"exclude_idle",
	"mmap",
	"comm",
	"freq",
	"inherit_stat",
	"enable_on_exec",
	"task",
	"watermark",
	NULL,
	NULL,
	"mmap_data",
	"sample_id_all",
	"exclude_host",
	"exclude_guest",
	"exclude_callchain_kernel",
	"exclude_callchain_user",
	"mmap2",
	"comm_exec",
	"use_clockid",
	"context_switch",
	"write_backward",
	"namespaces",
	"ksymbol",
	"bpf_event",
	"aux_output",
	"cgroup",
	"text_poke",
	"build_id",
	"inherit_thread",
	"remove_on_exec",
	"sigtrap",
};

#define FLAGS_OFFSET (offsetof(struct perf_event_attr, read_format) + 8)

static void print_bits(FILE *f, const char *name, uint64_t v, const struct bit_name *names)
{
	const char *sep = "";

	if (!v)
		return;
	fprintf(f, ", %s = ", name);
	for (; names->name; names++) {
		if (v & names->bit) {
			fprintf(f, "%s%s", sep, names->name);
			sep = "|";
		}
	}
}

static void print_flags(FILE *f, const struct perf_event_attr *attr)
{
	uint64_t bits;

	memcpy(&bits, (const uint8_t *)attr + FLAGS_OFFSET, sizeof(bits));
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		if (flags[i] && bits >> i & 1)
			fprintf(f, ", %s = 1", flags[i]);
		else if (!flags[i] && flags[i - 1] && attr->precise_ip)
			fprintf(f, ", precise_ip = %u", (unsigned)attr->precise_ip);
	}
}

static void print_u(FILE *f, const char *name, uint64_t v)
{
	if (v)
		fprintf(f, ", %s = %" PRIu64, name, v);
}

static void print_x(FILE *f, const char *name, uint64_t v)
{
	if (v)
		fprintf(f, ", %s = %#" PRIx64, name, v);
}

void attr_print(const struct perf_event_attr *attr, FILE *f)
{
	print_u(f, "type", attr->type);
	print_u(f, "size", attr->size);
	print_x(f, "config", attr->config);
	print_u(f, "{ sample_period, sample_freq }", attr->sample_period);
	print_bits(f, "sample_type", attr->sample_type, sample_type);
	print_bits(f, "read_format", attr->read_format, read_format);
	print_flags(f, attr);
	print_u(f, "{ wakeup_events, wakeup_watermark }", attr->wakeup_events);
	print_u(f, "bp_type", attr->bp_type);
	print_x(f, "{ bp_addr, config1 }", attr->bp_addr);
	print_x(f, "{ bp_len, config2 }", attr->bp_len);
	print_bits(f, "branch_sample_type", attr->branch_sample_type, branch_sample_type);
	print_x(f, "sample_regs_user", attr->sample_regs_user);
	print_u(f, "sample_stack_user", attr->sample_stack_user);
	if (attr->clockid)
		fprintf(f, ", clockid = %d", attr->clockid);
	print_x(f, "sample_regs_intr", attr->sample_regs_intr);
	print_u(f, "aux_watermark", attr->aux_watermark);
	print_u(f, "sample_max_stack", attr->sample_max_stack);
	print_u(f, "aux_sample_size", attr->aux_sample_size);
	print_u(f, "sig_data", attr->sig_data);
}
