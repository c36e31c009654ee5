// SPDX-License-Identifier: GPL-2.0-only
/* The columns. Headers, widths and number formats are perf's, where perf has the column. */
#include <inttypes.h>
#include <string.h>

#include <linux/perf_event.h>

#include "report/columns.h"

/* Numbers of an entry */

static void print_percent(double percent, unsigned width, struct buf *b)
{
	if (width)
		buf_printf(b, " %*.2f%%", (int)width - 2, percent);
	else
		buf_printf(b, "%.2f", percent);
}

static void print_number(uint64_t v, unsigned width, struct buf *b)
{
	if (width)
		buf_printf(b, " %*" PRIu64, (int)width - 1, v);
	else
		buf_printf(b, "%" PRIu64, v);
}

static void print_value(const struct column *c, const struct hist *h, const struct hist_entry *e,
			uint32_t i, unsigned width, struct buf *b)
{
	uint64_t v = c->value(hist_weights(h, e, i)), total = hist_total(h, i);

	if (c->percent)
		print_percent(total ? 100.0 * (double)v / (double)total : 0, width, b);
	else
		print_number(v, width, b);
}

#define VALUE_FUNCTION(name, expression)                                                           \
	static uint64_t name##_value(const struct hist_weights *w)                                 \
	{                                                                                          \
		return expression;                                                                 \
	}

VALUE_FUNCTION(overhead, w->period)
VALUE_FUNCTION(sys, w->mode_period[PERF_RECORD_MISC_KERNEL])
VALUE_FUNCTION(us, w->mode_period[PERF_RECORD_MISC_USER])
VALUE_FUNCTION(guest_sys, w->mode_period[PERF_RECORD_MISC_GUEST_KERNEL])
VALUE_FUNCTION(guest_us, w->mode_period[PERF_RECORD_MISC_GUEST_USER])
VALUE_FUNCTION(children, w->children_period)
VALUE_FUNCTION(samples, w->samples)

/* Context */

static const char *comm_text(const struct hist *h, const struct hist_entry *e)
{
	return profile_text(h->profile, hist_context_of(h, e)->comm);
}

static uint64_t comm_id(const struct hist *h, const struct context *ctx)
{
	return (uintptr_t)ctx->comm;
}

/* perf has the width of what the thread is called at the end, also for its earlier names. */
static unsigned comm_width(const struct hist *h, const struct hist_entry *e)
{
	return (unsigned)strlen(profile_text(h->profile, e->thread->comm));
}

static void comm_print(const struct hist *h, const struct hist_entry *e, unsigned width,
		       struct buf *b)
{
	column_text(b, comm_text(h, e), width);
}

static uint64_t tid_id(const struct hist *h, const struct context *ctx)
{
	return (uint64_t)ctx->machine->index << 32 | (uint32_t)ctx->thread->tid;
}

static uint64_t tgid_id(const struct hist *h, const struct context *ctx)
{
	return (uint64_t)ctx->machine->index << 32 | (uint32_t)ctx->thread->pid;
}

static int by_thread(const struct thread *a, int32_t a_id, const struct thread *b, int32_t b_id)
{
	return a_id != b_id ? (a_id < b_id ? -1 : 1)
			    : column_by_number(a->machine->index, b->machine->index);
}

static int tid_sort(const struct hist *h, const struct hist_entry *x, const struct hist_entry *y)
{
	return by_thread(x->thread, x->thread->tid, y->thread, y->thread->tid);
}

static int tgid_sort(const struct hist *h, const struct hist_entry *x, const struct hist_entry *y)
{
	return by_thread(x->thread, x->thread->pid, y->thread, y->thread->pid);
}

/* Ids are a VM's own: without a column VM its name stands before the command, as in perf. */
static const char *thread_vm(const struct hist *h, const struct hist_entry *e)
{
	const struct machine *m = e->thread->machine;

	return machine_is_host(m) || h->cfg.machine || h->layout->has_vm
		       ? ""
		       : profile_vm_name(h->profile, m);
}

static unsigned thread_width(const struct hist *h, const struct hist_entry *e)
{
	unsigned vm = (unsigned)strlen(thread_vm(h, e));

	return (vm ? vm + 1 : 0) + comm_width(h, e) + 8;
}

static void print_thread(const struct hist *h, const struct hist_entry *e, int32_t id,
			 unsigned width, struct buf *b)
{
	const char *comm = profile_text(h->profile, e->thread->comm), *vm = thread_vm(h, e);
	size_t start = b->len;

	buf_printf(b, "%*" PRId32 ":%s%s", width ? 7 : 0, id, vm, *vm ? ":" : "");
	column_text(b, comm, width > b->len - start ? width - (unsigned)(b->len - start) : 0);
}

static void tid_print(const struct hist *h, const struct hist_entry *e, unsigned width,
		      struct buf *b)
{
	print_thread(h, e, e->thread->tid, width, b);
}

static void tgid_print(const struct hist *h, const struct hist_entry *e, unsigned width,
		       struct buf *b)
{
	print_thread(h, e, e->thread->pid, width, b);
}

static uint64_t cpu_id(const struct hist *h, const struct context *ctx)
{
	return ctx->cpu;
}

static int cpu_sort(const struct hist *h, const struct hist_entry *x, const struct hist_entry *y)
{
	int32_t a = (int32_t)hist_context_of(h, x)->cpu, b = (int32_t)hist_context_of(h, y)->cpu;

	return a < b ? -1 : a > b;
}

/* A precision of 0, which the absence of a width is not, would leave no digit of 0. */
static void print_cpu(int32_t cpu, unsigned width, struct buf *b)
{
	buf_printf(b, "%*.*" PRId32, (int)width, width ? (int)width : 1, cpu);
}

static void cpu_print(const struct hist *h, const struct hist_entry *e, unsigned width,
		      struct buf *b)
{
	print_cpu((int32_t)hist_context_of(h, e)->cpu, width, b);
}

static uint64_t vcpu_id(const struct hist *h, const struct context *ctx)
{
	return (uint32_t)ctx->vcpu;
}

static int vcpu_sort(const struct hist *h, const struct hist_entry *x, const struct hist_entry *y)
{
	int32_t a = hist_context_of(h, x)->vcpu, b = hist_context_of(h, y)->vcpu;

	return a < b ? -1 : a > b;
}

static void vcpu_print(const struct hist *h, const struct hist_entry *e, unsigned width,
		       struct buf *b)
{
	int32_t vcpu = hist_context_of(h, e)->vcpu;

	if (vcpu < 0 && width)
		buf_printf(b, "%*s", (int)width, "-");
	else
		print_cpu(vcpu, width, b);
}

static uint64_t vm_id(const struct hist *h, const struct context *ctx)
{
	return ctx->machine->index;
}

static int vm_sort(const struct hist *h, const struct hist_entry *x, const struct hist_entry *y)
{
	const struct machine *a = hist_context_of(h, x)->machine,
			     *b = hist_context_of(h, y)->machine;
	int cmp = machine_is_host(b) - machine_is_host(a);

	if (!cmp)
		cmp = strcmp(a->name, b->name);
	return cmp ? cmp : column_by_number(a->index, b->index);
}

static const char *vm_text(const struct hist *h, const struct hist_entry *e)
{
	return profile_vm_name(h->profile, hist_context_of(h, e)->machine);
}

static unsigned vm_width(const struct hist *h, const struct hist_entry *e)
{
	return (unsigned)strlen(vm_text(h, e));
}

static void vm_print(const struct hist *h, const struct hist_entry *e, unsigned width,
		     struct buf *b)
{
	column_text(b, vm_text(h, e), width);
}

static const char *cgroup_text(const struct hist *h, const struct hist_entry *e)
{
	const char *cgroup = hist_context_of(h, e)->cgroup;

	return cgroup ? profile_text(h->profile, cgroup) : "N/A";
}

static uint64_t cgroup_id(const struct hist *h, const struct context *ctx)
{
	return (uintptr_t)ctx->cgroup;
}

static int cgroup_sort(const struct hist *h, const struct hist_entry *x, const struct hist_entry *y)
{
	return strcmp(cgroup_text(h, x), cgroup_text(h, y));
}

static unsigned cgroup_width(const struct hist *h, const struct hist_entry *e)
{
	return (unsigned)strlen(cgroup_text(h, e));
}

static void cgroup_print(const struct hist *h, const struct hist_entry *e, unsigned width,
			 struct buf *b)
{
	column_text(b, cgroup_text(h, e), width);
}

/* Location */

static unsigned dso_width(const struct hist *h, const struct hist_entry *e)
{
	const struct frame *f = hist_frame_of(h, e);
	unsigned len = f->dso ? (unsigned)strlen(hist_dso_name(h, e)) : 0;

	/* room for an address, in case that it is what stands there */
	return !f->sym && len < ADDRESS_WIDTH && !h->cfg.filter->dsos ? ADDRESS_WIDTH : len;
}

static void dso_print(const struct hist *h, const struct hist_entry *e, unsigned width,
		      struct buf *b)
{
	column_text(b, hist_dso_name(h, e), width);
}

static unsigned symbol_width(const struct hist *h, const struct hist_entry *e)
{
	return column_symbol_width(h, e->frame);
}

static void symbol_print(const struct hist *h, const struct hist_entry *e, unsigned width,
			 struct buf *b)
{
	column_symbol(h, e->frame, e->level, e->addr, width, b);
}

/* A column by a number of the sample. */
#define SAMPLE_VALUE(value, name, printed)                                                         \
	.kind = COLUMN_CONTEXT, .needs = PROFILE_BY_##value, .context_id = column_##name##_id,     \
	.sort = column_##name##_sort, .width = column_##printed##_width,                           \
	.print = column_##printed##_print, .number = true

/* The same of what is put into words. */
#define SAMPLE_TEXT(value, name)                                                                   \
	.kind = COLUMN_CONTEXT, .needs = PROFILE_BY_##value, .context_id = column_##name##_id,     \
	.sort = column_##name##_sort, .width = column_##name##_width,                              \
	.print = column_##name##_print

const struct column columns[COLUMN_COUNT] = {
	[COLUMN_PID] = {.key = "pid",
			.header = "    Pid:Command",
			.kind = COLUMN_CONTEXT,
			.needs = PROFILE_BY_THREAD,
			.context_id = tid_id,
			.sort = tid_sort,
			.width = thread_width,
			.print = tid_print},
	[COLUMN_COMM] = {.key = "comm",
			 .header = "Command",
			 .kind = COLUMN_CONTEXT,
			 .context_id = comm_id,
			 .width = comm_width,
			 .print = comm_print},
	[COLUMN_DSO] = {.key = "dso",
			.header = "Shared Object",
			.kind = COLUMN_LOCATION,
			.part = LOCATION_DSO,
			.width = dso_width,
			.print = dso_print},
	[COLUMN_SYMBOL] = {.key = "symbol",
			   .header = "Symbol",
			   .kind = COLUMN_LOCATION,
			   .part = LOCATION_SYMBOL,
			   .width = symbol_width,
			   .print = symbol_print},
	[COLUMN_CPU] = {.key = "cpu",
			.header = "CPU",
			.kind = COLUMN_CONTEXT,
			.needs = PROFILE_BY_CPU,
			.context_id = cpu_id,
			.sort = cpu_sort,
			.fixed_width = 3,
			.print = cpu_print,
			.number = true},
	[COLUMN_CGROUP] = {.key = "cgroup",
			   .header = "Cgroup",
			   .kind = COLUMN_CONTEXT,
			   .needs = PROFILE_BY_CGROUP,
			   .context_id = cgroup_id,
			   .sort = cgroup_sort,
			   .width = cgroup_width,
			   .print = cgroup_print},
	[COLUMN_VM] = {.key = "vm",
		       .header = "VM",
		       .kind = COLUMN_CONTEXT,
		       .context_id = vm_id,
		       .sort = vm_sort,
		       .width = vm_width,
		       .print = vm_print},
	[COLUMN_VCPU] = {.key = "vcpu",
			 .header = "VCPU",
			 .kind = COLUMN_CONTEXT,
			 .needs = PROFILE_BY_VCPU,
			 .context_id = vcpu_id,
			 .sort = vcpu_sort,
			 .print = vcpu_print,
			 .number = true},
	[COLUMN_TID] = {.key = "tid",
			.header = "    Tid:Command",
			.kind = COLUMN_CONTEXT,
			.needs = PROFILE_BY_THREAD,
			.context_id = tid_id,
			.sort = tid_sort,
			.width = thread_width,
			.print = tid_print},
	[COLUMN_TGID] = {.key = "tgid",
			 .header = "   Tgid:Command",
			 .kind = COLUMN_CONTEXT,
			 .needs = PROFILE_BY_THREAD,
			 .context_id = tgid_id,
			 .sort = tgid_sort,
			 .width = thread_width,
			 .print = tgid_print},
	[COLUMN_DSO_FROM] = {.key = "dso_from",
			     .header = "Source Shared Object",
			     .kind = COLUMN_BRANCH,
			     .part = LOCATION_DSO,
			     .end = LOCATION_FROM,
			     .sort = column_dso_from_sort,
			     .width = column_dso_from_width,
			     .print = column_dso_from_print},
	[COLUMN_DSO_TO] = {.key = "dso_to",
			   .header = "Target Shared Object",
			   .kind = COLUMN_BRANCH,
			   .part = LOCATION_DSO,
			   .end = LOCATION_TO,
			   .sort = column_dso_to_sort,
			   .width = column_dso_to_width,
			   .print = column_dso_to_print},
	[COLUMN_SYMBOL_FROM] = {.key = "symbol_from",
				.header = "Source Symbol",
				.kind = COLUMN_BRANCH,
				.part = LOCATION_SYMBOL,
				.end = LOCATION_FROM,
				.sort = column_symbol_from_sort,
				.width = column_symbol_from_width,
				.print = column_symbol_from_print},
	[COLUMN_SYMBOL_TO] = {.key = "symbol_to",
			      .header = "Target Symbol",
			      .kind = COLUMN_BRANCH,
			      .part = LOCATION_SYMBOL,
			      .end = LOCATION_TO,
			      .sort = column_symbol_to_sort,
			      .width = column_symbol_to_width,
			      .print = column_symbol_to_print},
	[COLUMN_MISPREDICT] = {.key = "mispredict",
			       .header = "Branch Mispredicted",
			       .kind = COLUMN_BRANCH,
			       .needs = PROFILE_BY_PREDICTION,
			       .sort = column_mispredict_sort,
			       .print = column_mispredict_print},
	[COLUMN_IN_TX] = {.key = "in_tx",
			  .header = "Branch in transaction",
			  .kind = COLUMN_BRANCH,
			  .needs = PROFILE_BY_TRANSACTION,
			  .sort = column_in_tx_sort,
			  .print = column_in_tx_print},
	[COLUMN_ABORT] = {.key = "abort",
			  .header = "Transaction abort",
			  .kind = COLUMN_BRANCH,
			  .needs = PROFILE_BY_TRANSACTION,
			  .sort = column_abort_sort,
			  .print = column_abort_print},
	[COLUMN_CYCLES] = {.key = "cycles",
			   .header = "Basic Block Cycles",
			   .kind = COLUMN_BRANCH,
			   .needs = PROFILE_BY_CYCLES,
			   .sort = column_cycles_sort,
			   .print = column_cycles_print},
	[COLUMN_PARENT] = {.key = "parent",
			   .header = "Parent symbol",
			   .kind = COLUMN_CONTEXT,
			   .needs = PROFILE_BY_PARENT,
			   .context_id = column_parent_id,
			   .sort = column_parent_sort,
			   .width = column_parent_width,
			   .print = column_parent_print},
	[COLUMN_SRCLINE] = {.key = "srcline",
			    .header = "Source:Line",
			    .kind = COLUMN_LOCATION,
			    .part = LOCATION_SRCLINE,
			    .needs = PROFILE_BY_SRCLINE,
			    .sort = column_srcline_sort,
			    .width = column_srcline_width,
			    .print = column_srcline_print},
	[COLUMN_SRCFILE] = {.key = "srcfile",
			    .header = "Source File",
			    .kind = COLUMN_LOCATION,
			    .part = LOCATION_SRCFILE,
			    .needs = PROFILE_BY_SRCFILE,
			    .sort = column_srcfile_sort,
			    .width = column_srcfile_width,
			    .print = column_srcfile_print},
	[COLUMN_SYMBOL_SIZE] = {.key = "symbol_size",
				.header = "Symbol size",
				.kind = COLUMN_LOCATION,
				.part = LOCATION_SIZE,
				.sort = column_symbol_size_sort,
				.width = column_symbol_size_width,
				.print = column_symbol_size_print,
				.number = true},
	[COLUMN_SRCLINE_FROM] = {.key = "srcline_from",
				 .header = "From Source:Line",
				 .kind = COLUMN_BRANCH,
				 .part = LOCATION_SRCLINE,
				 .end = LOCATION_FROM,
				 .needs = PROFILE_BY_SRCLINE,
				 .sort = column_srcline_from_sort,
				 .width = column_srcline_from_width,
				 .print = column_srcline_from_print},
	[COLUMN_SRCLINE_TO] = {.key = "srcline_to",
			       .header = "To Source:Line",
			       .kind = COLUMN_BRANCH,
			       .part = LOCATION_SRCLINE,
			       .end = LOCATION_TO,
			       .needs = PROFILE_BY_SRCLINE,
			       .sort = column_srcline_to_sort,
			       .width = column_srcline_to_width,
			       .print = column_srcline_to_print},
	[COLUMN_LOCAL_WEIGHT] = {.key = "local_weight",
				 .header = "Local Weight",
				 SAMPLE_VALUE(WEIGHT, weight, local_weight)},
	[COLUMN_WEIGHT] = {.key = "weight",
			   .header = "Weight",
			   SAMPLE_VALUE(WEIGHT, weight, weight)},
	[COLUMN_LOCAL_INS_LAT] = {.key = "local_ins_lat",
				  .header = "Local INSTR Latency",
				  SAMPLE_VALUE(INS_LAT, ins_lat, local_ins_lat)},
	[COLUMN_INS_LAT] = {.key = "ins_lat",
			    .header = "INSTR Latency",
			    SAMPLE_VALUE(INS_LAT, ins_lat, ins_lat)},
	[COLUMN_LOCAL_STAGE_CYCLES] = {.key = "local_p_stage_cyc",
				       .header = "Local Pipeline Stage Cycle",
				       SAMPLE_VALUE(STAGE_CYCLES, stage_cycles,
						    local_stage_cycles)},
	[COLUMN_STAGE_CYCLES] = {.key = "p_stage_cyc",
				 .header = "Pipeline Stage Cycle",
				 SAMPLE_VALUE(STAGE_CYCLES, stage_cycles, stage_cycles)},
	[COLUMN_CODE_PAGE_SIZE] = {.key = "code_page_size",
				   .header = "Code Page Size",
				   SAMPLE_TEXT(CODE_PAGE_SIZE, code_page_size)},
	[COLUMN_TIME] = {.key = "time", .header = "Time", SAMPLE_TEXT(TIME, time)},
	[COLUMN_TRANSACTION] = {.key = "transaction",
				.header = "Transaction                ",
				SAMPLE_TEXT(TRANSACTIONS, transaction)},
	[COLUMN_LOCKED] = {.key = "locked", .header = "Locked", SAMPLE_TEXT(DATA_SOURCE, locked)},
	[COLUMN_TLB] = {.key = "tlb", .header = "TLB access", SAMPLE_TEXT(DATA_SOURCE, tlb)},
	[COLUMN_MEM] = {.key = "mem", .header = "Memory access", SAMPLE_TEXT(DATA_SOURCE, mem)},
	[COLUMN_SNOOP] = {.key = "snoop", .header = "Snoop", SAMPLE_TEXT(DATA_SOURCE, snoop)},
	[COLUMN_PHYS_DADDR] = {.key = "phys_daddr",
			       .header = "Data Physical Address",
			       SAMPLE_TEXT(PHYS_ADDR, phys_daddr)},
	[COLUMN_DATA_PAGE_SIZE] = {.key = "data_page_size",
				   .header = "Data Page Size",
				   SAMPLE_TEXT(DATA_PAGE_SIZE, data_page_size)},
	[COLUMN_BLOCKED] = {.key = "blocked",
			    .header = "Blocked",
			    SAMPLE_TEXT(DATA_SOURCE, blocked)},
	[COLUMN_OVERHEAD] = {.key = "overhead",
			     .header = "Overhead",
			     .value = overhead_value,
			     .percent = true,
			     .fixed_width = 8,
			     .number = true},
	[COLUMN_OVERHEAD_SYS] = {.key = "overhead_sys",
				 .header = "sys",
				 .value = sys_value,
				 .percent = true,
				 .fixed_width = 8,
				 .number = true},
	[COLUMN_OVERHEAD_US] = {.key = "overhead_us",
				.header = "usr",
				.value = us_value,
				.percent = true,
				.fixed_width = 8,
				.number = true},
	[COLUMN_OVERHEAD_GUEST_SYS] = {.key = "overhead_guest_sys",
				       .header = "guest sys",
				       .value = guest_sys_value,
				       .percent = true,
				       .fixed_width = 9,
				       .number = true},
	[COLUMN_OVERHEAD_GUEST_US] = {.key = "overhead_guest_us",
				      .header = "guest usr",
				      .value = guest_us_value,
				      .percent = true,
				      .fixed_width = 9,
				      .number = true},
	[COLUMN_CHILDREN] = {.key = "overhead_children",
			     .header = "Children",
			     .value = children_value,
			     .percent = true,
			     .fixed_width = 8,
			     .number = true},
	[COLUMN_SAMPLES] = {.key = "sample",
			    .header = "Samples",
			    .value = samples_value,
			    .fixed_width = 12,
			    .number = true},
	[COLUMN_PERIOD] = {.key = "period",
			   .header = "Period",
			   .value = overhead_value,
			   .fixed_width = 12,
			   .number = true},
};

int column_sort(const struct column *c, const struct hist *h, const struct hist_entry *x,
		const struct hist_entry *y)
{
	int cmp = 0;

	if (c->sort)
		return c->sort(h, x, y);
	for (uint32_t i = 0; i < h->cfg.nr_events && !cmp; i++)
		cmp = column_by_number(c->value(hist_weights(h, y, i)),
				       c->value(hist_weights(h, x, i)));
	return cmp;
}

void column_print(const struct column *c, const struct hist *h, const struct hist_entry *e,
		  unsigned width, struct buf *b)
{
	if (!c->value) {
		c->print(h, e, width, b);
		return;
	}
	for (uint32_t i = 0; i < h->cfg.nr_events; i++)
		print_value(c, h, e, i, width ? c->fixed_width : 0, b);
}
