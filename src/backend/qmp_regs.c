// SPDX-License-Identifier: GPL-2.0-only
#include "backend/qmp_regs.h"

#include <string.h>

struct span {
	const char *at, *end;
};

/* Up to 16 digits behind blanks; moves behind them. */
static bool hex(struct span *s, uint64_t *value)
{
	unsigned digits = 0;

	*value = 0;
	while (s->at < s->end && *s->at == ' ')
		s->at++;
	for (; s->at < s->end; s->at++, digits++) {
		char c = *s->at;
		int d = c >= '0' && c <= '9'   ? c - '0'
			: c >= 'a' && c <= 'f' ? c - 'a' + 10
			: c >= 'A' && c <= 'F' ? c - 'A' + 10
					       : -1;

		if (d < 0)
			break;
		*value = *value << 4 | (unsigned)d;
	}
	return digits && digits <= 16;
}

/* What is behind @key, which begins a word. */
static bool behind(const struct span *s, const char *key, struct span *rest)
{
	size_t n = strlen(key);

	for (const char *p = s->at; (p = memmem(p, (size_t)(s->end - p), key, n)); p += n)
		if (p == s->at || p[-1] == ' ' || p[-1] == '\n') {
			*rest = (struct span){p + n, s->end};
			return true;
		}
	return false;
}

static bool field(const struct span *s, const char *key, uint64_t max, uint64_t *value)
{
	struct span rest;

	return behind(s, key, &rest) && hex(&rest, value) && *value <= max;
}

/* A segment's base: the number behind its selector. */
static bool base_of(const struct span *s, const char *key, uint64_t *base)
{
	uint64_t selector;
	struct span rest;

	return behind(s, key, &rest) && hex(&rest, &selector) && hex(&rest, base);
}

/* The program runs in 64-bit mode, or in 32-bit mode: then QEMU shows half of them. */
static bool general(const struct span *s, struct guest_regs *r)
{
	static const char *const wide[] = {
		"RAX=", "RCX=", "RDX=", "RBX=", "RSP=", "RBP=", "RSI=", "RDI=",
		"R8 =", "R9 =", "R10=", "R11=", "R12=", "R13=", "R14=", "R15="};
	static const char *const narrow[] = {
		"EAX=", "ECX=", "EDX=", "EBX=", "ESP=", "EBP=", "ESI=", "EDI="};
	bool is_wide = field(s, "RIP=", UINT64_MAX, &r->ip);
	uint64_t max = is_wide ? UINT64_MAX : UINT32_MAX;

	if (!is_wide && !field(s, "EIP=", max, &r->ip))
		return false;
	for (unsigned i = 0; i < (is_wide ? 16 : 8); i++)
		if (!field(s, is_wide ? wide[i] : narrow[i], max, &r->gpr[i]))
			return false;
	r->sp = r->gpr[X86_RSP];
	r->fp = r->gpr[X86_RBP];
	return field(s, is_wide ? "RFL=" : "EFL=", max, &r->flags);
}

static bool one_cpu(const struct span *s, struct guest_regs *out)
{
	struct guest_regs r = {0};
	uint64_t cpl, halted;

	if (!general(s, &r) || !field(s, "CPL=", 3, &cpl) || !field(s, "HLT=", 1, &halted) ||
	    !field(s, "CR0=", UINT64_MAX, &r.cr0) || !field(s, "CR3=", UINT64_MAX, &r.pgtable) ||
	    !field(s, "CR4=", UINT64_MAX, &r.cr4) || !field(s, "GDT=", UINT64_MAX, &r.gdt_base) ||
	    !field(s, "IDT=", UINT64_MAX, &r.idt_base) || !base_of(s, "GS =", &r.gs_base))
		return false;
	r.has_efer = field(s, "EFER=", UINT64_MAX, &r.efer);
	r.cpl = (uint8_t)cpl;
	r.halted = halted;
	*out = r;
	return true;
}

/* Behind the next "CPU#" that begins a line. */
static bool next_cpu(struct span *s, const char *text)
{
	static const char mark[] = "CPU#";

	for (const char *p = s->at; (p = memmem(p, (size_t)(s->end - p), mark, 4)); p += 4)
		if (p == text || p[-1] == '\n') {
			s->at = p + 4;
			return true;
		}
	return false;
}

/* Decimal, ends the line. */
static bool number(struct span *s, uint32_t *value)
{
	const char *start = s->at;

	*value = 0;
	for (; s->at < s->end && *s->at >= '0' && *s->at <= '9' && s->at - start < 9; s->at++)
		*value = *value * 10 + (uint32_t)(*s->at - '0');
	return s->at > start && s->at < s->end && (*s->at == '\n' || *s->at == '\r');
}

uint32_t qmp_regs_parse(const char *text, size_t len, struct guest_regs *regs, bool *known,
			uint32_t n)
{
	struct span s = {text, text + len};
	uint32_t found = 0, cpu;
	bool more = next_cpu(&s, text);

	memset(known, 0, n * sizeof(*known));
	while (more) {
		struct span one = s;
		bool good = number(&one, &cpu) && cpu < n;

		more = next_cpu(&s, text);
		if (more)
			one.end = s.at - 4;
		if (!good || known[cpu] || !one_cpu(&one, &regs[cpu]))
			continue;
		known[cpu] = true;
		found++;
	}
	return found;
}
