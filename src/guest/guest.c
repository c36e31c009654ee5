// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest/work.h"
#include "util/clock.h"
#include "util/xalloc.h"

#define MS	    1000000ull
#define RETRY_FIRST (500 * MS)
#define RETRY_MAX   (4000 * MS)
#define ALIVE_EVERY (20 * MS)

int guest_open(struct guest **out, struct guest_mem *mem, const struct guest_config *cfg,
	       struct vmprof_err *err)
{
	struct guest *g;

	*out = NULL;
	if (!mem || !mem->ops || !mem->ops->readv)
		return err_set(err, EINVAL, "this VM's memory cannot be read by its backend");
	g = xcalloc(1, sizeof(*g));
	g->cfg = *cfg;
	if (!g->cfg.max_chain || g->cfg.max_chain > SAMPLE_MAX_CHAIN)
		g->cfg.max_chain = SAMPLE_MAX_CHAIN;
	g->mem = mem;
	g->virt = guest_virt_new(mem, cfg->arch);
	g->code = guest_code_new(g->virt);
	g->work = xcalloc(1, sizeof(*g->work));
	g->km = (struct guest_kmem){.mem = mem, .virt = g->virt};
	g->procs = (struct guest_procs){.km = &g->km, .events = &g->events, .dsos = &g->dsos};
	snprintf(g->why_not, sizeof(g->why_not), "no kernel was looked for yet");
	g->looks = xcalloc((size_t)cfg->nr_vcpus + 1, sizeof(*g->looks));
	g->areas = xcalloc((size_t)cfg->nr_vcpus + 1, sizeof(*g->areas));
	*out = g;
	return 0;
}

/* All that depends on the kernel that ran. */
static void forget_kernel(struct guest *g)
{
	guest_procs_reset(&g->procs);
	guest_told_free(&g->told);
	guest_dsos_forget_kernel(&g->dsos);
	guest_orc_free(&g->orc);
	guest_code_flush(g->code);
	guest_kernel_free(g->kernel);
	guest_virt_flush(g->virt, 0);
	g->kernel = NULL;
	g->next_module = g->next_made = 0;
	memset(&g->info, 0, sizeof(g->info));
	for (size_t i = 0; i < g->nr_vcpus; i++)
		g->vcpu[i] = (struct guest_vcpu){0};
	memset(g->looks, 0, g->cfg.nr_vcpus * sizeof(*g->looks));
	g->looked = 0;
}

void guest_close(struct guest *g)
{
	if (!g)
		return;
	forget_kernel(g);
	guest_events_free(&g->events);
	guest_dsos_free(&g->dsos);
	guest_code_free(g->code);
	guest_virt_free(g->virt);
	free(g->vcpu);
	free(g->looks);
	free(g->areas);
	free(g->work);
	free(g);
}

/* ---------- the kernel ---------- */

static void announce_kernel(struct guest *g, uint64_t time)
{
	struct guest_dso_entry *e = guest_dsos_get(&g->dsos, "[kernel]", NULL);
	struct guest_event ev = {
		.type = GUEST_EVENT_KERNEL,
		.time = time,
		.start = g->info.text,
		.len = g->info.end - g->info.text,
		.prot = GUEST_VM_READ | GUEST_VM_EXEC,
	};

	memcpy(e->dso.build_id, g->info.build_id, sizeof(e->dso.build_id));
	e->dso.build_id_len = g->info.build_id_len;
	ev.dso = e->dso;
	guest_events_add(&g->events, &ev);
}

static void announce_made_code(struct guest *g, uint64_t time)
{
	const struct guest_made_code *c;
	uint32_t next = g->next_made;

	for (size_t i = 0; (c = guest_kernel_made_code_nth(g->kernel, i)); i++) {
		const struct guest_event ev = {
			.type = GUEST_EVENT_CODE,
			.time = time,
			.start = c->start,
			.len = c->end - c->start,
			.name = c->name,
		};

		if (c->id < g->next_made)
			continue;
		next = c->id + 1 > next ? c->id + 1 : next;
		guest_events_add(&g->events, &ev);
	}
	g->next_made = next;
}

static void announce_modules(struct guest *g, uint64_t time)
{
	const struct guest_module *mod;
	uint32_t next = g->next_module;

	for (size_t i = 0; (mod = guest_kernel_module_nth(g->kernel, i)); i++) {
		struct guest_event ev = {
			.type = GUEST_EVENT_MODULE,
			.time = time,
			.start = mod->text,
			.len = mod->text_len,
			.prot = GUEST_VM_READ | GUEST_VM_EXEC,
		};
		struct guest_dso_entry *e;

		if (mod->id < g->next_module || !mod->text_len)
			continue;
		next = mod->id + 1 > next ? mod->id + 1 : next;
		e = guest_dsos_get(&g->dsos, mod->name, NULL);
		memcpy(e->dso.build_id, mod->build_id, sizeof(e->dso.build_id));
		e->dso.build_id_len = mod->build_id_len;
		ev.dso = e->dso;
		guest_events_add(&g->events, &ev);
	}
	g->next_module = next;
}

void guest_announce_code(struct guest *g, uint64_t time)
{
	announce_modules(g, time);
	announce_made_code(g, time);
}

void guest_reread_kernel_info(struct guest *g)
{
	guest_kernel_describe(g->kernel, &g->info);
	g->procs.pti = g->info.pti;
}

/* Takes @k over. 0 or -ESRCH */
static int adopt(struct guest *g, struct guest_kernel *k, uint64_t time)
{
	if (g->kernel && guest_kernel_same(g->kernel, k)) {
		guest_kernel_free(k);
		return 0;
	}
	if (g->kernel) {
		struct guest_event ev = {.type = GUEST_EVENT_RESET, .time = time};

		forget_kernel(g);
		g->task_wanted = false; /* another kernel may have it elsewhere */
		g->stats.resets++;
		guest_events_add(&g->events, &ev);
	}
	g->kernel = k;
	g->km.as = guest_kernel_as(k);
	g->no_types = guest_layout_init(&g->km.lay, k, g->virt);
	guest_reread_kernel_info(g);
	announce_kernel(g, time);
	guest_announce_code(g, time);
	return guest_orc_init(&g->orc, k, g->virt);
}

static int look_for_kernel(struct guest *g, const struct guest_regs *regs, uint64_t time,
			   struct vmprof_err *err)
{
	struct guest_kernel *k;
	int rc;

	rc = regs ? guest_kernel_find(&k, g->mem, g->virt, regs, err)
		  : guest_kernel_scan(&k, g->mem, g->virt, err);
	/* With page-table isolation, user mode's registers lead to no kernel on aarch64. */
	if (rc == -ENOENT && regs && regs->cpl == 3 && g->cfg.arch == GUEST_ARCH_AARCH64)
		rc = guest_kernel_scan(&k, g->mem, g->virt, err);
	return rc ? rc : adopt(g, k, time);
}

int guest_identify(struct guest *g, const struct guest_regs *regs, struct vmprof_err *err)
{
	struct vmprof_err local = {0};
	int rc;

	err = err ? err : &local;
	rc = look_for_kernel(g, regs, 0, err);
	if (!rc && !regs && !g->no_types)
		rc = guest_procs_snapshot(&g->procs, false, 0);
	if (rc)
		snprintf(g->why_not, sizeof(g->why_not), "%s", err->msg);
	return rc;
}

/*
 * While a VM boots its registers belong to no kernel; a known one is kept until another one was
 * found, as one vCPU may still be in firmware, or in system management mode, while others run.
 */
int guest_need_kernel(struct guest *g, struct guest_vcpu *vc, const struct guest_regs *regs,
		      uint64_t time)
{
	struct vmprof_err err;
	int rc;

	if (g->kernel) {
		if (vc->alive_at && vc->idt == regs->idt_base && time >= vc->alive_at &&
		    time - vc->alive_at < ALIVE_EVERY)
			return 0;
		if (guest_kernel_alive(g->kernel, regs)) {
			vc->idt = regs->idt_base;
			vc->alive_at = time ? time : 1;
			g->retry_at = g->retry_after = 0;
			return 0;
		}
		if (!g->retry_after) { /* once is nothing: it may be what was read of a vCPU */
			g->retry_after = RETRY_FIRST / 2;
			g->retry_at = time + RETRY_FIRST;
		}
	}
	if (time < g->retry_at)
		return -ENOENT;
	g->retry_after = g->retry_after ? 2 * g->retry_after : RETRY_FIRST;
	if (g->retry_after > RETRY_MAX)
		g->retry_after = RETRY_MAX;
	rc = look_for_kernel(g, regs, time, &err);
	g->retry_at = time + g->retry_after;
	if (rc)
		snprintf(g->why_not, sizeof(g->why_not), "%s", err.msg);
	return rc;
}

/* To look through all of memory is dear: it may take a 20th of the time. */
int guest_need_kernel_in_memory(struct guest *g, uint64_t time)
{
	struct vmprof_err err;
	uint64_t begin;
	int rc;

	if (g->kernel && guest_kernel_in_memory(g->kernel)) {
		g->retry_at = g->retry_after = 0;
		return 0;
	}
	if (time < g->retry_at)
		return -ENOENT;
	begin = clock_now_ns();
	rc = look_for_kernel(g, NULL, time, &err);
	g->retry_after = 20 * (clock_now_ns() - begin);
	if (g->retry_after < RETRY_FIRST)
		g->retry_after = RETRY_FIRST;
	g->retry_at = time + g->retry_after;
	if (rc)
		snprintf(g->why_not, sizeof(g->why_not), "%s", err.msg);
	return rc;
}

void guest_kernel_info(struct guest *g, struct guest_kernel_info *info)
{
	if (g->kernel)
		guest_reread_kernel_info(g);
	*info = g->info;
	info->known = g->kernel;
	if (g->kernel && g->no_types) {
		info->has_types = false;
		info->why_not = info->why_not ? info->why_not : g->no_types;
	}
	if (!g->kernel)
		info->why_not = g->why_not;
}

int guest_kernel_symbols(struct guest *g, const char *module,
			 int (*fn)(void *ctx, const struct guest_symbol *sym), void *ctx)
{
	return g->kernel ? guest_kernel_each_symbol(g->kernel, module, fn, ctx) : -ENOENT;
}

/* ---------- side-band and files ---------- */

bool guest_next_event(struct guest *g, struct guest_event *ev)
{
	return guest_events_next(&g->events, ev);
}

bool guest_next_hit_dso(struct guest *g, struct guest_dso *dso)
{
	struct guest_dsos *t = &g->dsos;

	if (t->next_hit == t->nr_hit)
		return false;
	*dso = t->entry[t->hit[t->next_hit++]]->dso;
	return true;
}

int guest_kernel_read(struct guest *g, uint64_t addr, void *buf, size_t len)
{
	if (!g->kernel || !(addr >> 63))
		return -EFAULT;
	return guest_virt_read(g->virt, g->km.as, addr, buf, len);
}

ssize_t guest_dso_read(struct guest *g, uint32_t dso_id, uint64_t off, void *buf, size_t len,
		       uint8_t *present)
{
	struct guest_dso_entry *e = guest_dsos_by_id(&g->dsos, dso_id);

	if (!e)
		return -ENOENT;
	if (!g->kernel || !e->file.inode)
		return -ENODATA;
	return guest_pagecache_read(&g->km, &e->file, off, buf, len, present);
}

struct loaded {
	struct guest *g;
	struct guest_as as;
	uint64_t base;
};

static int loaded_read(void *ctx, uint64_t off, void *buf, size_t len)
{
	struct loaded *l = ctx;

	return guest_virt_read(l->g->virt, l->as, l->base + off, buf, len);
}

/* A process that has the DSO mapped from its first byte on, with the page tables as they are now.
 */
static int find_loaded(struct guest *g, const struct guest_dso_entry *e, struct loaded *l)
{
	struct guest_process *proc = hashmap_get(&g->procs.by_tgid, (uint32_t)e->tgid);
	struct guest_task t;
	int rc;

	if (!g->kernel || !proc || !e->base)
		return -ENODATA;
	rc = guest_task_read(&g->km, guest_process_task(proc), proc->mm, &t);
	if (rc)
		return rc == -ESRCH ? rc : -ENODATA;
	if (t.ctx_id != proc->ctx_id || !t.mm)
		return -ENODATA;
	guest_virt_flush(g->virt, proc->as.root);
	*l = (struct loaded){.g = g, .as = proc->as, .base = e->base};
	return 0;
}

int guest_dso_read_image(struct guest *g, uint32_t dso_id, uint64_t vaddr, void *buf, size_t len)
{
	struct guest_dso_entry *e = guest_dsos_by_id(&g->dsos, dso_id);
	struct guest_elf elf;
	struct loaded l;
	int rc;

	if (!e)
		return -ENOENT;
	rc = find_loaded(g, e, &l);
	rc = rc ? rc : guest_elf_read(&elf, true, loaded_read, &l);
	if (rc)
		return rc;
	if (e->dso.build_id_len && (elf.build_id_len != e->dso.build_id_len ||
				    memcmp(elf.build_id, e->dso.build_id, elf.build_id_len)))
		return -ESTALE;
	return guest_virt_read(g->virt, l.as, l.base + vaddr - elf.bias_vaddr, buf, len);
}

int guest_made_read(struct guest *g, uint32_t dso_id, uint64_t addr, void *buf, size_t len)
{
	struct guest_dso_entry *e = guest_dsos_by_id(&g->dsos, dso_id);
	struct loaded l;
	int rc;

	if (!e || !e->dso.owner || addr >> 63)
		return -ENOENT;
	rc = find_loaded(g, e, &l);
	return rc ? rc : guest_virt_read(g->virt, l.as, addr, buf, len);
}

void guest_get_stats(struct guest *g, struct guest_stats *st)
{
	*st = g->stats;
	st->processes = g->procs.processes_seen;
	st->maps = g->procs.maps_seen;
	st->vma_walks = g->procs.vma_walks;
	guest_virt_stats(g->virt, &st->reads, &st->read_bytes);
}
