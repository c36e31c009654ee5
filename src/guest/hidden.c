// SPDX-License-Identifier: GPL-2.0-only
#include "guest/hidden.h"

#include <string.h>

#include "guest/dso.h"

enum { MAX_CODE = 2048, MAX_ADDRESSES = 32, MAX_SEEN = 128, COMM = 16 };
enum { STATE_MAX = 3 }; /* enum module_state */

/* ---------- code ---------- */

static uint64_t adrp_target(uint32_t insn, uint64_t pc)
{
	uint64_t imm = (insn >> 5 & 0x7ffff) << 2 | (insn >> 29 & 3);

	return (pc & ~4095ull) + ((uint64_t)((int64_t)(imm << 43) >> 43) << 12);
}

/* What is added to register *reg by ADD (immediate), or by LDR and STR with an unsigned offset. */
static bool low_part(uint32_t insn, unsigned *reg, uint64_t *add)
{
	*reg = insn >> 5 & 31;
	*add = insn >> 10 & 0xfff;
	if ((insn & 0xffc00000) == 0x91000000) /* add xd, xn, #imm */
		return true;
	if ((insn & 0x3b000000) == 0x39000000) { /* ldr, str and their like: scaled */
		*add <<= insn >> 30;
		return true;
	}
	return false;
}

static unsigned put_once(uint64_t *out, unsigned n, unsigned max, uint64_t va)
{
	for (unsigned i = 0; i < n; i++)
		if (out[i] == va)
			return n;
	if (n < max)
		out[n++] = va;
	return n;
}

unsigned hidden_addresses(const uint8_t *code, size_t len, uint64_t va, uint64_t *out, unsigned max)
{
	uint64_t page[32] = {0}, add;
	unsigned n = 0, reg;

	for (size_t at = 0; at + 4 <= len; at += 4) {
		uint32_t insn;

		memcpy(&insn, code + at, 4);
		if ((insn & 0x9f000000) == 0x90000000)
			page[insn & 31] = adrp_target(insn, va + at);
		else if (low_part(insn, &reg, &add) && page[reg])
			n = put_once(out, n, max, page[reg] + add);
	}
	return n;
}

struct finder {
	struct guest_virt *v;
	struct guest_as as;
	const struct btf *b;
	const struct ksyms *syms;
};

static size_t function_length(const struct ksyms *syms, const struct ksyms_entry *f)
{
	const struct ksyms_entry *end = syms->syms + syms->n, *next = f;

	while (next < end && next->addr <= f->addr)
		next++;
	if (next == end || next->addr - f->addr > MAX_CODE)
		return MAX_CODE;
	return next->addr - f->addr;
}

/* The addresses that a function makes; 0 if there is no such function. */
static unsigned addresses_in(const struct finder *f, const char *function, uint64_t *out)
{
	const struct ksyms_entry *s = ksyms_by_name(f->syms, function);
	uint8_t code[MAX_CODE];
	size_t len;

	if (!s)
		return 0;
	len = function_length(f->syms, s);
	if (guest_virt_read(f->v, f->as, s->addr, code, len))
		return 0;
	return hidden_addresses(code, len, s->addr, out, MAX_ADDRESSES);
}

/* ---------- what lies there ---------- */

static bool read_u64(const struct finder *f, uint64_t va, uint64_t *v)
{
	return !guest_virt_read(f->v, f->as, va, v, sizeof(*v));
}

static bool is_list_head(const struct finder *f, uint64_t va, uint64_t *first)
{
	uint64_t back;

	return guest_is_kptr(va) && read_u64(f, va, first) && guest_is_kptr(*first) &&
	       read_u64(f, *first + 8, &back) && back == va;
}

/* The first task: number 0, of CPU 0, in the list of all tasks. */
static bool is_init_task(const struct finder *f, uint64_t task)
{
	int pid = btf_member(f->b, "task_struct", "pid");
	int comm = btf_member(f->b, "task_struct", "comm");
	int tasks = btf_member(f->b, "task_struct", "tasks");
	char name[COMM];
	uint32_t number;
	uint64_t next;

	if (pid < 0 || comm < 0 || tasks < 0 || !guest_is_kptr(task) ||
	    guest_virt_read(f->v, f->as, task + (uint64_t)pid, &number, sizeof(number)) || number ||
	    guest_virt_read(f->v, f->as, task + (uint64_t)comm, name, sizeof(name)))
		return false;
	name[COMM - 1] = 0;
	return (!strcmp(name, "swapper/0") || !strcmp(name, "swapper")) &&
	       is_list_head(f, task + (uint64_t)tasks, &next);
}

/* Is @offsets the CPUs' offsets, and @runqueues where, from those on, their run queues are? */
static bool is_runqueues(const struct finder *f, uint64_t offsets, uint64_t runqueues,
			 uint64_t *idle)
{
	int cpu_at = btf_member(f->b, "rq", "cpu"), idle_at = btf_member(f->b, "rq", "idle");
	int curr_at = btf_member(f->b, "rq", "curr");
	uint64_t offset, rq, curr;
	uint32_t cpu;

	if (cpu_at < 0 || idle_at < 0 || curr_at < 0 || !read_u64(f, offsets, &offset) || !offset)
		return false;
	rq = runqueues + offset;
	return guest_is_kptr(rq) && read_u64(f, rq + (uint64_t)idle_at, idle) &&
	       !guest_virt_read(f->v, f->as, rq + (uint64_t)cpu_at, &cpu, sizeof(cpu)) && !cpu &&
	       read_u64(f, rq + (uint64_t)curr_at, &curr) && guest_is_kptr(curr) &&
	       is_init_task(f, *idle);
}

/* Of all pairs of addresses that a function makes, the one that is the two. */
static void find_percpu(struct hidden *h, const struct finder *f, const char *function)
{
	uint64_t a[MAX_ADDRESSES], idle;
	unsigned n = addresses_in(f, function, a), found = 0;
	struct hidden best = *h;

	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < n; k++) {
			if (i == k || !is_runqueues(f, a[i], a[k], &idle))
				continue;
			found++;
			best.per_cpu_offset = a[i];
			best.runqueues = a[k];
			best.init_task = idle;
		}
	}
	if (found == 1)
		*h = best;
}

static bool is_name(const char *s, size_t size)
{
	size_t n = strnlen(s, size);

	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] > '~')
			return false;
	return n && n < size;
}

/* Is @va the head of the list of modules? @empty: it may be a list that has none. */
static bool is_modules(const struct finder *f, uint64_t va, bool *empty)
{
	int list = btf_member(f->b, "module", "list"), state = btf_member(f->b, "module", "state");
	int name = btf_member(f->b, "module", "name");
	uint64_t first, mod;
	uint32_t word;
	char text[56];

	*empty = false;
	if (list < 0 || state < 0 || name < 0 || !is_list_head(f, va, &first))
		return false;
	*empty = first == va;
	if (*empty)
		return true;
	mod = first - (uint64_t)list;
	return !guest_virt_read(f->v, f->as, mod + (uint64_t)state, &word, sizeof(word)) &&
	       word <= STATE_MAX &&
	       !guest_virt_read(f->v, f->as, mod + (uint64_t)name, text, sizeof(text)) &&
	       is_name(text, sizeof(text));
}

struct heads {
	struct head {
		uint64_t va;
		unsigned functions;
		bool empty;
	} head[MAX_SEEN];
	unsigned n;
};

static void add_head(struct heads *heads, uint64_t va, bool empty)
{
	for (unsigned i = 0; i < heads->n; i++)
		if (heads->head[i].va == va) {
			heads->head[i].functions++;
			return;
		}
	if (heads->n < MAX_SEEN)
		heads->head[heads->n++] = (struct head){va, 1, empty};
}

/*
 * An empty list looks like any other: one that several of the functions that go through the modules
 * have in common is theirs. A list with a module in it speaks for itself.
 */
static uint64_t find_modules(const struct finder *f)
{
	static const char *const functions[] = {
		"find_module_all",
		"find_module",
		"print_modules",
		"m_show",
		"module_get_kallsym",
		"module_kallsyms_lookup_name",
		"load_module",
		"free_module",
		"module_kallsyms_on_each_symbol",
		"m_start",
		"find_kallsyms_symbol_value",
		"do_init_module",
		"m_next",
		"__find_kallsyms_symbol_value",
	};
	struct heads heads = {.n = 0};
	unsigned full = 0, shared = 0;
	uint64_t a[MAX_ADDRESSES], of_full = 0, of_shared = 0;

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		unsigned n = addresses_in(f, functions[i], a);
		bool empty;

		for (unsigned k = 0; k < n; k++)
			if (is_modules(f, a[k], &empty))
				add_head(&heads, a[k], empty);
	}
	for (unsigned i = 0; i < heads.n; i++) {
		const struct head *head = &heads.head[i];

		if (!head->empty) {
			full++;
			of_full = head->va;
		} else if (head->functions > 1) {
			shared++;
			of_shared = head->va;
		}
	}
	if (full)
		return full == 1 ? of_full : 0;
	return shared == 1 ? of_shared : 0;
}

void hidden_find(struct hidden *h, struct guest_virt *v, struct guest_as as, const struct btf *b,
		 const struct ksyms *syms)
{
	static const char *const functions[] = {"idle_task", "idle_cpu", "available_idle_cpu",
						"sched_idle_cpu", "task_curr"};
	const struct finder f = {v, as, b, syms};

	*h = (struct hidden){0};
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions) && !h->runqueues; i++)
		find_percpu(h, &f, functions[i]);
	h->modules = find_modules(&f);
}
