// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is asked of the kernel that was found: does it still run, its symbols, types, CPUs, modules.
 */
#include "guest/kernel_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/clock.h"
#include "util/xalloc.h"

enum { MAX_CPUS = 8192, MAX_GDTS = 2 * MAX_CPUS, MAX_MISSES = 3 };

#define MS		    1000000ull
#define CHECK_EVERY	    (20 * MS)  /* memory, in guest_kernel_alive() */
#define PERCPU_EVERY	    (100 * MS) /* when an offset is missing */
#define MODULES_MISS_EVERY  (100 * MS) /* and of made code */
#define MODULES_STALE_AFTER (1000 * MS)

/* 0: not found there either */
static uint64_t hidden_sym(const struct hidden *h, const char *name)
{
	const struct {
		const char *name;
		uint64_t va;
	} all[] = {
		{"__per_cpu_offset", h->per_cpu_offset},
		{"runqueues", h->runqueues},
		{"init_task", h->init_task},
		{"modules", h->modules},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(all[i].name, name))
			return all[i].va;
	return 0;
}

uint64_t guest_kernel_sym(struct guest_kernel *k, const char *name, bool *found)
{
	const struct ksyms_entry *s = ksyms_by_name(&k->syms, name);
	uint64_t hidden = s ? 0 : hidden_sym(&k->hidden, name);

	if (found)
		*found = s || hidden;
	return s ? s->addr : hidden;
}

static int read_sym(struct guest_kernel *k, const char *name, void *buf, size_t len)
{
	bool found;
	uint64_t va = guest_kernel_sym(k, name, &found);

	return found ? guest_virt_read(k->v, k->as, va, buf, len) : -ENOENT;
}

void guest_kernel_free(struct guest_kernel *k)
{
	if (!k)
		return;
	modules_free(k->modules);
	made_codes_free(k->made);
	btf_free(k->btf);
	ksyms_free(&k->syms);
	ksyms_free(&k->module_syms);
	hashmap_free(&k->cpu_by_gdt);
	free(k->percpu);
	free(k);
}

/* ---------- is it still the one? ---------- */

/* The canary starts as 0 and is set once, early in the boot. */
static bool cookie_fits(struct guest_kernel *k)
{
	uint64_t now;

	if (!k->cookie_va)
		return true;
	if (guest_virt_read(k->v, k->as, k->cookie_va, &now, sizeof(now)))
		return false;
	if (k->cookie_random && !k->cookie)
		k->cookie = now;
	return now == k->cookie;
}

static bool maps_kernel(struct guest_kernel *k, const struct guest_regs *regs)
{
	struct guest_as roots[2];
	int n = k->arch->roots(regs, roots);

	for (int i = 0; i < n; i++) {
		uint64_t gpa;

		if (!guest_virt_walk(k->v, roots[i], k->text.start, &gpa) && gpa == k->text_gpa)
			return true;
	}
	return false;
}

/* A booting kernel moves its table of vectors; the handlers are the same. */
static bool vectors_moved(struct guest_kernel *k, const struct guest_regs *regs, uint64_t vectors)
{
	struct guest_as roots[2];
	uint64_t handler;

	k->arch->roots(regs, roots);
	if (k->arch->handler(k->v, roots[0], vectors, &handler) ||
	    (!range_has(k->text, handler) && !range_has(k->init_text, handler)))
		return false;
	k->vectors = vectors;
	return true;
}

/*
 * What the registers say is looked at each time, memory only now and then: no guest is gone and
 * back within CHECK_EVERY.
 */
bool guest_kernel_alive(struct guest_kernel *k, const struct guest_regs *regs)
{
	uint64_t now, vectors;

	if (!k->arch->can_run(regs, k->as))
		return false;
	if (k->arch->vectors(regs, &vectors) && vectors != k->vectors &&
	    !vectors_moved(k, regs, vectors))
		return false;
	now = clock_now_ns();
	if (!k->misses && k->checked_at && now - k->checked_at < CHECK_EVERY)
		return true;
	k->checked_at = now;
	if (!cookie_fits(k))
		k->misses = MAX_MISSES;
	else if (maps_kernel(k, regs))
		k->misses = 0;
	else /* the process may have ended since the registers were read: one miss says nothing */
		k->misses++;
	return k->misses < MAX_MISSES;
}

bool guest_kernel_in_memory(struct guest_kernel *k)
{
	uint64_t now = clock_now_ns(), gpa;

	if (!k->misses && k->checked_at && now - k->checked_at < CHECK_EVERY)
		return true;
	k->checked_at = now;
	if (cookie_fits(k) && !guest_virt_walk(k->v, k->as, k->text.start, &gpa) &&
	    gpa == k->text_gpa)
		k->misses = 0;
	else
		k->misses++;
	return k->misses < MAX_MISSES;
}

bool guest_kernel_same(struct guest_kernel *a, struct guest_kernel *b)
{
	bool not_drawn_yet = a->cookie_random && !a->cookie;

	return a->text.start == b->text.start && a->text_gpa == b->text_gpa &&
	       a->as.root == b->as.root && a->as.la57 == b->as.la57 &&
	       a->cookie_va == b->cookie_va && (a->cookie == b->cookie || not_drawn_yet) &&
	       a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, sizeof(a->build_id));
}

/* ---------- what is known of it ---------- */

static uint32_t count_bits(const uint8_t *mask, size_t bytes)
{
	uint32_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += (uint32_t)__builtin_popcount(mask[i]);
	return n;
}

/* Each CPU that there may be has an offset, and no other one. */
static uint32_t nr_offsets(struct guest_kernel *k)
{
	uint64_t offset;
	uint32_t n = 0;

	while (k->percpu_va && n < MAX_CPUS &&
	       !guest_virt_read(k->v, k->as, k->percpu_va + 8ull * n, &offset, sizeof(offset)) &&
	       offset && !(offset & 4095))
		n++;
	return n;
}

static uint32_t nr_cpus(struct guest_kernel *k)
{
	uint8_t mask[MAX_CPUS / 8];
	int size = guest_kernel_sizeof(k, "cpumask");
	uint32_t n = 0;

	if (!read_sym(k, "nr_cpu_ids", &n, sizeof(n)) && n && n <= MAX_CPUS)
		return n;
	if (size <= 0 || size > (int)sizeof(mask))
		size = 8;
	if (!read_sym(k, "__cpu_possible_mask", mask, (size_t)size))
		n = count_bits(mask, (size_t)size);
	else
		n = nr_offsets(k);
	return n && n <= MAX_CPUS ? n : 1;
}

/* X86_FEATURE_PTI: the kernel's own word; else what the registers have shown. */
static bool has_pti(struct guest_kernel *k)
{
	enum { PTI_WORD = 7, PTI_BIT = 11 }; /* arch/x86/include/asm/cpufeatures.h since 4.15 */
	int off = guest_kernel_member(k, "cpuinfo_x86", "x86_capability");
	bool found;
	uint64_t va = guest_kernel_sym(k, "boot_cpu_data", &found);
	uint32_t word;

	if (off < 0 || !found ||
	    guest_virt_read(k->v, k->as, va + (uint64_t)off + PTI_WORD * 4, &word, sizeof(word)))
		return k->pti_seen;
	return word >> PTI_BIT & 1;
}

void guest_kernel_describe(struct guest_kernel *k, struct guest_kernel_info *info)
{
	*info = (struct guest_kernel_info){
		.known = true,
		.has_types = k->btf,
		.text = k->text.start,
		.end = k->text.end,
		.kaslr = k->arch->link_text ? k->text.start - k->arch->link_text : 0,
		.build_id_len = k->build_id_len,
		.nr_symbols = (uint32_t)k->syms.n,
		.nr_modules = k->modules ? (uint32_t)modules_count(k->modules) : 0,
		.nr_cpus = nr_cpus(k),
		.la57 = k->as.la57,
		.pti = has_pti(k),
		.why_not = k->btf ? NULL : k->why_not,
	};
	memcpy(info->release, k->release, sizeof(info->release));
	memcpy(info->build_id, k->build_id, sizeof(info->build_id));
}

struct guest_as guest_kernel_as(struct guest_kernel *k)
{
	return k->as;
}

enum guest_arch guest_kernel_arch(const struct guest_kernel *k)
{
	return guest_virt_arch(k->v);
}

uint64_t guest_kernel_page_size(const struct guest_kernel *k)
{
	return guest_virt_page_size(k->v);
}

int guest_kernel_member(struct guest_kernel *k, const char *type, const char *member)
{
	return k->btf ? btf_member(k->btf, type, member) : -ENOENT;
}

int guest_kernel_sizeof(struct guest_kernel *k, const char *type)
{
	return k->btf ? btf_sizeof(k->btf, type) : -ENOENT;
}

int guest_kernel_enum(struct guest_kernel *k, const char *enumerator, int64_t *value)
{
	return k->btf ? btf_enum(k->btf, enumerator, value) : -ENOENT;
}

/* ---------- CPUs ---------- */

static void read_percpu(struct guest_kernel *k)
{
	uint64_t now = clock_now_ns();
	uint32_t n;

	if (k->percpu && now - k->percpu_read_at < PERCPU_EVERY)
		return;
	k->percpu_read_at = now;
	n = nr_cpus(k);
	free(k->percpu);
	k->percpu = xcalloc(n, sizeof(*k->percpu));
	k->nr_percpu = n;
	if (!k->percpu_va ||
	    guest_virt_read(k->v, k->as, k->percpu_va, k->percpu, n * sizeof(*k->percpu)))
		memset(k->percpu, 0, n * sizeof(*k->percpu));
}

uint64_t guest_kernel_percpu(struct guest_kernel *k, uint32_t cpu)
{
	if (!k->percpu || (cpu < k->nr_percpu && !k->percpu[cpu]))
		read_percpu(k);
	return cpu < k->nr_percpu ? k->percpu[cpu] : 0;
}

static bool percpu_fits(struct guest_kernel *k, const struct guest_regs *regs, int cpu)
{
	uint64_t offset = guest_kernel_percpu(k, (uint32_t)cpu);

	if (!k->arch->knows_percpu(regs) || !k->percpu_va)
		return true;
	return offset && k->arch->has_percpu(regs, offset);
}

static int cpu_by_percpu(struct guest_kernel *k, const struct guest_regs *regs)
{
	if (!k->arch->knows_percpu(regs))
		return -1;
	for (uint32_t i = 0; i < k->nr_percpu; i++)
		if (k->percpu[i] && k->arch->has_percpu(regs, k->percpu[i]))
			return (int)i;
	return -1;
}

/* What the registers point to tells the number: the same as long as they do. */
static int cpu_by_descriptor(struct guest_kernel *k, const struct guest_regs *regs)
{
	void *known = hashmap_get(&k->cpu_by_gdt, regs->gdt_base);
	int cpu;

	if (known)
		return (int)(intptr_t)known - 1;
	cpu = k->arch->cpu(k->v, k->as, regs);
	if (cpu < 0 || !percpu_fits(k, regs, cpu)) {
		read_percpu(k); /* a starting kernel sets the offsets up late */
		if (cpu < 0 || !percpu_fits(k, regs, cpu))
			return cpu_by_percpu(k, regs);
	}
	if (k->cpu_by_gdt.n >= MAX_GDTS)
		hashmap_free(&k->cpu_by_gdt);
	hashmap_set(&k->cpu_by_gdt, regs->gdt_base, (void *)(intptr_t)(cpu + 1));
	return cpu;
}

int guest_kernel_cpu(struct guest_kernel *k, const struct guest_regs *regs)
{
	int cpu;

	if (k->arch->cpu)
		return cpu_by_descriptor(k, regs);
	cpu = cpu_by_percpu(k, regs);
	if (cpu < 0) {
		read_percpu(k);
		cpu = cpu_by_percpu(k, regs);
	}
	return cpu;
}

/* ---------- code and symbols ---------- */

bool guest_kernel_is_text(struct guest_kernel *k, uint64_t addr)
{
	return range_has(k->text, addr) || range_has(k->init_text, addr) ||
	       guest_kernel_module(k, addr) || guest_kernel_made_code(k, addr);
}

const struct guest_module *guest_kernel_module(struct guest_kernel *k, uint64_t addr)
{
	const struct guest_module *mod;

	if (!k->modules || range_has(k->image, addr) || addr < k->arch->modules_min)
		return NULL;
	mod = modules_at(k->modules, addr);
	modules_refresh(k->modules, mod ? MODULES_STALE_AFTER : MODULES_MISS_EVERY);
	return modules_at(k->modules, addr);
}

const struct guest_module *guest_kernel_module_nth(struct guest_kernel *k, size_t i)
{
	return k->modules ? modules_nth(k->modules, i) : NULL;
}

const struct guest_made_code *guest_kernel_made_code(struct guest_kernel *k, uint64_t addr)
{
	const struct guest_made_code *c;

	if (!k->made || range_has(k->image, addr) || addr < k->arch->modules_min)
		return NULL;
	c = made_codes_at(k->made, addr);
	made_codes_refresh(k->made, c ? MODULES_STALE_AFTER : MODULES_MISS_EVERY);
	return made_codes_at(k->made, addr);
}

const struct guest_made_code *guest_kernel_made_code_nth(struct guest_kernel *k, size_t i)
{
	return k->made ? made_codes_nth(k->made, i) : NULL;
}

static const char *symbolize(const struct ksyms *t, uint64_t addr, uint64_t *off)
{
	const struct ksyms_entry *s = ksyms_at(t, addr);

	if (!s)
		return NULL;
	if (off)
		*off = addr - s->addr;
	return ksyms_name(t, s);
}

const char *guest_kernel_symbolize(struct guest_kernel *k, uint64_t addr, uint64_t *off)
{
	const struct guest_made_code *made;
	const struct guest_module *mod;

	if (range_has(k->image, addr))
		return symbolize(&k->syms, addr, off);
	mod = guest_kernel_module(k, addr);
	if (!mod) {
		made = guest_kernel_made_code(k, addr);
		if (made && off)
			*off = addr - made->start;
		return made ? made->name : NULL;
	}
	if (mod->id != k->module_id) {
		k->module_id = 0;
		ksyms_free(&k->module_syms);
		if (modules_symbols(k->modules, mod->name, &k->module_syms))
			return NULL;
		k->module_id = mod->id;
	}
	return symbolize(&k->module_syms, addr, off);
}

/* Symbols in @r; the size of each goes up to the next address that has one, or to a boundary. */
static int each(const struct ksyms *t, struct range r, uint64_t boundary,
		int (*fn)(void *ctx, const struct guest_symbol *sym), void *ctx)
{
	size_t next = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct ksyms_entry *s = &t->syms[i];
		struct guest_symbol sym = {
			.addr = s->addr, .type = s->type, .name = ksyms_name(t, s)};
		uint64_t end = r.end;
		int rc;

		if (!range_has(r, s->addr))
			continue;
		while (next < t->n && t->syms[next].addr <= s->addr)
			next++;
		if (next < t->n && t->syms[next].addr < end)
			end = t->syms[next].addr;
		if (s->addr < boundary && boundary < end)
			end = boundary;
		sym.size = end == UINT64_MAX ? 0 : end - s->addr;
		rc = fn(ctx, &sym);
		if (rc)
			return rc;
	}
	return 0;
}

int guest_kernel_each_symbol(struct guest_kernel *k, const char *module,
			     int (*fn)(void *ctx, const struct guest_symbol *sym), void *ctx)
{
	const struct guest_module *mod;
	struct ksyms t = {0};
	int rc;

	if (!module)
		return each(&k->syms, k->image, k->text.end, fn, ctx);
	mod = k->modules ? modules_by_name(k->modules, module) : NULL;
	rc = mod ? modules_symbols(k->modules, module, &t) : -ENOENT;
	if (!rc)
		rc = each(&t, (struct range){k->arch->modules_min, UINT64_MAX},
			  mod->text + mod->text_len, fn, ctx);
	ksyms_free(&t);
	return rc;
}
