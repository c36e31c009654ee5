// SPDX-License-Identifier: GPL-2.0-only
/*
 * What only samples of certain events have (tools/perf/builtin-script.c: perf_sample__fprintf_*).
 */
#include <ctype.h>

#include "report/datasource.h"
#include "report/script_impl.h"
#include "report/script_text.h"
#include "util/text.h"

/* ---------- before the frames ---------- */

/*
 * Where @addr is, which need not be in the sample's own mode: there is one address space for kernel
 * and user space on what perf runs on, and the kernel is at its upper end.
 */
static void resolve(struct script *s, const struct perfdata_record *rec, uint64_t addr,
		    struct location *loc)
{
	static const uint8_t other[PERF_RECORD_MISC_CPUMODE_MASK + 1] = {
		[PERF_RECORD_MISC_KERNEL] = PERF_RECORD_MISC_USER,
		[PERF_RECORD_MISC_USER] = PERF_RECORD_MISC_KERNEL,
		[PERF_RECORD_MISC_GUEST_KERNEL] = PERF_RECORD_MISC_GUEST_USER,
		[PERF_RECORD_MISC_GUEST_USER] = PERF_RECORD_MISC_GUEST_KERNEL,
	};
	uint8_t mode = rec->cpumode;
	bool kernel = addr >> 63;

	session_resolve(s->session, s->frames.thread, mode, addr, loc);
	if (!loc->dso && other[mode] && is_kernel_cpumode(mode) != kernel)
		session_resolve(s->session, s->frames.thread, other[mode], addr, loc);
}

static void put_dso(struct script *s, const struct location *loc)
{
	text_char(&s->out, '(');
	text_str(&s->out, loc->dso ? strtab_intern_escaped(s->texts, loc->dso->name) : "[unknown]");
	text_char(&s->out, ')');
}

static void put_symbol(struct script *s, const struct location *loc, bool offset)
{
	struct buf *b = &s->out;

	if (!loc->sym) {
		text_str(b, "[unknown]");
		return;
	}
	text_str(b, strtab_intern_escaped(s->texts, session_symbol_name(s->session, loc->sym)));
	if (!offset)
		return;
	text_str(b, "+0x");
	text_hex(b, loc->offset, 0);
}

/* An address of data; where code is among it, perf names that. */
static bool addr_has_symbol(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_SOFTWARE && (a->config == PERF_COUNT_SW_PAGE_FAULTS ||
						 a->config == PERF_COUNT_SW_PAGE_FAULTS_MIN ||
						 a->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ);
}

static void put_addr(struct script *s, const struct perfdata_record *rec, uint32_t fields)
{
	struct location loc;

	text_hex(&s->out, rec->addr, 16);
	if (!addr_has_symbol(&rec->evsel->attr))
		return;
	resolve(s, rec, rec->addr, &loc);
	if (fields & SCRIPT_SYM) {
		text_char(&s->out, ' ');
		put_symbol(s, &loc, fields & SCRIPT_SYMOFF);
	}
	if (fields & SCRIPT_DSO) {
		text_char(&s->out, ' ');
		put_dso(s, &loc);
	}
}

/* As wide as the widest so far: what is behind them is mostly in one column. */
static void put_data_source(struct script *s, uint64_t value)
{
	struct buf *b = &s->out;
	size_t start = b->len, len;

	text_hex(b, value, 16);
	text_char(b, ' ');
	datasource_put(b, value);
	len = b->len - start;
	if (len > s->source_width)
		s->source_width = len;
	text_pad(b, ' ', len, s->source_width);
}

void script_values(struct script *s, const struct perfdata_record *rec, uint32_t fields)
{
	struct buf *b = &s->out;

	/* only what is decoded from a trace has any */
	if (fields & SCRIPT_FLAGS)
		text_pad(b, ' ', 0, 24);
	if (fields & SCRIPT_TRACE)
		tracepoints_put(s->tracepoints, rec, b);
	if (fields & SCRIPT_ADDR)
		put_addr(s, rec, fields);
	if (fields & SCRIPT_DATA_SRC)
		put_data_source(s, rec->parts ? rec->parts->data_src : 0);
	if (fields & SCRIPT_WEIGHT)
		text_dec(b, rec->weight, 16);
	if (fields & SCRIPT_INS_LAT)
		text_dec(b, rec->weight2, 16);
}

/* ---------- behind them ---------- */

static void put_regs(struct script *s, const struct perfdata_regs *regs)
{
	const uint64_t *word = regs->words;
	struct buf *b = &s->out;

	if (!word)
		return;
	text_str(b, " ABI:");
	text_dec(b, regs->abi, 0);
	text_char(b, ' ');
	for (uint64_t mask = regs->mask; mask; mask &= mask - 1) {
		const char *name = regnames_get(s->regnames, (unsigned)__builtin_ctzll(mask));

		text_right(b, name, strlen(name), 5);
		text_str(b, ":0x");
		text_hex(b, *word++, 0);
		text_char(b, ' ');
	}
}

static const char *branch_type(const struct perfdata_record *rec, const struct perfdata_branch *br)
{
	static const char *const types[16] = {
		"",	  "COND",      "UNCOND",   "IND",  "CALL", "IND_CALL", "RET",	"SYSCALL",
		"SYSRET", "COND_CALL", "COND_RET", "ERET", "IRQ",  "SERROR",   "NO_TX", NULL};
	static const char *const more[16] = {"FAULT_ALGN", "FAULT_DATA", "FAULT_INST", "ARCH_1",
					     "ARCH_2",	   "ARCH_3",	 "ARCH_4",     "ARCH_5"};
	const char *type = types[perfdata_branch_bits(rec, br, PERFDATA_BRANCH_TYPE)];

	if (!type)
		type = more[perfdata_branch_bits(rec, br, PERFDATA_BRANCH_NEW_TYPE)];
	return type ? type : "";
}

static void put_branch_flags(struct buf *b, const struct perfdata_record *rec,
			     const struct perfdata_branch *br)
{
	char text[] = "/-/-/-/";

	if (perfdata_branch_bits(rec, br, PERFDATA_BRANCH_MISPRED))
		text[1] = 'M';
	if (perfdata_branch_bits(rec, br, PERFDATA_BRANCH_PREDICTED))
		text[1] = 'P';
	if (perfdata_branch_bits(rec, br, PERFDATA_BRANCH_IN_TX))
		text[3] = 'X';
	if (perfdata_branch_bits(rec, br, PERFDATA_BRANCH_ABORT))
		text[5] = 'A';
	text_str(b, text);
	text_dec(b, perfdata_branch_bits(rec, br, PERFDATA_BRANCH_CYCLES), 0);
	text_char(b, '/');
	text_str(b, branch_type(rec, br));
	text_char(b, ' ');
}

static void put_branch_end(struct script *s, const struct perfdata_record *rec, uint64_t addr,
			   uint32_t fields)
{
	struct location loc = {.ip = addr};

	if (fields & (SCRIPT_DSO | SCRIPT_BRSTACKSYM | SCRIPT_BRSTACKOFF))
		resolve(s, rec, addr, &loc);
	if (fields & SCRIPT_BRSTACK || !(fields & SCRIPT_BRSTACKSYM)) {
		if (!(fields & SCRIPT_BRSTACK))
			addr = frametext_address(&loc);
		text_str(&s->out, "0x");
		text_hex(&s->out, addr, 0);
	} else {
		put_symbol(s, &loc, true);
	}
	if (fields & SCRIPT_DSO)
		put_dso(s, &loc);
}

static void put_branches(struct script *s, const struct perfdata_record *rec, uint32_t fields)
{
	bool blank = fields & SCRIPT_BRSTACK || !(fields & SCRIPT_BRSTACKSYM);

	for (uint64_t i = 0; i < rec->nr_branches; i++) {
		const struct perfdata_branch *br = &rec->branches[i];

		if (blank)
			text_char(&s->out, ' ');
		put_branch_end(s, rec, br->from, fields);
		text_char(&s->out, '/');
		put_branch_end(s, rec, br->to, fields);
		put_branch_flags(&s->out, rec, br);
	}
}

/* A line of at most eight bytes. */
static void put_bpf_line(struct buf *b, const uint8_t *p, size_t at, size_t n)
{
	const char *head = at ? "" : "BPF output:";

	text_right(b, head, strlen(head), 17);
	buf_printf(b, " %04zx:", at);
	for (size_t i = 0; i < 8; i++) {
		text_str(b, i < n ? " " : "   ");
		if (i < n)
			text_number(b, p[at + i], 16, '0', 2);
	}
	text_str(b, "  ");
	for (size_t i = 0; i < 8; i++)
		text_char(b, i >= n				    ? ' '
			     : p[at + i] >= ' ' && p[at + i] <= '~' ? (char)p[at + i]
								    : '.');
	text_char(b, '\n');
}

/* A string with nothing but zeros behind it. */
static bool is_string(const uint8_t *p, size_t n)
{
	size_t len = 0;

	while (len < n && p[len] >= ' ' && p[len] <= '~')
		len++;
	if (len == n)
		return false;
	for (; len < n; len++)
		if (p[len])
			return false;
	return true;
}

static void put_bpf_output(struct buf *b, const uint8_t *p, size_t n)
{
	text_char(b, '\n');
	for (size_t at = 0; at < n; at += 8)
		put_bpf_line(b, p, at, n - at < 8 ? n - at : 8);
	if (!is_string(p, n))
		return;
	text_str(b, "      BPF string: \"");
	text_str(b, (const char *)p);
	text_str(b, "\"\n");
}

static void put_page_size(struct buf *b, uint64_t size)
{
	text_char(b, ' ');
	datasource_page_size(b, size);
}

void script_parts(struct script *s, const struct perfdata_record *rec, uint32_t fields)
{
	static const struct perfdata_parts none;
	const struct perfdata_parts *p = rec->parts ? rec->parts : &none;
	const struct perf_event_attr *a = &rec->evsel->attr;
	struct buf *b = &s->out;

	if (fields & SCRIPT_IREGS)
		put_regs(s, &p->regs_intr);
	if (fields & SCRIPT_UREGS)
		put_regs(s, &p->regs_user);
	if (fields & SCRIPT_BRANCHES)
		put_branches(s, rec, fields);
	if (fields & SCRIPT_BPF_OUTPUT && script_is_bpf_output(a))
		put_bpf_output(b, rec->raw, rec->raw_size);
	if (fields & SCRIPT_PHYS_ADDR)
		text_hex(b, p->phys_addr, 16);
	if (fields & SCRIPT_DATA_PAGE_SIZE)
		put_page_size(b, p->data_page_size);
	if (fields & SCRIPT_CODE_PAGE_SIZE)
		put_page_size(b, p->code_page_size);
}
