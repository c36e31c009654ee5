// SPDX-License-Identifier: GPL-2.0-only
#include "annotate/disasm.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "util/xalloc.h"

#if HAVE_CAPSTONE

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <capstone/capstone.h>

struct disasm {
	csh handle;
	cs_insn *insn;
	unsigned shortest; /* bytes of an instruction */
	bool x86, x86_64;
};

static const struct arch {
	uint16_t machine;
	cs_arch arch;
	cs_mode mode;
	unsigned shortest;
} archs[] = {
	{EM_X86_64, CS_ARCH_X86, CS_MODE_64, 1},
	{EM_386, CS_ARCH_X86, CS_MODE_32, 1},
	{EM_AARCH64, CS_ARCH_ARM64, CS_MODE_ARM, 4},
	{EM_ARM, CS_ARCH_ARM, CS_MODE_ARM, 4},
};

int disasm_open(struct disasm **out, uint16_t machine, bool is64, struct vmprof_err *err)
{
	const struct arch *a = NULL;
	struct disasm *d;

	*out = NULL;
	for (size_t i = 0; i < sizeof(archs) / sizeof(*archs); i++)
		if (archs[i].machine == machine)
			a = &archs[i];
	if (!a)
		return err_set(err, ENOTSUP, "code of ELF machine %u cannot be disassembled",
			       machine);
	d = xcalloc(1, sizeof(*d));
	d->shortest = a->shortest;
	d->x86 = a->arch == CS_ARCH_X86;
	d->x86_64 = machine == EM_X86_64;
	if (cs_open(a->arch, a->mode, &d->handle)) {
		free(d);
		return err_set(err, ENOTSUP,
			       "this system's capstone cannot disassemble ELF machine %u", machine);
	}
	cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
	if (d->x86)
		cs_option(d->handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	d->insn = cs_malloc(d->handle);
	*out = d;
	return 0;
}

void disasm_close(struct disasm *d)
{
	if (!d)
		return;
	cs_free(d->insn, 1);
	cs_close(&d->handle);
	free(d);
}

static bool in_group(const struct disasm *d, unsigned group)
{
	return cs_insn_group(d->handle, d->insn, group);
}

static bool has_register(const cs_insn *in)
{
	const cs_x86 *x = &in->detail->x86;

	for (unsigned i = 0; i < x->op_count; i++)
		if (x->operands[i].type == X86_OP_REG)
			return true;
	return false;
}

/* AT&T's letter of the size, which objdump leaves out where it says nothing new. */
static size_t mnemonic_len(const struct disasm *d, const char *mnemonic)
{
	const char *base = cs_insn_name(d->handle, d->insn->id);
	size_t len = strlen(mnemonic);
	bool stack = in_group(d, CS_GRP_CALL) || in_group(d, CS_GRP_RET) ||
		     in_group(d, CS_GRP_JUMP) || d->insn->id == X86_INS_PUSH ||
		     d->insn->id == X86_INS_POP || d->insn->id == X86_INS_LEAVE;

	if (base && len == strlen(base) + 1 && !strncmp(mnemonic, base, len - 1) &&
	    strchr("bwlq", mnemonic[len - 1]) && (stack || has_register(d->insn)))
		return len - 1;
	return len;
}

/* "(%rax,%rcx" without a scale. */
static bool lacks_scale(const char *start, const char *end)
{
	const char *comma = memchr(start, ',', (size_t)(end - start));

	return comma && !memchr(comma + 1, ',', (size_t)(end - comma - 1));
}

/*
 * objdump's way to write operands: no blank behind a comma, numbers in hexadecimal but for the
 * scale in parentheses, which is always there.
 */
static void write_operands(char *out, size_t size, const char *s)
{
	size_t o = 0, open = size;
	int depth = 0;

	while (*s && o + 24 < size) {
		bool starts = isdigit((unsigned char)*s) &&
			      (o == 0 || !(isalnum((unsigned char)out[o - 1]) ||
					   out[o - 1] == '%' || out[o - 1] == '_'));
		char *end;

		depth += (*s == '(') - (*s == ')');
		if (*s == '(')
			open = o;
		else if (*s == ')' && open < o && lacks_scale(out + open, out + o))
			o += (size_t)snprintf(out + o, size - o, ",1");
		if (starts && s[1] != 'x' && !depth) {
			o += (size_t)snprintf(out + o, size - o, "0x%" PRIx64,
					      (uint64_t)strtoull(s, &end, 10));
			s = end;
			continue;
		}
		if (*s == ' ' && o && out[o - 1] == ',') {
			s++;
			continue;
		}
		out[o++] = *s++;
	}
	out[o] = 0;
}

/* A branch's one operand, and data that is addressed relative to the instruction. */
static void find_target(const struct disasm *d, struct disasm_line *out)
{
	const cs_insn *in = d->insn;
	const cs_x86 *x = &in->detail->x86;

	if (!d->x86) {
		out->has_target = false;
		return;
	}
	for (unsigned i = 0; i < x->op_count; i++) {
		const cs_x86_op *op = &x->operands[i];

		if (op->type == X86_OP_IMM && (out->branch || out->call)) {
			out->target = (uint64_t)op->imm;
			out->has_target = true;
		} else if (op->type == X86_OP_MEM && op->mem.base == X86_REG_RIP) {
			out->target = in->address + in->size + (uint64_t)op->mem.disp;
			out->has_target = true;
		}
	}
	/* through memory: what it jumps to is not in the code */
	if (out->has_target && x->op_count && x->operands[0].type == X86_OP_MEM)
		out->branch = out->call = false;
}

static void write_text(const struct disasm *d, struct disasm_line *out)
{
	const cs_insn *in = d->insn;
	bool direct = out->has_target && (out->branch || out->call);
	char ops[160];

	if (!d->x86) {
		snprintf(out->text, sizeof(out->text), "%-6s%s%s", in->mnemonic,
			 *in->op_str ? " " : "", in->op_str);
		return;
	}
	write_operands(ops, sizeof(ops), direct ? "" : in->op_str);
	snprintf(out->text, sizeof(out->text), "%-6.*s %s", (int)mnemonic_len(d, in->mnemonic),
		 in->mnemonic, ops);
	for (size_t n = strlen(out->text); !direct && n && out->text[n - 1] == ' ';)
		out->text[--n] = 0;
}

/*
 * Length of an instruction with the prefix of AVX or AVX-512, of which capstone 4 does not know
 * all: without it what follows would be read from the middle. 0: it is none. Source: Intel SDM
 * volume 2, 2.3 (VEX) and 2.7 (EVEX).
 */
static unsigned vex_len(const uint8_t *b, size_t n)
{
	unsigned prefix = *b == 0x62 ? 4 : *b == 0xc4 ? 3 : *b == 0xc5 ? 2 : 0, len = prefix + 2;
	unsigned map, op, mod, rm;

	if (!prefix || n < len)
		return 0;
	map = *b == 0x62 ? b[1] & 7 : *b == 0xc4 ? b[1] & 31 : 1;
	op = b[prefix];
	mod = b[prefix + 1] >> 6;
	rm = b[prefix + 1] & 7;
	if (mod != 3 && rm == 4) {
		if (n <= len)
			return 0;
		if (mod == 0 && (b[len] & 7) == 5)
			len += 4;
		len++;
	} else if (mod == 0 && rm == 5) {
		len += 4;
	}
	len += mod == 1 ? 1 : mod == 2 ? 4 : 0;
	if (map == 3 ||
	    (map == 1 && ((op >= 0x70 && op <= 0x73) || op == 0xc2 || (op >= 0xc4 && op <= 0xc6))))
		len++; /* an immediate byte */
	return len <= n ? len : 0;
}

void disasm_next(struct disasm *d, const uint8_t *bytes, size_t len, uint64_t addr,
		 struct disasm_line *out)
{
	*out = (struct disasm_line){.addr = addr};
	if (!cs_disasm_iter(d->handle, &bytes, &len, &addr, d->insn)) {
		unsigned vex = d->x86_64 ? vex_len(bytes, len) : 0;

		if (vex) {
			out->len = vex;
			snprintf(out->text, sizeof(out->text), "(AVX)");
			return;
		}
		out->len = len < d->shortest ? (unsigned)len : d->shortest;
		snprintf(out->text, sizeof(out->text), "(bad)");
		return;
	}
	out->len = d->insn->size;
	out->call = in_group(d, CS_GRP_CALL);
	out->branch = in_group(d, CS_GRP_JUMP) && !out->call;
	find_target(d, out);
	write_text(d, out);
}

#else

int disasm_open(struct disasm **out, uint16_t machine, bool is64, struct vmprof_err *err)
{
	*out = NULL;
	return err_set(err, ENOTSUP, "this vmprof was built without capstone, which disassembles");
}

void disasm_close(struct disasm *d)
{
}

void disasm_next(struct disasm *d, const uint8_t *bytes, size_t len, uint64_t addr,
		 struct disasm_line *out)
{
	*out = (struct disasm_line){.addr = addr, .len = (unsigned)len};
}

#endif
