// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/tcg.h"
#include "util/text.h"
#include "util/xalloc.h"

#define CANDIDATES  4096
#define THREADS_MAX 16384
#define TRIES	    4 /* a running vCPU can be caught in the middle of a change of mode */
#define WATCH_MS    300
#define VOTES	    3 /* times that a thread must show the same env */

static const uint32_t shifts[] = {0, 0x80};

/* What may be a vCPU's env; tid where a thread was seen to use it. */
struct candidates {
	const struct vm *vm;
	struct tcg_layout layout;
	size_t n;
	struct candidate {
		uint64_t env;
		pid_t tid;
		unsigned votes;
	} c[CANDIDATES];
};

/* ---------- by shape ---------- */

static bool search_piece(void *ctx, uint64_t addr, const uint8_t *buf, size_t len, size_t fresh)
{
	struct candidates *c = ctx;

	/* env is 16-byte aligned: it has vector registers */
	for (size_t o = 0; o < fresh && o + TCG_ENV_HEAD <= len; o += 16)
		if (tcg_state_plausible(buf + o, &c->layout) && c->n < CANDIDATES)
			c->c[c->n++] = (struct candidate){.env = addr + o};
	return false;
}

static bool find_layout(void *ctx, uint64_t addr, const uint8_t *buf, size_t len, size_t fresh)
{
	struct candidates *c = ctx;

	for (size_t o = 0; o < fresh && o + TCG_ENV_HEAD <= len; o += 16)
		if (tcg_arm64_find(&c->layout, buf + o))
			return true;
	return false;
}

/* One of the layouts that there are; an aarch64 CPU that runs a kernel shows which it is. */
static int choose_layout(struct candidates *c, const struct proc_maps *maps, unsigned try)
{
	int r = 0;

	if (c->layout.arch == GUEST_ARCH_X86_64)
		c->layout.shift = shifts[try % 2];
	else if (!c->layout.tcr)
		r = proc_scan(c->vm->pid, maps, PROC_SCAN_HEAP, TCG_ENV_HEAD, find_layout, c);
	if (!r && c->layout.arch == GUEST_ARCH_AARCH64 && !c->layout.tcr)
		r = proc_scan(c->vm->pid, maps, PROC_SCAN_MMAP, TCG_ENV_HEAD, find_layout, c);
	return r;
}

/* The heap, and only if it has none the rest of QEMU's private memory: another allocator. */
static int search(struct candidates *c, const struct proc_maps *maps)
{
	int r = 0;

	for (unsigned i = 0; i < TRIES && c->n < c->vm->nr_vcpus && !r; i++) {
		if (!c->n)
			r = choose_layout(c, maps, i);
		c->n = 0;
		if (!r)
			r = proc_scan(c->vm->pid, maps, PROC_SCAN_HEAP, TCG_ENV_HEAD, search_piece,
				      c);
		if (!r && !c->n)
			r = proc_scan(c->vm->pid, maps, PROC_SCAN_MMAP, TCG_ENV_HEAD, search_piece,
				      c);
	}
	return r;
}

/* ---------- by what runs ---------- */

static bool is_env(struct candidates *c, uint64_t env)
{
	uint8_t head[TCG_ENV_HEAD];

	if (env % 16 || proc_read_memory(c->vm->pid, env, head, sizeof(head)))
		return false;
	if (c->layout.arch == GUEST_ARCH_AARCH64)
		return c->layout.tcr ? tcg_arm64_plausible(head, &c->layout)
				     : tcg_arm64_find(&c->layout, head);
	for (size_t i = 0; i < sizeof(shifts) / sizeof(*shifts); i++)
		if ((!c->n || shifts[i] == c->layout.shift) && tcg_env_plausible(head, shifts[i])) {
			c->layout.shift = shifts[i];
			return true;
		}
	return false;
}

static bool count_vote(void *ctx, uint64_t env, pid_t tid)
{
	struct candidates *c = ctx;
	size_t i = 0, settled = 0;

	while (i < c->n && c->c[i].env != env)
		i++;
	if (i == c->n) {
		if (c->n == CANDIDATES || !is_env(c, env))
			return false;
		c->c[c->n++] = (struct candidate){.env = env};
	}
	c->c[i].tid = tid;
	c->c[i].votes++;
	for (i = 0; i < c->n; i++)
		settled += c->c[i].votes >= VOTES;
	return settled >= c->vm->nr_vcpus;
}

/* ---------- which vCPU is which ---------- */

struct threads {
	pid_t *tid;
	size_t n, cap;
};

static int add_thread(void *ctx, pid_t tid)
{
	struct threads *t = ctx;

	t->tid = xgrow(t->tid, &t->cap, t->n + 1, sizeof(*t->tid));
	t->tid[t->n++] = tid;
	return t->n == THREADS_MAX;
}

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

static struct threads find_threads(const struct vm *vm)
{
	struct threads t = {0};
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/task", vm->pid);
	proc_each_number(path, add_thread, &t);
	if (t.n)
		qsort(t.tid, t.n, sizeof(*t.tid), by_number);
	return t;
}

static bool is_thread(void *ctx, uint32_t v)
{
	const struct threads *t = ctx;
	pid_t tid = (pid_t)v;

	return t->n && bsearch(&tid, t->tid, t->n, sizeof(*t->tid), by_number);
}

/* Bytes in front of each candidate; as many as can be read of all. */
static uint8_t **read_fronts(const struct candidates *c, uint32_t *len)
{
	uint8_t **front = xcalloc(c->n, sizeof(*front));

	*len = TCG_CPU_FRONT;
	for (size_t i = 0; i < c->n; i++)
		front[i] = xmalloc(TCG_CPU_FRONT);
	for (size_t i = 0; i < c->n && *len;) {
		if (!proc_read_memory(c->vm->pid, c->c[i].env - *len, front[i], *len)) {
			i++;
		} else {
			*len /= 2;
			i = 0;
		}
	}
	return front;
}

static uint32_t front32(const uint8_t *front, uint32_t len, uint32_t distance)
{
	uint32_t v;

	memcpy(&v, front + len - distance, sizeof(v));
	return v;
}

static void drop(struct candidates *c, uint8_t **front, size_t i)
{
	uint8_t *gone = front[i];

	c->n--;
	memmove(&c->c[i], &c->c[i + 1], (c->n - i) * sizeof(c->c[0]));
	memmove(&front[i], &front[i + 1], (c->n - i) * sizeof(front[0]));
	free(gone);
}

static struct tcg_cpu *cpu_at(struct tcg_cpus *cpus, uint32_t index)
{
	if (index >= cpus->n) {
		cpus->cpu = xreallocarray(cpus->cpu, index + 1, sizeof(*cpus->cpu));
		memset(cpus->cpu + cpus->n, 0, (index + 1 - cpus->n) * sizeof(*cpus->cpu));
		cpus->n = index + 1;
	}
	return &cpus->cpu[index];
}

/* The vCPU that thread @tid runs, as the thread's name has told; @other if it has not. */
static uint32_t index_of_thread(const struct vm *vm, pid_t tid, uint32_t other)
{
	for (uint32_t i = 0; tid && !vm->single_thread && i < vm->nr_vcpus; i++)
		if (vm->vcpus[i].tid == tid)
			return i;
	return other;
}

/* CPUState has the index and the thread of each; else by what the threads showed, else by order. */
static void assign(struct tcg_cpus *cpus, struct candidates *c)
{
	uint32_t len;
	uint8_t **front = read_fronts(c, &len);
	const uint8_t *const *f = (const uint8_t *const *)front;
	struct tcg_layout *l = &cpus->layout;
	struct threads threads = find_threads(c->vm);
	bool has_index, has_tid;

	*l = c->layout;
	has_index = tcg_front_find_index(l, f, len, (unsigned)c->n, c->vm->nr_vcpus);
	for (size_t i = c->n; i-- > 0;)
		if (has_index && tcg_front_index(l, front[i], len) < 0)
			drop(c, front, i);
	has_tid = tcg_front_find_tid(l, f, len, (unsigned)c->n, is_thread, &threads);
	for (size_t i = 0; i < c->n; i++) {
		uint32_t index = has_index ? (uint32_t)tcg_front_index(l, front[i], len)
					   : index_of_thread(c->vm, c->c[i].tid, (uint32_t)i);
		struct tcg_cpu *cpu = cpu_at(cpus, index);

		cpu->env = c->c[i].env;
		cpu->tid = has_tid ? (pid_t)front32(front[i], len, l->thread_id) : c->c[i].tid;
		if (!cpu->tid && index < c->vm->nr_vcpus)
			cpu->tid = c->vm->vcpus[index].tid;
		free(front[i]);
	}
	free(front);
	free(threads.tid);
}

bool tcg_layout_complete(const struct tcg_layout *l)
{
	return l->arch == GUEST_ARCH_X86_64 ? l->efer && l->kernel_gs : l->tpidr_el1 != 0;
}

void tcg_complete_layout(struct tcg_layout *l, pid_t pid, uint64_t env)
{
	uint8_t *buf;

	if (tcg_layout_complete(l))
		return;
	buf = xmalloc(TCG_ENV_SIZE);
	if (l->arch == GUEST_ARCH_AARCH64) {
		if (!proc_read_memory(pid, env, buf, TCG_ENV_HEAD))
			l->tpidr_el1 = tcg_arm64_find_tpidr(buf, l);
	} else if (!proc_read_memory(pid, env, buf, TCG_ENV_SIZE)) {
		if (!l->efer)
			l->efer = tcg_env_find_efer(buf, l->shift);
		if (!l->kernel_gs && l->efer)
			l->kernel_gs = tcg_env_find_kernel_gs(buf, l->efer + 8);
	}
	free(buf);
}

static int say_none(const struct vm *vm, struct vmprof_err *err)
{
	char name[128];

	escape_str(name, sizeof(name), vm->name);
	if (vm_guest_arch(vm) == GUEST_ARCH_AARCH64)
		return err_set(
			err, ENOENT,
			"%s (pid %d): no aarch64 vCPU that runs a kernel at EL1 was found in "
			"QEMU's "
			"memory: the guest is still in firmware or has a kernel at EL2, or this "
			"version of QEMU keeps the state in a form that vmprof does not know",
			name, vm->pid);
	return err_set(err, ENOENT,
		       "%s (pid %d): no x86-64 vCPU state found in QEMU's memory: this version of "
		       "QEMU keeps it in a form that vmprof does not know",
		       name, vm->pid);
}

int tcg_find_cpus(struct tcg_cpus *cpus, const struct vm *vm, const struct proc_maps *maps,
		  struct vmprof_err *err)
{
	struct candidates *c = xcalloc(1, sizeof(*c));
	struct tcg_code code;
	int r;

	*cpus = (struct tcg_cpus){0};
	c->vm = vm;
	c->layout.arch = vm_guest_arch(vm);
	r = search(c, maps);
	if (r)
		r = vm_access_error(vm, r, "the memory", err);
	if (!r && c->n < vm->nr_vcpus) {
		tcg_code_find(&code, maps);
		r = tcg_watch(vm, &code, WATCH_MS, count_vote, c, err);
	}
	if (!r && !c->n)
		r = say_none(vm, err);
	if (!r) {
		assign(cpus, c);
		for (uint32_t i = 0; i < cpus->n; i++)
			if (cpus->cpu[i].env)
				tcg_complete_layout(&cpus->layout, vm->pid, cpus->cpu[i].env);
	}
	free(c);
	return r;
}
