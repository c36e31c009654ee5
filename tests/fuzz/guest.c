// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzzes the guest layer with the memory of a made-up guest and changes to it.
 *
 * Input: a byte of options (1 memory is not mapped, 2 LA57, 4 an older kernel, 8 PTI, 0x40 noise,
 * 0x80 the VM goes away), a byte of which bit 0 chooses between user and kernel mode and bit 2 a
 * guest of aarch64 (bit 3: without registers), then changes of 12 bytes each, see struct change. A
 * change is to a word that is not 0 in the unchanged memory, and so likely one that the decoder
 * reads: short inputs get far.
 */
#include "guest/guest.h"
#include "guest/kernel.h"
#include "tests/unit/fakearm64.h"

enum { OPT_NO_MAP = 1, OPT_NOISE = 0x40, OPT_GONE = 0x80, BASES = 8, ARM64 = BASES };
enum { HOW_REG, HOW_SET64, HOW_SET32, HOW_SET16, HOW_SET8, HOW_ADD, HOW_POINT, HOW_PTE, HOWS };

struct change {
	uint16_t where; /* index of the word (or register) */
	uint8_t how;	/* HOW_* */
	uint8_t spare;	/* what else that needs */
	uint64_t value;
};

static struct {
	struct fakeguest g;
	struct faketask t;
	uint8_t *ram;	/* as it was made */
	uint32_t *used; /* offsets of its words that are not 0: what is worth changing */
	size_t nr_used;
} bases[BASES + 1];

static int on_symbol(void *ctx, const struct guest_symbol *sym)
{
	return strlen(sym->name) > 600; /* touches all of it */
}

static int same_regs(void *ctx, uint32_t vcpu, struct guest_regs *regs)
{
	*regs = *(const struct guest_regs *)ctx;
	return 0;
}

static void require(bool cond, const char *what)
{
	if (cond)
		return;
	fprintf(stderr, "the unchanged guest is wrong: %s\n", what);
	abort();
}

/* ---------- the two layers under test ---------- */

static void fuzz_kernel(struct guest_kernel *k, const struct guest_regs *regs)
{
	const struct guest_module *mod;
	struct guest_kernel_info info;
	uint64_t off;
	int64_t value;

	guest_kernel_describe(k, &info);
	guest_kernel_alive(k, regs);
	guest_kernel_cpu(k, regs);
	guest_kernel_percpu(k, 1);
	guest_kernel_is_text(k, regs->ip);
	guest_kernel_symbolize(k, FG_FUNC_0, &off);
	guest_kernel_symbolize(k, FG_MODULE + 0x123, &off);
	guest_kernel_member(k, "module", "arch.orc_unwind");
	guest_kernel_member(k, "task_struct", "thread.fsbase");
	guest_kernel_sizeof(k, "module");
	guest_kernel_enum(k, "NOT_THERE", &value);
	guest_kernel_each_symbol(k, NULL, on_symbol, NULL);
	for (size_t i = 0; (mod = guest_kernel_module_nth(k, i)) && i < 4; i++)
		guest_kernel_each_symbol(k, mod->name, on_symbol, NULL);
}

static void drain(struct guest *g, bool strict, bool pagecache)
{
	struct guest_event ev;
	struct guest_dso dso;
	uint8_t buf[256], present[2];

	while (guest_next_event(g, &ev))
		if (ev.type == GUEST_EVENT_MODULE)
			guest_kernel_symbols(g, ev.dso.path, on_symbol, NULL);
	for (int i = 0; i < 8 && guest_next_hit_dso(g, &dso); i++) {
		ssize_t n = guest_dso_read(g, dso.id, 0, buf, sizeof(buf), present);

		if (strict && pagecache && !strcmp(dso.path, "/srv/app"))
			require(n == sizeof(buf) && present[0] && !memcmp(buf, ELFMAG, SELFMAG),
				"file");
		guest_dso_read_image(g, dso.id, 64, buf, sizeof(buf));
	}
}

static enum guest_arch arch_of(const struct fakeguest *fg)
{
	return fg->opt.arm64 ? GUEST_ARCH_AARCH64 : GUEST_ARCH_X86_64;
}

static void fuzz_guest(struct fakeguest *fg, const struct guest_regs *regs, bool strict)
{
	struct guest_regs again = *regs;
	struct guest_config cfg = {
		.arch = arch_of(fg), .chains = true, .peek = same_regs, .peek_ctx = &again};
	struct raw_sample raw = {.has = RAW_HAS_REGS, .time = 1000000000, .period = 1};
	struct guest_kernel_info info;
	struct guest_stats stats;
	struct vmprof_err err;
	struct sample s;
	struct guest *g;

	if (guest_open(&g, &fg->fm.mem, &cfg, &err))
		return;
	guest_identify(g, regs, &err);
	drain(g, strict, !fg->opt.arm64);
	for (int i = 0; i < 2; i++) {
		raw.regs = *regs;
		raw.ip = regs->ip;
		raw.time += 30000000;
		guest_complete(g, &raw, &s);
		if (strict) {
			require(s.pid == FT_PID && s.tid == FT_PID, "process");
			require(s.user_end == CHAIN_OUTERMOST, "user chain");
			require(regs->cpl || s.kernel_end == CHAIN_OUTERMOST, "kernel chain");
			require(s.chain_len == (regs->cpl ? 5 : 8), "length of the chain");
		}
		drain(g, strict, !fg->opt.arm64);
	}
	guest_kernel_info(g, &info);
	guest_get_stats(g, &stats);
	guest_close(g);
}

static void fuzz_kernel_alone(struct fakeguest *fg, const struct guest_regs *regs)
{
	struct guest_virt *v = guest_virt_new(&fg->fm.mem, arch_of(fg));
	struct guest_kernel *k;
	struct vmprof_err err;

	if (!guest_kernel_find(&k, &fg->fm.mem, v, regs, &err)) {
		fuzz_kernel(k, regs);
		guest_kernel_free(k);
	}
	guest_virt_free(v);
}

static void fuzz_scan(struct fakeguest *fg)
{
	struct guest_virt *v = guest_virt_new(&fg->fm.mem, arch_of(fg));
	struct guest_kernel *k;
	struct vmprof_err err;

	if (!guest_kernel_scan(&k, &fg->fm.mem, v, &err))
		guest_kernel_free(k);
	guest_virt_free(v);
}

/* ---------- the input ---------- */

static void make_base(int i)
{
	const struct fg_options opt = {
		.la57 = i & 1,
		.old_order = i & 2,
		.core_layout = i & 2,
		.pti = i & 4,
		.arm64 = i == ARM64,
		.functions_only = i == ARM64,
	};
	struct fakeguest *g = &bases[i].g;

	fakeguest_init(g, &opt);
	faketask_add(g, &bases[i].t);
	if (i == ARM64)
		fakearm64_make(g, &bases[i].t);
	fakeguest_finish(g);
	fuzz_guest(g, &bases[i].t.user, true);
	fuzz_guest(g, &bases[i].t.kernel, true);
	bases[i].ram = malloc(g->next);
	bases[i].used = malloc(g->next / 2);
	memcpy(bases[i].ram, g->fm.ram, g->next);
	for (uint32_t off = 0; off < g->next; off += 8)
		if (*(uint64_t *)(g->fm.ram + off))
			bases[i].used[bases[i].nr_used++] = off;
}

static void apply(struct fakeguest *g, struct guest_regs *regs, const uint32_t *used, size_t n,
		  const struct change *c)
{
	uint32_t off = used[c->where % n];
	uint8_t *at = g->fm.ram + off;
	uint64_t word;

	switch (c->how % HOWS) {
	case HOW_REG:
		memcpy((uint8_t *)regs + c->where % (sizeof(*regs) / 8 - 1) * 8, &c->value, 8);
		regs->has_gs = regs->has_efer = true;
		break;
	case HOW_SET64:
	case HOW_SET32:
	case HOW_SET16:
	case HOW_SET8:
		memcpy(at + (c->spare & 7 & -(8 >> (c->how % HOWS - 1))), &c->value,
		       8u >> (c->how % HOWS - 1));
		break;
	case HOW_ADD:
		memcpy(&word, at, 8);
		word += (uint64_t)(int64_t)(int8_t)c->spare;
		memcpy(at, &word, 8);
		break;
	case HOW_POINT: /* to something that is there */
		word = fg_kva(g, used[c->value % n]) + (c->spare & 15);
		memcpy(at, &word, 8);
		break;
	case HOW_PTE: /* a table entry that leads to some page */
		word = (c->value % (g->fm.size / FG_PAGE + 1)) * FG_PAGE | c->spare | 1;
		memcpy(at, &word, 8);
		break;
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	for (int i = 0; i <= ARM64; i++)
		make_base(i);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct guest_regs regs;
	struct fakeguest *g;
	int base, what;

	if (size < 2)
		return 0;
	base = data[1] & 4 ? ARM64 : data[0] >> 1 & (BASES - 1);
	g = &bases[base].g;
	memcpy(g->fm.ram, bases[base].ram, g->next);
	g->fm.map = !(data[0] & OPT_NO_MAP);
	g->fm.noise_every = data[0] & OPT_NOISE ? 1 + (data[0] >> 4) : 0;
	g->fm.gone_after = data[0] & OPT_GONE ? g->fm.readv_calls + data[1] + 1u : 0;
	what = data[1];
	regs = what & 1 ? bases[base].t.user : bases[base].t.kernel;
	data += 2;
	size -= 2;
	for (; size >= 12; size -= 12, data += 12) {
		struct change c = {.how = data[2], .spare = data[3]};

		memcpy(&c.where, data, 2);
		memcpy(&c.value, data + 4, 8);
		apply(g, &regs, bases[base].used, bases[base].nr_used, &c);
	}
	if (base == ARM64 && what & 8)
		fuzz_scan(g);
	else if (what & 2)
		fuzz_kernel_alone(g, &regs);
	else
		fuzz_guest(g, &regs, false);
	return 0;
}
